"""What arms that come and arms that go do to each policy's state.

New arms join the pool that fresh arms are drawn from: at once, or, where sets are drawn by
iteration, with the next one. A retired arm loses its slots and its shares of mixture-arms; a set
left without any arm gets a fresh one.
"""

from __future__ import annotations

from manyarms.core.jit import rare
from manyarms.core.table import find, insert
from manyarms.live.protocol import arrive, retire
from manyarms.policies._best_means import choose_slot
from manyarms.policies._fresh import FreshArms, drawable, present, resize
from manyarms.policies._mixtures import leave_mixtures, mixture_pulls
from manyarms.policies._slots import GONE, close_slot, refresh, unopened
from manyarms.policies.doubling import DoublingState
from manyarms.policies.emp_moss_plus_plus import EmpMossPlusPlusState
from manyarms.policies.moss import MossState
from manyarms.policies.moss_oracle import MossOracleState
from manyarms.policies.moss_plus_plus import MossPlusPlusState
from manyarms.policies.parallel import ParallelState, arms_of
from manyarms.policies.quantile import QuantileState
from manyarms.theory.schedules import subset_size

__all__: list[str] = []


@rare
def _join(arms: FreshArms, count: int) -> None:
    arms.pool[0] += count
    arms.sampler.n[0] = arms.pool[0]


@rare
def _widen(arms: FreshArms, members: int) -> None:
    """Let the set grow to `members` arms, if it has begun, and compute its indices anew."""
    run = arms.slots.run[arms.slots.rank.number]
    if members > run.members and run.horizon > 0:
        resize(arms, members, run.horizon)


@rare
def _strike(arms: FreshArms, arm: int) -> None:
    """Write the arm down as retired."""
    insert(arms.retired, find(arms.retired, arm), arm, 0)


@rare
def _leave(arms: FreshArms, arm: int, mixtures_waiting: int) -> None:
    """Take the arm out of the set; see to it that what is still to be drawn can be drawn."""
    slots = arms.slots
    run = slots.run[slots.rank.number]
    fresh = unopened(slots) - mixtures_waiting
    real = 0
    for slot in range(slots.rank.base, slots.rank.base + run.opened):
        if slots.slot[slot].member == arm:
            close_slot(slots, slot)
        real += int(slots.slot[slot].member >= 0)
    fresh = min(fresh, drawable(arms) - real)
    run.members = run.opened - run.gone + mixtures_waiting + fresh
    if run.members == 0:
        arms.sampler.n[0] = arms.pool[0]
        run.members = 1


@arrive.register(MossState)
def moss_arrive(state: MossState, count: int) -> None:
    _join(state.arms, count)
    _widen(state.arms, present(state.arms))


@retire.register(MossState)
def moss_retire(state: MossState, arm: int) -> None:
    _strike(state.arms, arm)
    _leave(state.arms, arm, 0)


@arrive.register(MossOracleState)
def moss_oracle_arrive(state: MossOracleState, count: int) -> None:
    _join(state.arms, count)
    if state.size == 0:
        horizon = state.arms.slots.run[0].horizon
        size = subset_size(horizon, state.alpha, state.factor, present(state.arms))
        _widen(state.arms, size)


@retire.register(MossOracleState)
def moss_oracle_retire(state: MossOracleState, arm: int) -> None:
    _strike(state.arms, arm)
    _leave(state.arms, arm, 0)


@arrive.register(QuantileState)
def quantile_arrive(state: QuantileState, count: int) -> None:
    _join(state.arms, count)


@retire.register(QuantileState)
def quantile_retire(state: QuantileState, arm: int) -> None:
    _strike(state.arms, arm)
    _leave(state.arms, arm, 0)


@arrive.register(ParallelState)
def parallel_arrive(state: ParallelState, count: int) -> None:
    _join(state.arms, count)
    q = state.clock[0].subroutines
    for i in range(q):
        horizon = state.arms.slots.run[i].horizon
        size = subset_size(horizon, (i + 1) / q, state.factor, horizon)
        _widen(arms_of(state, i), min(size, present(state.arms)))


@retire.register(ParallelState)
def parallel_retire(state: ParallelState, arm: int) -> None:
    _strike(state.arms, arm)
    for i in range(state.clock[0].subroutines):
        _leave(arms_of(state, i), arm, 0)


@arrive.register(MossPlusPlusState)
def moss_plus_plus_arrive(state: MossPlusPlusState, count: int) -> None:
    state.arms.pool[0] += count


@retire.register(MossPlusPlusState)
def moss_plus_plus_retire(state: MossPlusPlusState, arm: int) -> None:
    slots, clock = state.arms.slots, state.clock[0]
    _strike(state.arms, arm)
    leave_mixtures(state.mixtures, arm)
    waiting = 0
    for k in range(clock.waiting):
        if mixture_pulls(state.mixtures, state.waiting[k]) > 0:
            state.waiting[waiting] = state.waiting[k]
            waiting += 1
    slots.run[0].members -= clock.waiting - waiting
    clock.waiting = waiting
    _close_empty_mixtures(state)
    if clock.iteration > 0:
        _leave(state.arms, arm, waiting)


@rare
def _close_empty_mixtures(state: MossPlusPlusState) -> None:
    slots = state.arms.slots
    for slot in range(slots.run[0].opened):
        member = slots.slot[slot].member
        if GONE < member < 0 and mixture_pulls(state.mixtures, -member) == 0:
            close_slot(slots, slot)
            slots.run[0].members -= 1


@arrive.register(EmpMossPlusPlusState)
def emp_moss_plus_plus_arrive(state: EmpMossPlusPlusState, count: int) -> None:
    state.arms.pool[0] += count


@retire.register(EmpMossPlusPlusState)
def emp_moss_plus_plus_retire(state: EmpMossPlusPlusState, arm: int) -> None:
    slots, clock = state.arms.slots, state.clock[0]
    _strike(state.arms, arm)
    leave_mixtures(state.mixtures, arm)
    for slot in range(slots.run[0].opened):
        member = slots.slot[slot].member
        empty = GONE < member < 0 and mixture_pulls(state.mixtures, -member) == 0
        if member == arm or empty:
            clock.touched -= int(member == arm)
            close_slot(slots, slot)
    if clock.newest == 1 and mixture_pulls(state.mixtures, clock.iteration - 1) == 0:
        clock.newest = 0
    clock.fresh = min(clock.fresh, drawable(state.arms) - clock.touched)
    left = 0
    for k in range(state.chosen.size[0]):
        if slots.slot[state.chosen.slot[k]].member != GONE:
            state.chosen.slot[left] = state.chosen.slot[k]
            left += 1
    state.chosen.size[0] = left
    if left + clock.newest + clock.fresh == 0 and clock.left > 0:
        _choose_again(state)


@rare
def _choose_again(state: EmpMossPlusPlusState) -> None:
    """Fill a set that lost all its arms: with all that were pulled before, or a fresh one."""
    slots, clock = state.arms.slots, state.clock[0]
    if clock.touched == 0:
        state.arms.sampler.n[0] = state.arms.pool[0]
        clock.fresh = 1
    for slot in range(slots.run[0].opened):
        if slots.slot[slot].member >= 0:
            choose_slot(state.chosen, slot)
            slots.slot[slot].asked = 0
            refresh(slots, slot)


@arrive.register(DoublingState)
def doubling_arrive(state: DoublingState, count: int) -> None:
    arrive(state.inner, count)


@retire.register(DoublingState)
def doubling_retire(state: DoublingState, arm: int) -> None:
    retire(state.inner, arm)
