"""Parameters that several policies share."""

# Annotations are not postponed, so that the types of inherited fields are known in other modules.

from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias, TypeVar

from manyarms.core.memory import Memory
from manyarms.errors import ParameterError
from manyarms.policies.parts.guard_slots import Guard, guard
from manyarms.policies.parts.moss_run import MossIndex, MossRun, moss_run
from manyarms.protocol import Policy
from manyarms.protocol.parameters import Flag, Number, Positive, choice, number
from manyarms.protocol.policy import is_unit
from manyarms.protocol.recommend import half_width

B = TypeVar("B", bound="KnowsBestMean")
S = TypeVar("S", bound="SigmaPolicy")
G = TypeVar("G", bound="GuardPolicy")
Mean: TypeAlias = Annotated[float, number(at_least=-1e100, at_most=1e100)]


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
        return moss_run(memory, n_arms, slots=slots, index=index, draws=draws, runs=runs, room=room)


@dataclass(frozen=True, kw_only=True)
class SigmaPolicy(Policy):
    """A policy for sigma-sub-Gaussian rewards; without `sigma`, the rewards decide."""

    sigma: Positive | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unit_rewards and self.sigma is not None:
            raise unused("sigma", self.sigma, self)

    def with_reward_range(
        self: S, reward_range: tuple[float, float] | None, sigma: float | None = None
    ) -> S:
        """Set sigma, unless it was given, to half the width of the range (Hoeffding's lemma)."""
        if self.unit_rewards or self.sigma is not None:
            return super().with_reward_range(reward_range, sigma)
        sigma = sigma if reward_range is None else half_width(reward_range)
        if sigma is None:
            raise _no_sigma(self)
        return replace(self, sigma=sigma)

    def _sigma(self) -> float:
        """Return sigma, or raise if it is not known."""
        if self.unit_rewards:
            return 0.5
        if self.sigma is None:
            raise _no_sigma(self)
        return self.sigma


def _no_sigma(policy: Policy) -> ParameterError:
    return ParameterError(
        f"`sigma` must be given to {policy} if rewards have no range, got None. Give the `sigma` "
        f"for which rewards are sigma-sub-Gaussian, such as sigma=2.0, or the range.",
        parameter="sigma",
    )


def unused(name: str, value: Any, policy: Policy) -> ParameterError:
    """Return the error for a parameter that a policy for rewards in [0, 1] does not use."""
    kind = type(policy).__name__
    return ParameterError(
        f"`{name}` must be left out of a {kind} for rewards in [0, 1], got {value!r} for "
        f"{policy.name}. Leave it out, or leave out `index` or `bound`.",
        parameter=name,
    )


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
        return 4.0 * self._sigma() ** 2 * self.exploration


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
    bound: Annotated[str, choice("kl", "mean")] | None = None
    sigma: Positive | None = None
    bottom: Mean | None = None
    top: Mean | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bottom is not None and self.top is not None and not self.bottom < self.top:
            raise ParameterError(
                f"`top` must be above `bottom`, got bottom={self.bottom} and top={self.top}."
            )
        if self.bound == "kl" and self.sigma is not None:
            raise ParameterError(
                f"`sigma` is for bound='mean' only, got sigma={self.sigma} with bound='kl', which "
                f"is for rewards in [0, 1]. Leave out `bound`."
            )
        ends = [end for end in (self.bottom, self.top) if end is not None]
        if self.bound == "kl" and not all(0.0 <= end <= 1.0 for end in ends):
            raise ParameterError(
                f"`bound` must be 'mean' if means are not in [0, 1], got 'kl' with "
                f"bottom={self.bottom} and top={self.top}. Give `sigma`, too."
            )

    def with_reward_range(
        self: G, reward_range: tuple[float, float] | None, sigma: float | None = None
    ) -> G:
        return replace(self, **self._for_rewards(reward_range, sigma))

    def _for_rewards(
        self, reward_range: tuple[float, float] | None, sigma: float | None
    ) -> dict[str, Any]:
        """Return the guard's parameters for these rewards; those that were given are kept."""
        unit, (low, high) = is_unit(reward_range), reward_range or (None, None)
        bound = self.bound or ("kl" if unit and self.sigma is None else "mean")
        if bound == "kl":
            if not unit:
                raise ParameterError(
                    f"`bound` must be 'mean' for {self} if rewards may lie outside [0, 1], got "
                    f"'kl' with the range {reward_range}. Leave out `bound`, or scale rewards."
                )
            found: dict[str, Any] = {"sigma": None, "bottom": 0.0, "top": 1.0}
        else:
            if reward_range is not None:
                sigma = half_width(reward_range)
            found = {"sigma": sigma, "bottom": low, "top": high}
        found = {
            name: value if getattr(self, name) is None else getattr(self, name)
            for name, value in found.items()
        }
        missing = [f"`{name}`" for name, value in found.items() if value is None]
        if bound == "mean" and missing:
            raise ParameterError(
                f"{', '.join(missing)} must be given to {self} if rewards have no range. Rewards "
                f"must be sigma-sub-Gaussian, and all means between `bottom` and `top`. Or give "
                f"the range, or scale rewards into [0, 1]."
            )
        return {"bound": bound, **found}

    def _guard(self, memory: Memory, n_arms: int, pulls: int) -> Guard:
        if self.bound is None or self.bottom is None or self.top is None:
            raise ParameterError(
                f"`bound`, `bottom` and `top` must be known to play {self}, got {self.bound}, "
                f"{self.bottom} and {self.top}. `with_reward_range` sets them."
            )
        return guard(
            memory,
            n_arms,
            pulls=pulls,
            beta=self.beta,
            kl=self.bound == "kl",
            sigma=0.5 if self.sigma is None else self.sigma,  # rewards in [0, 1] have 1/2
            bottom=self.bottom,
            top=self.top,
        )
