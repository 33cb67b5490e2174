"""Formulas only: hardness, schedules, rates, probabilities."""

from manyarms.theory.hardness import Problem, best_arms, hardness, miss_probability
from manyarms.theory.rates import (
    minimax_rate,
    moss_plus_plus_rate,
    quantile_rate,
    subset_rate,
)

__all__ = [
    "Problem",
    "best_arms",
    "hardness",
    "minimax_rate",
    "miss_probability",
    "moss_plus_plus_rate",
    "quantile_rate",
    "subset_rate",
]
