"""The slots with the largest key, when one key changes at a time; ties are uniform at every step.

All slots that share the largest key are *leaders*. They stand in a list, and a random word chooses
among them: a pull among thousands of equal keys takes a few steps. One slot may stand above the
list: a leader whose key rose, or a slot that leads alone. While its key stays above the list's,
nothing else needs to be looked at.

Only when list and top are empty are the next leaders looked for, in a knock-out tournament: the
slots are the leaves of a binary tree, and every inner node remembers the largest key below it.
Keys that changed since then are brought into the tree at once. Written by hand because heapq orders
tuples, which compiled code would have to allocate, offers no change of a key, and does not know
which slots tie.

Several tournaments may share the arrays: each has its `number`, its first slot `base`, and
`room`, a power of two, for its slots.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Floats, Ints, Memory, Record, Records, power_of_two
from manyarms.core.rng import Stream, below, next_word

__all__ = ["Tournament", "clear", "disband", "enter", "highest", "leader", "rekey", "tournament"]

_ROOM = 1 << 50  # where there is no end to it
_PART = 8  # if more than this part of all keys changed, the tree is built anew


class Seat(Record):
    """A slot's key, and where it stands."""

    key: float
    place: int  # from 1 on in the list of leaders; 0 elsewhere


class Board(Record):
    """Where a tournament stands."""

    size: int  # slots that have entered
    top: int  # the slot above the list, or -1
    leaders: int  # slots in the list
    level: float  # no key but the top's is larger; all slots of this key are in the list, if any is
    seated: int  # slots in the tree
    changed: int  # keys that changed since


class Tournament(NamedTuple):
    """Slots ordered by key."""

    seat: Records[Seat]  # by slot
    leaders: Ints  # the list
    node: Floats  # level by level: the largest key of each block of 2, of 4, of 8, … slots
    changed: Ints  # slots of the tree whose key changed, while they are few
    board: Records[Board]  # by tournament
    base: int
    room: int
    number: int


def tournament(memory: Memory, slots: int, *, tournaments: int = 1) -> Tournament:
    """Make storage for `slots` slots in all; call `clear` before use."""
    room = _ROOM if memory.endless else power_of_two(slots)
    return Tournament(
        memory.records(room, Seat),
        memory.ints(room),
        memory.floats(room),
        memory.ints(room),
        memory.records(tournaments, Board),
        0,
        room,
        0,
    )


@kernel
def clear(rank: Tournament) -> None:
    """Remove all slots."""
    board = rank.board[rank.number]
    board.size = 0
    board.top = -1
    board.leaders = 0
    board.level = math.inf
    board.seated = 0
    board.changed = 0


@kernel
def leader(rank: Tournament, ties: Stream) -> int:
    """Return a slot of the largest key, or -1 if there is none; several cost a word of `ties`."""
    board = rank.board[rank.number]
    if board.top < 0 and board.leaders == 0:
        _find_leaders(rank)
    if board.top >= 0 or board.leaders == 0:
        return board.top
    if board.leaders == 1:
        return rank.leaders[rank.base]
    return rank.leaders[rank.base + below(next_word(ties), board.leaders)]


@kernel
def highest(rank: Tournament) -> float:
    """Return the largest key, or -inf if there is no slot."""
    board = rank.board[rank.number]
    if board.top < 0 and board.leaders == 0:
        _find_leaders(rank)
    if board.top >= 0:
        return rank.seat[board.top].key
    return board.level if board.leaders > 0 else -math.inf


@kernel
def enter(rank: Tournament, key: float) -> None:
    """Add the next slot."""
    board = rank.board[rank.number]
    slot = rank.base + board.size
    board.size += 1
    rank.seat[slot].key = key
    rank.seat[slot].place = 0
    _stand(rank, slot, key)


@kernel
def rekey(rank: Tournament, slot: int, key: float) -> None:
    """Give `slot` a new key; a slot that has not entered does so."""
    board, seat = rank.board[rank.number], rank.seat[slot]
    if slot - rank.base >= board.size:
        if slot - rank.base > board.size:
            _enter_before(rank, slot)
        board.size += 1
        seat.place = 0
    seat.key = key
    if slot == board.top:
        if key > board.level:
            return
        board.top = -1
    elif seat.place > 0:
        if key == board.level:
            return
        last = rank.leaders[rank.base + board.leaders - 1]  # it fills the gap
        rank.leaders[rank.base + seat.place - 1] = last
        rank.seat[last].place = seat.place
        seat.place = 0
        board.leaders -= 1
    _stand(rank, slot, key)


@kernel
def _stand(rank: Tournament, slot: int, key: float) -> None:
    """Let a slot that stands nowhere be the top, join the leaders, or wait in the tree."""
    board = rank.board[rank.number]
    if key > board.level and board.top < 0:
        board.top = slot
        return
    if key == board.level and board.leaders > 0:
        rank.leaders[rank.base + board.leaders] = slot
        board.leaders += 1
        rank.seat[slot].place = board.leaders
        return
    if key > board.level:  # a second one above the list, as late rewards may have it
        disband(rank)
    elif board.top < 0 and board.leaders == 0:
        board.level = math.inf  # not known
    if slot - rank.base < board.seated:
        _note(rank, slot)


@kernel
def _note(rank: Tournament, slot: int) -> None:
    """Write down that a key of the tree changed."""
    board = rank.board[rank.number]
    if _PART * board.changed <= board.seated:
        rank.changed[rank.base + board.changed] = slot
        board.changed += 1


@rare
def _enter_before(rank: Tournament, slot: int) -> None:
    """Let the slots before this one enter, behind all others."""
    while rank.base + rank.board[rank.number].size < slot:
        enter(rank, -math.inf)


@rare
def disband(rank: Tournament) -> None:
    """Forget who leads: the leaders are looked for when one is asked for, in order of slots."""
    board = rank.board[rank.number]
    if board.top >= 0 and board.top - rank.base < board.seated:
        _note(rank, board.top)
    for k in range(board.leaders):
        slot = rank.leaders[rank.base + k]
        rank.seat[slot].place = 0
        if slot - rank.base < board.seated:
            _note(rank, slot)
    board.top = -1
    board.leaders = 0
    board.level = math.inf


@rare
def _find_leaders(rank: Tournament) -> None:
    """Bring the tree up to date, and find the slots of the largest key."""
    board = rank.board[rank.number]
    if board.size == 0:
        return
    if _PART * (board.changed + board.size - board.seated) > board.size:
        board.seated = board.size
        _build(rank)
    else:
        while board.seated < board.size:
            board.seated += 1
            _climb(rank, rank.base + board.seated - 1)
        for k in range(board.changed):
            _climb(rank, rank.changed[rank.base + k])
    board.changed = 0
    _list_leaders(rank)
    if board.leaders == 1 and board.level > -math.inf:  # the second largest key is the level
        board.top = rank.leaders[rank.base]
        rank.seat[board.top].place = 0
        board.leaders = 0
        board.level = _best_rival(rank, board.top)


@kernel
def _build(rank: Tournament) -> None:
    """Compute all nodes, level by level."""
    blocks = rank.board[rank.number].seated
    level = 0
    while blocks > 1:
        for block in range(blocks >> 1):
            left, right = _largest(rank, 2 * block, level), _largest(rank, 2 * block + 1, level)
            rank.node[_at(rank, block, level + 1)] = max(left, right)
        if blocks & 1 == 1:
            rank.node[_at(rank, blocks >> 1, level + 1)] = _largest(rank, blocks - 1, level)
        blocks = (blocks + 1) >> 1
        level += 1


@kernel
def _at(rank: Tournament, block: int, level: int) -> int:
    return rank.base + rank.room - (rank.room >> (level - 1)) + block


@kernel
def _largest(rank: Tournament, block: int, level: int) -> float:
    """Return the largest key in a block of 2^level slots."""
    if level == 0:
        return rank.seat[rank.base + block].key
    return rank.node[_at(rank, block, level)]


@kernel
def _climb(rank: Tournament, slot: int) -> None:
    """Compute the nodes between the slot's leaf and the root."""
    last = rank.board[rank.number].seated - 1
    best = rank.seat[slot].key
    block = slot - rank.base
    level = 0
    while last >> level > 0:
        if (block ^ 1) << level <= last:
            best = max(best, _largest(rank, block ^ 1, level))
        block >>= 1
        level += 1
        rank.node[_at(rank, block, level)] = best


@kernel
def _list_leaders(rank: Tournament) -> None:
    """Fill the list with all slots of the largest key, in their order."""
    board = rank.board[rank.number]
    last = board.seated - 1
    root = 0  # the level of the block that holds all slots
    while last >> root > 0:
        root += 1
    board.level = _largest(rank, 0, root)
    block, level = 0, root
    while block << level <= last:
        if _largest(rank, block, level) != board.level:
            block += 1
        elif level > 0:
            block *= 2
            level -= 1
            continue
        else:
            slot = rank.base + block
            rank.leaders[rank.base + board.leaders] = slot
            board.leaders += 1
            rank.seat[slot].place = board.leaders
            block += 1
        while block & 1 == 0 and level < root:  # a larger block begins here
            block >>= 1
            level += 1


@kernel
def _best_rival(rank: Tournament, slot: int) -> float:
    """Return the largest key of the other slots."""
    last = rank.board[rank.number].seated - 1
    best = -math.inf
    block = slot - rank.base
    level = 0
    while last >> level > 0:
        if (block ^ 1) << level <= last:
            best = max(best, _largest(rank, block ^ 1, level))
        block >>= 1
        level += 1
    return best
