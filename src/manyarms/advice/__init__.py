"""Advice: which policy to take for a problem of a given size, in numbers and in words."""

from manyarms.advice.advise import BETAS, Advice, AdviceRow, advise

__all__ = ["BETAS", "Advice", "AdviceRow", "advise"]
