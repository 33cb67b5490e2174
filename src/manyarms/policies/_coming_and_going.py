"""What arms that come and arms that go do to each policy's state.

New arms join the pool that fresh arms are drawn from: at once, or, where sets are drawn by
iteration, with the next one. A retired arm loses its slots and its shares of mixture-arms. Where a
set is kept for good a fresh arm takes the place of the retired one; where sets are drawn by
iteration it shrinks, and a set left without any arm gets a fresh one. K in the index is the size
of the set at all times.
"""

from __future__ import annotations

from manyarms.core.hash_map import find, insert
from manyarms.core.jit import rare
from manyarms.policies.doubling import DoublingState
from manyarms.policies.emp_moss_plus_plus import EmpMossPlusPlusState
from manyarms.policies.moss import MossState
from manyarms.policies.moss_oracle import MossOracleState, oracle_arms
from manyarms.policies.moss_plus_plus import MossPlusPlusState
from manyarms.policies.parallel import ParallelState, arms_of
from manyarms.policies.parts.best_means import choose_slot
from manyarms.policies.parts.fresh import FreshArms, drawable, present, resize
from manyarms.policies.parts.mixtures import Mixtures, leave_mixtures, mixture_pulls
from manyarms.policies.parts.slots import GONE, Slots, close_slot, refresh, set_scale, unopened
from manyarms.policies.quantile import QuantileState
from manyarms.protocol.policy import arrive, retire
from manyarms.theory.schedules import subset_size

__all__: list[str] = []


@rare
def _join(arms: FreshArms, count: int) -> None:
    arms.pool[0] += count
    arms.sampler.n[0] = arms.pool[0]


@rare
def _hold(arms: FreshArms, members: int) -> None:
    """Let the set have `members` arms; if that changes K, compute its indices anew."""
    run = arms.slots.run[arms.slots.rank.number]
    if members != run.members:
        resize(arms, members, run.horizon)


@rare
def _strike(arms: FreshArms, arm: int) -> None:
    """Write the arm down as retired."""
    insert(arms.retired, find(arms.retired, arm), arm, 0)


@rare
def _replace(arms: FreshArms, arm: int) -> None:
    """Take the arm out of the set; a fresh one comes for it while there are any."""
    slots = arms.slots
    run = slots.run[slots.rank.number]
    if run.horizon == 0:  # the game has not begun
        return
    for slot in range(slots.rank.base, slots.rank.base + run.opened):
        if slots.slot[slot].member == arm:
            close_slot(slots, slot)
    _hold(arms, min(run.members, present(arms)))


@arrive.register(MossState)
def moss_arrive(state: MossState, count: int) -> None:
    _join(state.arms, count)
    if state.arms.slots.run[0].horizon > 0:
        _hold(state.arms, present(state.arms))


@retire.register(MossState)
def moss_retire(state: MossState, arm: int) -> None:
    _strike(state.arms, arm)
    _replace(state.arms, arm)


@arrive.register(MossOracleState)
def moss_oracle_arrive(state: MossOracleState, count: int) -> None:
    _join(state.arms, count)
    horizon = state.arms.slots.run[0].horizon
    if horizon > 0:
        _hold(state.arms, oracle_arms(state, horizon))


@retire.register(MossOracleState)
def moss_oracle_retire(state: MossOracleState, arm: int) -> None:
    _strike(state.arms, arm)
    _replace(state.arms, arm)


@arrive.register(QuantileState)
def quantile_arrive(state: QuantileState, count: int) -> None:
    _join(state.arms, count)


@retire.register(QuantileState)
def quantile_retire(state: QuantileState, arm: int) -> None:
    _strike(state.arms, arm)
    _replace(state.arms, arm)


@arrive.register(ParallelState)
def parallel_arrive(state: ParallelState, count: int) -> None:
    _join(state.arms, count)
    q = state.clock[0].subroutines
    for i in range(q):
        horizon = state.arms.slots.run[i].horizon
        size = subset_size(horizon, (i + 1) / q, state.factor, present(state.arms))
        _hold(arms_of(state, i), size)


@retire.register(ParallelState)
def parallel_retire(state: ParallelState, arm: int) -> None:
    _strike(state.arms, arm)
    for i in range(state.clock[0].subroutines):
        _replace(arms_of(state, i), arm)


@rare
def _close_slots(slots: Slots, mixtures: Mixtures, arm: int) -> int:
    """Close the slots of the arm and of empty mixture-arms; return how many were real arms'."""
    real = 0
    for slot in range(slots.run[0].opened):
        member = slots.slot[slot].member
        if member == arm or (GONE < member < 0 and mixture_pulls(mixtures, -member) == 0):
            real += int(member == arm)
            close_slot(slots, slot)
    return real


@arrive.register(MossPlusPlusState)
def moss_plus_plus_arrive(state: MossPlusPlusState, count: int) -> None:
    state.arms.pool[0] += count


@retire.register(MossPlusPlusState)
def moss_plus_plus_retire(state: MossPlusPlusState, arm: int) -> None:
    arms, slots, clock = state.arms, state.arms.slots, state.clock[0]
    _strike(arms, arm)
    if clock.iteration == 0:
        return
    fresh = unopened(slots) - clock.waiting
    leave_mixtures(state.mixtures, arm)
    _close_slots(slots, state.mixtures, arm)
    waiting = 0
    for k in range(clock.waiting):
        if mixture_pulls(state.mixtures, state.waiting[k]) > 0:
            state.waiting[waiting] = state.waiting[k]
            waiting += 1
    clock.waiting = waiting
    real = 0
    for slot in range(slots.run[0].opened):
        real += int(slots.slot[slot].member >= 0)
    fresh = min(fresh, drawable(arms) - real)
    members = slots.run[0].opened - slots.run[0].gone + waiting + fresh
    if members == 0:
        arms.sampler.n[0] = arms.pool[0]
        members = 1
    _hold(arms, members)


@arrive.register(EmpMossPlusPlusState)
def emp_moss_plus_plus_arrive(state: EmpMossPlusPlusState, count: int) -> None:
    state.arms.pool[0] += count


@retire.register(EmpMossPlusPlusState)
def emp_moss_plus_plus_retire(state: EmpMossPlusPlusState, arm: int) -> None:
    slots, clock, chosen = state.arms.slots, state.clock[0], state.chosen
    _strike(state.arms, arm)
    if clock.iteration == 0:
        return
    leave_mixtures(state.mixtures, arm)
    clock.touched -= _close_slots(slots, state.mixtures, arm)
    if clock.newest == 1 and mixture_pulls(state.mixtures, clock.iteration - 1) == 0:
        clock.newest = 0
    clock.fresh = min(clock.fresh, drawable(state.arms) - clock.touched)
    left = 0
    for k in range(chosen.size[0]):
        if slots.slot[chosen.slot[k]].member != GONE:
            chosen.slot[left] = chosen.slot[k]
            left += 1
    chosen.size[0] = left
    if left + clock.newest + clock.fresh == 0:
        _choose_again(state)
    set_scale(slots, chosen.size[0] + clock.newest + clock.fresh, slots.run[0].horizon)
    for k in range(chosen.size[0]):
        refresh(slots, chosen.slot[k])


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


@arrive.register(DoublingState)
def doubling_arrive(state: DoublingState, count: int) -> None:
    arrive(state.inner, count)


@retire.register(DoublingState)
def doubling_retire(state: DoublingState, arm: int) -> None:
    retire(state.inner, arm)
