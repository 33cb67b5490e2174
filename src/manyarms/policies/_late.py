"""What late rewards do to each policy's state; with none in flight nothing here is called.

Indices are made of observed rewards only, so they stay valid. An arm whose first reward is late
is not fresh any more; when no fresh arm is left, among the arms never observed the one with
fewest pulls in flight is next. A policy that restarts has no use for rewards from before.
"""

from __future__ import annotations

from manyarms.policies.doubling import DoublingState
from manyarms.policies.emp_moss_plus_plus import EmpMossPlusPlusState, in_the_set
from manyarms.policies.moss import MossState
from manyarms.policies.moss_oracle import MossOracleState
from manyarms.policies.moss_plus_plus import MossPlusPlusState
from manyarms.policies.parallel import MOST_SUBROUTINES, ParallelState, slots_of
from manyarms.policies.parts.slots import count_late
from manyarms.policies.quantile import QuantileState
from manyarms.protocol.policy import defer, era

__all__: list[str] = []

_MOST_ITERATIONS = 64


@defer.register(MossState)
def moss_defer(state: MossState, slot: int, change: int) -> None:
    count_late(state.arms.slots, slot, change)


@defer.register(MossOracleState)
def moss_oracle_defer(state: MossOracleState, slot: int, change: int) -> None:
    count_late(state.arms.slots, slot, change)


@defer.register(QuantileState)
def quantile_defer(state: QuantileState, slot: int, change: int) -> None:
    count_late(state.arms.slots, slot, change)


@defer.register(MossPlusPlusState)
def moss_plus_plus_defer(state: MossPlusPlusState, slot: int, change: int) -> None:
    count_late(state.arms.slots, slot, change)


@era.register(MossPlusPlusState)
def moss_plus_plus_era(state: MossPlusPlusState) -> int:
    return state.clock[0].iteration


@defer.register(EmpMossPlusPlusState)
def emp_moss_plus_plus_defer(state: EmpMossPlusPlusState, slot: int, change: int) -> None:
    if in_the_set(state, slot):
        count_late(state.arms.slots, slot, change)
    else:
        state.arms.slots.late[slot] += change


@defer.register(ParallelState)
def parallel_defer(state: ParallelState, slot: int, change: int) -> None:
    count_late(slots_of(state, slot % MOST_SUBROUTINES), slot // MOST_SUBROUTINES, change)


@defer.register(DoublingState)
def doubling_defer(state: DoublingState, slot: int, change: int) -> None:
    defer(state.inner, slot, change)


@era.register(DoublingState)
def doubling_era(state: DoublingState) -> int:
    return state.clock[0].phase * _MOST_ITERATIONS + era(state.inner)
