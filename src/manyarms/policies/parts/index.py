"""The parameters that all policies with a MOSS index share, and those with its KL form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manyarms.core.checks import check_number
from manyarms.core.memory import Memory
from manyarms.errors import ParameterError
from manyarms.policies.parts.fresh import FreshArms, fresh_arms
from manyarms.policies.parts.slots import slots
from manyarms.protocol.policy import Policy
from manyarms.theory.schedules import iteration_pulls, iterations

__all__ = ["IndexPolicy", "KLIndexPolicy", "MixturePolicy"]


@dataclass(frozen=True, kw_only=True)
class RankingPolicy(Policy):
    """A policy whose arms are ranked by an index; subclasses say by which."""

    @property
    def spread(self) -> float:
        """What stands before the logarithm, under the root."""
        return 0.0

    @property
    def mixture_spread(self) -> float:
        """`spread` for mixture-arms."""
        return self.spread

    @property
    def kl(self) -> float:
        """What stands before the logarithm in the KL index; 0 where that is not used."""
        return 0.0

    @property
    def switch(self) -> bool:
        """Whether the KL index is left for the other one after some pulls."""
        return False

    def _arms(
        self,
        memory: Memory,
        n_arms: int,
        *,
        arms: int,
        draws: int | None = None,
        runs: int = 1,
    ) -> FreshArms:
        """Make slots for `arms` members in all, in so many MOSS runs."""
        table = slots(
            memory,
            arms,
            spread=self.spread,
            mixture_spread=self.mixture_spread,
            kl=self.kl,
            switch=self.switch,
            count_late=getattr(self, "count_late", False),
            runs=runs,
        )
        draws = arms if draws is None else draws
        return fresh_arms(memory, n_arms, draws=draws, shuffles=runs, slots=table)


def check_count_late(count_late: object) -> None:
    """Raise unless it is a bool."""
    if not isinstance(count_late, bool):
        raise ParameterError(f"`count_late` must be True or False, got {count_late!r}.")


@dataclass(frozen=True, kw_only=True)
class IndexPolicy(RankingPolicy):
    """A policy that ranks by the MOSS index."""

    sigma: float = 0.5
    exploration: float = 1.0
    count_late: bool = False

    def __post_init__(self) -> None:
        self._store(
            sigma=check_number("sigma", self.sigma, above=0.0, at_most=1e100),
            exploration=check_number("exploration", self.exploration, above=0.0, at_most=1e100),
        )
        check_count_late(self.count_late)

    @property
    def spread(self) -> float:
        """What stands before the logarithm, under the root: (2 sigma)^2 times exploration."""
        return 4.0 * self.sigma**2 * self.exploration


@dataclass(frozen=True, kw_only=True)
class KLIndexPolicy(RankingPolicy):
    """A policy that ranks by the KL index, for rewards in [0, 1]: it has no sigma."""

    exploration: float = 1.0
    count_late: bool = False

    def __post_init__(self) -> None:
        self._store(
            exploration=check_number("exploration", self.exploration, above=0.0, at_most=1e100)
        )
        check_count_late(self.count_late)

    @property
    def kl(self) -> float:
        return self.exploration


@dataclass(frozen=True, kw_only=True)
class MixturePolicy(IndexPolicy):
    """A policy with mixture-arms, and the beta of Algorithm 1."""

    beta: float = 0.5
    mixture_sigma: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._store(beta=check_number("beta", self.beta, at_least=0.5, at_most=1.0))
        if self.mixture_sigma is not None:
            sigma = check_number("mixture_sigma", self.mixture_sigma, above=0.0, at_most=1e100)
            self._store(mixture_sigma=sigma)

    @property
    def mixture_spread(self) -> float:
        sigma = self.sigma if self.mixture_sigma is None else self.mixture_sigma
        return 4.0 * sigma**2 * self.exploration

    def stage(self, state: Any) -> str:
        clock = state.clock[0]
        p, last, pulls = iterations(max(clock.horizon, 1), self.beta), 0, 0
        while pulls < clock.horizon:  # the horizon ends the game before iteration p
            last += 1
            pulls += iteration_pulls(p, last, clock.horizon)
        return f"iteration {clock.iteration} of {last}"
