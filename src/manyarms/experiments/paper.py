"""The experiments of the paper, and those that its claims and hypotheses ask for.

Each function returns settings, nothing else: what is played on what.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from manyarms.experiments.setting import Setting
from manyarms.instances import Instance, planted
from manyarms.policies import MOSS, EmpMOSSPlusPlus, MOSSOracle, MOSSPlusPlus, Parallel, Quantile
from manyarms.protocol import Policy
from manyarms.theory.schedules import subset_size

__all__ = ["fig2a", "fig2b", "fig3", "larger_betas", "oracle_sizes", "quantile_as_moss"]

N_ARMS = 20_000
HORIZON = 50_000
CONTEST_HORIZON = 100_000
BETA = 0.5
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
CURVE = 100  # checkpoints of the figures over time
OTHER_BETAS = (0.6, 0.75, 0.9)
EASY_AND_HARD = (0.1, 0.6, 0.8)


def _six(alpha: float) -> tuple[Policy, ...]:
    return (
        MOSS(),
        MOSSOracle(alpha=alpha),
        Quantile(),
        Parallel(),
        MOSSPlusPlus(beta=BETA),
        EmpMOSSPlusPlus(beta=BETA),
    )


def _planted(alpha: float) -> Instance:
    return planted(n=N_ARMS, alpha=alpha, horizon=HORIZON)


def fig2a(alphas: Sequence[float] = ALPHAS) -> list[Setting]:
    """Figure 2(a): final regret against hardness.

    >>> [setting.instance.n_best for setting in fig2a()][:3]
    [3390, 1149, 390]
    """
    return [Setting("fig2a", alpha, _planted(alpha), _six(alpha), HORIZON) for alpha in alphas]


def fig2b() -> Setting:
    """Figure 2(b): regret over time at hardness 0.25."""
    return Setting("fig2b", 0.25, _planted(0.25), _six(0.25), HORIZON, CURVE)


def fig3(contest: Instance) -> Setting:
    """Figure 3: regret over time on contest 652, or on what stands in for it."""
    alpha = contest.problem(CONTEST_HORIZON).alpha
    return Setting("fig3", alpha, contest, _six(alpha), CONTEST_HORIZON, CURVE)


def larger_betas() -> list[Setting]:
    """Claim 13: larger beta, on easy and on hard problems."""
    policies: tuple[Policy, ...] = (
        *(MOSSPlusPlus(beta=beta) for beta in OTHER_BETAS),
        *(EmpMOSSPlusPlus(beta=beta) for beta in OTHER_BETAS),
    )
    return [
        Setting("larger_betas", alpha, _planted(alpha), policies, HORIZON)
        for alpha in EASY_AND_HARD
    ]


def oracle_sizes(contest: Instance) -> Setting:
    """Claim 14: MOSS on smaller random sets than the Oracle's, on the contest."""
    alpha = contest.problem(CONTEST_HORIZON).alpha
    full = subset_size(CONTEST_HORIZON, alpha, 2.0, contest.n_arms)
    sizes = [max(1, round(full / 2**halvings)) for halvings in range(6)]
    policies = tuple(MOSSOracle(size=size) for size in sizes)
    return Setting("oracle_sizes", alpha, contest, policies, CONTEST_HORIZON)


def quantile_as_moss() -> list[Setting]:
    """Claim 15: MOSS on T^0.347 random arms, to be compared with Quantile."""
    policy = MOSSOracle(size=math.ceil(HORIZON**0.347))
    return [
        Setting("quantile_as_moss", alpha, _planted(alpha), (policy,), HORIZON) for alpha in ALPHAS
    ]
