"""What every MOSS run keeps: slots with their pulls and rewards, ranked by the MOSS index.

A slot is the place that a reward is credited to: a real arm's, or a mixture-arm's. The arms of a
set that were never pulled have no slot yet; they all have index +inf and come first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Floats, Memory, Record, Records
from manyarms.core.rng import Stream, next_word, stream
from manyarms.core.tournament import Tournament, clear, rekey, tournament

__all__ = ["Slots", "begin", "credit", "open_slot", "refresh", "set_scale", "slots"]

_LOGS = 4096  # logarithms of smaller numbers are computed once


class Slot(Record):
    """One member of the set."""

    member: int  # the real arm (>= 0), or -j for mixture-arm j
    pulls: int  # N
    total: float  # the sum of rewards: the mean is one division, so equal ratios are equal
    asked: int  # how often it was chosen in this iteration, for those who count that


class Run(Record):
    """The numbers of one MOSS run."""

    opened: int  # slots in use
    members: int  # K, the size of the set, opened or not
    scale: float  # H / K
    log_scale: float  # log(H / K)


class Slots(NamedTuple):
    """The table of one MOSS run, or of several that share the memory."""

    slot: Records[Slot]
    run: Records[Run]
    log: Floats  # log N, where it was needed before; 0 elsewhere
    spread: float  # (2 sigma)^2, times `exploration`
    mixture_spread: float  # the same for mixture-arms
    ties: Stream
    rank: Tournament


def slots(
    memory: Memory,
    count: int,
    *,
    spread: float,
    mixture_spread: float | None = None,
    runs: int = 1,
) -> Slots:
    """Make a table of `count` slots; call `begin` before use."""
    return Slots(
        memory.records(count, Slot),
        memory.records(runs, Run),
        memory.floats(_LOGS),
        spread,
        spread if mixture_spread is None else mixture_spread,
        stream(memory),
        tournament(memory, count, tournaments=runs),
    )


@kernel
def begin(slots: Slots, members: int, horizon: int) -> None:
    """Start a MOSS run afresh over `members` arms, none of them opened yet."""
    slots.run[slots.rank.number].opened = 0
    clear(slots.rank)
    set_scale(slots, members, horizon)


@kernel
def set_scale(slots: Slots, members: int, horizon: int) -> None:
    """Set K and H; indices computed before stay as they are until `refresh`."""
    run = slots.run[slots.rank.number]
    run.members = members
    run.scale = horizon / members
    run.log_scale = math.log(run.scale)


@kernel
def open_slot(slots: Slots, member: int) -> int:
    """Give `member` a slot of its own, for its first pull."""
    run = slots.run[slots.rank.number]
    number = slots.rank.base + run.opened
    run.opened += 1
    slot = slots.slot[number]
    slot.member = member
    slot.pulls = 0
    slot.total = 0.0
    slot.asked = 0
    return number


@kernel
def credit(slots: Slots, slot: int, reward: float) -> None:
    """Count a pull of `slot` and its reward, and rank it anew."""
    slots.slot[slot].pulls += 1
    slots.slot[slot].total += reward
    rank_anew(slots, slot)


@rare
def refresh(slots: Slots, slot: int) -> None:
    """Rank a slot anew after K or H changed."""
    rank_anew(slots, slot)


@kernel
def moss_index(slots: Slots, slot: int) -> float:
    r"""Return the MOSS index of a slot that was pulled.

    .. math:: B = \bar x + 2\sigma \sqrt{\frac{\max(0, \log(H / (K N)))}{N}}
    """
    run = slots.run[slots.rank.number]
    pulls = slots.slot[slot].pulls
    mean = slots.slot[slot].total / pulls
    if pulls >= run.scale:
        return mean
    log_ratio = run.log_scale - log_of(slots, pulls)  # log(H / K) - log(N)
    spread = slots.spread if slots.slot[slot].member >= 0 else slots.mixture_spread
    return mean + math.sqrt(spread * max(0.0, log_ratio) / pulls)


@kernel
def log_of(slots: Slots, number: int) -> float:
    """Return the logarithm; half of a pull's time would go into it without the table."""
    if number >= _LOGS:
        return math.log(number)
    value = slots.log[number]
    if value == 0.0 and number > 1:
        value = math.log(number)
        slots.log[number] = value
    return value


@kernel
def rank_anew(slots: Slots, slot: int) -> None:
    """Compute the slot's index, and draw its priority among equal ones."""
    rekey(slots.rank, slot, moss_index(slots, slot), next_word(slots.ties))
