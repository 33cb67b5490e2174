r"""The largest shrunk mean (S + a) / (N + 1) of all arms, when a or one arm's rewards change.

For each arm this is a line in a, of slope 1 / (N + 1). So when a changes, all values change, but
the same arm has the largest one until two lines cross. The arms are the leaves of a *kinetic*
tournament (Basch, Guibas & Hershberger): each match has a winner, and an interval of a in which
it and all matches below it keep their winners. When a changes, only the matches whose intervals it
has left are played again; usually there are none.

The arm whose reward came last is kept outside the tree, so pulling the same arm again costs O(1).
It enters the tree when another arm has a reward, which costs O(log arms).

Values are compared as they are computed. A match whose values are as close as rounding errors is
played again whenever a changes, so the result equals that of comparing all arms, to the last bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Memory, Record, Records, wipe
from manyarms.core.rng import Stream, below, next_word

_CLOSE = 1e-12  # relative: far above the rounding errors of a value
_SURE = 0.9  # share of the way to a crossing; the rest is far above rounding errors, too


class ShrunkArm(Record):
    """The rewards of an arm."""

    pulls: int  # N
    total: float  # S


class Match(Record):
    """Who wins, and in which interval of a."""

    winner: int
    low: float
    high: float


class ShrunkClock(Record):
    """The state of the tournament."""

    a: float
    size: int  # slots in the tree
    top: int  # the place of the final; 0 if there is no match
    aside: int  # the slot beside the tree, or -1


class ShrunkMeans(NamedTuple):
    """Arms by slot, and the matches.

    The match at a *place*, an odd multiple of `half` = 1, 2, 4, …, is between slots
    place - half, …, place - 1 and place, …, place + half - 1. It exists if slot `place` does.
    A slot itself is written as place = slot, half = 0.
    """

    arm: Records[ShrunkArm]
    match: Records[Match]
    clock: Records[ShrunkClock]  # [clock]


def shrunk_means(memory: Memory, slots: int) -> ShrunkMeans:
    """Make storage for `slots` slots; call `clear_means` before use."""
    return ShrunkMeans(
        memory.records(slots, ShrunkArm),
        memory.records(slots, Match),
        memory.records(1, ShrunkClock),
    )


@kernel
def clear_means(means: ShrunkMeans) -> None:
    """Remove all slots."""
    clock = means.clock[0]
    for slot in range(max(clock.size, clock.aside + 1)):
        wipe(means.arm, slot)
    clock.a = 0.0
    clock.size = 0
    clock.top = 0
    clock.aside = -1


@kernel
def add_reward(means: ShrunkMeans, slot: int, reward: float) -> None:
    """Count a reward."""
    _stand_aside(means, slot)
    means.arm[slot].pulls += 1
    means.arm[slot].total += reward


@kernel
def add_rewards(means: ShrunkMeans, slot: int, count: int, total: float) -> None:
    """Count several rewards."""
    _stand_aside(means, slot)
    means.arm[slot].pulls += count
    means.arm[slot].total += total


@rare
def strike_out(means: ShrunkMeans, slot: int) -> None:
    """Rank a slot below all others from now on."""
    _stand_aside(means, slot)
    means.arm[slot].total = -math.inf


@kernel
def shrink_to(means: ShrunkMeans, a: float) -> None:
    means.clock[0].a = a


@kernel
def shrunk_mean(means: ShrunkMeans, slot: int) -> float:
    """Return the shrunk mean of a slot; -inf if it has no reward."""
    arm = means.arm[slot]
    return (arm.total + means.clock[0].a) / (arm.pulls + 1.0) if arm.pulls > 0 else -math.inf


@kernel
def highest_mean(means: ShrunkMeans) -> float:
    """Return the largest shrunk mean; -inf if there is none."""
    clock = means.clock[0]
    best = shrunk_mean(means, clock.aside) if clock.aside >= 0 else -math.inf
    if clock.size > 0:
        if _is_over(means, clock.top, clock.top):
            _play_again(means)
        best = max(best, _value(means, _winner(means, clock.top, clock.top)))
    return best


@rare
def leading_slot(means: ShrunkMeans, ties: Stream) -> int:
    """Return a slot of the largest mean, -1 if there is none; a word of `ties` breaks a tie."""
    best, aside = highest_mean(means), means.clock[0].aside
    if best == -math.inf:
        return -1
    if aside >= 0:
        means.clock[0].aside = -1
        _take_place(means, aside)
        highest_mean(means)
    tied = _tied(means, best, -1)
    return _tied(means, best, below(next_word(ties), tied) if tied > 1 else 0)


@kernel
def _tied(means: ShrunkMeans, best: float, wanted: int) -> int:
    """Return the `wanted`-th slot of this mean, from 0 on; if there is none, how many there are."""
    clock = means.clock[0]
    slot, found = 0, 0
    half = clock.top
    while slot < clock.size:
        place, within = _below(means, slot + half, half)
        alike = _value(means, _winner(means, place, within)) == best
        if alike and half > 0:
            half >>= 1
            continue
        if alike:
            if found == wanted:
                return slot
            found += 1
        slot += max(1, 2 * half)
        while half < clock.top and slot & max(1, 2 * half) == 0:  # a larger block begins here
            half = max(1, 2 * half)
    return found


@kernel
def _value(means: ShrunkMeans, slot: int) -> float:
    return -math.inf if slot == means.clock[0].aside else shrunk_mean(means, slot)


@kernel
def _stand_aside(means: ShrunkMeans, slot: int) -> None:
    """Take a slot out of the tree, and put the previous one back."""
    clock = means.clock[0]
    before = clock.aside
    if slot != before:
        clock.aside = slot
        if before >= 0:
            _take_place(means, before)
        if slot < clock.size:
            _climb(means, slot)


@kernel
def _take_place(means: ShrunkMeans, slot: int) -> None:
    """Play all matches of a slot again, and those of new slots before it."""
    clock = means.clock[0]
    while clock.size < slot:
        _enter(means)
    if slot == clock.size:
        _enter(means)
    else:
        _climb(means, slot)


@kernel
def _enter(means: ShrunkMeans) -> None:
    clock = means.clock[0]
    slot = clock.size
    clock.size += 1
    if slot > 0 and slot >= 2 * clock.top:
        clock.top = slot
    _climb(means, slot)


@kernel
def _climb(means: ShrunkMeans, slot: int) -> None:
    """Play the matches of a slot, up to the first that does not change."""
    clock = means.clock[0]
    half = 1
    while half <= clock.top:
        place = (slot | (2 * half - 1)) - half + 1  # where the right half of its block begins
        if place < clock.size:
            match = means.match[place]
            winner, low, high = match.winner, match.low, match.high
            _play(means, place, half)
            same = match.winner == winner and match.low == low and match.high == high
            if same and slot not in (winner, place):  # at its own place, the match is new
                return
        half *= 2


@kernel
def _below(means: ShrunkMeans, place: int, half: int) -> tuple[int, int]:
    """Return the match or slot that represents a block whose last slots do not exist."""
    while half > 0 and place >= means.clock[0].size:
        place -= max(1, half >> 1)
        half >>= 1
    return place, half


@kernel
def _halves(means: ShrunkMeans, place: int, half: int) -> tuple[int, int, int, int]:
    """Return place and half of both sides of a match."""
    if half == 1:
        return place - 1, 0, place, 0
    right, width = _below(means, place + (half >> 1), half >> 1)
    return place - (half >> 1), half >> 1, right, width


@kernel
def _winner(means: ShrunkMeans, place: int, half: int) -> int:
    return means.match[place].winner if half > 0 else place


@kernel
def _is_over(means: ShrunkMeans, place: int, half: int) -> bool:
    """Return whether the winner of a match may have changed."""
    a = means.clock[0].a
    return half > 0 and not means.match[place].low <= a <= means.match[place].high


@rare
def _play_again(means: ShrunkMeans) -> None:
    """Play all matches whose winner may have changed, lower ones first."""
    top = means.clock[0].top
    place, half = top, top
    while True:
        left, left_half, right, right_half = _halves(means, place, half)
        if _is_over(means, left, left_half):
            place, half = left, left_half
        elif _is_over(means, right, right_half):
            place, half = right, right_half
        else:
            _play(means, place, half)
            if half == top:
                return
            while True:  # up to the next match that exists
                place = (place ^ half) | (2 * half)
                half *= 2
                if place < means.clock[0].size:
                    break


@kernel
def _play(means: ShrunkMeans, place: int, half: int) -> None:
    """Find the winner of a match, and the interval in which nothing changes."""
    left, left_half, right, right_half = _halves(means, place, half)
    first, second = _winner(means, left, left_half), _winner(means, right, right_half)
    one, other = _value(means, first), _value(means, second)
    match, a = means.match[place], means.clock[0].a
    match.winner = first if one >= other else second
    reach = math.inf
    slope = 1.0 / (means.arm[first].pulls + 1.0) - 1.0 / (means.arm[second].pulls + 1.0)
    if slope != 0.0 and min(one, other) > -math.inf:
        ahead = abs(one - other)
        is_close = ahead <= _CLOSE * (abs(one) + abs(other))
        reach = 0.0 if is_close else _SURE * ahead / abs(slope)
    match.low = a - reach
    match.high = a + reach
    if left_half > 0:
        match.low = max(match.low, means.match[left].low)
        match.high = min(match.high, means.match[left].high)
    if right_half > 0:
        match.low = max(match.low, means.match[right].low)
        match.high = min(match.high, means.match[right].high)
