"""Advice: which policy to take for a problem of a given size, in numbers and in words."""

from manyarms.advice.advise import BETAS, advise
from manyarms.advice.table import Advice, AdviceRow

__all__ = ["BETAS", "Advice", "AdviceRow", "advise"]
