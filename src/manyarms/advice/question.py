"""What is asked: the arms, the pulls, and what is known of the best arms; checked once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from manyarms.core.checks import check_int, check_number, check_probability
from manyarms.errors import ParameterError
from manyarms.instances import Instance, planted
from manyarms.protocol.policy import MOST_ARMS
from manyarms.theory import Problem, best_arms

__all__ = ["Question", "question"]

_LONGEST = 10**7  # beyond it a few runs of each policy take minutes, and gigabytes
_POINTS = 5  # hardnesses on the curve
_BEST, _OTHERS = 0.9, (0.1, 0.2, 0.3, 0.4, 0.5)  # the paper's experiments


@dataclass(frozen=True)
class Question:
    """The arms, the pulls, what is known of the best arms, and the gaps to plant."""

    n: int
    horizon: int
    m_at_least: int | None
    alpha_at_most: float | None
    best_mean: float | None
    others: tuple[float, ...]
    betas: tuple[float, ...]

    @property
    def bounded(self) -> bool:
        """Whether anything is known about the number of best arms."""
        return self.m_at_least is not None or self.alpha_at_most is not None

    @property
    def trivial(self) -> bool:
        """Whether all policies are the same: every arm is best, or there is one pull."""
        return self.fewest == self.n or self.horizon == 1

    @property
    def best(self) -> float:
        """The best mean of the planted instances."""
        return _BEST if self.best_mean is None else self.best_mean

    @property
    def fewest(self) -> int:
        """The fewest best arms there may be; where nothing is known, the fewest within reach."""
        if self.m_at_least is not None:
            return self.m_at_least
        alpha = 1.0 if self.alpha_at_most is None else self.alpha_at_most
        return best_arms(self.n, self.horizon, alpha)

    @property
    def hardest(self) -> Problem:
        """The problem with the fewest best arms."""
        return self._problem(self.fewest)

    @property
    def largest_regret(self) -> float:
        """The most that a run can lose on the planted instances."""
        return self.horizon * (self.best - min(self.others))

    def problems(self) -> list[Problem]:
        """Return problems whose hardnesses are spread evenly, the hardest last.

        What is out of reach is one point: beyond hardness 1 all problems are alike.
        """
        within_reach = max(self.fewest, best_arms(self.n, self.horizon, 1.0))
        points = _POINTS if within_reach == self.fewest else _POINTS - 1
        # n/m = 2 T^alpha, and alpha in equal steps from 0: n/m in equal ratios from 2
        most = max(1.0, self.n / within_reach / 2.0)
        ratios = (2.0 * math.pow(most, k / points) for k in range(1, points))
        easier = {max(within_reach, math.ceil(self.n / ratio)) for ratio in ratios}
        counts = easier | {within_reach, self.fewest}
        return [self._problem(m) for m in sorted(counts, reverse=True)]

    def instance(self, problem: Problem) -> Instance:
        """Return planted arms with as many best ones as the problem has."""
        return planted(n=self.n, m=int(problem.m), best=self.best, others=self.others)

    def gaps(self, problem: Problem) -> list[tuple[int, float]]:
        """Return how many arms lose how much: (size, gap), the smallest gap first."""
        groups = len(self.others)
        share, rest = divmod(self.n - int(problem.m), groups)
        sizes = [int(problem.m)] + [share + (k < rest) for k in range(groups)]
        gaps = [0.0] + [self.best - other for other in self.others]
        return sorted(zip(sizes, gaps, strict=True), key=lambda pair: pair[1])

    def _problem(self, m: int) -> Problem:
        return Problem(n=self.n, m=m, horizon=self.horizon)


def question(
    *,
    n: Any,
    horizon: Any,
    m_at_least: Any,
    alpha_at_most: Any,
    best_mean: Any,
    others: Any,
    betas: Any,
) -> Question:
    """Check what is asked."""
    n = check_int("n", n, at_least=1, at_most=MOST_ARMS)
    longest = "Ask for that many: more pulls only make a problem easier."
    horizon = check_int("horizon", horizon, at_least=1, at_most=_LONGEST, fix=longest)
    if m_at_least is not None and alpha_at_most is not None:
        raise ParameterError(
            f"`alpha_at_most` must be left out with `m_at_least`, got {alpha_at_most!r} and "
            f"{m_at_least!r}. Give the one that you know."
        )
    if m_at_least is not None:
        fix = f"There are n = {n} arms, and at least one of them is best."
        m_at_least = check_int("m_at_least", m_at_least, at_least=1, at_most=n, fix=fix)
    if alpha_at_most is not None:
        fix = "Hardness 0 is easy; above 1 no policy can expect to meet a best arm."
        alpha_at_most = check_probability("alpha_at_most", alpha_at_most, fix=fix)
    if best_mean is not None:
        fix = "Rewards lie in [0, 1]; rescale yours."
        best_mean = check_number("best_mean", best_mean, above=0.0, at_most=1.0, fix=fix)
    best = _BEST if best_mean is None else best_mean
    return Question(
        n,
        horizon,
        m_at_least,
        alpha_at_most,
        best_mean,
        _check_others(others, best),
        _check_betas(betas),
    )


def _check_others(others: Any, best: float) -> tuple[float, ...]:
    if others is None:
        # the paper's means in proportion, free of digits that only rounding made
        return tuple(float(f"{mean / _BEST * best:.12g}") for mean in _OTHERS)
    fix = f"They must be smaller than the best mean, which is {best:g}; `best_mean` sets it."
    return tuple(
        check_number("others", mean, at_least=0.0, below=best, fix=fix)
        for mean in _listed("others", others)
    )


def _check_betas(betas: Any) -> tuple[float, ...]:
    checked = [
        check_number("betas", beta, at_least=0.5, at_most=1.0) for beta in _listed("betas", betas)
    ]
    return tuple(sorted(set(checked)))


def _listed(name: str, values: Any) -> Sequence[Any]:
    if isinstance(values, str) or not hasattr(values, "__iter__") or not list(values):
        raise ParameterError(f"`{name}` must be a list with at least one number, got {values!r}.")
    return list(values)
