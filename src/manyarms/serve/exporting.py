"""Events and arms leave as a stream: NDJSON, CSV, a CSV for spreadsheets, or Parquet.

A process of its own writes each export to its standard output, because a long replay and millions
of rows would slow down the service.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import csv
import importlib.util
import io
import itertools
import logging
import os
import re
import sys
from collections.abc import AsyncGenerator, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from manyarms.errors import ManyarmsError, MissingExtraError, StoreError
from manyarms.live.control import ARM
from manyarms.live.databases import Database, ExperimentRow, UnreachableError
from manyarms.live.store import EventKind
from manyarms.serve import tables
from manyarms.serve.errors import invalid, refuse, unavailable, unknown_experiment
from manyarms.serve.game import Game, ReplayError
from manyarms.serve.look import Look
from manyarms.serve.messages import Spec
from manyarms.serve.requests import Request, Response

if TYPE_CHECKING:
    from manyarms.serve.service import Service

MOST_EXPORTS = 3  # at a time: each has a process and a connection to the database
_PIPED = 64 << 10  # bytes that are read at a time
STORE = "MANYARMS_EXPORT_STORE"  # in the environment: there may be a password in it
_PIECE = 2000  # rows of a piece
_GROUP = 50_000  # rows of a group of Parquet
_FORMULA = r"[=+\-@\uff1d\uff0b\uff0d\uff20]"  # begins one in a spreadsheet; also wide ones
# where a cell may begin: with the text, and after what separates cells in some countries
_CELL = re.compile(rf"^(?=['\s\ufeff]|{_FORMULA})|(?<=[;,|\t\r\n])(?=\s*{_FORMULA})")
_WORDS = {int(kind): kind.word for kind in EventKind}


def _event_rows(database: Database, row: ExperimentRow) -> Iterator[tuple[Any, ...]]:
    # the head was read before: events that come meanwhile are left out
    events = database.stream(
        "SELECT e.seq, e.kind, e.pull, e.arm, a.key, e.reward, e.at FROM events e LEFT JOIN arms a "
        f"ON a.experiment = e.experiment AND a.number = e.arm AND e.kind <> {EventKind.ADDED:d} "
        "WHERE e.experiment = :x AND e.seq <= :head ORDER BY e.seq",
        x=row.id,
        head=row.head,
    )
    control = msgspec.json.decode(row.spec, type=Spec).control
    for seq, kind, pull, arm, key, reward, at in events:
        has_reward = kind in (EventKind.TOLD, EventKind.REPORTED)
        yield (
            seq,
            _WORDS.get(kind, str(kind)),
            pull if pull >= 0 else None,
            arm,
            str(control) if arm == ARM else key,
            reward if has_reward else None,
            at,
        )


def _arm_rows(database: Database, row: ExperimentRow) -> Iterator[tuple[Any, ...]]:
    look = Look(Game.load(database, row))
    for number, key in _every_arm(database, row):
        a = look.of_arm(number)
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


EXPORTS: dict[str, tuple[dict[str, str], Any]] = {
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
        return row if key is None else (*row[:place], _CELL.sub("'", key), *row[place + 1 :])

    yield codecs.BOM_UTF8  # without which spreadsheets take it for another code
    yield from _as_csv(columns, map(guarded, rows))


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
    import pyarrow as arrow
    import pyarrow.parquet

    schema = arrow.schema([(name, getattr(arrow, kind)()) for name, kind in columns.items()])
    sink = _Passing()
    with arrow.parquet.ParquetWriter(sink, schema) as writer:
        while some := list(itertools.islice(rows, _GROUP)):
            writer.write_table(
                arrow.table([list(c) for c in zip(*some, strict=True)], schema=schema)
            )
            yield sink.taken()
    yield sink.taken()


FORMS: dict[str, tuple[str, Any]] = {
    "ndjson": ("application/x-ndjson", _as_ndjson),
    "csv": ("text/csv; charset=utf-8", _as_csv),
    "spreadsheet": ("text/csv; charset=utf-8", _as_spreadsheet),
    "parquet": ("application/vnd.apache.parquet", _as_parquet),
}


async def export(service: Service, request: Request) -> Response:
    """Send all events, or all arms, as a stream."""
    what, form = request.query.get("what", "events"), request.query.get("format", "ndjson")
    if what not in EXPORTS or form not in FORMS:
        raise invalid(
            f"`what` must be events or arms, and `format` one of {', '.join(FORMS)}, got "
            f"{what[:100]!r} and {form[:100]!r}.",
        )
    name = request.experiment
    if await service.leader.read(lambda database: database.find(name)) is None:
        raise unknown_experiment(name)
    if form == "parquet" and importlib.util.find_spec("pyarrow") is None:
        error = MissingExtraError("pyarrow", "to export Parquet")
        raise refuse(501, "no_parquet", str(error))
    if service.exports >= MOST_EXPORTS:
        raise unavailable(
            f"This process makes {MOST_EXPORTS} exports already. Wait for one to end."
        )
    stream = _exported(service, name, what, form)
    await anext(stream)
    ending = "csv" if form == "spreadsheet" else form
    disposition = {"content-disposition": f'attachment; filename="{name}-{what}.{ending}"'}
    return Response(headers=disposition, kind=FORMS[form][0], stream=stream)


async def _exported(service: Service, *words: str) -> AsyncGenerator[bytes]:
    """Yield nothing as soon as the first bytes are there; then these, and all others."""
    service.exports += 1
    process: asyncio.subprocess.Process | None = None
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "manyarms.serve.exporting", *words),
            stdout=asyncio.subprocess.PIPE,
            limit=_PIPED,
            env=os.environ | {STORE: service.settings.store},
        )
        assert process.stdout is not None
        piece = await process.stdout.read(_PIPED)
        if not piece and await process.wait():
            raise unavailable("The export cannot be made; the log of the service says why.")
        yield b""  # now the head may be sent
        while piece:
            yield piece
            piece = await process.stdout.read(_PIPED)
        if await process.wait():
            raise unavailable("The export ended early.")
    finally:
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()  # reads what is left in the pipe, too, which closes it
        service.exports -= 1


# In the process


def main(name: str, what: str, form: str) -> None:
    """Write an export to the standard output."""
    columns, rows_of = EXPORTS[what]
    database = tables.opened(os.environ[STORE])
    try:
        row = database.find(name)
        if row is None:
            raise StoreError(f"There is no experiment {name!r}.")
        rows = rows_of(database, row)
        first = list(itertools.islice(rows, 1))  # what cannot be exported fails before all output
        for piece in FORMS[form][1](columns, itertools.chain(first, rows)):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    finally:
        database.close()


if __name__ == "__main__":
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the service's, which ends us
    try:
        main(*sys.argv[1:])
    except BrokenPipeError:  # nobody reads it any more
        os._exit(1)
    except (UnreachableError, ReplayError, ManyarmsError) as error:
        logging.getLogger("manyarms.export").error("no export of %s: %s", sys.argv[1], error)
        sys.exit(1)
