"""Measured exponents: problems of constant hardness whose horizon grows by powers of two.

Each function returns settings, nothing else: what is played on what.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from manyarms.core.checks import check_int
from manyarms.experiments.setting import Setting
from manyarms.instances import Gaussian, grouped, planted
from manyarms.instances.lower_bound import lower_bound_instance
from manyarms.policies import MOSSOracle, MOSSPlusPlus, Quantile
from manyarms.protocol import Policy
from manyarms.theory.hardness import best_arms
from manyarms.theory.lower_bound_family import LowerBoundFamily
from manyarms.theory.schedules import subset_size

__all__ = ["ExponentSetting", "exponent_settings", "runs_at"]

ALPHAS = (0.1, 0.3, 0.5)
BETAS = (0.5, 0.6, 0.75)
N_ARMS = 2**40  # far more than any set: rounding of the number of best arms disappears

# log2 T, such that beta log2 T is whole: else the rounding of p bends the line
PLANTED = {0.5: range(10, 23, 2), 0.6: range(10, 26, 5), 0.75: range(12, 25, 4)}
# near ties make these games slow, a pull costs ten times as much for a large beta: shorter ones
LOWER_BOUND = {0.5: range(10, 23, 2), 0.6: range(10, 21, 5), 0.75: range(8, 21, 4)}
SUBSET = range(10, 23, 2)

GAPS = (1.0, 2.0, 4.0)  # c, for the gap c sqrt(K/T); the worst is near 2
BUDGETS = (1.0, 4.0)  # multiples of the smallest c that the construction allows
PLANTED_GAP = 0.4  # from the best mean 0.9 to the next, 0.5
FULL_RUNS = 2**14  # up to this horizon all replications are played
FEWEST = 25  # from some horizon on, this part of them


@dataclass(frozen=True)
class ExponentSetting:
    """One horizon of a series: one policy on one kind of problem.

    Attributes
    ----------
    policy
        The policy's name, the same at all hardnesses.
    kind
        "planted", "shrinking gap" or "lower bound".
    factor
        c, which scales the gap or the budget; 1 for planted problems.
    settled
        T times the gap between the best mean and the next: the regret of never finding the best.
    setting, replications
        What is played, and how often.
    """

    policy: str
    kind: str
    factor: float
    settled: float
    setting: Setting
    replications: int


def runs_at(horizon: int, replications: int, *, kind: str) -> int:
    """Return how often a game of this horizon is played.

    All replications up to T = 2^14, then as many as keep the pulls constant, but never fewer
    than a twenty-fifth of them (and never fewer than 2). Planted problems get four times as
    many below that floor: their regret is two-valued (a best arm was met or not), and varies.

    >>> [runs_at(2**k, 400, kind="planted") for k in (10, 16, 18, 22)]
    [1600, 400, 100, 16]
    """
    check_int("replications", replications, at_least=1)
    most = 4 * replications if kind == "planted" else replications
    return max(2, -(-replications // FEWEST), min(most, most * FULL_RUNS // horizon))


def exponent_settings(replications: int) -> list[ExponentSetting]:
    """Return all games: MOSS++ for each beta, MOSS Oracle and Quantile, at each hardness.

    Parameters
    ----------
    replications
        Of the short games; `runs_at` says how many the longer ones get.

    Notes
    -----
    A fixed gap makes regret instance-dependent: a subset policy's slope is then not its rate.
    So MOSS Oracle and Quantile play gaps that shrink as c sqrt(K/T), K being the size of their
    set, for several c. Quantile plays planted problems too, because on hard ones it loses by
    missing the best arms, and that costs most when the gap is wide. MOSS++ plays planted
    problems, which show the cost T^beta of its first iterations, and the lower bound's with
    alpha' = 0 and B = c T^beta, which show T^(1 + alpha - beta); the latter only where that
    exponent is not below beta, since elsewhere it cannot be the worse one.
    """
    series: list[Iterable[ExponentSetting]] = []
    for alpha in ALPHAS:
        for beta in BETAS:
            policy, name = MOSSPlusPlus(beta=beta), f"moss++(beta={beta:g})"
            series.append(_planted(policy, name, alpha, PLANTED[beta], replications))
            if 1 + alpha - beta >= beta:
                series.append(_lower_bound(policy, name, alpha, replications))
        sizes = [float(subset_size(2**k, alpha, 2.0, N_ARMS)) for k in SUBSET]
        series.append(_shrinking(MOSSOracle(alpha=alpha), alpha, sizes, replications))
        sizes = [math.pow(2**k, Quantile().exponent) for k in SUBSET]
        series.append(_shrinking(Quantile(), alpha, sizes, replications))
        series.append(_planted(Quantile(), "quantile", alpha, SUBSET, replications))
    return [setting for settings in series for setting in settings]


def _planted(
    policy: Policy, name: str, alpha: float, powers: Iterable[int], replications: int
) -> Iterator[ExponentSetting]:
    """Play the paper's planted means, which do not change with the horizon."""
    for horizon in (2**k for k in powers):
        instance = planted(n=N_ARMS, alpha=alpha, horizon=horizon)
        setting = Setting("rates", alpha, instance, (policy,), horizon)
        runs = runs_at(horizon, replications, kind="planted")
        yield ExponentSetting(name, "planted", 1.0, PLANTED_GAP * horizon, setting, runs)


def _shrinking(
    policy: Policy, alpha: float, sizes: Sequence[float], replications: int
) -> Iterator[ExponentSetting]:
    """Play gaps c sqrt(K/T); a c whose gap is above 1 is left out at that horizon."""
    for k, size in zip(SUBSET, sizes, strict=True):
        horizon = 2**k
        best = best_arms(N_ARMS, horizon, alpha)
        for factor in GAPS:
            gap = factor * math.sqrt(size / horizon)
            if gap > 1.0:
                continue
            instance = grouped(
                sizes=[best, N_ARMS - best],
                means=[gap, 0.0],
                rewards=Gaussian(0.5),
                label=f"shrinking gap(n={N_ARMS}, m={best}, gap={gap:.3g})",
            )
            setting = Setting("rates", alpha, instance, (policy,), horizon)
            runs = runs_at(horizon, replications, kind="shrinking gap")
            yield ExponentSetting(
                policy.name, "shrinking gap", factor, gap * horizon, setting, runs
            )


def _lower_bound(
    policy: MOSSPlusPlus, name: str, alpha: float, replications: int
) -> Iterator[ExponentSetting]:
    """Play instance 1 with alpha' = 0 and B = c T^beta.

    B is scaled by K/T^alpha, so that the gap is a power of T exactly: the rounding in K would
    bend the line. Horizons with T^alpha < 3, where the construction is not defined, are left out.
    """
    horizons = [2**k for k in LOWER_BOUND[policy.beta] if k * alpha >= math.log2(3)]

    def family(horizon: int, budget: float) -> LowerBoundFamily:
        arms = N_ARMS // math.ceil(2 * horizon**alpha)
        return LowerBoundFamily(horizon=horizon, alpha=alpha, budget=budget, m=arms)

    def scale(horizon: int) -> float:  # B / c
        groups = family(horizon, horizon).hidden_groups
        return math.pow(horizon, policy.beta - alpha) * groups

    smallest = max(math.pow(horizon, alpha) / scale(horizon) for horizon in horizons)
    for horizon in horizons:
        for factor in (smallest * multiple for multiple in BUDGETS):
            chosen = family(horizon, factor * scale(horizon))
            instance = lower_bound_instance(chosen, 1)
            setting = Setting("rates", alpha, instance, (policy,), horizon)
            runs = runs_at(horizon, replications, kind="lower bound")
            yield ExponentSetting(name, "lower bound", factor, chosen.settled, setting, runs)
