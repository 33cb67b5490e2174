"""SubSampled, any policy on a random subset of the arms, and Greedy (Bayati et al. 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from manyarms.core.checks import check_one
from manyarms.core.hash_map import HashMap, clear_map, find, hash_map, insert
from manyarms.core.jit import rare
from manyarms.core.memory import Memory
from manyarms.core.rng import Stream, draw, stream
from manyarms.core.sampler import Sampler, sampler
from manyarms.policies.parts.moss_run import (
    MossRun,
    ask_arms,
    begin,
    count_late_pulls,
    credit,
    credit_arm,
    present,
    reset_arms,
)
from manyarms.policies.parts.parameters import RankingPolicy
from manyarms.policies.parts.randomness import SUBSET, draw_fresh, reset_order
from manyarms.protocol import (
    Wrapper,
    ask,
    count_late,
    credit_known,
    generation,
    plays,
    reset,
    tell,
)
from manyarms.protocol.parameters import Count, Probability
from manyarms.protocol.policy import recommend

_EXPONENT = 0.5  # of Bayati et al.
_WRONG = -2  # instead of an arm that the inner policy does not have, or recommends without a pull


class GreedyState(NamedTuple):
    """The arms pulled so far, ranked by their mean."""

    moss: MossRun


def greedy_reset(state: GreedyState, key: int, horizon: int) -> None:
    reset_arms(state.moss, key)
    begin(state.moss, present(state.moss), 1)  # with H = 1 the MOSS index is the mean


plays(
    GreedyState,
    reset=greedy_reset,
    ask=lambda state: ask_arms(state.moss),
    tell=lambda state, slot, reward: credit(state.moss, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.moss, slot, change),
    credit_known=lambda state, arm, count, total, _: credit_arm(state.moss, arm, count, total),
)


@dataclass(frozen=True, kw_only=True)
class Greedy(RankingPolicy):
    r"""Pull each of the n arms once, in random order, then always an arm of largest mean.

    .. math:: A_t \in \arg\max_a \bar x_a

    Ties are broken at random. With many arms, run it on a random subset (`SubSampled`, whose
    docstring says what both were checked against).

    Notes
    -----
    An arm whose first pulls fail may never be pulled again. Anytime; with n > T it only explores.
    Cost per pull: O(log(arms tried)), O(1) while one arm leads.

    Examples
    --------
    >>> from manyarms.policies import Greedy
    >>> live = Greedy().live(n_arms=3, seed=1)
    >>> for _ in range(3):
    ...     pull = live.ask()
    ...     live.tell(pull, reward=1.0 if pull.arm == 2 else 0.0)
    >>> live.ask().arm
    2
    """

    name = "greedy"
    anytime = True

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> GreedyState:
        return GreedyState(self._moss(memory, n_arms, slots=min(n_arms, pulls)))


class SubSampledState(NamedTuple):
    """The state of the inner policy, and the real arms behind its arm numbers."""

    size: int
    inner: Any  # the inner policy's state
    subset: HashMap  # the inner policy's arm -> the real arm, once it was pulled
    sampler: Sampler
    words: Stream


def sub_sampled_reset(state: SubSampledState, key: int, horizon: int) -> None:
    clear_map(state.subset)
    reset_order(state.sampler, state.words, key)
    reset(state.inner, draw(key, SUBSET), horizon)


def sub_sampled_ask(state: SubSampledState) -> tuple[int, int]:
    slot, member = ask(state.inner)
    if member < 0 or member >= state.size:
        return slot, min(member, _WRONG)  # not an arm; the caller raises
    at = find(state.subset, member)
    if state.subset.cells[at] == 0:  # its first pull: draw the real arm
        insert(state.subset, at, member, draw_fresh(state.sampler, state.words))
    return slot, state.subset.cells[at + 1]


def sub_sampled_credit(
    state: SubSampledState, arm: int, count: int, total: float, squares: float
) -> int:
    """Credit known rewards while the subset has room for their arms."""
    subset = state.subset
    if arm >= 0:
        at = entry_of(subset, arm)
        if at >= 0:
            credit_known(state.inner, subset.cells[at] - 1, count, total, squares)
        return arm if at >= 0 else -1
    member = credit_known(state.inner, -1, count, total, squares)
    if member < 0:
        return -1
    arm = draw_fresh(state.sampler, state.words)
    insert(subset, find(subset, member), member, arm)
    return arm


@rare
def entry_of(subset: HashMap, arm: int) -> int:
    """Return the entry of a real arm, or -1."""
    for k in range(subset.filled[0]):
        if subset.cells[subset.used[k] + 1] == arm:
            return subset.used[k]
    return -1


def sub_sampled_recommend(state: SubSampledState) -> int:
    member = recommend(state.inner)
    if member < 0:
        return member
    at = find(state.subset, min(member, state.size - 1))
    known = member < state.size and state.subset.cells[at] != 0
    return state.subset.cells[at + 1] if known else _WRONG


plays(
    SubSampledState,
    reset=sub_sampled_reset,
    ask=sub_sampled_ask,
    tell=lambda state, slot, reward: tell(state.inner, slot, reward),
    count_late=lambda state, slot, change: count_late(state.inner, slot, change),
    generation=lambda state: generation(state.inner),
    credit_known=sub_sampled_credit,
    recommend=sub_sampled_recommend,
)


@dataclass(frozen=True)
class SubSampled(Wrapper):
    r"""Draw s arms at random, once, and run a policy on these only.

    Parameters
    ----------
    policy
        The policy to run: `MOSS()`, `Greedy()`, `UCB()` or any other.
    size
        The number s of arms; at most n.
    exponent
        Instead of `size`: :math:`s = \lceil T^\text{exponent} \rceil` (default: 0.5).

    Notes
    -----
    M. Bayati, N. Hamidi, R. Johari, K. Khosravi, "Unreasonable effectiveness of greedy algorithms
    in multi-armed bandit with many arms", NeurIPS 2020: if the prior of the means has a density
    near the best mean, UCB on about :math:`T^{1/2}` arms is rate-optimal, and so is greedy if
    rewards are 0 and 1. If no best arm is among the s, none is ever found. The inner policy sees a
    problem with n = s arms. Cost per pull: that of the inner policy, and one lookup. Arms of the
    subset are drawn when they are first pulled.

    Checked against `mmab.py` and `montecarlo.py` of khashayarkhv/many-armed-bandit, the code of one
    of the authors: UCB and greedy on :math:`T^{1/2}` arms that are drawn once, and greedy with
    Gaussian rewards on :math:`T^{2/3}` arms (both for a prior that is uniform near the best mean).
    There the size is rounded down, and of equal means the first wins; here the size is rounded up,
    and ties are broken at random.

    Examples
    --------
    >>> import manyarms as ma
    >>> policy = ma.policies.SubSampled(ma.MOSS(), exponent=2 / 3)
    >>> str(policy)
    'ss(exponent=2/3)-moss'
    >>> live = policy.live(n_arms=1_000_000, horizon=20_000, seed=1)
    >>> live.tell(live.ask(), reward=1.0)
    """

    size: Count | None = field(default=None, kw_only=True)
    exponent: Probability | None = field(default=None, kw_only=True)

    prefix = "ss"

    def first_draws(self, *, n_arms: int, pulls: int) -> int:
        return self.policy.first_draws(n_arms=self.set_size(n_arms, pulls), pulls=pulls)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size is not None and self.exponent is not None:
            check_one("", size=self.size, exponent=self.exponent)

    @property
    def anytime(self) -> bool:  # type: ignore[override]  # it depends on the inner policy
        """Whether no horizon is needed: the size is fixed and the inner policy is anytime."""
        return self.size is not None and self.policy.anytime

    @property
    def sized_by_horizon(self) -> bool:
        """Whether the size depends on the horizon; `Doubling` refuses such policies."""
        return self.size is None

    def set_size(self, n_arms: int, pulls: int) -> int:
        """Return the size of the subset, from 1 to `n_arms`."""
        size = float(self.size or 0)
        if self.size is None:
            size = math.pow(pulls, _EXPONENT if self.exponent is None else self.exponent)
        return max(1, min(math.ceil(size * (1 - 1e-12)), n_arms))  # pow may be slightly too large

    def stage(self, state: SubSampledState) -> str:
        return self.policy.stage(state.inner)

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> SubSampledState:
        size = self.set_size(n_arms, pulls)
        draws = min(size, pulls)
        return SubSampledState(
            size=size,
            inner=self.policy.new_state(memory, n_arms=size, pulls=pulls),
            subset=hash_map(memory, names=size, entries=draws),
            sampler=sampler(memory, n_arms, draws=draws),
            words=stream(memory),
        )
