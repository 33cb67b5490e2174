"""Events and arms leave as a stream: NDJSON, CSV, a CSV for spreadsheets, or Parquet."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import csv
import io
import itertools
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import msgspec

from manyarms.errors import MissingExtraError
from manyarms.live.databases import Database, ExperimentRow, database_of
from manyarms.live.store import ABANDONED, ARRIVED, ASKED, RETIRED, TOLD
from manyarms.serve.errors import refuse, unknown_experiment
from manyarms.serve.game import REPORTED
from manyarms.serve.node import unavailable
from manyarms.serve.replica import Replica
from manyarms.serve.requests import Request, Response
from manyarms.serve.service import Service

__all__ = ["export"]

_PIECE = 2000  # rows of a piece
_GROUP = 50_000  # rows of a group of Parquet
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")  # what a cell must not begin with in spreadsheets
_KINDS = {
    ASKED: "asked",
    TOLD: "told",
    ABANDONED: "abandoned",
    ARRIVED: "arrived",
    RETIRED: "retired",
    6: "observed",
    7: "answered",
    8: "restored",
    REPORTED: "reported",
}


async def export(service: Service, request: Request) -> Response:
    """Send all events, or all arms, as a stream."""
    what, form = request.query.get("what", "events"), request.query.get("format", "ndjson")
    if what not in ("events", "arms") or form not in _FORMS:
        raise refuse(
            422,
            "invalid",
            f"`what` must be events or arms, and `format` one of {', '.join(_FORMS)}, got "
            f"{what[:100]!r} and {form[:100]!r}.",
        )
    row = await service.node.read(lambda database: database.find(request.experiment))
    if row is None:
        raise unknown_experiment(request.experiment)
    kind, write = _FORMS[form]
    columns, rows = _EXPORTS[what]
    ending = "csv" if form == "spreadsheet" else form
    name = f"{row.name}-{what}.{ending}"
    url = service.settings.store
    if form == "parquet":
        _arrow()
    stream = _in_thread(lambda: _opened(url, lambda database: write(columns, rows(database, row))))
    disposition = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(headers=disposition, kind=kind, stream=stream)


def _opened(url: str, rows: Callable[[Database], Iterator[bytes]]) -> Iterator[bytes]:
    database = database_of(url)
    database.open()
    try:
        yield from rows(database)
    finally:
        database.close()


async def _in_thread(make: Callable[[], Iterator[bytes]]) -> AsyncGenerator[bytes]:
    """Yield what a thread makes; it waits while nobody takes it."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue(maxsize=4)
    gone = threading.Event()

    def put(piece: bytes | BaseException | None) -> bool:
        putting = ready.put(piece)
        try:
            there = asyncio.run_coroutine_threadsafe(putting, loop)
        except RuntimeError:  # the loop has ended
            putting.close()
            return False
        while not gone.is_set():
            with contextlib.suppress(TimeoutError):
                there.result(0.5)
                return True
        there.cancel()
        return False

    def run() -> None:
        try:
            for piece in make():
                if not put(piece):
                    return
        except BaseException as error:
            put(error)
        else:
            put(None)

    threading.Thread(target=run, name="export", daemon=True).start()
    try:
        while (piece := await ready.get()) is not None:
            if isinstance(piece, BaseException):
                raise unavailable("The export ended early.") from piece
            yield piece
    finally:
        gone.set()


def _event_rows(database: Database, row: ExperimentRow) -> Iterator[tuple[Any, ...]]:
    # the head was read before: events that come meanwhile are left out
    events = database.stream(
        "SELECT e.seq, e.kind, e.pull, e.arm, a.key, e.reward, e.at FROM events e LEFT JOIN arms a "
        "ON a.experiment = e.experiment AND a.number = e.arm AND e.kind <> 4 "
        "WHERE e.experiment = :x AND e.seq <= :head ORDER BY e.seq",
        x=row.id,
        head=row.head,
    )
    for seq, kind, pull, arm, key, reward, at in events:
        has_reward = kind in (TOLD, REPORTED)
        yield (
            seq,
            _KINDS.get(kind, str(kind)),
            pull if pull >= 0 else None,
            arm,
            key,
            reward if has_reward else None,
            at,
        )


def _arm_rows(database: Database, row: ExperimentRow) -> Iterator[tuple[Any, ...]]:
    replica = Replica(database, row.name)
    for number, key in _every_arm(database, row):
        a = replica.of_arm(number)
        known = (a.estimate, *a.interval) if a.told else (None, None, None)
        yield number, key, a.pulls, a.told, *known, a.retired


def _every_arm(database: Database, row: ExperimentRow) -> Iterator[tuple[int, str | None]]:
    if not row.keyed:
        return ((number, None) for number in range(row.n_arms))
    return database.stream(
        "SELECT number, key FROM arms WHERE experiment = :x AND number < :n ORDER BY number",
        x=row.id,
        n=row.n_arms,
    )


_EXPORTS: dict[str, tuple[dict[str, str], Any]] = {
    "events": (
        {"seq": "int64", "kind": "string", "pull": "int64", "arm": "int64", "key": "string",
         "reward": "float64", "at": "float64"},
        _event_rows,
    ),
    "arms": (
        {"number": "int64", "key": "string", "pulls": "int64", "told": "int64",
         "estimate": "float64", "low": "float64", "high": "float64", "retired": "bool_"},
        _arm_rows,
    ),
}  # fmt: skip


def _pieces(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while some := list(itertools.islice(rows, _PIECE)):
        yield some


def _as_ndjson(columns: dict[str, str], rows: Iterator[Any]) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    for some in _pieces(rows):
        yield b"".join(encode(dict(zip(columns, row, strict=True))) + b"\n" for row in some)


def _as_csv(columns: dict[str, str], rows: Iterator[Any]) -> Iterator[bytes]:
    for some in itertools.chain([[tuple(columns)]], _pieces(rows)):
        text = io.StringIO()
        csv.writer(text).writerows(some)  # with \r\n: then a \r within a key is quoted, too
        yield text.getvalue().encode()


def _as_spreadsheet(columns: dict[str, str], rows: Iterator[Any]) -> Iterator[bytes]:
    """Write a CSV for people: a key that begins like a formula is a text, which an ' makes it."""
    place = list(columns).index("key")

    def guarded(row: tuple[Any, ...]) -> tuple[Any, ...]:
        key = row[place]
        risky = key is not None and key.startswith(_FORMULA)
        return (*row[:place], f"'{key}", *row[place + 1 :]) if risky else row

    yield codecs.BOM_UTF8  # without which spreadsheets take it for another code
    yield from _as_csv(columns, map(guarded, rows))


def _arrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        error = MissingExtraError("pyarrow", "to export Parquet")
        raise refuse(501, "no_parquet", str(error)) from None
    return pyarrow


class _Passing(io.RawIOBase):
    """A file that forgets what was taken from it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._length = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._length += len(part)
        return len(part)

    def tell(self) -> int:
        return self._length

    def taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _as_parquet(columns: dict[str, str], rows: Iterator[Any]) -> Iterator[bytes]:
    arrow = _arrow()
    schema = arrow.schema([(name, getattr(arrow, kind)()) for name, kind in columns.items()])
    sink = _Passing()
    with arrow.parquet.ParquetWriter(sink, schema) as writer:
        while some := list(itertools.islice(rows, _GROUP)):
            writer.write_table(
                arrow.table([list(c) for c in zip(*some, strict=True)], schema=schema)
            )
            yield sink.taken()
    yield sink.taken()


_FORMS: dict[str, tuple[str, Any]] = {
    "ndjson": ("application/x-ndjson", _as_ndjson),
    "csv": ("text/csv; charset=utf-8", _as_csv),
    "spreadsheet": ("text/csv; charset=utf-8", _as_spreadsheet),
    "parquet": ("application/vnd.apache.parquet", _as_parquet),
}
