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
from manyarms.protocol.scales import half_width

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
        slots += memory.changes if runs == 1 else 0  # arms with known rewards have slots, too
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
                f"is for rewards in a known range. Leave out `bound`."
            )

    def with_reward_range(
        self: G, reward_range: tuple[float, float] | None, sigma: float | None = None
    ) -> G:
        return replace(self, **self._for_rewards(reward_range, sigma))

    def _for_rewards(
        self, reward_range: tuple[float, float] | None, sigma: float | None
    ) -> dict[str, Any]:
        """Return the guard's parameters for these rewards; those that were given are kept."""
        low, high = (0.0, 1.0) if is_unit(reward_range) else reward_range or (None, None)
        bottom = low if self.bottom is None else self.bottom
        top = high if self.top is None else self.top
        has_range = False  # whether all rewards are in the range that "kl" takes for them
        if bottom is not None and top is not None and low is not None and high is not None:
            least, largest = range_for_kl(bottom, top)
            has_range = least <= low and high <= largest
        bound = self.bound or ("kl" if has_range and self.sigma is None else "mean")
        if bound == "kl":
            if not has_range:
                raise ParameterError(
                    f"`bound` must be 'mean' for {self} if rewards have the range {reward_range}, "
                    f"got 'kl', which needs a range within `bottom` and `top`. Leave out `bound`, "
                    f"`bottom` and `top`."
                )
            return {"bound": bound, "sigma": None, "bottom": bottom, "top": top}
        given = sigma if reward_range is None else half_width(reward_range)
        sigma = given if self.sigma is None else self.sigma
        resolved = {"sigma": sigma, "bottom": bottom, "top": top}
        missing = [f"`{name}`" for name, value in resolved.items() if value is None]
        if missing:
            raise ParameterError(
                f"{', '.join(missing)} must be given to {self} if rewards have no range. Rewards "
                f"must be sigma-sub-Gaussian, and all means between `bottom` and `top`. Or give "
                f"the range, or scale rewards into [0, 1]."
            )
        return {"bound": bound, **resolved}

    def _guard(self, memory: Memory, n_arms: int, pulls: int) -> Guard:
        kl = self.bound == "kl"
        sigma = 0.0 if kl else self.sigma
        if self.bound is None or self.bottom is None or self.top is None or sigma is None:
            raise ParameterError(
                f"`bound`, `bottom` and `top` must be known to play {self}, got {self.bound}, "
                f"{self.bottom} and {self.top}. `with_reward_range` sets them."
            )
        least, largest = self.bottom, self.top
        if kl:
            least, largest = range_for_kl(self.bottom, self.top)
            sigma = (largest - least) / 2.0  # by Hoeffding's lemma
        return guard(
            memory,
            n_arms,
            pulls=pulls,
            beta=self.beta,
            kl=kl,
            sigma=sigma,
            least=least,
            width=largest - least,
            bottom=self.bottom,
            top=self.top,
        )


def range_for_kl(bottom: float, top: float) -> tuple[float, float]:
    """Return the range of rewards for "kl": [0, 1], or that of the means if it is not within."""
    return (0.0, 1.0) if 0.0 <= bottom < top <= 1.0 else (bottom, top)
