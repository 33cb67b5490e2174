"""Parameters that several policies share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from manyarms.core.memory import Memory
from manyarms.errors import ParameterError
from manyarms.policies.parts.guard_slots import Guard, guard
from manyarms.policies.parts.moss_run import MossIndex, MossRun, moss_run
from manyarms.protocol import Policy
from manyarms.protocol.parameters import Flag, Number, Positive, choice, number

B = TypeVar("B", bound="KnowsBestMean")
S = TypeVar("S", bound="SigmaPolicy")
G = TypeVar("G", bound="GuardPolicy")


@dataclass(frozen=True, kw_only=True)
class RankingPolicy(Policy):
    """A policy that ranks arms by an index: the mean, plus a bonus in subclasses."""

    @property
    def spread(self) -> float:
        """The factor of the logarithm under the root."""
        return 0.0

    @property
    def mixture_spread(self) -> float:
        """`spread` for mixture-arms."""
        return self.spread

    @property
    def kl(self) -> float:
        """The factor of the logarithm in the KL index; 0 if it is not used."""
        return 0.0

    @property
    def switch(self) -> bool:
        """Whether the MOSS index replaces the KL index after some pulls."""
        return False

    @property
    def plus(self) -> bool:
        """Whether the KL index has the level of KL-UCB++."""
        return False

    def _moss(
        self,
        memory: Memory,
        n_arms: int,
        *,
        slots: int,
        draws: int | None = None,
        runs: int = 1,
        room: int | None = None,
    ) -> MossRun:
        """Allocate a MOSS run with this policy's index; see `moss_run`."""
        index = MossIndex(
            spread=self.spread,
            mixture_spread=self.mixture_spread,
            kl=self.kl,
            switch=self.switch,
            plus=self.plus,
            late_counts=getattr(self, "count_late", False),
        )
        slots += memory.changes if runs == 1 else 0  # arms with known rewards have slots, too
        return moss_run(memory, n_arms, slots=slots, index=index, draws=draws, runs=runs, room=room)


@dataclass(frozen=True, kw_only=True)
class SigmaPolicy(Policy):
    """A policy for sigma-sub-Gaussian rewards; 1/2 holds for rewards in [0, 1]."""

    sigma: Positive = 0.5

    def with_reward_range(self: S, reward_range: tuple[float, float] | None) -> S:
        """Replace a sigma of 1/2 by half the width of the range, valid by Hoeffding's lemma.

        If a smaller value is known to hold, give another `sigma`, or no range.
        """
        low, high = reward_range or (0.0, 1.0)
        wide = high - low != 1.0 and self.sigma == 0.5 and not self.unit_rewards
        return replace(self, sigma=(high - low) / 2.0) if wide else self


@dataclass(frozen=True, kw_only=True)
class IndexPolicy(SigmaPolicy, RankingPolicy):
    """A policy that ranks arms by the MOSS index or by a KL index."""

    exploration: Positive = 1.0
    count_late: Flag = False
    index: Annotated[str, choice("moss", "kl", "kl++")] = "moss"

    @property
    def unit_rewards(self) -> bool:  # type: ignore[override]  # it depends on the index
        return self.index != "moss"

    @property
    def kl(self) -> float:
        return 0.0 if self.index == "moss" else self.exploration

    @property
    def plus(self) -> bool:
        return self.index == "kl++"

    @property
    def spread(self) -> float:
        """The factor of the logarithm under the root: (2 sigma)^2 times exploration."""
        return 4.0 * self.sigma**2 * self.exploration


@dataclass(frozen=True, kw_only=True)
class KnowsBestMean(Policy):
    """A policy that needs the best mean; simulations take it from the instance."""

    best_mean: Number | None = None

    def with_best_mean(self: B, best_mean: float) -> B:
        return replace(self, best_mean=best_mean) if self.best_mean is None else self

    def _best_mean(self) -> float:
        """Return the best mean, or raise if it was not given."""
        if self.best_mean is None:
            kind = type(self).__name__
            raise ParameterError(
                f"`best_mean` must be given to {kind}: the best mean, or an estimate rounded down, "
                f"such as `best_mean=0.9`."
            )
        return self.best_mean


@dataclass(frozen=True, kw_only=True)
class GuardPolicy(Policy):
    """A policy under the guard, with the guard's parameters."""

    beta: Annotated[float, number(at_least=0.5, at_most=1.0)] = 0.5
    bound: Annotated[str, choice("kl", "mean")] = "kl"
    sigma: Positive = 0.5
    bottom: Annotated[float, number(at_least=-1e100, at_most=1e100)] = 0.0
    top: Annotated[float, number(at_least=-1e100, at_most=1e100)] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.bottom < self.top:
            raise ParameterError(
                f"`top` must be above `bottom`, got bottom={self.bottom} and top={self.top}."
            )
        if self.bound == "kl" and self.sigma != 0.5:
            raise ParameterError(
                f"`sigma` is for bound='mean' only, got sigma={self.sigma} with bound='kl', which "
                f"is for rewards in a known range. Give bound='mean', too."
            )

    @property
    def _rewards(self) -> tuple[float, float]:
        """The range of rewards for "kl": [0, 1], or that of the means if it is not within."""
        within = 0.0 <= self.bottom < self.top <= 1.0
        return (0.0, 1.0) if within else (self.bottom, self.top)

    def with_reward_range(self: G, reward_range: tuple[float, float] | None) -> G:
        return replace(self, **self._for_range(reward_range))

    def _for_range(self, reward_range: tuple[float, float] | None) -> dict[str, Any]:
        """Return the guard's parameters for a reward range; none if some were given."""
        low, high = reward_range or (0.0, 1.0)
        given = (self.bound, self.sigma, self.bottom, self.top) != ("kl", 0.5, 0.0, 1.0)
        if given or 0.0 <= low <= high <= 1.0:
            return {}
        return {"bottom": low, "top": high}

    def check_rewards(self, reward_range: tuple[float, float] | None) -> None:
        least, largest = self._rewards
        low, high = reward_range or (least, largest)
        other = self.bound == "mean" and (self.bottom, self.top) != (0.0, 1.0)
        if not other and not least <= low <= high <= largest:
            raise ParameterError(
                f"`reward_range` must lie in [{least:g}, {largest:g}] for {self}, got "
                f"{reward_range}. Give the policy no `bottom` and `top`, or bound='mean', `sigma`, "
                f"and the `bottom` and `top` of the means."
            )

    def _guard(self, memory: Memory, n_arms: int, pulls: int) -> Guard:
        kl = self.bound == "kl"
        least, largest = self._rewards if kl else (self.bottom, self.top)
        return guard(
            memory,
            n_arms,
            pulls=pulls,
            beta=self.beta,
            kl=kl,
            sigma=(largest - least) / 2.0 if kl else self.sigma,  # by Hoeffding's lemma
            least=least,
            width=largest - least,
            bottom=self.bottom,
            top=self.top,
        )
