"""Formulas only: hardness, schedules, probabilities."""

from manyarms.theory.hardness import Problem, best_arms, hardness, miss_probability

__all__ = ["Problem", "best_arms", "hardness", "miss_probability"]
