"""Sequential halving on a random subset of the arms (Karnin, Koren & Somekh 2013)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Record, Records, place_of_arm, wipe
from manyarms.core.rng import Stream, draw, restart, stream
from manyarms.core.sampler import Sampler, sampler
from manyarms.core.tournament import Tournament, clear, enter, leader, rekey, tournament
from manyarms.policies.parts.randomness import RANKING, draw_fresh, reset_order
from manyarms.protocol import Policy, plays
from manyarms.protocol.parameters import Count

_NOT_PULLED = -1e300  # the mean of an arm without rewards: below all others


class HalvedArm(Record):
    """One of the K arms."""

    arm: int
    pulls: int
    total: float


class HalvingClock(Record):
    left: int  # arms that are left: the first places of `order`
    rounds: int  # rounds left, this one included; 0 once one arm is left
    budget: int  # pulls left
    each: int  # pulls of each arm in this round
    asked: int  # pulls asked for in this round
    told: int  # rewards told in this round
    size: int  # K
    known: int  # arms with known rewards
    winner: int  # the best slot of the last complete round; -1 before the first one


class SequentialHalvingState(NamedTuple):
    """The K arms, in the order in which they are pulled."""

    size: int  # 0 if it follows from the horizon
    arm: Records[HalvedArm]
    order: Ints
    clock: Records[HalvingClock]  # [clock]
    sampler: Sampler
    words: Stream
    ties: Stream
    rank: Tournament


def halving_reset(state: SequentialHalvingState, key: int, horizon: int) -> None:
    reset_order(state.sampler, state.words, key)
    restart(state.ties, draw(key, RANKING))
    wanted = state.size if state.size > 0 else arms_for(horizon)
    size = min(wanted, horizon, state.sampler.n[0])
    for slot in range(size):
        wipe(state.arm, slot)
        state.arm[slot].arm = draw_fresh(state.sampler, state.words)
        state.order[slot] = slot
    clock = state.clock[0]
    clock.known = 0
    clock.size = size
    clear(state.rank)
    clock.left = size
    clock.budget = horizon
    clock.winner = -1
    clock.rounds = 1
    while (1 << clock.rounds) < size:
        clock.rounds += 1
    start_round(state)


@kernel
def arms_for(horizon: int) -> int:
    """Return the largest power of two K with K log2 K <= T: each round pulls all its arms."""
    doublings = 0
    while (doublings + 1) << (doublings + 1) <= horizon:
        doublings += 1
    return 1 << doublings


@kernel
def start_round(state: SequentialHalvingState) -> None:
    clock = state.clock[0]
    clock.each = max(1, clock.budget // clock.rounds // clock.left)
    clock.asked = 0
    clock.told = 0


def halving_ask(state: SequentialHalvingState) -> tuple[int, int]:
    clock = state.clock[0]
    slot = state.order[clock.asked % clock.left]
    clock.asked += 1
    clock.budget -= 1
    return slot, state.arm[slot].arm


def halving_tell(state: SequentialHalvingState, slot: int, reward: float) -> None:
    state.arm[slot].pulls += 1
    state.arm[slot].total += reward
    clock = state.clock[0]
    clock.told += 1
    if clock.rounds > 0:
        all_told = clock.budget <= 0 and clock.told >= clock.asked
        if all_told or clock.told >= clock.each * clock.left:
            end_round(state)


def halving_credit(
    state: SequentialHalvingState, arm: int, count: int, total: float, squares: float
) -> int:
    """Credit known rewards; before the first pull, the K known arms of highest mean are kept."""
    clock, slot = state.clock[0], -1
    if arm >= 0:
        slot = place_of_arm(state.arm, arm, clock.size, 0)
    elif clock.winner < 0 and max(clock.known, clock.asked) < clock.size:
        slot = max(clock.known, clock.asked)  # a slot that was not pulled yet
        clock.known = slot + 1
    elif clock.winner < 0 and clock.asked == 0:
        return replace_worst(state, count, total)
    if slot < 0:
        return -1
    own = state.arm[slot]
    own.pulls += count
    own.total += total
    if clock.winner < 0:
        rekey(state.rank, slot, -own.total / own.pulls)
    return own.arm


@rare
def replace_worst(state: SequentialHalvingState, count: int, total: float) -> int:
    """Draw an arm for known rewards; it replaces the known arm of lowest mean if it is better."""
    if state.sampler.drawn[0] >= min(state.sampler.n[0], state.sampler.moved.entries):
        return -1
    arm = draw_fresh(state.sampler, state.words)
    slot = leader(state.rank, state.ties)
    if total / count > state.arm[slot].total / state.arm[slot].pulls:
        wipe(state.arm, slot)
        state.arm[slot].arm = arm
        state.arm[slot].pulls = count
        state.arm[slot].total = total
        rekey(state.rank, slot, -total / count)
    return arm


@rare
def end_round(state: SequentialHalvingState) -> None:
    """Keep the better half of the arms."""
    clock = state.clock[0]
    clear(state.rank)
    for place in range(clock.left):
        own = state.arm[state.order[place]]
        enter(state.rank, own.total / own.pulls if own.pulls > 0 else _NOT_PULLED)
    kept = (clock.left + 1) // 2
    for k in range(kept):
        place = leader(state.rank, state.ties)
        rekey(state.rank, place, -math.inf)
        if k == 0:
            clock.winner = state.order[place]
        state.order[place] = -1 - state.order[place]
    keep_chosen(state)
    clock.left = kept
    clock.rounds -= 1
    if clock.rounds > 0:
        start_round(state)


@kernel
def keep_chosen(state: SequentialHalvingState) -> None:
    """Move the chosen slots, which are marked by negative numbers, to the front."""
    write = 0
    for place in range(state.clock[0].left):
        if state.order[place] < 0:
            chosen = -1 - state.order[place]
            state.order[place] = state.order[write]
            state.order[write] = chosen
            write += 1


def halving_recommend(state: SequentialHalvingState) -> int:
    winner = state.clock[0].winner
    return -1 if winner < 0 else state.arm[winner].arm


plays(
    SequentialHalvingState,
    reset=halving_reset,
    ask=halving_ask,
    tell=halving_tell,
    credit_known=halving_credit,
    recommend=halving_recommend,
)


@dataclass(frozen=True, kw_only=True)
class SequentialHalving(Policy):
    r"""Draw K arms at random; pull all equally often, keep the better half, and repeat.

    There are :math:`\lceil \log_2 K \rceil` rounds with an equal share of the pulls each. The best
    arm of the last complete round is recommended; in the end this is the one that is left.

    Parameters
    ----------
    size
        K, at most n and T (default: the largest power of two with :math:`K \log_2 K \le T`).

    Notes
    -----
    Z. Karnin, T. Koren, O. Somekh, "Almost optimal exploration in multi-armed bandits", ICML 2013.
    The guarantee holds only for the K arms it is run on: the probability that it misses the best of
    them falls exponentially in T. It says nothing about the other arms.

    Checked against `seq_halv.jl` of xuedong/BestArm.jl and `SeqHalvAgent` of rlberry: the same
    rounds, the same number of pulls in each, and the same half is kept. BestArm.jl has a variant
    that compares all pulls of an arm, as here, and one that compares only those of the round. Some
    details are ours: pulls that do not divide evenly go to later rounds; if one pull of each arm
    exceeds a round's share, each is pulled once and later rounds are shorter; ties are broken at
    random.

    Cost per pull: O(log K) on average. Memory: the K arms. A round ends when as many rewards have
    arrived as it has pulls; while rewards are late, its arms are pulled in turn.

    Examples
    --------
    >>> from manyarms.policies import SequentialHalving
    >>> live = SequentialHalving(size=8).live(n_arms=1_000_000, horizon=100, seed=1)
    >>> for _ in range(100):
    ...     pull = live.ask()
    ...     live.tell(pull, reward=float(pull.arm % 2))
    >>> len(live.arms())
    8
    """

    name = "sequential-halving"

    size: Count | None = None

    def first_draws(self, *, n_arms: int, pulls: int) -> int:
        return min(self.size or arms_for(pulls), n_arms, pulls)

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> SequentialHalvingState:
        size = self.first_draws(n_arms=n_arms, pulls=pulls)
        return SequentialHalvingState(
            size=self.size or 0,
            arm=memory.records(size, HalvedArm),
            order=memory.ints(size),
            clock=memory.records(1, HalvingClock),
            sampler=sampler(memory, n_arms, draws=size),
            words=stream(memory),
            ties=stream(memory),
            rank=tournament(memory, size),
        )
