"""CorralIGW: Corral over rules that weigh by the inverse gap (Zhu & Mineiro 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from manyarms.core.checks import check_number
from manyarms.core.hash_map import HashMap, clear_map, find, hash_map, insert
from manyarms.core.jit import kernel
from manyarms.core.memory import Floats, Ints, Memory, Record, Records, wipe
from manyarms.core.rng import Stream, below, draw, next_word, restart, stream, unit
from manyarms.core.tournament import Tournament, clear, leader, rekey, tournament
from manyarms.policies.parts.randomness import BASES, TIES
from manyarms.protocol import About, Policy, plays
from manyarms.protocol.parameters import Positive, number, whole

_MOST_STEPS = 60  # Newton's method needs fewer than ten


class CorralArm(Record):
    arm: int
    pulls: int
    total: float


class CorralPull(Record):
    place: int  # the arm's place in the table of arms
    base: int  # the base rule that chose
    inverse: float  # 1 / its probability then


class CorralIgwState(NamedTuple):
    """The mean of each arm pulled, the probability of each rule, and how pulls were chosen."""

    n_arms: int
    bases: int
    eta: float
    gamma: Floats  # by base rule
    inverse: Floats  # by base rule: 1 / its probability
    arm: Records[CorralArm]
    number: HashMap  # arm -> its place in `arm`
    rank: Tournament  # by mean
    pull: Records[CorralPull]  # by slot: each pull in flight has its own
    asked: Ints  # [pulls so far]
    observed: Ints  # [rewards so far]
    words: Stream
    ties: Stream


def corral_igw_reset(state: CorralIgwState, key: int, horizon: int) -> None:
    restart(state.words, draw(key, BASES))
    restart(state.ties, draw(key, TIES))
    clear_map(state.number)
    clear(state.rank)
    state.asked[0] = 0
    state.observed[0] = 0
    for j in range(state.bases):
        state.inverse[j] = float(state.bases)


@kernel
def draw_base(state: CorralIgwState) -> int:
    """Draw a base rule by its probability."""
    left = unit(next_word(state.words))
    j = 0
    while j < state.bases - 1:
        left -= 1.0 / state.inverse[j]
        if left < 0.0:
            break
        j += 1
    return j


@kernel
def mean_of(state: CorralIgwState, place: int) -> float:
    """Return the empirical mean; 0 for an arm that was never observed."""
    pulls = state.arm[place].pulls
    return state.arm[place].total / pulls if pulls > 0 else 0.0


def corral_igw_ask(state: CorralIgwState) -> tuple[int, int]:
    j = draw_base(state)
    arm = below(next_word(state.words), state.n_arms)
    coin = unit(next_word(state.words))
    at = find(state.number, arm)
    known = state.number.cells[at] != 0
    place = state.number.cells[at + 1] if known else state.number.filled[0]
    if state.observed[0] > 0:
        best = leader(state.rank, state.ties)
        gap = max(0.0, mean_of(state, best) - (mean_of(state, place) if known else 0.0))
        if coin * (state.n_arms + state.gamma[j] * gap) >= state.n_arms:
            place = best
            known = True
    if not known:
        insert(state.number, at, arm, place)
        wipe(state.arm, place)
        state.arm[place].arm = arm
    slot = state.asked[0]
    state.asked[0] = slot + 1
    state.pull[slot].place = place
    state.pull[slot].base = j
    state.pull[slot].inverse = state.inverse[j]
    return slot, state.arm[place].arm


@kernel
def corral(state: CorralIgwState, j: int, change: float) -> None:
    """Add `change` to 1/p_j, then the same number to all of them, so that the p_j add up to 1.

    That number is found from below: there the sum is convex, and Newton's steps never overshoot.
    """
    state.inverse[j] += change
    least = state.inverse[0]
    for i in range(1, state.bases):
        least = min(least, state.inverse[i])
    step = 1.0 - least  # then the largest p is 1, and the sum is not below 1
    steps = 0
    while step != 0.0 and steps < _MOST_STEPS:
        total = 0.0
        slope = 0.0
        for i in range(state.bases):
            state.inverse[i] += step
            p = 1.0 / state.inverse[i]
            total += p
            slope += p * p
        step = max(0.0, (total - 1.0) / slope)
        if step < 1e-12 * state.inverse[0]:
            step = 0.0
        steps += 1


def corral_igw_tell(state: CorralIgwState, slot: int, reward: float) -> None:
    pull = state.pull[slot]
    own = state.arm[pull.place]
    own.pulls += 1
    own.total += reward
    state.observed[0] += 1
    rekey(state.rank, pull.place, own.total / own.pulls)
    corral(state, pull.base, -state.eta * min(1.0, max(0.0, reward)) * pull.inverse)
    wipe(state.pull, slot)


def corral_igw_count_late(state: CorralIgwState, slot: int, change: int) -> None:
    if change <= 0:  # told, or abandoned
        wipe(state.pull, slot)


plays(
    CorralIgwState,
    reset=corral_igw_reset,
    ask=corral_igw_ask,
    tell=corral_igw_tell,
    count_late=corral_igw_count_late,
)


@dataclass(frozen=True, kw_only=True)
class CorralIGW(Policy):
    r"""Explore an arm at random the more readily the smaller its gap; Corral tunes how readily.

    With probability :math:`p_j` base rule j has its turn. It draws an arm r uniformly and plays it
    with probability

    .. math:: \frac{n}{n + \gamma_j (\max_a \bar x_a - \bar x_r)}

    else an arm of largest mean. The :math:`\gamma_j` form a geometric sequence. Then Corral's step
    (mirror descent with a log-barrier) for the estimated loss :math:`-x / p_j` of rule j:

    .. math:: \frac1{p_j} \leftarrow \frac1{p_j} - \eta\,\frac{x}{p_j} + \lambda, \qquad
        \frac1{p_i} \leftarrow \frac1{p_i} + \lambda \;\; (i \ne j), \qquad \sum_i p_i = 1

    Parameters
    ----------
    bases
        The number of base rules.
    gamma_low, gamma_high
        The first and the last of the :math:`\gamma_j`.
    eta
        The step of Corral.

    Notes
    -----
    Source: Zhu & Mineiro, *Contextual bandits with smooth regret*, ICML 2022, here without
    contexts: the regression is the empirical mean. For rewards in [0, 1] (others count as the
    nearer end in Corral's step); nothing is known of :math:`\mu^*`, m or the horizon. Corral's step
    was checked against public code; there it has no mixing with 1/T, no growing :math:`\eta` and no
    restarts, and neither here. An arm never observed counts as mean 0; the first pull is of an arm
    at random: what the source's experiments without contexts did could not be checked. Of equal
    means the source takes the first; here one is taken at random, which costs nothing that could be
    seen: 176 ± 9 against 178 ± 7 for the first, with n = 1000, m = 100, T = 5000, and 573 ± 89
    against 678 ± 95 with m = 10 (40 runs of a plain form of each; arms in random order).

    Cost per pull: O(log(arms opened) + bases). Each pull in flight remembers the probability it was
    drawn with, so that late rewards are weighed right.

    Examples
    --------
    >>> from manyarms.policies.field import CorralIGW
    >>> live = CorralIGW(bases=4).live(n_arms=1_000_000, seed=1)  # no horizon needed
    >>> pulls = live.ask(20)  # each in flight remembers its probability
    >>> live.tell_many((pull, 1.0) for pull in pulls)
    """

    name = "corral-igw"
    anytime = True
    about = About(
        needs="nothing",
        guarantee="smooth regret at every level, by its source",
        nanoseconds=230,
        page="docs/policies/new_arms.md",
        scaling="log of arms opened",
        good_at="rare best arms, no horizon, n below T",
        source="Zhu & Mineiro 2022",
        rewards="[0, 1]",
    )

    bases: Annotated[int, whole(at_least=1, at_most=1024)] = 8
    gamma_low: Positive = 1e3
    gamma_high: Positive = 1e6
    eta: Annotated[float, number(above=0.0, below=1.0)] = 0.125

    def __post_init__(self) -> None:
        super().__post_init__()
        fix = "It must not be below `gamma_low`."
        check_number("gamma_high", self.gamma_high, at_least=self.gamma_low, fix=fix)

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> CorralIgwState:
        room = min(n_arms, pulls)
        gamma = memory.floats(self.bases)
        ratio = self.gamma_high / self.gamma_low
        for j in range(self.bases):
            gamma[j] = self.gamma_low * ratio ** (j / max(1, self.bases - 1))
        return CorralIgwState(
            n_arms=n_arms,
            bases=self.bases,
            eta=self.eta,
            gamma=gamma,
            inverse=memory.floats(self.bases),
            arm=memory.records(room, CorralArm),
            number=hash_map(memory, names=n_arms, entries=room),
            rank=tournament(memory, room),
            pull=memory.records(pulls, CorralPull),
            asked=memory.ints(1),
            observed=memory.ints(1),
            words=stream(memory),
            ties=stream(memory),
        )
