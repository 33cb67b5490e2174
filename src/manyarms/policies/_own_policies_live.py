"""Late rewards, and arms that come and go, for the two policies of our own.

Hybrid MOSS++ treats late rewards as MOSS++ does. New arms may be drawn from the next iteration on.
A retired arm loses its slot, its place among the arms remembered and its shares of mixture-arms;
the set shrinks, K with it, and a set left without any member gets a fresh arm.

Patience numbers the arms it plays, so late rewards of a discarded one are known and dropped. New
arms join those still to come in the random order; if the arm in play is retired it is discarded.
"""

from __future__ import annotations

from manyarms.core.hash_map import find, insert
from manyarms.core.jit import rare
from manyarms.policies.hybrid_moss_plus_plus import HybridMossPlusPlusState, await_member
from manyarms.policies.parts.fresh import draw_arm, put_back, resize
from manyarms.policies.parts.mixtures import leave_mixtures, mixture_pulls
from manyarms.policies.parts.slots import GONE, close_slot, count_late
from manyarms.policies.patience import PatienceState, next_arm
from manyarms.protocol.policy import arrive, defer, era, retire

__all__: list[str] = []


@defer.register(HybridMossPlusPlusState)
def hybrid_defer(state: HybridMossPlusPlusState, slot: int, change: int) -> None:
    count_late(state.arms.slots, slot, change)


@era.register(HybridMossPlusPlusState)
def hybrid_era(state: HybridMossPlusPlusState) -> int:
    return state.clock[0].iteration


@arrive.register(HybridMossPlusPlusState)
def hybrid_arrive(state: HybridMossPlusPlusState, count: int) -> None:
    state.arms.pool[0] += count


@retire.register(HybridMossPlusPlusState)
def hybrid_retire(state: HybridMossPlusPlusState, arm: int) -> None:
    arms, slots = state.arms, state.arms.slots
    insert(arms.retired, find(arms.retired, arm), arm, 0)
    _forget(state, arm)
    if state.clock[0].iteration == 0:
        return
    leave_mixtures(state.mixtures, arm)
    for slot in range(slots.run[0].opened):
        if _is_gone(state, slots.slot[slot].member, arm):
            close_slot(slots, slot)
    _wait_no_more(state, arm)
    members = slots.run[0].opened - slots.run[0].gone + state.clock[0].waiting
    if members == 0:
        put_back(arms)
        await_member(state, draw_arm(arms))
        members = 1
    resize(arms, members, slots.run[0].horizon)


@rare
def _forget(state: HybridMossPlusPlusState, arm: int) -> None:
    """Let the arm never be ranked again."""
    history = state.history
    at = find(history.number, arm)
    if history.number.cells[at] != 0:
        history.pulled[history.number.cells[at + 1]].pulls = 0


@rare
def _is_gone(state: HybridMossPlusPlusState, member: int, arm: int) -> bool:
    """Whether the member is the retired arm, or a mixture-arm left without arms."""
    return member == arm or (GONE < member < 0 and mixture_pulls(state.mixtures, -member) == 0)


@rare
def _wait_no_more(state: HybridMossPlusPlusState, arm: int) -> None:
    clock = state.clock[0]
    waiting, clock.waiting = clock.waiting, 0
    for k in range(waiting):
        if not _is_gone(state, state.waiting[k], arm):
            await_member(state, state.waiting[k])


@arrive.register(PatienceState)
def patience_arrive(state: PatienceState, count: int) -> None:
    state.sampler.n[0] += count


@retire.register(PatienceState)
def patience_retire(state: PatienceState, arm: int) -> None:
    insert(state.retired, find(state.retired, arm), arm, 0)
    if state.current[0].arm == arm:
        next_arm(state)
