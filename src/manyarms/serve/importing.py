"""Arms come as a stream: NDJSON or CSV."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from manyarms.live.estimates import count
from manyarms.protocol.policy import MOST_ARMS
from manyarms.serve import messages as m
from manyarms.serve import tables
from manyarms.serve.batch import LostError
from manyarms.serve.cleaning import SOME_ARMS
from manyarms.serve.errors import RefusedError, invalid, refuse, unknown_arm
from manyarms.serve.experiment import Experiment
from manyarms.serve.requests import Request, Response
from manyarms.serve.service import Service

_MOST_KEY = 1000  # characters
_MOST_LINE = 1 << 20
_line = msgspec.json.Decoder(str | dict[str, Any]).decode


class _Count(msgspec.Struct, forbid_unknown_fields=True):
    count: int = 0
    keys: list[str] = []


def _arms_of(experiment: Experiment) -> int:
    return experiment.live.arms.count if experiment.live is not None else 0


async def number_of(service: Service, name: str, key: str) -> int:
    """Return the number of an arm of an experiment."""
    experiment = await service.leader.find(name)
    there, x = _arms_of(experiment), experiment.id
    number: int | None = None
    if experiment.keyed:
        number = await service.leader.read(lambda db: tables.number_of(db, x, key, there))
    elif key.isdecimal() and len(key) < 19 and int(key) < there:
        number = int(key)
    if number is None:
        raise unknown_arm(key)
    return number


async def add_arms(service: Service, request: Request) -> Response:
    """Add arms: a number of them, or their keys, which come as a stream.

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
    await service.note(request.caller, request.experiment, f"add {count(added.added, 'arm')}")
    return Response(msgspec.json.encode(added))


async def _once(keys: list[str]) -> AsyncIterator[list[str]]:
    yield [_checked(key, f"Key {place}") for place, key in enumerate(keys, 1)]


async def _count(service: Service, request: Request, count: int) -> m.AddedArms:
    def change(experiment: Experiment) -> int:
        if experiment.keyed:
            raise refuse(
                422, "keys", f"The arms of {experiment.name} have keys: give the new ones."
            )
        if not 1 <= count <= MOST_ARMS:
            raise invalid(f"`count` must be an integer >= 1, got {count}.")
        return experiment.add_arms(count)

    _, there, _ = await service.apply(request.experiment, change)
    return m.AddedArms(count, there)


async def _import(
    service: Service, request: Request, batches: AsyncIterator[list[str]]
) -> m.AddedArms:
    experiment = await service.leader.find(request.experiment)
    name = experiment.name
    if not experiment.keyed:
        raise refuse(422, "numbers", f"The arms of {name} are numbers: give a `count`.")
    experiment.check_can_add()
    if experiment.importing.locked():
        raise refuse(409, "importing", f"Arms are being added to {name}. Wait for them.")
    async with experiment.importing:
        if experiment.tidying is not None:
            await asyncio.shield(experiment.tidying)
        try:
            added = await _stage(service, experiment, batches)

            def publish(one: Experiment) -> int:
                if one is not experiment:
                    raise LostError("the experiment was loaded anew")
                return one.add_arms(added) if added else _arms_of(one)

            _, there, _ = await service.apply(name, publish)
        except BaseException:  # also if whoever sends them goes away
            if not experiment.gone:
                service.leader.tidy(experiment)
            raise
    return m.AddedArms(added, there)


async def _stage(
    service: Service, experiment: Experiment, batches: AsyncIterator[list[str]]
) -> int:
    """Write keys beyond the arms there are; return how many."""
    x = experiment.id
    begin = number = _arms_of(experiment)
    try:
        async for keys in batches:
            for k in range(0, len(keys), SOME_ARMS):
                some = keys[k : k + SOME_ARMS]
                rows = [(number + place, key) for place, key in enumerate(some)]
                await service.leader.write(lambda db, rows=rows: tables.add_arms(db, x, rows))  # type: ignore[misc]
                number += len(some)
    except tables.KeyTakenError as error:
        raise _twice(str(error)) from error
    return number - begin


def _twice(key: str) -> RefusedError:
    return refuse(
        409, "key_exists", f"There is an arm {key[:100]!r} already, and a key can be added "
        f"only once. No arm was added.",
    )  # fmt: skip


def _checked(key: Any, where: str) -> str:
    if not isinstance(key, str) or not 1 <= len(key) <= _MOST_KEY or "\0" in key:
        raise invalid(
            f"{where}: a key must be a string of 1 to {_MOST_KEY} characters, without NUL. No arm "
            f"was added.",
        )
    return key


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > _MOST_LINE:
            raise invalid("A line has more than a million bytes.")
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
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise invalid(f"Line {count}: {error}. No arm was added.") from error
            key = value.get("key") if isinstance(value, dict) else value
            keys.append(_checked(key, f"Line {count}"))
        yield keys


async def _csv(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[str]]:
    column, count = -1, 0  # where the keys are; lines before these
    rest: list[str] = []  # the begin of a row that goes on in the next piece: it has a quoted line
    async for lines in _lines(pieces):
        try:
            text = b"\n".join(lines).decode("utf-8-sig" if count == 0 else "utf-8")
        except UnicodeDecodeError as error:
            raise _no_csv(count, error) from error
        given = rest + [f"{line}\n" for line in text.split("\n")]
        rows, done, ends = _rows_in(given, count)
        rest = given[done:]
        if sum(map(len, rest)) > _MOST_LINE:
            raise invalid(f"Line {count + done + 1}: a row has too many bytes.")
        if rows and column < 0:
            if "key" not in rows[0]:
                raise invalid("The first line of the CSV must name a column `key`.")
            column = rows.pop(0).index("key")
            ends.pop(0)
        yield [
            _checked(row[column] if column < len(row) else None, f"Line {count + end}")
            for row, end in zip(rows, ends, strict=True)
            if row
        ]
        count += done
    if rest:
        raise _no_csv(count, "unexpected end of data")
    if column < 0:
        raise invalid("The first line of the CSV must name a column `key`.")


def _rows_in(lines: list[str], count: int) -> tuple[list[list[str]], int, list[int]]:
    """Return the whole rows in some lines, how many lines they are, and the last line of each."""
    reader = csv.reader(lines, strict=True)
    rows: list[list[str]] = []
    ends: list[int] = []
    try:
        for row in reader:
            rows.append(row)
            ends.append(reader.line_num)
    except csv.Error as error:
        if "unexpected end" not in str(error):  # else the last row goes on
            raise _no_csv(count + reader.line_num - 1, error) from error
    return rows, ends[-1] if ends else 0, ends


def _no_csv(count: int, why: object) -> RefusedError:
    return invalid(f"After line {count}: {why}. No arm was added.")
