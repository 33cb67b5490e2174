"""Find a slot with the largest key while keys change one by one; ties are broken uniformly.

All slots that share the largest key are *leaders*. They are kept in a list, and a random word
chooses among them, so a pull among thousands of equal keys takes a few steps. One slot may be above
the list, the *top*: a leader whose key rose, or a slot that leads alone. While its key is above the
list's, no other slot is looked at.

When list and top are empty, the next leaders are found by a knock-out tournament: the slots are the
leaves of a tree, and every inner node has the largest key of the 8 below it. Keys that changed
since then are updated in the tree together; on a GPU, each when it changes.
Written by hand because heapq orders tuples, which compiled code would have to allocate, offers no
change of a key, and does not know which slots tie.

Several tournaments may share the arrays: each has its `number`, its first slot `base`, and
`room`, a power of two, for its slots.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.jit import kernel, on_gpu, rare
from manyarms.core.memory import Floats, Ints, Memory, Record, Records, power_of_two
from manyarms.core.rng import Stream, below, next_word

_ROOM = 1 << 50  # where memory has no bounds
_SPAN, _BLOCKS = 3, 8  # a node stands for 2^3 blocks of the level below: a cache line or two
_FEW = 32  # slots, at most, that have no tree
_PART = 8  # if more than this part of all keys changed, the tree is rebuilt


class Entrant(Record):
    """A slot's key, and its place among the leaders."""

    key: float
    place: int  # from 1 on in the list of leaders; 0 elsewhere


class Board(Record):
    """The state of a tournament."""

    size: int  # slots that have entered
    top: int  # the slot above the list, or -1
    leaders: int  # slots in the list
    level: float  # no key but the top's is larger; all slots of this key are in the list, if any is
    in_tree: int  # slots in the tree
    changed: int  # keys that changed since


class Tournament(NamedTuple):
    """Slots ordered by key."""

    entrant: Records[Entrant]  # by slot
    leaders: Ints  # the list
    node: Floats  # level by level: the largest key of each block of 8, of 64, … slots
    changed: Ints  # slots of the tree whose key changed, while they are few
    board: Records[Board]  # by tournament
    base: int
    room: int
    number: int


def tournament(
    memory: Memory, slots: int, *, tournaments: int = 1, room: int | None = None
) -> Tournament:
    """Make storage for `slots` slots in all; call `clear` before use.

    One tournament has at most `room` slots (default: all), a power of two if there are several.
    """
    slots, room = max(1, slots), _ROOM if memory.endless else power_of_two(room or slots)
    return Tournament(
        memory.records(slots, Entrant),
        memory.ints(slots, most=slots),
        memory.floats((max(slots, room) >> 1) + 1),
        memory.ints(slots, most=slots),
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
    board.in_tree = 0
    board.changed = 0


@kernel
def leader(rank: Tournament, ties: Stream) -> int:
    """Return a slot of the largest key, -1 if there is none; a word of `ties` breaks a tie."""
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
        return rank.entrant[board.top].key
    return board.level if board.leaders > 0 else -math.inf


@kernel
def enter(rank: Tournament, key: float) -> None:
    """Add the next slot."""
    board = rank.board[rank.number]
    slot = rank.base + board.size
    board.size += 1
    rank.entrant[slot].key = key
    rank.entrant[slot].place = 0
    _settle(rank, slot, key)


@kernel
def rekey(rank: Tournament, slot: int, key: float) -> None:
    """Give `slot` a new key; a slot that has not entered enters."""
    board, entrant = rank.board[rank.number], rank.entrant[slot]
    if slot - rank.base >= board.size:
        if slot - rank.base > board.size:
            _enter_before(rank, slot)
        board.size += 1
        entrant.place = 0
    entrant.key = key
    if slot == board.top:
        if key > board.level:
            return
        board.top = -1
    elif entrant.place > 0:
        if key == board.level:
            return
        last = rank.leaders[rank.base + board.leaders - 1]  # it fills the gap
        rank.leaders[rank.base + entrant.place - 1] = last
        rank.entrant[last].place = entrant.place
        entrant.place = 0
        board.leaders -= 1
    _settle(rank, slot, key)


@kernel
def _settle(rank: Tournament, slot: int, key: float) -> None:
    """Make a slot the top, add it to the leaders, or leave it in the tree."""
    board = rank.board[rank.number]
    if key > board.level and board.top < 0:
        board.top = slot
        return
    if key == board.level and board.leaders > 0:
        rank.leaders[rank.base + board.leaders] = slot
        board.leaders += 1
        rank.entrant[slot].place = board.leaders
        return
    if key > board.level:  # a second one above the list: late rewards may raise it
        disband(rank)
    elif board.top < 0 and board.leaders == 0:
        board.level = math.inf  # unknown
    if slot - rank.base < board.in_tree:
        _note(rank, slot)


@kernel
def _note(rank: Tournament, slot: int) -> None:
    """Note that a key in the tree changed."""
    board = rank.board[rank.number]
    if _PART * board.changed <= board.in_tree:
        rank.changed[rank.base + board.changed] = slot
        board.changed += 1


@on_gpu(_note)
def _update_now(rank: Tournament, slot: int) -> None:
    """Update a key that changed in the tree at once.

    The threads of a GPU then do so in the same step. If one thread updated many keys, all others
    would wait for it.
    """
    _climb(rank, slot, False)


@rare
def _enter_before(rank: Tournament, slot: int) -> None:
    """Add the missing slots before this one, with the key -inf."""
    while rank.base + rank.board[rank.number].size < slot:
        enter(rank, -math.inf)


@rare
def disband(rank: Tournament) -> None:
    """Forget the leaders. They are found again, in order of slots, when one is needed."""
    board = rank.board[rank.number]
    if board.top >= 0 and board.top - rank.base < board.in_tree:
        _note(rank, board.top)
    for k in range(board.leaders):
        slot = rank.leaders[rank.base + k]
        rank.entrant[slot].place = 0
        if slot - rank.base < board.in_tree:
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
    if board.size <= _FEW:
        _scan_all(rank)
        return
    if _PART * (board.changed + board.size - board.in_tree) > board.size:
        board.in_tree = board.size
        _build(rank)
    else:
        while board.in_tree < board.size:
            board.in_tree += 1
            _climb(rank, rank.base + board.in_tree - 1, True)
        for k in range(board.changed):
            _climb(rank, rank.changed[rank.base + k], False)
    board.changed = 0
    _list_leaders(rank)
    if board.leaders == 1 and board.level > -math.inf:  # the second largest key is the level
        board.top = rank.leaders[rank.base]
        rank.entrant[board.top].place = 0
        board.leaders = 0
        board.level = _best_rival(rank, board.top)


@kernel
def _scan_all(rank: Tournament) -> None:
    """Find the slots of the largest key among few slots, for which no tree is kept."""
    board = rank.board[rank.number]
    best, rival, top = -math.inf, -math.inf, -1
    for slot in range(rank.base, rank.base + board.size):
        key = rank.entrant[slot].key
        if key > best:
            best, rival, top = key, best, slot
        elif key > rival:
            rival = key
    if rival < best:
        board.top = top
        board.level = rival
        return
    board.level = best
    for slot in range(rank.base, rank.base + board.size):
        if rank.entrant[slot].key == best:
            rank.leaders[rank.base + board.leaders] = slot
            board.leaders += 1
            rank.entrant[slot].place = board.leaders


@kernel
def _build(rank: Tournament) -> None:
    """Compute all nodes, level by level."""
    last = rank.board[rank.number].in_tree - 1
    level = 0
    while last >> _SPAN * level > 0:
        level += 1
        for block in range((last >> _SPAN * level) + 1):
            rank.node[_at(rank, block, level)] = _largest_within(rank, block, level)


@kernel
def _at(rank: Tournament, block: int, level: int) -> int:
    """Return the place of a node. Each level has its own places, room / 2 in all."""
    return ((rank.base + rank.room) >> 1) - (rank.room >> (_SPAN * level - 2)) + block


# The loops below have constant lengths and no branches, so that a GPU waits for memory only once,
# although they read some blocks twice.


@kernel
def _largest_within(rank: Tournament, block: int, level: int) -> float:
    """Return the largest key of a node, from those below it."""
    last = (rank.board[rank.number].in_tree - 1) >> _SPAN * (level - 1)
    first = block << _SPAN
    best = -math.inf
    if level == 1:
        for k in range(_BLOCKS):
            best = max(best, rank.entrant[rank.base + min(first + k, last)].key)
    else:
        start = _at(rank, 0, level - 1)
        for k in range(_BLOCKS):
            best = max(best, rank.node[start + min(first + k, last)])
    return best


@kernel
def _climb(rank: Tournament, slot: int, new: bool) -> None:
    """Compute the nodes above a slot: all if it is new in the tree, else as far as they change."""
    last = rank.board[rank.number].in_tree - 1
    block = slot - rank.base
    level = 0
    while last >> _SPAN * level > 0:
        block >>= _SPAN
        level += 1
        at = _at(rank, block, level)
        best = _largest_within(rank, block, level)
        if not new and best == rank.node[at]:
            return
        rank.node[at] = best


@kernel
def _list_leaders(rank: Tournament) -> None:
    """Fill the list with all slots of the largest key, in their order."""
    board = rank.board[rank.number]
    last = board.in_tree - 1
    root = 0  # the level of the block that holds all slots; at least 2, because there are many
    while last >> _SPAN * root > 0:
        root += 1
    board.level = rank.node[_at(rank, 0, root)]
    block, level = 0, root - 1
    while block << _SPAN * level <= last:
        end = ((block >> _SPAN) + 1) << _SPAN
        block = _first_alike(rank, block, end, level)
        if block < end and level > 1:
            block <<= _SPAN
            level -= 1
            continue
        if block < end:
            _list_block(rank, block)
            block += 1
        while block & (_BLOCKS - 1) == 0 and level < root:  # a larger block begins here
            block >>= _SPAN
            level += 1


@kernel
def _first_alike(rank: Tournament, block: int, end: int, level: int) -> int:
    """Return the first block from this one on that has a leader, or `end` if none has."""
    board = rank.board[rank.number]
    start, last = _at(rank, 0, level), (board.in_tree - 1) >> _SPAN * level
    found = end
    for k in range(1, _BLOCKS + 1):
        other = end - k
        alike = rank.node[start + min(other, last)] == board.level
        if alike & (other >= block) & (other <= last):
            found = other
    return found


@kernel
def _list_block(rank: Tournament, block: int) -> None:
    """Add the leaders among 8 slots to the list."""
    board = rank.board[rank.number]
    first, last = block << _SPAN, board.in_tree - 1
    alike = 0
    for k in range(_BLOCKS):
        key = rank.entrant[rank.base + min(first + k, last)].key
        alike |= int((key == board.level) & (first + k <= last)) << k
    for k in range(_BLOCKS):
        if alike >> k & 1 == 1:
            slot = rank.base + first + k
            rank.leaders[rank.base + board.leaders] = slot
            board.leaders += 1
            rank.entrant[slot].place = board.leaders


@kernel
def _best_rival(rank: Tournament, slot: int) -> float:
    """Return the largest key of the other slots."""
    last = rank.board[rank.number].in_tree - 1
    block = slot - rank.base
    best = _best_beside(rank, block, last)
    level = 1
    while last >> _SPAN * level > 0:
        block >>= _SPAN
        first, final = block >> _SPAN << _SPAN, last >> _SPAN * level
        start = _at(rank, 0, level)
        for k in range(_BLOCKS):
            other = min(first + k, final)
            best = max(best, rank.node[start + other] if other != block else -math.inf)
        level += 1
    return best


@kernel
def _best_beside(rank: Tournament, slot: int, last: int) -> float:
    """Return the largest key of the other slots in the same block of 8."""
    first = slot >> _SPAN << _SPAN
    best = -math.inf
    for k in range(_BLOCKS):
        other = min(first + k, last)
        key = rank.entrant[rank.base + other].key
        best = max(best, key if other != slot else -math.inf)
    return best
