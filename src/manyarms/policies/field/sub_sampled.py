"""SubSampled: any policy, on a random subset of the arms (Bayati et al. 2020)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from manyarms.core.checks import check_one
from manyarms.core.hash_map import HashMap, clear_map, find, hash_map, insert
from manyarms.core.memory import Memory
from manyarms.core.rng import Stream, draw, stream
from manyarms.core.sampler import Sampler, sampler
from manyarms.policies.field.greedy import Greedy
from manyarms.policies.field.thompson import Thompson
from manyarms.policies.field.ucb import UCB
from manyarms.policies.moss import MOSS
from manyarms.policies.parts.parameters import AroundPolicy
from manyarms.policies.parts.randomness import SUBSET, draw_fresh, reset_order
from manyarms.protocol import (
    About,
    Policy,
    Variant,
    ask,
    count_late,
    generation,
    plays,
    reset,
    tell,
)
from manyarms.protocol.parameters import Count, Probability
from manyarms.protocol.policy import recommend
from manyarms.protocol.registry import Form

_SHORT = {"thompson": "ts"}  # as the source abbreviates it


class SubSampledState(NamedTuple):
    """The state of the inner policy, and which arm each of its arms is."""

    inner: Any  # the policy's own state
    subset: HashMap  # the policy's arm -> the arm it stands for, once it was chosen
    sampler: Sampler
    words: Stream


def sub_sampled_reset(state: SubSampledState, key: int, horizon: int) -> None:
    clear_map(state.subset)
    reset_order(state.sampler, state.words, key)
    reset(state.inner, draw(key, SUBSET), horizon)


def sub_sampled_ask(state: SubSampledState) -> tuple[int, int]:
    slot, member = ask(state.inner)
    at = find(state.subset, member)
    if state.subset.cells[at] == 0:  # drawn only now: which it is made no difference before
        insert(state.subset, at, member, draw_fresh(state.sampler, state.words))
    return slot, state.subset.cells[at + 1]


def sub_sampled_recommend(state: SubSampledState) -> int:
    member = recommend(state.inner)
    return -1 if member < 0 else state.subset.cells[find(state.subset, member) + 1]


plays(
    SubSampledState,
    reset=sub_sampled_reset,
    ask=sub_sampled_ask,
    tell=lambda state, slot, reward: tell(state.inner, slot, reward),
    count_late=lambda state, slot, change: count_late(state.inner, slot, change),
    generation=lambda state: generation(state.inner),
    recommend=sub_sampled_recommend,
)


@dataclass(frozen=True)
class OnSubset(Policy):
    """A policy that runs another one on a random subset; subclasses say which, and how large."""

    @property
    @abstractmethod
    def runs(self) -> Policy:
        """The inner policy."""

    @abstractmethod
    def wanted(self, n_arms: int, pulls: int) -> float:
        """Return the size of the subset, before it is rounded and cut to the number of arms."""

    @property
    def sized_by_horizon(self) -> bool:
        """Whether the size depends on the horizon; `Doubling` refuses such policies."""
        return True

    def set_size(self, n_arms: int, pulls: int) -> int:
        """Return the size of the subset, at least one arm and at most all."""
        size = self.wanted(n_arms, pulls)
        return max(1, min(math.ceil(size * (1 - 1e-12)), n_arms))  # T^(1/2) may round up

    def check_rewards(self, reward_range: tuple[float, float] | None) -> None:
        self.runs.check_rewards(reward_range)

    def stage(self, state: SubSampledState) -> str:
        return self.runs.stage(state.inner)

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> SubSampledState:
        size = self.set_size(n_arms, pulls)
        draws = min(size, pulls)
        return SubSampledState(
            inner=self.runs.new_state(memory, n_arms=size, pulls=pulls),
            subset=hash_map(memory, names=size, entries=draws),
            sampler=sampler(memory, n_arms, draws=draws),
            words=stream(memory),
        )


@dataclass(frozen=True)
class SubSampled(AroundPolicy, OnSubset):
    r"""Draw s arms at random, once, and run a policy on them as if there were no others.

    Parameters
    ----------
    policy
        The policy to run: `MOSS()`, `Greedy()`, `UCB()`, `Thompson()` or any other.
    size
        The number s of arms; all, if there are fewer.
    exponent
        Instead of `size`: :math:`s = \lceil T^\text{exponent} \rceil`.

    Notes
    -----
    M. Bayati, N. Hamidi, R. Johari, K. Khosravi, "Unreasonable effectiveness of greedy algorithms
    in multi-armed bandit with many arms", NeurIPS 2020: for a prior with a density around the best
    mean, 1/2 is the rate-optimal exponent for UCB; 2/3 is theirs for greedy in the worst case. Its
    price is known: where no best arm is among the s, no patience will find one. The policy within
    knows nothing of the other arms: its n is s. Cost per pull: the policy's own, and one look-up.
    Arms of the subset are drawn when they are first pulled.

    Examples
    --------
    >>> import manyarms as ma
    >>> from manyarms.policies.field.sub_sampled import SubSampled
    >>> policy = SubSampled(ma.MOSS(), exponent=0.5)
    >>> policy.label
    'ss-moss(exponent=0.5)'
    >>> live = policy.live(n_arms=1_000_000, horizon=20_000, seed=1)
    >>> live.tell(live.ask(), reward=1.0)
    """

    size: Count | None = field(default=None, kw_only=True)
    exponent: Probability | None = field(default=None, kw_only=True)

    def first_draws(self, *, n_arms: int, pulls: int) -> int:
        return self.policy.first_draws(n_arms=self.set_size(n_arms, pulls), pulls=pulls)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one("Try exponent=0.5.", size=self.size, exponent=self.exponent)

    @property
    def name(self) -> str:  # type: ignore[override]  # it depends on the policy within
        """The policy's name, with "ss-" before it."""
        return f"ss-{_SHORT.get(self.policy.name, self.policy.name)}"

    @property
    def anytime(self) -> bool:  # type: ignore[override]  # as the policy within is
        """Whether it works without a horizon: if the size is fixed and the policy anytime."""
        return self.size is not None and self.policy.anytime

    @property
    def label(self) -> str:
        within = self.policy.label.removeprefix(self.policy.name).strip("()")
        own = (
            f"size={self.size}" if self.exponent is None else f"exponent={_written(self.exponent)}"
        )
        return f"{self.name}({', '.join(filter(None, (within, own)))})"

    @property
    def runs(self) -> Policy:
        return self.policy

    @property
    def sized_by_horizon(self) -> bool:
        return self.size is None

    def wanted(self, n_arms: int, pulls: int) -> float:
        return float(self.size or 1) if self.exponent is None else math.pow(pulls, self.exponent)


def _written(exponent: float) -> str:
    """Return an exponent in its shortest exact form.

    >>> _written(2 / 3), _written(0.5), _written(0.6667)
    ('2/3', '0.5', '0.6667')
    """
    fraction = Fraction(exponent).limit_denominator(9)
    is_exact = float(fraction) == exponent
    return min(repr(exponent), str(fraction), key=len) if is_exact else repr(exponent)


def on_subset(
    policy: Policy, *, size: int | None = None, exponent: float | None = None
) -> SubSampled:
    """Return `policy` on T^(1/2) random arms, unless another size is given."""
    if size is None and exponent is None:
        exponent = 0.5
    return SubSampled(policy, size=size, exponent=exponent)


_about_subset = partial(About, needs="horizon", source="Bayati et al. 2020")
SUB_SAMPLED = {
    "ss-moss": Form(
        _about_subset(
            guarantee="MOSS's, among √T random arms",
            nanoseconds=15,
            page="docs/policies/subsets.md",
            scaling="log of arms in the subset",
            good_at="best arms not rarer than 1 in √T",
        ),
        MOSS,
        on_subset,
    ),
    "ss-greedy": Form(
        _about_subset(
            guarantee="Bayesian, for means dense near the best",
            only_if=("means dense near the best",),
            nanoseconds=13,
            page="docs/policies/subsets.md",
            scaling="log of arms in the subset",
            good_at="many good arms; hard to beat there",
            variants=(
                Variant(
                    label="ss-greedy(T^2/3)",  # its source's for the worst case
                    parameters={"exponent": 2 / 3},
                    guarantee="Bayesian, for means dense near the best",
                    only_if=("means dense near the best",),
                ),
            ),
        ),
        Greedy,
        on_subset,
    ),
    "ss-ucb": Form(
        _about_subset(
            guarantee="Bayesian, for means dense near the best",
            only_if=("means dense near the best",),
            nanoseconds=280,
            page="docs/policies/subsets.md",
            scaling="distinct pull counts",
            good_at="many good arms",
        ),
        UCB,
        on_subset,
    ),
    "ss-ts": Form(
        _about_subset(
            guarantee="none stated here",
            nanoseconds=2400,
            page="docs/policies/subsets.md",
            scaling="distinct (successes, failures): not sublinear",
            good_at="many good arms, rewards 0 and 1",
            rewards="[0, 1]",
        ),
        Thompson,
        on_subset,
    ),
}
