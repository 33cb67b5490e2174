r"""The UCB-V index over arms drawn one by one, and the arm of largest index at time t.

.. math:: B = \bar x + \sqrt{\frac{2 V E_t}{N}} + \frac{3 E_t}{N}, \qquad E_t = 2 \log(10 \log t)

with V the empirical variance. Every index grows with every t, so no ranking stays right for long.
But :math:`E_t` grows slowly, and of two arms the one ahead stays ahead until the other one, which
may grow faster, has caught up. So this is a knock-out tournament whose matches say up to which E
they stand; those that stand no longer are played again before the leader is asked for. A reward
replays the matches of its arm. Both cost O(log(arms opened)) in practice, and the choice is exact.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Memory, Record, Records, power_of_two, wipe
from manyarms.core.rng import Stream, below, next_word, stream
from manyarms.core.sampler import Sampler, sampler
from manyarms.policies.parts.randomness import draw_fresh, reset_draws

_NEXT = 1e300  # above every index: an arm whose only pull was abandoned
_LAST = -1e280  # times its late pulls, below every index: an arm that waits for its first reward
_SLOWEST = 2.0 * 3.5  # twice the root of E, at most: E is below 12.25 for every t below 2^62
_ERROR = 1e-12  # a lead that is relatively smaller may be one of rounding
_ROOM = 1 << 50  # where there is no end to it


class UcbVArm(Record):
    """What is known of an arm; its index is mean + spread sqrt(E) + slope E."""

    mean: float
    spread: float  # sqrt(2 V / N)
    slope: float  # 3 / N
    arm: int
    pulls: int  # N
    total: float  # the sum of rewards
    squares: float  # the sum of their squares
    late: int  # pulls whose reward was not there when the next pull was asked for


class UcbVMatch(Record):
    """A match between the two halves of a block of slots."""

    winner: int
    tied: int  # slots of the same index as the winner
    until: float  # the largest E for which this match, and all below it, stand


class UcbVClock(Record):
    time: int  # t: this pull is the t-th
    explore: float  # E_t
    root: float  # its square root
    opened: int  # arms drawn so far
    seated: int  # arms in the tournament
    levels: int  # of matches


class UcbV(NamedTuple):
    """Arms that were drawn, and the tournament between them."""

    slot: Records[UcbVArm]
    match: Records[UcbVMatch]  # level by level
    room: int  # a power of two, for the slots
    clock: Records[UcbVClock]  # [clock]
    ties: Stream
    sampler: Sampler
    words: Stream


def ucb_v(memory: Memory, n_arms: int, *, arms: int) -> UcbV:
    """Make room for `arms` of `n_arms` arms."""
    room = _ROOM if memory.endless else power_of_two(arms)
    return UcbV(
        memory.records(arms, UcbVArm),
        memory.records(room, UcbVMatch),
        room,
        memory.records(1, UcbVClock),
        stream(memory),
        sampler(memory, n_arms, draws=arms),
        stream(memory),
    )


@kernel
def reset_ucb_v(arms: UcbV, key: int) -> None:
    """Forget everything and take the random words that belong to `key`."""
    reset_draws(arms, key)
    wipe(arms.clock, 0)


@kernel
def next_time(arms: UcbV) -> None:
    """Count a pull, and compute E_t; the first pull, which has no choice, counts as t = 2."""
    clock = arms.clock[0]
    clock.time += 1
    clock.explore = 2.0 * math.log(10.0 * math.log(max(2, clock.time)))
    clock.root = math.sqrt(clock.explore)


@kernel
def open_arm(arms: UcbV) -> int:
    """Draw an arm that was not drawn before, for its first pull; there must be one."""
    slot = arms.clock[0].opened
    arms.clock[0].opened = slot + 1
    wipe(arms.slot, slot)
    arms.slot[slot].arm = draw_fresh(arms.sampler, arms.words)
    arms.slot[slot].mean = _LAST
    return slot


@kernel
def largest_index(arms: UcbV) -> int:
    """Return a random slot among those of largest index at this time."""
    clock = arms.clock[0]
    if _stands_until(arms, 0, clock.levels) < clock.explore:
        _replay_expired(arms)
    if _tied_in(arms, 0, clock.levels) > 1:
        return _any_leader(arms)
    return _winner_of(arms, 0, clock.levels)


@kernel
def _any_leader(arms: UcbV) -> int:
    """Choose one of the slots that tie at random: go down from the root."""
    level = arms.clock[0].levels
    best = _index(arms, _winner_of(arms, 0, level))
    at = below(next_word(arms.ties), _tied_in(arms, 0, level))
    block = 0
    while level > 0:
        block, level = 2 * block, level - 1
        if _index(arms, _winner_of(arms, block, level)) != best:
            block += 1
        elif at >= _tied_in(arms, block, level):
            at -= _tied_in(arms, block, level)
            block += 1
    return block


@kernel
def credit(arms: UcbV, slot: int, reward: float) -> None:
    """Count a pull of `slot` and its reward."""
    own = arms.slot[slot]
    own.pulls += 1
    own.total += reward
    own.squares += reward * reward
    own.mean = own.total / own.pulls
    variance = max(0.0, own.squares / own.pulls - own.mean * own.mean)
    own.spread = math.sqrt(2.0 * variance / own.pulls)
    own.slope = 3.0 / own.pulls
    _rank(arms, slot)


@kernel
def count_late_pulls(arms: UcbV, slot: int, change: int) -> None:
    """Count `change` more late pulls."""
    arms.slot[slot].late += change
    if arms.slot[slot].pulls == 0:
        _rank_unseen(arms, slot)


@rare
def _rank_unseen(arms: UcbV, slot: int) -> None:
    """Rank an arm without a reward: last while one is late, first if it was abandoned."""
    own = arms.slot[slot]
    own.mean = _LAST * own.late if own.late > 0 else _NEXT
    _rank(arms, slot)


@kernel
def _rank(arms: UcbV, slot: int) -> None:
    """Play the matches of an arm whose index changed; slots up to it join the tournament."""
    clock = arms.clock[0]
    for newcomer in range(min(clock.seated, slot), slot + 1):
        clock.seated = max(clock.seated, newcomer + 1)
        while newcomer >> clock.levels > 0:
            clock.levels += 1
        for level in range(1, clock.levels + 1):
            _play_match(arms, newcomer >> level, level)


@kernel
def _place_of(arms: UcbV, block: int, level: int) -> int:
    return arms.room - (arms.room >> (level - 1)) + block


@kernel
def _winner_of(arms: UcbV, block: int, level: int) -> int:
    return block if level == 0 else arms.match[_place_of(arms, block, level)].winner


@kernel
def _tied_in(arms: UcbV, block: int, level: int) -> int:
    return 1 if level == 0 else arms.match[_place_of(arms, block, level)].tied


@kernel
def _stands_until(arms: UcbV, block: int, level: int) -> float:
    """Return the largest E for which the block's winner stands; infinite for an empty block."""
    if level == 0 or block << level >= arms.clock[0].seated:
        return math.inf
    return arms.match[_place_of(arms, block, level)].until


@kernel
def _play_match(arms: UcbV, block: int, level: int) -> None:
    """Compare the winners of the block's halves, and compute how long the result stands."""
    clock = arms.clock[0]
    left, right = 2 * block, 2 * block + 1
    until = min(_stands_until(arms, left, level - 1), _stands_until(arms, right, level - 1))
    winner = _winner_of(arms, left, level - 1)
    tied = _tied_in(arms, left, level - 1)
    if right << (level - 1) < clock.seated:
        loser = _winner_of(arms, right, level - 1)
        lead = _index(arms, winner) - _index(arms, loser)
        if lead <= 0.0:
            tied = _tied_in(arms, right, level - 1) + (tied if lead == 0.0 else 0)
        if lead < 0.0:
            winner, loser, lead = loser, winner, -lead
        until = min(until, clock.explore + _leads_for(arms, winner, loser, lead))
    match = arms.match[_place_of(arms, block, level)]
    match.winner = winner
    match.tied = tied
    match.until = until


@kernel
def _index(arms: UcbV, slot: int) -> float:
    own, clock = arms.slot[slot], arms.clock[0]
    return own.mean + own.spread * clock.root + own.slope * clock.explore


@kernel
def _leads_for(arms: UcbV, winner: int, loser: int, lead: float) -> float:
    """Return how much E may grow before the order of the two can change."""
    ahead, behind = arms.slot[winner], arms.slot[loser]
    same = ahead.mean == behind.mean and ahead.spread == behind.spread
    if same and ahead.slope == behind.slope:
        return math.inf
    if lead == 0.0:
        return 0.0
    fastest = behind.slope + behind.spread / (2.0 * arms.clock[0].root)
    gains = fastest - ahead.slope - ahead.spread / _SLOWEST
    if gains <= 0.0:
        return math.inf
    return max(0.0, lead - _ERROR * (1.0 + abs(ahead.mean))) / gains


@rare
def _replay_expired(arms: UcbV) -> None:
    """Replay the matches that have expired, from the leaves up."""
    clock = arms.clock[0]
    while _stands_until(arms, 0, clock.levels) < clock.explore:
        block, level = 0, clock.levels
        below = 0
        while level > 1 and below >= 0:
            below = -1
            for half in range(2 * block, 2 * block + 2):
                if below < 0 and _stands_until(arms, half, level - 1) < clock.explore:
                    below = half
            if below >= 0:
                block, level = below, level - 1
        while level <= clock.levels:
            _play_match(arms, block, level)
            block, level = block >> 1, level + 1
