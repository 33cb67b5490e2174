"""Arms come as a stream; events and arms leave as one."""

from __future__ import annotations

import asyncio
import csv
import io
import itertools
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from manyarms.errors import MissingExtraError
from manyarms.live.databases import Database, ExperimentRow, database_of
from manyarms.live.store import ABANDONED, ARRIVED, ASKED, RETIRED, TOLD
from manyarms.protocol.policy import MOST_ARMS
from manyarms.serve import messages as m
from manyarms.serve.errors import RefusedError, refuse
from manyarms.serve.game import REPORTED
from manyarms.serve.node import unavailable
from manyarms.serve.owned import Owned
from manyarms.serve.replica import Replica
from manyarms.serve.requests import Request, Response
from manyarms.serve.threads import LostError

if TYPE_CHECKING:
    from manyarms.serve.service import Service

__all__ = ["add_arms", "export", "number_of", "unknown_arm"]

_ROWS = 2000  # arms of a transaction: others wait some milliseconds for it
_MOST_KEY = 1000  # characters
_PIECE = 2000  # rows of a piece of an export
_KINDS = {
    ASKED: "asked",
    TOLD: "told",
    ABANDONED: "abandoned",
    ARRIVED: "arrived",
    RETIRED: "retired",
    REPORTED: "reported",
}
_line = msgspec.json.Decoder(str | dict[str, Any]).decode


class _Count(msgspec.Struct, forbid_unknown_fields=True):
    count: int = 0
    keys: list[str] = []


def unknown_arm(key: str) -> RefusedError:
    """Return the refusal of an arm that there is not."""
    return refuse(404, "unknown_arm", f"There is no arm {key[:100]!r}.")


async def number_of(service: Service, owned: Owned, key: str) -> int:
    """Return the number of an arm."""
    there = owned.live.arms.count if owned.live is not None else 0
    number: int | None = None
    if owned.keyed:
        number = await service.node.read(lambda db: db.number_of(owned.id, key, there))
    elif key.isdecimal() and int(key) < there:
        number = int(key)
    if number is None:
        raise unknown_arm(key)
    return number


# Import


async def add_arms(service: Service, request: Request) -> Response:
    """Add arms: so many, or by their keys, which come as a stream.

    Keys are written beyond the arms there are, where nobody sees them; one commit publishes them.
    """
    kind = request.headers.get(b"content-type", b"application/json").split(b";")[0].strip()
    stream: Callable[[AsyncIterator[bytes]], AsyncIterator[list[str]]] | None = {
        b"application/x-ndjson": _ndjson,
        b"text/csv": _csv,
    }.get(kind)
    if stream is None:
        wanted: _Count = await request.read(_Count)
        if wanted.count and not wanted.keys:
            added = await _count(service, request, wanted.count)
        else:
            added = await _import(service, request, _once(wanted.keys))
    else:
        added = await _import(service, request, stream(request.pieces()))
    await service.note(request.caller, request.experiment, f"add {added.added} arms")
    return Response(msgspec.json.encode(added))


async def _once(keys: list[str]) -> AsyncIterator[list[str]]:
    yield keys


async def _count(service: Service, request: Request, count: int) -> m.AddedArms:
    def change(owned: Owned) -> int:
        if owned.keyed:
            raise refuse(422, "keys", f"The arms of {owned.name} have keys: give the new ones.")
        if not 1 <= count <= MOST_ARMS:
            raise refuse(422, "invalid", f"`count` must be an integer >= 1, got {count}.")
        return owned.add_arms(count)

    _, there, _ = await service.apply(
        request.experiment, change, forwarded=request.forwarded, once=True
    )
    return m.AddedArms(count, there)


async def _import(
    service: Service, request: Request, batches: AsyncIterator[list[str]]
) -> m.AddedArms:
    added = 0

    async def change(owned: Owned) -> int:
        nonlocal added
        if not owned.keyed:
            raise refuse(422, "numbers", f"The arms of {owned.name} are numbers: give a `count`.")
        owned.check_can_add()
        if owned.importing.locked():
            raise refuse(409, "importing", f"Arms are being added to {owned.name}. Wait for them.")
        async with owned.importing:
            added = await _stage(service, owned, batches)
            if service.node.owned.get(owned.name) is not owned:
                raise LostError
            there = owned.live.arms.count if owned.live is not None else 0
            return owned.add_arms(added) if added else there

    _, there, _ = await service.apply(
        request.experiment, change, forwarded=request.forwarded, once=True
    )
    return m.AddedArms(added, there)


async def _stage(service: Service, owned: Owned, batches: AsyncIterator[list[str]]) -> int:
    """Write keys beyond the arms there are; return how many."""
    x, epoch = owned.id, owned.epoch
    begin = owned.live.arms.count if owned.live is not None else 0
    number = begin
    await service.node.write(lambda database: database.drop_unpublished(x, epoch, begin))
    try:
        async for keys in batches:
            for k in range(0, len(keys), _ROWS):
                some = keys[k : k + _ROWS]
                rows = [(number + place, key) for place, key in enumerate(some)]
                await service.node.write(lambda database, rows=rows: database.add_arms(x, rows))  # type: ignore[misc]
                number += len(some)
    except ValueError as error:
        raise await _aborted(service, owned, begin, _twice(str(error))) from error
    except RefusedError as error:
        raise await _aborted(service, owned, begin, error) from error
    return number - begin


async def _aborted(
    service: Service, owned: Owned, begin: int, refusal: RefusedError
) -> RefusedError:
    x, epoch = owned.id, owned.epoch
    await service.node.write(lambda database: database.drop_unpublished(x, epoch, begin))
    return refusal


def _twice(key: str) -> RefusedError:
    return refuse(
        409, "key_exists", f"There is an arm {key[:100]!r} already; keys are new, each once. "
        f"No arm was added.",
    )  # fmt: skip


def _checked(key: Any, line: int) -> str:
    if not isinstance(key, str) or not 1 <= len(key) <= _MOST_KEY or "\0" in key:
        raise refuse(
            422,
            "invalid",
            f"Line {line}: a key must be a string of 1 to {_MOST_KEY} characters. No arm was "
            f"added.",
        )
    return key


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > 1 << 20:
            raise refuse(422, "invalid", "A line has more than a million bytes.")
        if whole:
            yield whole
            await asyncio.sleep(0)  # others have their turn
    if rest.strip():
        yield [rest]


async def _ndjson(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[str]]:
    count = 0
    async for lines in _lines(pieces):
        keys = []
        for line in lines:
            count += 1
            if not line.strip():
                continue
            try:
                value = _line(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise refuse(422, "invalid", f"Line {count}: {error}. No arm was added.") from error
            keys.append(_checked(value.get("key") if isinstance(value, dict) else value, count))
        yield keys


async def _csv(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[str]]:
    column, count = -1, 0
    async for lines in _lines(pieces):
        try:
            text = b"\n".join(lines).decode("utf-8-sig" if column < 0 else "utf-8")
            rows = list(csv.reader(io.StringIO(text), strict=True))
        except (UnicodeDecodeError, csv.Error) as error:
            raise refuse(
                422, "invalid", f"After line {count}: {error}. No arm was added."
            ) from error
        if column < 0:
            if not rows or "key" not in rows[0]:
                raise refuse(422, "invalid", "The first line of the CSV must name a column `key`.")
            column = rows.pop(0).index("key")
            count += 1
        keys = []
        for row in rows:
            count += 1
            if row:
                keys.append(_checked(row[column] if column < len(row) else None, count))
        yield keys


# Export


async def export(service: Service, request: Request) -> Response:
    """Send all events, or all arms, as a stream."""
    what, form = request.query.get("what", "events"), request.query.get("format", "ndjson")
    if what not in ("events", "arms") or form not in _FORMS:
        raise refuse(
            422,
            "invalid",
            "`what` must be events or arms, and `format` ndjson, csv or parquet, got "
            f"{what!r} and {form!r}.",
        )
    row = await service.node.read(lambda database: database.find(request.experiment))
    if row is None:
        raise refuse(404, "unknown_experiment", f"There is no experiment {request.experiment!r}.")
    kind, write = _FORMS[form]
    columns, rows = _EXPORTS[what]
    name = f"{row.name}-{what}.{form}"
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


async def _in_thread(make: Callable[[], Iterator[bytes]]) -> AsyncIterator[bytes]:
    """Yield what a thread makes; it waits while nobody takes it."""
    loop = asyncio.get_running_loop()
    ready: queue.Queue[bytes | BaseException | None] = queue.Queue(maxsize=4)
    gone = threading.Event()

    def run() -> None:
        last: BaseException | None = None
        try:
            for piece in make():
                while not gone.is_set():
                    try:
                        ready.put(piece, timeout=0.5)
                        break
                    except queue.Full:
                        continue
                if gone.is_set():
                    return
        except BaseException as error:
            last = error
        while not gone.is_set():
            try:
                ready.put(last, timeout=0.5)
                return
            except queue.Full:
                continue

    thread = threading.Thread(target=run, name="export", daemon=True)
    thread.start()
    try:
        while (piece := await loop.run_in_executor(None, ready.get)) is not None:
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
        csv.writer(text, lineterminator="\n").writerows(some)
        yield text.getvalue().encode()


def _arrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        error = MissingExtraError("pyarrow", "to export Parquet", '"manyarms[lab]"')
        raise refuse(501, "no_parquet", str(error)) from None
    return pyarrow


def _as_parquet(columns: dict[str, str], rows: Iterator[Any]) -> Iterator[bytes]:
    arrow = _arrow()
    schema = arrow.schema([(name, getattr(arrow, kind)()) for name, kind in columns.items()])
    sink = io.BytesIO()
    sent = 0
    with arrow.parquet.ParquetWriter(sink, schema) as writer:
        while some := list(itertools.islice(rows, 100_000)):
            writer.write_table(
                arrow.table([list(c) for c in zip(*some, strict=True)], schema=schema)
            )
            yield sink.getvalue()[sent:]
            sent = sink.tell()
    yield sink.getvalue()[sent:]


_FORMS: dict[str, tuple[str, Any]] = {
    "ndjson": ("application/x-ndjson", _as_ndjson),
    "csv": ("text/csv; charset=utf-8", _as_csv),
    "parquet": ("application/vnd.apache.parquet", _as_parquet),
}
