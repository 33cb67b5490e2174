"""What every MOSS run keeps: slots with their pulls and rewards, ranked by the MOSS index.

A slot is the place that a reward is credited to: a real arm's, or a mixture-arm's. The arms of a
set that were never pulled have no slot yet; they all have index +inf and come first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Floats, Ints, Memory, Record, Records, places, wipe
from manyarms.core.rng import Stream, stream
from manyarms.core.tournament import Tournament, clear, disband, rekey, tournament
from manyarms.policies.parts.kl import kl_upper, switch_at

GONE = -(1 << 62)  # the member of a slot whose arm was retired
_UNSEEN = 1e300  # above every index
_ALWAYS = 1 << 62  # more pulls than there are
_MOST_LATE = (1 << 31) - 1  # pulls of an arm in flight at a time


class Slot(Record):
    """One member of the set."""

    member: int  # the real arm (>= 0), or -j for mixture-arm j
    pulls: int  # N
    total: float  # the sum of rewards: the mean is one division, so equal ratios are equal
    asked: int  # how often it was chosen in this iteration, for those who count that


class Run(Record):
    """The numbers of one MOSS run."""

    opened: int  # slots in use
    gone: int  # those among them that are free again, their arm being retired
    members: int  # K, the size of the set, opened or not
    horizon: int  # H
    scale: float  # H / K
    log_scale: float  # log(H / K)
    kl_until: int  # the index is the KL one while N is not above this


class Slots(NamedTuple):
    """The table of one MOSS run, or of several that share the memory."""

    slot: Records[Slot]
    run: Records[Run]
    late: Ints  # by slot: pulls whose reward was not there when the next pull was asked for
    log: Floats  # log N, where it was needed before; 0 elsewhere
    spread: float  # (2 sigma)^2, times `exploration`
    mixture_spread: float  # the same for mixture-arms
    kl: float  # what stands before the logarithm in the KL index, or 0: no KL index
    switch: bool  # from the KL index to the other one at N = (H / K)^(1/5)
    plus: bool  # whether the KL index has the level of KL-UCB++
    late_counts: bool  # whether late pulls count as pulls in the bonus
    ties: Stream
    rank: Tournament


def slots(
    memory: Memory,
    count: int,
    *,
    spread: float,
    mixture_spread: float | None = None,
    kl: float = 0.0,
    switch: bool = False,
    plus: bool = False,
    late_counts: bool = False,
    runs: int = 1,
    room: int | None = None,
) -> Slots:
    """Make a table of `count` slots, for each run `room` at most; call `begin` before use."""
    return Slots(
        memory.records(count, Slot),
        memory.records(runs, Run),
        memory.ints(count, most=_MOST_LATE),
        memory.logs(),
        spread,
        spread if mixture_spread is None else mixture_spread,
        kl,
        switch,
        plus,
        late_counts,
        stream(memory),
        tournament(memory, count, tournaments=runs, room=room),
    )


@kernel
def begin(slots: Slots, members: int, horizon: int) -> None:
    """Start a MOSS run afresh over `members` arms, none of them opened yet."""
    wipe(slots.run, slots.rank.number)
    clear(slots.rank)
    set_scale(slots, members, horizon)


@kernel
def set_scale(slots: Slots, members: int, horizon: int) -> None:
    """Set K and H; indices computed before stay as they are until `refresh`, which must follow."""
    disband(slots.rank)
    run = slots.run[slots.rank.number]
    run.members = members
    run.horizon = horizon
    run.scale = horizon / members
    run.log_scale = math.log(run.scale)
    run.kl_until = (
        0 if slots.kl == 0.0 else switch_at(members, horizon) if slots.switch else _ALWAYS
    )


@kernel
def open_slot(slots: Slots, member: int) -> int:
    """Give `member` a slot of its own, for its first pull."""
    run = slots.run[slots.rank.number]
    if run.gone == 0:
        number = slots.rank.base + run.opened
        run.opened += 1
    else:
        number = _free_slot(slots)
    wipe(slots.slot, number)
    slots.slot[number].member = member
    slots.late[number] = 0
    return number


@kernel
def unopened(slots: Slots) -> int:
    """Return how many members of the set have no slot yet."""
    run = slots.run[slots.rank.number]
    return run.members - run.opened + run.gone


@rare
def close_slot(slots: Slots, slot: int) -> None:
    """Take the slot of a retired arm out of the ranking, and out of mixture-arms to come."""
    slots.run[slots.rank.number].gone += 1
    slots.slot[slot].member = GONE
    slots.slot[slot].asked = 0
    rekey(slots.rank, slot, -math.inf)


@rare
def _free_slot(slots: Slots) -> int:
    """Return a slot that was closed; there must be one."""
    slots.run[slots.rank.number].gone -= 1
    number = slots.rank.base
    while slots.slot[number].member != GONE:
        number += 1
    return number


@kernel
def credit(slots: Slots, slot: int, reward: float) -> None:
    """Count a pull of `slot` and its reward; compute its index."""
    learn(slots, slot, reward)
    late = slots.late[slot] if slots.late_counts else 0
    rekey(slots.rank, slot, moss_index(slots, slot, late))


@kernel
def learn(slots: Slots, slot: int, reward: float) -> None:
    """Count a pull of `slot` and its reward."""
    slots.slot[slot].pulls += 1
    slots.slot[slot].total += reward


@rare
def refresh(slots: Slots, slot: int) -> None:
    """Rank a slot anew after K, H or the number of its late pulls changed."""
    late = slots.late[slot]
    if slots.slot[slot].pulls > 0:
        index = moss_index(slots, slot, late if slots.late_counts else 0)
    else:  # never observed: above all others, those with fewest pulls in flight first
        index = math.inf if late == 0 else _UNSEEN / late
    if slots.slot[slot].member != GONE:
        rekey(slots.rank, slot, index)


@kernel
def count_late_pulls(slots: Slots, slot: int, change: int) -> None:
    """Count `change` more late pulls.

    Indices are made of observed rewards only, so they stay valid. An arm whose first reward is
    late is not fresh any more; when no fresh arm is left, among the arms never observed the one
    with fewest pulls in flight is next.
    """
    slots.late[slot] += change
    if slots.late_counts or slots.slot[slot].pulls == 0:
        refresh(slots, slot)


@kernel
def moss_index(slots: Slots, slot: int, late: int) -> float:
    r"""Return the MOSS index of a slot that was pulled; late pulls may count in N of the bonus.

    .. math:: B = \bar x + 2\sigma \sqrt{\frac{\max(0, \log(H / (K N)))}{N}}

    The KL index is the largest q with :math:`N\,\mathrm{kl}(\bar x, q) \le \max(0, \log(H / (K
    N)))`. It is the mean, too, where the logarithm is not positive. KL-UCB++ adds
    :math:`\log(1 + \log^2(H / (K N)))` to a positive one.
    """
    run = slots.run[slots.rank.number]
    pulls = slots.slot[slot].pulls
    mean = slots.slot[slot].total / pulls
    pulls += late
    if pulls >= run.scale:
        return mean
    log_ratio = max(0.0, run.log_scale - _log_of(slots, pulls))  # log(H / K) - log(N)
    if pulls <= run.kl_until:
        if slots.plus:
            log_ratio += math.log1p(log_ratio * log_ratio)
        return kl_upper(mean, slots.kl * log_ratio / pulls)
    spread = slots.spread if slots.slot[slot].member >= 0 else slots.mixture_spread
    return mean + math.sqrt(spread * log_ratio / pulls)


@kernel
def _log_of(slots: Slots, number: int) -> float:
    """Return the logarithm; half of a pull's time would go into it without the table."""
    if number >= places(slots.log):
        return math.log(number)
    value = slots.log[number]
    if value == 0.0 and number > 1:
        value = math.log(number)
        slots.log[number] = value
    return value
