"""Advice: which policy to take for a problem of a given size, in numbers and in words."""

from manyarms.advice.advise import Advice, AdviceRow, advise

__all__ = ["Advice", "AdviceRow", "advise"]
