"""Snapshots and logs that manyarms did not write, with correct checksums.

An attacker can compute the checksum. So the numbers and columns of a file are changed, and files
that still open are played. Neither may crash or raise an error of another kind.
"""

from __future__ import annotations

import contextlib
import copy
import random
import signal
import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import manyarms as ma
from manyarms.core.gc_pause import gc_paused
from manyarms.live import kinds
from manyarms.live.arm_calls import check_can
from manyarms.live.packing import pack, unpack
from manyarms.live.replaying import replay
from manyarms.live.snapshots import join_parts, restored, split_parts
from manyarms.protocol.policy import arrive, retire
from manyarms.protocol.state_dump import Columns
from manyarms.store import Event
from tests.live.stores import copied, known

__all__ = ["Hang", "crafted_bytes", "crafted_events", "inflating_bytes", "opened"]
__all__ += ["opened_and_played", "played", "replayed", "within"]

_WHOLE = tuple(sign * (1 << bits) for sign in (1, -1) for bits in (0, 5, 31, 40, 62))
_WHOLE += (0, 3, (1 << 62) - 1, (1 << 63) - 1, -(1 << 63))
_FLOATS = (float("nan"), float("inf"), float("-inf"), 1e308, -1.0, 0.0, 0.5)
_TEXTS: tuple[Any, ...] = (-1, 0, 1, 1 << 40, 1 << 63, 1 << 70, 1.5, "x", None, [], {}, True)
_TEXTS += (float("nan"), [1, 2, 3], {"name": "moss"}, 10**5000)

_KINDS = [kinds.ASKED, kinds.TOLD, kinds.ABANDONED, kinds.RETIRED, kinds.RESTORED, kinds.OBSERVED]
_KINDS += [kinds.HELD, kinds.EXPIRED]
Change = Callable[[NDArray[Any], random.Random], NDArray[Any]]


class Hang(BaseException):
    """A computation took too long."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise `Hang` after this much processor time (only in CPython, not in compiled code)."""

    def ring(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGVTALRM, ring)
    # The timer repeats, and garbage collection is off: an exception that is raised in a finalizer
    # or in a callback of the collector is lost.
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds)
    try:
        with gc_paused():
            yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def played(policy: ma.Policy, *, seed: int = 1, events: int = 130, moves: bool = True) -> ma.Live:
    """Return a handle with pending, abandoned and observed pulls, and arms that were added,
    retired and restored.
    """
    live = policy.live(n_arms=12, horizon=400, seed=seed)
    chance = random.Random(seed)
    for k in range(events):
        if k == 40 and moves and _can(live, arrive) and _can(live, retire):
            live.add_arms(2)
            live.retire([3, 4])
        if k == 60 and moves:
            live.observe(5, [0.0, 1.0, 1.0])
            live.observe(11, 1.0)
            if live._experiment.ledger.retired:
                live.restore(3)
                live.add_arms(1)
        if len(live.pending) < 4 or (chance.random() < 0.5 and len(live.pending) < 9):
            live.ask()
        elif chance.random() < 0.1:
            live.abandon(chance.choice(live.pending))
        else:
            live.tell(chance.choice(live.pending), float(chance.random() < 0.4))
    return live


def _can(live: ma.Live, function: Any) -> bool:
    try:
        check_can(live._experiment, function)
    except ma.ParameterError:
        return False
    return True


# Changes


def _put(value: float) -> Change:
    def change(column: NDArray[Any], chance: random.Random) -> NDArray[Any]:
        column[chance.randrange(len(column))] = value
        return column

    return change


def _shift(by: int) -> Change:
    def change(column: NDArray[Any], chance: random.Random) -> NDArray[Any]:
        at = chance.randrange(len(column))
        column[at] += np.asarray(by).astype(column.dtype)
        return column

    return change


def _swap(column: NDArray[Any], chance: random.Random) -> NDArray[Any]:
    one, two = chance.randrange(len(column)), chance.randrange(len(column))
    column[[one, two]] = column[[two, one]]
    return column


def _filled(column: NDArray[Any], chance: random.Random) -> NDArray[Any]:
    column[:] = column[chance.randrange(len(column))]
    return column


_SHAPES: list[Change] = [
    _swap,
    _filled,
    lambda column, chance: column[:-1],
    lambda column, chance: column[:0],
    lambda column, chance: np.concatenate([column, column[-1:]]),
    lambda column, chance: column[::-1].copy(),
    lambda column, chance: np.sort(column),
    lambda column, chance: column.astype(np.int64 if column.dtype.kind == "f" else np.float64),
    lambda column, chance: column.astype(np.uint64),
]


def _changes(column: NDArray[Any]) -> list[Change]:
    kind = column.dtype.kind
    if kind == "u":
        return [_put(0), _put((1 << 64) - 1), *_SHAPES]
    if kind == "f":
        return [*map(_put, _FLOATS), *_SHAPES]
    return [*map(_put, _WHOLE), _shift(1), _shift(-1), *_SHAPES]


def inflating_bytes() -> Iterator[bytes]:
    """Yield small snapshots that would inflate to large ones."""
    for size in (33 << 20, 64 << 20):
        yield join_parts(0, zlib.compress(bytes(size)), b"")


def _places(about: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in the text."""
    if path:
        yield path
    if isinstance(about, dict | list):
        inner = about.items() if isinstance(about, dict) else enumerate(about)
        for key, value in inner:
            yield from _places(value, (*path, key))


def crafted_bytes(data: bytes, *, one_in: int = 1, seed: int = 0) -> Iterator[bytes]:
    """Yield changed copies of a file, with one or a few changes: all, or one of `one_in`."""
    for number, make in enumerate(_recipes(data)):
        if (number - seed) % one_in == 0:
            with np.errstate(all="ignore"), contextlib.suppress(_ImpossibleError):
                yield make()


class _ImpossibleError(Exception):
    """A number that Python does not write."""


def _recipes(data: bytes) -> Iterator[Callable[[], bytes]]:
    began, ledger, search = split_parts(data)
    for make in _recipes_of_part(ledger):
        yield lambda make=make: join_parts(began, make(), search)  # type: ignore[misc]
    for make in _recipes_of_part(search):
        yield lambda make=make: join_parts(began, ledger, make())  # type: ignore[misc]
    for length in (0, 1, len(ledger) - 1, len(data), 1 << 63):
        yield partial(b"".join, [struct.pack("<QQ", began, length), ledger, search])


def _recipes_of_part(data: bytes) -> Iterator[Callable[[], bytes]]:
    about, columns = unpack(data, "it")
    for name, column in columns.items():
        for k in range(len(_changes(column))):
            yield partial(_changed, about, columns, {name: k}, k)
        yield partial(pack, about, {n: c for n, c in columns.items() if n != name})
        other = random.Random(name).choice(list(columns))
        yield partial(pack, about, columns | {name: columns[other], other: column})
    for name in (
        "more",
        "state.arms/=",
        "state.nothing/@",
        "pending era",
        "counts more",
        "due arm",
        "opened arm",
        "",
    ):
        yield partial(pack, about, columns | {name: np.arange(3)})
    for k in range(150):  # several at once
        some = random.Random(k).sample(sorted(columns), min(3, len(columns)))
        yield partial(_changed, about, columns, dict.fromkeys(some), k)
    for way in _places(about):
        for value in _TEXTS:
            yield partial(_reworded, about, columns, way, value)
    body = zlib.decompress(data)
    for length in (0, 1, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1):  # of the text
        yield partial(zlib.compress, struct.pack("<Q", length) + body[8:])
    for cut in (1, 9, 40):
        yield partial(zlib.compress, body[:-cut])
    yield partial(zlib.compress, body + b"more")


def _changed(
    about: dict[str, Any], columns: Columns, which: dict[str, int | None], seed: int
) -> bytes:
    """Change columns, each with the change of a number, or with a random change."""
    chance, changed = random.Random(seed), dict(columns)
    for name, number in which.items():
        changes = _changes(columns[name])
        change = chance.choice(changes) if number is None else changes[number]
        changed[name] = change(columns[name].copy(), chance)
    return pack(about, {name: column for name, column in changed.items() if len(column) > 0})


def _reworded(about: dict[str, Any], columns: Columns, way: tuple[Any, ...], value: Any) -> bytes:
    changed = copy.deepcopy(about)
    place: Any = changed
    for key in way[:-1]:
        place = place[key]
    place[way[-1]] = value
    try:
        return pack(changed, columns)
    except ValueError as error:
        raise _ImpossibleError from error


def crafted_events(chance: random.Random, log: list[Event]) -> list[Event]:
    """Return events with a few changes."""
    events = list(log)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(events))
        event = events[at]
        what = chance.randrange(7)
        if what == 0:
            events[at] = event._replace(pull=chance.choice([*_WHOLE, None, (event.pull or 0) + 1]))
        elif what == 1:
            events[at] = event._replace(arm=chance.choice([*_WHOLE, None, (event.arm or 0) + 1]))
        elif what == 2:
            events[at] = event._replace(reward=chance.choice([*_FLOATS, None]))
        elif what == 3:
            events[at] = event._replace(kind=chance.choice(_KINDS))
        elif what == 4:
            other = chance.randrange(len(events))
            events[at], events[other] = events[other], events[at]
        elif what == 5 and len(events) > 1:
            del events[at]
        else:
            events.insert(at, event)
    return events


# Opening them


def opened(live: ma.Live, data: bytes) -> ma.Live:
    """Return a copy of a handle, opened from another snapshot."""
    other = copied(live)
    experiment = restored(live._experiment.settings, data, "it")
    other._set_up(other._context._replace(experiment=experiment))
    return other


def replayed(live: ma.Live, events: list[Event]) -> ma.Live:
    """Return a copy of a handle after more events."""
    other = copied(live)
    replay(*other._context, events, "it", None)
    return other


def opened_and_played(make: Callable[[], ma.Live], *, seconds: float = 60.0) -> str:
    """Return "refused", "played", "stopped" (by an error of manyarms) or "hung".

    A crafted snapshot may make the policy loop forever.
    """
    try:
        with within(seconds):
            live = make()
    except ma.SavedFileError:
        return "refused"
    except Hang:
        return "hung"
    try:
        with within(seconds):
            _play(live)
    except ma.ManyarmsError:
        return "stopped"
    except Hang:
        return "hung"
    return "played"


def _play(live: ma.Live, pulls: int = 50) -> None:
    if _can(live, arrive) and live._experiment.ledger.n_all < 1 << 49:
        live.add_arms(1) if isinstance(live._context.arms.name(0), int) else live.add_arms(["new"])
    for k in range(pulls):
        for pull in live.pending[:2]:
            live.tell(pull, 0.25) if k % 5 else live.abandon(pull)
        if live.horizon is not None and live.pulls >= live.horizon:
            break
        live.ask()
        left = {pull.arm for pull in live.pending} - {arm.arm for arm in live.arms() if arm.retired}
        if k == 25 and left and _can(live, retire) and live.n_arms > 1:
            live.retire(min(left, key=str))
    str(live), live.progress(), live.arms(), known(live)
