"""Policies that wrap other policies, such as Doubling."""

# Annotations are not postponed, so that the types of inherited fields are known in other modules.

from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from manyarms.errors import ParameterError
from manyarms.protocol.plain_classes import is_plain
from manyarms.protocol.policy import Policy

W = TypeVar("W", bound="Wrapper")


@dataclass(frozen=True)
class Wrapper(Policy):
    """A policy that wraps another one, and passes on rewards and arms to it.

    Its name is the prefix, its own parameters, and the name of the wrapped policy:
    "guarded(beta=0.6)-moss".
    """

    prefix: ClassVar[str]

    policy: Policy

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.policy, Policy):
            fix = " Wrap your class: ma.plain_policy(...)." if is_plain(self.policy) else ""
            raise ParameterError(
                f"`policy` must be a policy such as MOSS(), got {self.policy!r}.{fix}"
            )

    @property
    def name(self) -> str:  # type: ignore[override]  # it depends on the wrapped policy
        """The prefix and the name of the wrapped policy."""
        return f"{self.prefix}-{self.policy.name}"

    def text(self, *, known: bool = True) -> str:
        return f"{self.prefix}{self._brackets(known)}-{self.policy.text(known=known)}"

    def first_draws(self, *, n_arms: int, pulls: int) -> int:
        return self.policy.first_draws(n_arms=n_arms, pulls=pulls)

    def with_best_mean(self: W, best_mean: float) -> W:
        return replace(self, policy=self.policy.with_best_mean(best_mean))

    def with_reward_range(
        self: W, reward_range: tuple[float, float] | None, sigma: float | None = None
    ) -> W:
        return replace(self, policy=self.policy.with_reward_range(reward_range, sigma))
