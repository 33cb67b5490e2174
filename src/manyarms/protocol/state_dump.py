"""A state as columns of numbers, whatever memory it lives in.

Only what was touched and is not zero is kept, and nothing that depends on the room a memory
makes: maps as names and values, tournaments without their tree, which is built again when leaders
are looked for. So a state may be written from dicts, read into arrays, played by compiled
code, and go back.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from manyarms.core.hash_map import HashMap, clear_map, find, insert
from manyarms.core.memory import ARRAYS, SPARSE, Record
from manyarms.core.sampler import Sampler
from manyarms.core.tournament import Tournament, clear, tournament
from manyarms.errors import ParameterError
from manyarms.protocol.plain_classes import PlainState

Columns: TypeAlias = dict[str, NDArray[Any]]

_PLACE, _VALUE = "@", "="  # of a sequence: where, and the number there; no field is called so
_INT64, _FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)
_SPECIAL = (HashMap, Sampler, Tournament)
_PREFIXES: dict[type, tuple[str, ...]] = {
    HashMap: ("name", "number"),
    Sampler: ("moved ", "drawn ", "n "),
    Tournament: ("board ", "seat ", "leaders "),
}
_END = 1 << 62  # beyond all places and numbers
_TREE = ("seated", "changed")  # of a tournament's board: what is known with its tree
_ALL_BUT_SIGN = 0x7FFF_FFFF_FFFF_FFFF


def dump_state(state: Any) -> Columns:
    """Return the columns of a state: equal states give equal columns, in any memory."""
    columns: Columns = {}
    for path, part in _parts(state, "state"):
        for name, column in _dump(part).items():
            if len(column) > 0:  # what is left out is zero
                columns[f"{path}/{name}"] = column
    return columns


def restore_state(state: Any, columns: Columns) -> None:
    """Make a state that `new_state` made equal to the one that was dumped.

    Raises KeyError or ValueError if the columns are those of another kind of state, or name places
    or numbers that there cannot be. Whether they make sense together is not asked.
    """
    left = dict(columns)
    for path, part in _parts(state, "state"):
        ours = [name for name in left if name.startswith(f"{path}/")]
        _restore(part, {name[len(path) + 1 :]: left.pop(name) for name in ours})
    for name in left:
        raise KeyError(name)


def constants(state: Any) -> list[tuple[str, Any]]:
    """Return the plain numbers of a state, but for those that say how much room there is."""
    found: list[tuple[str, Any]] = [("class", type(state).__name__)]
    for name, part in zip(state._fields, state, strict=True):
        if isinstance(part, int | float):
            found.append((name, part))
        elif hasattr(part, "_fields") and not isinstance(part, _SPECIAL):
            found += constants(part)
    return found


def classes_in(state: Any) -> set[type]:
    """Return the classes of a state and of the states within."""
    if not hasattr(state, "_fields"):
        return set()
    return {type(state)}.union(*(classes_in(part) for part in state))


def _parts(state: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield what changes in a state, part by part, with the way to it."""
    if isinstance(state, PlainState):
        raise ParameterError(
            f"{state.policy.label} is a plain Python class and cannot be saved: nobody knows what "
            f"it remembers. Write it as a policy with a state; see docs/own_policy.md."
        )
    for name, part in zip(state._fields, state, strict=True):
        here = f"{path}.{name}"
        if isinstance(part, (*_SPECIAL, dict, np.ndarray)):
            yield here, part
        elif hasattr(part, "_fields") or isinstance(part, PlainState):
            yield from _parts(part, here)


def _dump(part: Any) -> Columns:
    if isinstance(part, HashMap):
        return _dump_map(part)
    if isinstance(part, Sampler):
        moved = _dump_map(part.moved)
        place, which = np.divmod(moved["name"], part.shuffles)
        return {
            "moved place": place,
            "moved which": which,
            "moved number": moved["number"],
            **_prefixed("drawn ", _dump_sequence(part.drawn)),
            **_prefixed("n ", _dump_sequence(part.n)),
        }
    if isinstance(part, Tournament):
        board = _dump_sequence(part.board)
        return {
            **_prefixed("board ", {name: c for name, c in board.items() if name not in _TREE}),
            **_prefixed("seat ", _dump_sequence(part.seat)),
            **_prefixed("leaders ", _dump_sequence(part.leaders)),
        }
    return _dump_sequence(part)


def _restore(part: Any, columns: Columns) -> None:
    none = np.zeros(0, np.int64)
    for name in columns:
        if not name.startswith(_PREFIXES.get(type(part), "")):
            raise KeyError(name)
    if isinstance(part, HashMap):
        _fill_map(part, columns.get("name", none), columns.get("number", none))
    elif isinstance(part, Sampler):
        place, which = columns.get("moved place", none), columns.get("moved which", none)
        _check(_within(place, _END // part.shuffles) and _within(which, part.shuffles))
        names = place * part.shuffles + which
        _fill_map(part.moved, names, columns.get("moved number", none))
        _restore_sequence(part.drawn, _without("drawn ", columns))
        _restore_sequence(part.n, _without("n ", columns))
    elif isinstance(part, Tournament):
        _restore_sequence(part.seat, _seats(_without("seat ", columns)))
        _restore_sequence(part.leaders, _without("leaders ", columns))
        _restore_sequence(part.board, _boards(_without("board ", columns)))
    else:
        _restore_sequence(part, columns)


def _boards(columns: Columns) -> Columns:
    """Add what a tournament's board says before its tree is built."""
    blank = tournament(SPARSE, 1)
    clear(blank)
    board: Any = blank.board[0]
    fields, count = _fields(cast(Any, type(board))), len(columns.get(_PLACE, ()))
    return {f: np.full(count, getattr(board, f), kind) for f, kind in fields.items()} | columns


def _seats(columns: Columns) -> Columns:
    """Read the keys as format 1 of files has them: as integers in the same order, in two parts."""
    if "high" not in columns:
        return columns
    order = (columns["high"] << 2) | (columns["low"] >> 60)  # then came a random priority
    bits = order ^ ((order >> 63) & _ALL_BUT_SIGN)
    return {_PLACE: columns[_PLACE], "key": bits.view(np.float64)}


def _dump_map(hash_map: HashMap) -> Columns:
    cells: Any = hash_map.cells
    if isinstance(cells, np.ndarray):
        at = np.asarray(hash_map.used)[: hash_map.filled[0]]
        return {"name": cells[at] - 1, "number": cells[at + 1]}
    used = [hash_map.used[k] for k in range(hash_map.filled[0])]
    return {
        "name": np.array([cells[k] for k in used], np.int64) - 1,
        "number": np.array([cells[k + 1] for k in used], np.int64),
    }


def _fill_map(hash_map: HashMap, names: NDArray[Any], numbers: NDArray[Any]) -> None:
    clear_map(hash_map)
    cells, used = cast(Any, hash_map.cells), cast(Any, hash_map.used)
    last = (_layout(cells)[1] // 2 if hash_map.direct else _END) - 1
    _check(_within(names, last + 1) and _within(numbers, _END) and len(names) <= hash_map.entries)
    _check(len(names) == len(numbers) == len(np.unique(names)))
    if hash_map.direct and isinstance(cells, dict):  # as `insert` would, in a third of the time
        at = (2 * names).tolist()
        cells.update(zip(at, (names + 1).tolist(), strict=True))
        cells.update(zip((2 * names + 1).tolist(), numbers.tolist(), strict=True))
        used.update(enumerate(at))
        hash_map.filled[0] = len(at)
        return
    for name, number in zip(names.tolist(), numbers.tolist(), strict=True):
        insert(hash_map, find(hash_map, name), name, number)


def _dump_sequence(sequence: Any) -> Columns:
    if isinstance(sequence, dict):
        return _dump_dict(sequence)
    fields = sequence.dtype.names
    if fields is None:
        place = np.flatnonzero(sequence)
        return {_PLACE: place, _VALUE: sequence[place]}
    touched = np.zeros(len(sequence), np.bool_)
    for field in fields:
        touched |= sequence[field] != 0
    place = np.flatnonzero(touched)
    return {_PLACE: place, **{field: sequence[field][place] for field in fields}}


def _dump_dict(sequence: dict[int, Any]) -> Columns:
    first: Any = next(iter(sequence.values()), 0)
    if not isinstance(first, Record):
        place = sorted(k for k, number in sequence.items() if number != 0)
        numbers = [sequence[k] for k in place]
        whole = not any(isinstance(number, float) for number in numbers)
        return {
            _PLACE: np.array(place, np.int64),
            _VALUE: _column(_VALUE, numbers, _INT64 if whole else _FLOAT64),
        }
    fields = _fields(cast(Any, type(first)))
    place = sorted(k for k, row in sequence.items() if any(getattr(row, f) != 0 for f in fields))
    rows = [sequence[k] for k in place]
    columns = {
        field: _column(field, (getattr(r, field) for r in rows), kind)
        for field, kind in fields.items()
    }
    return {_PLACE: np.array(place, np.int64), **columns}


@functools.cache
def _fields(kind: Any) -> dict[str, np.dtype[Any]]:
    """Return the fields of a record, and the types that arrays give them."""
    dtype: np.dtype[Any] = np.asarray(ARRAYS.records(0, kind)).dtype
    return {field: dtype[field] for field in dtype.names or ()}


def _column(name: str, numbers: Iterable[Any], kind: np.dtype[Any]) -> NDArray[Any]:
    try:
        return np.array(list(numbers), kind)
    except OverflowError:
        raise ParameterError(
            f"`{name}` of a policy's state must fit into 64 bits, and it does not. Keep smaller "
            f"numbers in the state, or declare it a Word."
        ) from None


def _restore_sequence(sequence: Any, columns: Columns) -> None:
    place = columns.get(_PLACE, np.zeros(0, np.int64))
    fields = {name: column for name, column in columns.items() if name != _PLACE}
    _check_columns(sequence, place, fields)
    if isinstance(sequence, np.ndarray):
        sequence[np.flatnonzero(sequence != np.zeros(1, sequence.dtype))] = 0
        for field, column in fields.items():
            target = sequence if field == _VALUE else sequence[field]
            target[place] = column
        return
    sequence.clear()
    rows = [sequence[k] for k in place.tolist()]  # of records: zeros, made by looking
    for field, column in fields.items():
        if field == _VALUE:
            sequence.update(zip(place.tolist(), column.tolist(), strict=True))
        else:
            for row, number in zip(rows, column.tolist(), strict=True):
                setattr(row, field, number)


def _check_columns(sequence: Any, place: NDArray[Any], fields: Columns) -> None:
    """Raise unless a sequence has these fields, places and kinds of numbers."""
    layout, length = _layout(sequence)
    for field in fields.keys() - layout.keys():  # one that an older version did not have is zero
        raise KeyError(field)
    _check(_within(place, length) and bool((place[1:] > place[:-1]).all()))
    for field, column in fields.items():
        # floats may be a user's integers; integers that are added up must not overflow
        _check(column.dtype == layout[field] or (column.dtype, layout[field]) == (_INT64, _FLOAT64))
        _check(column.dtype != _INT64 or bool(((column >= -_END) & (column <= _END)).all()))
        _check(len(column) == len(place))


def _layout(sequence: Any) -> tuple[dict[str, np.dtype[Any]], int]:
    """Return the fields of a sequence with their types, and its length."""
    if isinstance(sequence, np.ndarray):
        dtype = sequence.dtype
        return {f: dtype[f] for f in dtype.names} if dtype.names else {_VALUE: dtype}, len(sequence)
    zero = sequence.zero
    if issubclass(zero, Record):
        return _fields(cast(Any, zero)), sequence.length
    return {_VALUE: _FLOAT64 if zero is float else _INT64}, sequence.length


def _within(numbers: NDArray[Any], end: int) -> bool:
    return numbers.dtype == _INT64 and bool(((numbers >= 0) & (numbers < end)).all())


def _check(true: bool) -> None:
    if not true:
        raise ValueError("its state has places or numbers that there cannot be")


def _prefixed(prefix: str, columns: Columns) -> Columns:
    return {prefix + name: column for name, column in columns.items()}


def _without(prefix: str, columns: Columns) -> Columns:
    return {name[len(prefix) :]: c for name, c in columns.items() if name.startswith(prefix)}
