"""The policies that are compared. A new one joins by one line in `candidates`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial

from manyarms.advice.question import Question
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
from manyarms.theory import minimax_rate, moss_plus_plus_rate, quantile_rate
from manyarms.theory.schedules import iteration_arms, iterations, quantile_arms, subset_size

__all__ = ["Candidate", "candidates", "code"]


@dataclass(frozen=True)
class Candidate:
    """A policy that may be recommended.

    Attributes
    ----------
    policy
        The policy.
    arms
        The size of its largest set.
    rate
        Its rate, by hardness; None if none is proven.
    dominated
        Whether another policy's rate is nowhere larger and somewhere smaller.
    """

    policy: Policy
    arms: int
    rate: Callable[[float], float] | None = None
    dominated: bool = False

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

    def only_explores(self, question: Question) -> bool:
        """Whether this is MOSS on as many arms as pulls: then no arm is pulled twice."""
        return question.horizon == 1 or (self.is_moss and self.arms >= question.horizon)


def candidates(question: Question) -> list[Candidate]:
    """Return the policies that can be played with what is known, the simplest first.

    The order matters: of policies that do alike the first is recommended. So MOSS comes first,
    then what has a guarantee, then what has none.
    """
    n, horizon, betas = question.n, question.horizon, question.betas
    first_set = {beta: _first_set(question, beta) for beta in betas}
    found = [Candidate(MOSS(), n, partial(_moss_rate, question))]
    if question.bounded and (oracle := _oracle(question)).arms < min(n, horizon):
        found.append(oracle)  # else it is MOSS
    if question.best_mean is not None:
        found.append(Candidate(Patience(best_mean=question.best_mean), 1, minimax_rate))
        parallel = Parallel(best_mean=question.best_mean)
        found.append(Candidate(parallel, min(n, horizon), minimax_rate))
    for kind in (MOSSPlusPlus, HybridMOSSPlusPlus):
        for beta in betas:
            rate = partial(moss_plus_plus_rate, beta=beta)
            found.append(Candidate(kind(beta=beta), first_set[beta], rate))
    last_round = (horizon + 1).bit_length()
    quantile, size = Quantile(), quantile_arms(last_round, Quantile().exponent, n)
    found.append(Candidate(quantile, size, quantile_rate, dominated=True))
    found += [Candidate(EmpMOSSPlusPlus(beta=beta), first_set[beta]) for beta in betas]
    return found


def code(policy: Policy) -> str:
    """Return what to type: `ma.MOSSPlusPlus(beta=0.5)`."""
    told = [
        f"{field.name}={getattr(policy, field.name)!r}"
        for field in fields(policy)
        if field.name == "beta" or getattr(policy, field.name) != field.default
    ]
    return f"ma.{type(policy).__name__}({', '.join(told)})"


def _moss_rate(question: Question, alpha: float) -> float:
    """Return the exponent of sqrt(n T), which is 1 from n = T on."""
    n, horizon = question.n, question.horizon
    return 1.0 if n >= horizon else (1.0 + math.log(n) / math.log(horizon)) / 2.0


def _oracle(question: Question) -> Candidate:
    """MOSS Oracle for the hardest problem there may be; its rate holds for all easier ones."""
    n, horizon = question.n, question.horizon
    hardest = min(question.hardest.alpha, 1.0)
    if question.m_at_least is not None:
        size = subset_size(horizon, 0.0, n / question.m_at_least, n)
        policy = MOSSOracle(m=question.m_at_least)
    else:
        assert question.alpha_at_most is not None  # it is bounded
        size = subset_size(horizon, question.alpha_at_most, 2.0, n)
        policy = MOSSOracle(alpha=question.alpha_at_most)
    return Candidate(policy, size, lambda alpha: minimax_rate(hardest))


def _first_set(question: Question, beta: float) -> int:
    return iteration_arms(iterations(question.horizon, beta), 1, question.n)
