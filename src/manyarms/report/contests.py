"""Policies on many contests: who loses least, how often, and by how much the others lose more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import Interval, mean_interval
from manyarms.errors import ParameterError
from manyarms.results import Result

__all__ = ["ContestResult", "Standing", "game_title", "standings"]


@dataclass(frozen=True)
class ContestResult:
    """What was measured on one contest.

    Attributes
    ----------
    contest
        Its name.
    threshold
        From which mean on captions counted as best; None where means were left as they are.
    n_best, alpha
        The number of best captions, and the hardness that follows from it.
    result
        From `simulate`.
    """

    contest: str
    threshold: float | None
    n_best: int
    alpha: float
    result: Result

    @property
    def regrets(self) -> NDArray[np.float64]:
        """The mean final regret of each policy."""
        return np.asarray(self.result.regret[:, :, -1].mean(axis=1))

    @property
    def ranks(self) -> NDArray[np.float64]:
        """The place of each policy, 1 for the best; those that tie share the mean of their places.

        MOSS Oracle ties with MOSS where a best caption is so rare that it keeps them all.
        """
        row, column = self.regrets[:, None], self.regrets[None, :]
        return np.asarray(0.5 + (column < row).sum(axis=1) + 0.5 * (column == row).sum(axis=1))


@dataclass(frozen=True)
class Standing:
    """How one policy does over all contests."""

    policy: str
    relative: Interval  # regret over that of the best policy of the contest
    wins: int
    rank: Interval  # 1 is the best
    miss_rate: float


def standings(results: Sequence[ContestResult]) -> list[Standing]:
    """Compare policies over contests that were played alike.

    Parameters
    ----------
    results
        One for each contest, all with the same policies and the same threshold. Contests on which
        some policy loses nothing at all have no ratio, and are not admitted.

    Examples
    --------
    >>> import manyarms as ma
    >>> def played(seed):
    ...     instance = ma.instances.planted(n=500, m=50)
    ...     policies = [ma.MOSS(), ma.Quantile()]
    ...     result = ma.simulate(policies, instance, horizon=500, replications=9, seed=seed)
    ...     return ContestResult(f"contest {seed}", 0.8, 50, 0.37, result)
    >>> rows = standings([played(seed) for seed in range(4)])
    >>> [(row.policy, row.wins, row.rank.estimate) for row in rows]
    [('moss', 0, 2.0), ('quantile', 4, 1.0)]
    """
    if not results:
        raise ParameterError("`results` must hold at least one contest, got none.")
    policies = results[0].result.policies
    alike = {(one.result.policies, one.threshold) for one in results}
    regrets = np.array([one.regrets for one in results]) if len(alike) == 1 else np.zeros((1, 1))
    if regrets.min() <= 0.0:
        raise ParameterError(
            "`results` must hold contests with the same policies and threshold, on which every "
            "policy loses something, got others. Leave them out."
        )
    best = regrets.min(axis=1, keepdims=True)
    relative: NDArray[np.float64] = regrets / best
    ranks = np.array([one.ranks for one in results])
    misses = np.array([(one.result.best_pulls == 0).mean(axis=1) for one in results])
    return [
        Standing(
            policy,
            _within(mean_interval(relative[:, k]), 1.0, math.inf),
            int((regrets[:, k] == best[:, 0]).sum()),
            _within(mean_interval(ranks[:, k]), 1.0, len(policies)),
            float(misses[:, k].mean()),
        )
        for k, policy in enumerate(policies)
    ]


def game_title(threshold: float | None) -> str:
    """Return in words how means were made of votes.

    >>> game_title(0.8), game_title(None)
    ('best: all within 0.8 of the funniest', 'best: the funniest alone')
    """
    if threshold is None:
        return "best: the funniest alone"
    return f"best: all within {threshold:g} of the funniest"


def _within(interval: Interval, least: float, most: float) -> Interval:
    """Cut an interval where values end; nan, of a single contest, remains."""
    low, high = np.clip([interval.low, interval.high], least, most).tolist()
    return Interval(interval.estimate, low, high)
