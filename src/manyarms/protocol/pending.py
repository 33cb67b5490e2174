"""Pending pulls, whose rewards have not been told, in live and simulated runs.

A pull becomes late when the next one is asked for before its reward was told. The policy is
informed only then, so a run without late rewards equals the paper's bit for bit.
"""

from __future__ import annotations

from typing import Any

from manyarms.core.jit import kernel
from manyarms.core.memory import Record, Records
from manyarms.protocol.policy import ask, count_late, generation, tell

_NEVER = -1  # the generation of a pull whose reward is ignored


class PendingRecord(Record):
    """A pull that was asked for."""

    slot: int
    arm: int
    generation: int  # of the state, when the pull was asked for
    late: int  # 1 once another pull was asked for


@kernel
def ask_pull(state: Any, pending: Records[PendingRecord], number: int, before: int) -> int:
    """Ask for pull `number`, and return its arm.

    `before` is the number of the last pull if that is pending, else -1.
    """
    if before >= 0 and pending[before].generation == generation(state):
        pending[before].late = 1
        count_late(state, pending[before].slot, 1)
    slot, arm = ask(state)
    pull = pending[number]
    pull.slot = slot
    pull.arm = arm
    pull.generation = generation(state)
    pull.late = 0
    return arm


@kernel
def tell_pull(state: Any, pending: Records[PendingRecord], number: int, reward: float) -> None:
    """Tell the reward of a pull to the policy, unless it has restarted since."""
    pull = pending[number]
    if pull.generation == generation(state):
        tell(state, pull.slot, reward)
        if pull.late == 1:
            count_late(state, pull.slot, -1)


@kernel
def abandon_pull(state: Any, pending: Records[PendingRecord], number: int) -> None:
    """Abandon a pull: ignore its reward from now on."""
    pull = pending[number]
    if pull.generation == generation(state):
        count_late(state, pull.slot, -pull.late)
        pull.generation = _NEVER
