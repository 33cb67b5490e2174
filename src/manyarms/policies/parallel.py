"""Parallel (Algorithm 3): near minimax at every hardness if the best mean is known.

There are q = ⌈log T⌉ subroutines, one for each hardness i/q: MOSS on a random set, as in MOSS
Oracle. They share slots and sampler. A pull's slot determines its subroutine, so a late reward is
credited to the right one. Arms with known rewards are the set of one more subroutine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from manyarms.core.hash_map import contains
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import NO_ROOM, Memory, Record, Records, places, power_of_two
from manyarms.core.rng import Stream, draw, next_word, restart, stream
from manyarms.core.sampler import pick
from manyarms.core.tournament import Tournament
from manyarms.policies.moss_oracle import subset_size
from manyarms.policies.parts.moss_run import (
    MossRun,
    add_retired,
    arrive_now,
    begin,
    choose,
    close_slot,
    count_late_pulls,
    credit,
    credit_arm,
    has_room,
    hold,
    open_slot,
    present,
    replace_arm,
    reset_arms,
    slot_of,
)
from manyarms.policies.parts.parameters import IndexPolicy, KnowsBestMean
from manyarms.policies.parts.randomness import EPOCHS
from manyarms.protocol import plays
from manyarms.protocol.parameters import whole

_MOST_SUBROUTINES = 64  # above 1 + log T for every T < 2^62
_MOST_KNOWN = 1 << 50  # arms with known rewards, where memory has no bounds


@kernel
def subroutines(horizon: int) -> int:
    r"""Return the number of subroutines.

    .. math:: q = \max(1, \lceil \log T \rceil)

    >>> subroutines(50_000), subroutines(1)
    (11, 1)
    """
    return max(1, math.ceil(math.log(horizon)))


@kernel
def epoch_length(horizon: int) -> int:
    r"""Return the number of pulls in an epoch.

    .. math:: \Delta = \lceil \sqrt T \rceil

    >>> epoch_length(50_000), epoch_length(49)
    (224, 7)
    """
    return math.ceil(math.sqrt(horizon))


class ParallelClock(Record):
    subroutines: int  # q
    known: int  # 1 if there is one more, of the arms with known rewards
    running: int  # the subroutine of the current epoch
    epoch: int  # Delta
    left: int  # pulls left in the epoch


class Subroutine(Record):
    base: int  # its first slot
    room: int  # the number of its slots, a power of two
    pulls: int  # T_i
    rewards: float  # their sum


class ParallelState(NamedTuple):
    """The arms of all subroutines, and the rewards of each subroutine."""

    best_mean: float
    factor: float
    clock: Records[ParallelClock]  # [clock]
    subroutine: Records[Subroutine]
    moss: MossRun  # of all subroutines
    epochs: Stream


@kernel
def run_of(state: ParallelState, i: int) -> MossRun:
    """Return the MOSS run of subroutine i, a view of the shared memory."""
    own, moss, shared = state.subroutine[i], state.moss, state.moss.rank
    rank = Tournament(
        shared.entrant,
        shared.leaders,
        shared.node,
        shared.changed,
        shared.board,
        own.base,
        own.room,
        i,
    )
    return MossRun(
        moss.slot,
        moss.run,
        moss.late,
        moss.log,
        moss.rule,
        moss.ties,
        rank,
        moss.sampler,
        moss.words,
        moss.pool,
        moss.retired,
        moss.absent,
    )


@kernel
def wanted_arms(state: ParallelState, i: int, q: int, horizon: int) -> int:
    """Return the size of the set of subroutine i = 0, …, q - 1, not limited by n."""
    return subset_size(horizon, (i + 1) / q, state.factor, horizon)


def parallel_reset(state: ParallelState, key: int, horizon: int) -> None:
    reset_arms(state.moss, key)
    restart(state.epochs, draw(key, EPOCHS))
    q = subroutines(horizon)
    state.clock[0].subroutines = q
    state.clock[0].epoch = epoch_length(horizon)
    state.clock[0].left = 0
    most = state.moss.rank.room
    base = 0
    for i in range(q):
        wanted = wanted_arms(state, i, q, horizon)
        own = state.subroutine[i]
        own.base = base
        own.room = 1
        while own.room < min(wanted, most):  # also for arms that are added later
            own.room *= 2
        own.pulls = 0
        own.rewards = 0.0
        base += own.room
        begin(run_of(state, i), min(wanted, present(state.moss)), horizon)
    state.clock[0].known = 0
    last = state.subroutine[q]  # for known rewards
    last.base = base
    last.room = 1
    while 2 * last.room <= min(places(state.moss.slot) - base, _MOST_KNOWN):
        last.room *= 2
    last.pulls = 0
    last.rewards = 0.0


@rare
def lowest_regret(state: ParallelState) -> int:
    """Return the subroutine of lowest empirical regret; ties are broken at random."""
    lowest = 0
    least = math.inf
    least_word = next_word(state.epochs)
    for i in range(state.clock[0].subroutines + state.clock[0].known):
        own = state.subroutine[i]
        regret = own.pulls * state.best_mean - own.rewards
        word = next_word(state.epochs)
        if regret < least or (regret == least and word > least_word):
            lowest, least, least_word = i, regret, word
    return lowest


def parallel_ask(state: ParallelState) -> tuple[int, int]:
    clock = state.clock[0]
    if clock.left == 0:
        clock.running = lowest_regret(state)
        clock.left = clock.epoch
    clock.left -= 1
    i = clock.running
    if lacks_room(state, i):
        return 0, NO_ROOM
    slot = choose(run_of(state, i))
    return slot * _MOST_SUBROUTINES + i, state.moss.slot[slot].arm


@kernel
def lacks_room(state: ParallelState, i: int) -> bool:
    """Whether subroutine i must open a slot but has no memory for it."""
    run = state.moss.run[i]
    return run.fresh > 0 and run.gone == 0 and run.opened >= state.subroutine[i].room


def parallel_tell(state: ParallelState, slot: int, reward: float) -> None:
    """Credit the reward to the subroutine that made the pull, and to its slot."""
    i = slot % _MOST_SUBROUTINES
    own = state.subroutine[i]
    own.pulls += 1
    own.rewards += reward
    credit(run_of(state, i), slot // _MOST_SUBROUTINES, reward)


def parallel_count_late(state: ParallelState, slot: int, change: int) -> None:
    i = slot % _MOST_SUBROUTINES
    count_late_pulls(run_of(state, i), slot // _MOST_SUBROUTINES, change)


def parallel_arrive(state: ParallelState, count: int) -> None:
    """Add new arms, and enlarge the sets that n had limited."""
    arrive_now(state.moss, count)
    q = state.clock[0].subroutines
    for i in range(q):
        horizon = state.moss.run[i].horizon
        size = subset_size(horizon, (i + 1) / q, state.factor, present(state.moss))
        hold(run_of(state, i), size)


def parallel_retire(state: ParallelState, arm: int) -> None:
    """Remove a retired arm from all sets."""
    add_retired(state.moss, arm)
    for i in range(state.clock[0].subroutines):
        replace_arm(run_of(state, i), arm)
    if state.clock[0].known == 1:
        leave_known(state, arm)


@rare
def leave_known(state: ParallelState, arm: int) -> None:
    """Remove a retired arm from the known arms; no other takes its place."""
    clock, q = state.clock[0], state.clock[0].subroutines
    moss = run_of(state, q)
    slot = slot_of(moss, arm)
    if slot < 0:
        return
    close_slot(moss, slot)
    if moss.run[q].members > 1:
        hold(moss, moss.run[q].members - 1)
    else:
        clock.known = 0
        if clock.running == q:
            clock.left = 0


def parallel_credit(
    state: ParallelState, arm: int, count: int, total: float, squares: float
) -> int:
    """Credit known rewards to the subroutine of known arms, or to all that have the arm.

    They do not count in the empirical regret of a subroutine.
    """
    clock, q = state.clock[0], state.clock[0].subroutines
    if arm >= 0:
        place = -1
        for i in range(q + clock.known):
            place = max(place, credit_arm(run_of(state, i), arm, count, total))
        return place
    slot = open_known(state)
    if slot >= 0:
        arm = credit_arm(run_of(state, q), state.moss.slot[slot].arm, count, total)
    return arm


@rare
def open_known(state: ParallelState) -> int:
    """Add an arm that no subroutine has pulled to the known arms; return its slot, or -1."""
    clock, q = state.clock[0], state.clock[0].subroutines
    moss = run_of(state, q)
    if (clock.known == 1 and not has_room(moss)) or moss.rank.base >= places(moss.slot):
        return -1
    while moss.sampler.drawn[q] < moss.sampler.n[0]:
        arm = pick(moss.sampler, q, next_word(moss.words))
        if contains(moss.retired, arm) or is_in_a_set(state, arm):
            continue
        if clock.known == 0:
            clock.known = 1
            begin(moss, 1, moss.run[0].horizon)
        else:
            hold(moss, moss.run[q].members + 1)
        moss.run[q].fresh = 0
        return open_slot(moss, arm)
    return -1


@kernel
def is_in_a_set(state: ParallelState, arm: int) -> bool:
    """Whether a subroutine has pulled this arm."""
    for i in range(state.clock[0].subroutines):
        if state.moss.run[i].opened > 0 and slot_of(run_of(state, i), arm) >= 0:
            return True
    return False


plays(
    ParallelState,
    reset=parallel_reset,
    ask=parallel_ask,
    tell=parallel_tell,
    count_late=parallel_count_late,
    arrive=parallel_arrive,
    retire=parallel_retire,
    credit_known=parallel_credit,
)


@dataclass(frozen=True, kw_only=True)
class Parallel(KnowsBestMean, IndexPolicy):
    r"""Run MOSS Oracle for many hardnesses, and resume the run of lowest empirical regret.

    There are :math:`q = \lceil \log T \rceil` subroutines, for :math:`\alpha_i = i/q`, and epochs
    of :math:`\lceil \sqrt T \rceil` pulls. An epoch goes to the subroutine of lowest

    .. math:: \hat R_i = T_i \mu^* - \text{(its rewards)}

    Parameters
    ----------
    best_mean
        The best mean, or an estimate within 1/sqrt(T). When in doubt, round it down: if it is too
        high, every empirical regret keeps growing. By default simulations take it from the
        instance.
    subset_factor
        2 as in the paper (default), or 1 as in the authors' code.
    sigma, exploration, count_late, index
        As for `MOSS`; nothing is proved for the KL indices.

    Notes
    -----
    Theorem 4: expected regret at most :math:`C (\log T)^2\, T^{(1+\alpha)/2}`, for every hardness
    at once.

    Its page is docs/policies/parallel.md; docs/learn/parallel.py is the plain algorithm.

    Examples
    --------
    >>> import manyarms as ma
    >>> str(ma.Parallel(best_mean=0.9, subset_factor=1))
    'parallel(best_mean=0.9, subset_factor=1)'
    >>> live = ma.Parallel(best_mean=0.9).live(n_arms=1_000_000, horizon=20_000, seed=1)
    >>> live.tell(live.ask(), reward=1.0)
    """

    name = "parallel"

    subset_factor: Annotated[int, whole(at_least=1, at_most=2)] = 2

    def stage(self, state: ParallelState) -> str:
        return f"subroutine {state.clock[0].running + 1} of {state.clock[0].subroutines}"

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> ParallelState:
        q, factor = subroutines(pulls), float(self.subset_factor)
        # one subroutine hardly ever draws more than half of all arms drawn
        most = pulls if memory.arms_may_come else min(n_arms, pulls, (memory.arms_met + 1) // 2)
        sizes = [subset_size(pulls, (i + 1) / q, factor, most) for i in range(q)]
        slots, room = sum(map(power_of_two, sizes)), power_of_two(most)
        draws = min(slots, pulls) + memory.changes
        slots += power_of_two(memory.changes) if memory.changes > 0 else 0
        return ParallelState(
            best_mean=self._best_mean(),
            factor=factor,
            clock=memory.records(1, ParallelClock),
            subroutine=memory.records(q + 1, Subroutine),
            moss=self._moss(memory, n_arms, slots=slots, draws=draws, runs=q + 1, room=room),
            epochs=stream(memory),
        )
