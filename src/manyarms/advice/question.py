"""What is asked, checked once, and the policies that may be the answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from manyarms.core.checks import check_int, check_number, check_probability
from manyarms.errors import ParameterError
from manyarms.instances import Instance, planted
from manyarms.policies import (
    MOSS,
    EmpMOSSPlusPlus,
    HybridMOSSPlusPlus,
    MOSSOracle,
    MOSSPlusPlus,
    Parallel,
    Patience,
    Quantile,
)
from manyarms.protocol import Policy
from manyarms.protocol.policy import MOST_ARMS
from manyarms.theory import Problem, best_arms, minimax_rate, moss_plus_plus_rate, quantile_rate
from manyarms.theory.schedules import iteration_arms, iterations, quantile_arms, subset_size

__all__ = ["Candidate", "Question", "candidates", "question"]

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
    best: float  # the best mean that is planted
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
    def fewest(self) -> int:
        """The fewest best arms there may be; where nothing is known, the fewest within reach."""
        if self.m_at_least is not None:
            return self.m_at_least
        alpha = 1.0 if self.alpha_at_most is None else self.alpha_at_most
        return best_arms(self.n, self.horizon, alpha)

    @property
    def hardest(self) -> Problem:
        """The problem with the fewest best arms."""
        return self.problems()[-1]

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
        counts = sorted(easier | {within_reach, self.fewest}, reverse=True)
        return [Problem(n=self.n, m=m, horizon=self.horizon) for m in counts]

    def instance(self, problem: Problem) -> Instance:
        """Return planted arms with as many best ones as the problem has."""
        return planted(n=self.n, m=int(problem.m), best=self.best, others=self.others)


def question(
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
    fix = f"They must be smaller than the best mean, which is {best:g}; `best_mean` sets it."
    if others is None:
        # the paper's means in proportion, free of digits that only rounding made
        others = [float(f"{mean / _BEST * best:.12g}") for mean in _OTHERS]
    else:
        others = _numbers("others", others, at_least=0.0, below=best, fix=fix)
    betas = sorted(set(_numbers("betas", betas, at_least=0.5, at_most=1.0)))
    known = m_at_least, alpha_at_most, best_mean
    return Question(n, horizon, *known, best, tuple(others), tuple(betas))


def _numbers(name: str, values: Any, **bounds: Any) -> list[float]:
    if isinstance(values, str) or not hasattr(values, "__iter__") or not list(values):
        raise ParameterError(f"`{name}` must be a list with at least one number, got {values!r}.")
    return [check_number(name, value, **bounds) for value in values]


@dataclass(frozen=True)
class Candidate:
    """A policy that may be recommended."""

    policy: Policy
    arms: int  # the size of its largest set
    rate: Callable[[float], float] | None = None  # by hardness, if one is proven
    dominated: bool = False  # by another policy's rate: nowhere larger, somewhere smaller

    @property
    def has_guarantee(self) -> bool:
        """Whether a rate is proven, and no other policy promises more."""
        return self.rate is not None and not self.dominated

    @property
    def label(self) -> str:
        """The policy's name, with its beta if it has one."""
        beta = getattr(self.policy, "beta", None)
        return self.policy.name if beta is None else f"{self.policy.name} beta={beta:g}"

    @property
    def is_moss(self) -> bool:
        """Whether this is MOSS on one set of arms."""
        return isinstance(self.policy, MOSS | MOSSOracle)


def candidates(question: Question) -> list[Candidate]:
    """Return the policies that can be played with what is known, the simplest first.

    The order matters: of policies that do alike the first is recommended. So MOSS comes first,
    then what has a guarantee, then what has none.
    """
    n, horizon, betas = question.n, question.horizon, question.betas
    first_set = {beta: iteration_arms(iterations(horizon, beta), 1, n) for beta in betas}
    # the exponent of sqrt(n T), which is 1 from n = T on
    rate_of_moss = 1.0 if n >= horizon else (1.0 + math.log(n) / math.log(horizon)) / 2.0
    found = [Candidate(MOSS(), n, lambda alpha: rate_of_moss)]
    if question.bounded and (oracle := _oracle(question)).arms < min(n, horizon):
        found.append(oracle)  # else it is MOSS
    if question.best_mean is not None:
        found.append(Candidate(Patience(best_mean=question.best_mean), 1, minimax_rate))
        parallel = Parallel(best_mean=question.best_mean)
        found.append(Candidate(parallel, min(n, horizon), minimax_rate))
    found += [
        Candidate(kind(beta=beta), first_set[beta], partial(moss_plus_plus_rate, beta=beta))
        for kind in (MOSSPlusPlus, HybridMOSSPlusPlus)
        for beta in betas
    ]
    last_set = quantile_arms((horizon + 1).bit_length(), Quantile().exponent, n)
    found.append(Candidate(Quantile(), last_set, quantile_rate, dominated=True))
    return found + [Candidate(EmpMOSSPlusPlus(beta=beta), first_set[beta]) for beta in betas]


def _oracle(question: Question) -> Candidate:
    """MOSS Oracle for the hardest problem there may be; its rate holds for all easier ones."""
    n, m, alpha = question.n, question.m_at_least, question.alpha_at_most
    # it is bounded: one of the two is known
    ratio, power = (2.0, alpha or 0.0) if m is None else (n / m, 0.0)
    size = subset_size(question.horizon, power, ratio, n)
    rate = minimax_rate(min(question.hardest.alpha, 1.0))
    return Candidate(MOSSOracle(m=m, alpha=alpha), size, lambda alpha: rate)
