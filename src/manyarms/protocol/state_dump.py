"""Convert the state of an experiment to columns of numbers, and back.

Only touched entries that are not zero are kept: maps as names and values, tournaments without their
tree, which is rebuilt when the leaders are next needed.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import repeat
from operator import attrgetter
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from manyarms.core.hash_map import HashMap, clear_map
from manyarms.core.memory import ARRAYS, SPARSE, Record
from manyarms.core.sampler import Sampler
from manyarms.core.tournament import Tournament, clear, tournament
from manyarms.errors import ParameterError
from manyarms.protocol.plain_classes import PlainState

Columns: TypeAlias = dict[str, NDArray[Any]]

_PLACE, _VALUE = "@", "="  # a sequence's indices and numbers; no field has these names
_INT64, _FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)
_SPECIAL = (HashMap, Sampler, Tournament)
_PREFIXES: dict[type, tuple[str, ...]] = {
    HashMap: ("name", "number"),
    Sampler: ("moved ", "drawn ", "n "),
    Tournament: ("board ", "seat ", "leaders "),
}
_END = 1 << 62  # above all indices and numbers
_TREE = ("in_tree", "changed")  # of a tournament's board: these follow from its tree


def dump_state(state: Any) -> Columns:
    """Return the columns of a state in `SPARSE` memory: equal states give equal columns."""
    columns: Columns = {}
    for path, part in _parts(state, "state"):
        for name, column in _dump(part).items():
            if len(column) > 0:  # missing columns are zero
                columns[f"{path}/{name}"] = column
    return columns


def restore_state(state: Any, columns: Columns) -> None:
    """Restore dumped columns into a state that `new_state` returned.

    Raises KeyError or ValueError if the columns are those of another kind of state, or have
    invalid indices or numbers. Whether they are consistent is not checked.
    """
    left = dict(columns)
    for path, part in _parts(state, "state"):
        own = [name for name in left if name.startswith(f"{path}/")]
        _restore(part, {name[len(path) + 1 :]: left.pop(name) for name in own})
    for name in left:
        raise KeyError(name)


def classes_in(state: Any) -> set[type]:
    """Return the classes of a state and of the states nested in it."""
    if not hasattr(state, "_fields"):
        return set()
    return {type(state)}.union(*(classes_in(part) for part in state))


def _parts(state: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the mutable parts of a state, each with its path."""
    if isinstance(state, PlainState):
        raise ParameterError(
            f"{state.policy} is a plain Python class and cannot be saved, because its "
            f"state is unknown. Write it as a policy with a state; see docs/own_policy.md."
        )
    for name, part in zip(state._fields, state, strict=True):
        here = f"{path}.{name}"
        if isinstance(part, (*_SPECIAL, dict)):
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
            **_prefixed("seat ", _dump_sequence(part.entrant)),
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
        _restore_sequence(part.entrant, _without("seat ", columns))
        _restore_sequence(part.leaders, _without("leaders ", columns))
        _restore_sequence(part.board, _boards(_without("board ", columns)))
    else:
        _restore_sequence(part, columns)


def _boards(columns: Columns) -> Columns:
    """Add the fields that a tournament's board has before its tree is built."""
    blank = tournament(SPARSE, 1)
    clear(blank)
    board: Any = blank.board[0]
    fields, count = _fields(cast(Any, type(board))), len(columns.get(_PLACE, ()))
    return {f: np.full(count, getattr(board, f), kind) for f, kind in fields.items()} | columns


def _dump_map(hash_map: HashMap) -> Columns:
    at = _looked_up(hash_map.used, range(hash_map.filled[0]))
    return {"name": at // 2, "number": _looked_up(hash_map.cells, (at + 1).tolist())}


def _looked_up(numbers: Any, places: Collection[int]) -> NDArray[Any]:
    return np.fromiter(map(numbers.__getitem__, places), np.int64, len(places))


def _fill_map(hash_map: HashMap, names: NDArray[Any], numbers: NDArray[Any]) -> None:
    clear_map(hash_map)
    cells, used = cast(Any, hash_map.cells), cast(Any, hash_map.used)
    _check(_within(names, cells.length // 2) and _within(numbers, _END))
    _check(len(names) == len(numbers) == len(np.unique(names)))
    at = (2 * names).tolist()  # as `insert` does, in a third of the time
    cells.update(zip(at, (names + 1).tolist(), strict=True))
    cells.update(zip((2 * names + 1).tolist(), numbers.tolist(), strict=True))
    used.update(enumerate(at))
    hash_map.filled[0] = len(at)


def _dump_sequence(sequence: Any) -> Columns:
    first: Any = next(iter(sequence.values()), 0)
    if isinstance(first, Record):
        columns = column_of_each(sequence.values(), _fields(cast(Any, type(first))))
        place = np.fromiter(sequence, np.int64, len(sequence))
        touched = functools.reduce(np.logical_or, (column != 0 for column in columns.values()))
    else:
        sequence = {k: number for k, number in sequence.items() if number != 0}
        whole = not any(issubclass(kind, float) for kind in set(map(type, sequence.values())))
        columns = {_VALUE: _column(_VALUE, sequence.values(), _INT64 if whole else _FLOAT64)}
        place = np.fromiter(sequence, np.int64, len(sequence))
        touched = np.ones(len(place), np.bool_)
    columns = {_PLACE: place, **columns}
    if touched.all() and (place[1:] > place[:-1]).all():
        return columns
    order = np.flatnonzero(touched)
    order = order[np.argsort(place[order])]
    return {name: column[order] for name, column in columns.items()}


def column_of_each(
    rows: Collection[Any], fields: Mapping[str, type[np.generic] | np.dtype[Any]]
) -> Columns:
    """Return the attributes of objects as columns; there may be millions of objects."""
    return {
        name: _column(name, map(attrgetter(name), rows), kind, len(rows))
        for name, kind in fields.items()
    }


def set_each(rows: Collection[Any], name: str, column: NDArray[Any]) -> None:
    """Set one attribute of all objects."""
    if len(rows) != len(column):
        raise ValueError(f"{name!r} has {len(column)} numbers for {len(rows)} rows")
    deque(map(setattr, rows, repeat(name), column.tolist()), maxlen=0)


@functools.cache
def _fields(kind: Any) -> dict[str, np.dtype[Any]]:
    """Return the fields of a record, and the types that arrays give them."""
    dtype: np.dtype[Any] = np.asarray(ARRAYS.records(0, kind)).dtype
    return {field: dtype[field] for field in dtype.names or ()}


def _column(name: str, numbers: Iterable[Any], kind: Any, count: int = -1) -> NDArray[Any]:
    try:
        return np.fromiter(numbers, kind, count)
    except OverflowError:
        raise ParameterError(
            f"`{name}` of a policy's state must fit into 64 bits, but does not. Keep smaller "
            f"numbers in the state, or declare it a Word."
        ) from None


def _restore_sequence(sequence: Any, columns: Columns) -> None:
    place = columns.get(_PLACE, np.zeros(0, np.int64))
    fields = {name: column for name, column in columns.items() if name != _PLACE}
    _check_columns(sequence, place, fields)
    sequence.clear()
    if _VALUE in fields:
        sequence.update(zip(place.tolist(), fields[_VALUE].tolist(), strict=True))
    elif issubclass(sequence.zero, Record):
        rows = [sequence.zero() for _ in range(len(place))]
        sequence.update(zip(place.tolist(), rows, strict=True))
        for field, column in fields.items():
            set_each(rows, field, column)


def _check_columns(sequence: Any, place: NDArray[Any], fields: Columns) -> None:
    """Raise unless a sequence has these fields, indices and kinds of numbers."""
    layout, length = _layout(sequence)
    for field in fields.keys() - layout.keys():
        raise KeyError(field)
    _check(_within(place, length) and bool((place[1:] > place[:-1]).all()))
    for field, column in fields.items():
        # a user's policy may put integers where floats are declared; sums must not overflow
        _check(column.dtype == layout[field] or (column.dtype, layout[field]) == (_INT64, _FLOAT64))
        _check(column.dtype != _INT64 or bool(((column >= -_END) & (column <= _END)).all()))
        _check(len(column) == len(place))


def _layout(sequence: Any) -> tuple[dict[str, np.dtype[Any]], int]:
    """Return the fields of a sequence with their types, and its length."""
    zero = sequence.zero
    if issubclass(zero, Record):
        return _fields(cast(Any, zero)), sequence.length
    return {_VALUE: _FLOAT64 if zero is float else _INT64}, sequence.length


def _within(numbers: NDArray[Any], end: int) -> bool:
    return numbers.dtype == _INT64 and bool(((numbers >= 0) & (numbers < end)).all())


def _check(true: bool) -> None:
    if not true:
        raise ValueError("its state has invalid indices or numbers")


def _prefixed(prefix: str, columns: Columns) -> Columns:
    return {prefix + name: column for name, column in columns.items()}


def _without(prefix: str, columns: Columns) -> Columns:
    return {name[len(prefix) :]: c for name, c in columns.items() if name.startswith(prefix)}
