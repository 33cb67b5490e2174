"""Hardness, schedules, rates, regret bounds, miss probabilities and Pareto optimality."""

from manyarms.theory.bounds import (
    anytime_moss_plus_plus_bound,
    informative_from,
    learning_error_bound,
    lower_bound,
    minimax_order,
    moss_bound,
    moss_plus_plus_bound,
    parallel_bound,
    share_of_horizon,
    subroutine_bound,
)
from manyarms.theory.hardness import Problem, best_arms, hardness, miss_probability
from manyarms.theory.lower_bound_family import LowerBoundFamily
from manyarms.theory.own_bounds import (
    anytime_guarded_bound,
    guarded_bound,
    guarded_problem_bound,
    guarded_steps_bound,
    patience_bound,
)
from manyarms.theory.pareto import ParetoPosition, pareto_position
from manyarms.theory.rates import (
    adaptation_cost,
    frontier_rate,
    minimax_rate,
    moss_plus_plus_rate,
    quantile_rate,
    subset_rate,
)
from manyarms.theory.schedules import (
    GuardStages,
    Schedule,
    guard_stages,
    moss_plus_plus_schedule,
)

__all__ = [
    "GuardStages",
    "LowerBoundFamily",
    "ParetoPosition",
    "Problem",
    "Schedule",
    "adaptation_cost",
    "anytime_guarded_bound",
    "anytime_moss_plus_plus_bound",
    "best_arms",
    "frontier_rate",
    "guard_stages",
    "guarded_bound",
    "guarded_problem_bound",
    "guarded_steps_bound",
    "hardness",
    "informative_from",
    "learning_error_bound",
    "lower_bound",
    "minimax_order",
    "minimax_rate",
    "miss_probability",
    "moss_bound",
    "moss_plus_plus_bound",
    "moss_plus_plus_rate",
    "moss_plus_plus_schedule",
    "parallel_bound",
    "pareto_position",
    "patience_bound",
    "quantile_rate",
    "share_of_horizon",
    "subroutine_bound",
    "subset_rate",
]
