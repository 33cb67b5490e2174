"""Arms come as a stream: NDJSON or CSV."""

from __future__ import annotations

import asyncio
import contextlib
import csv
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec

from manyarms.inference.estimates import count
from manyarms.protocol.policy import MOST_ARMS
from manyarms.serve import messages as m
from manyarms.serve import tables
from manyarms.serve.batch import LostError
from manyarms.serve.cleaning import SOME_ARMS
from manyarms.serve.errors import RefusedError, invalid, refuse, unknown_arm
from manyarms.serve.experiment import Experiment
from manyarms.serve.links import COLUMNS, Beside
from manyarms.serve.requests import Request, Response
from manyarms.serve.service import Service

_MOST_KEY = 1000  # characters
_MOST_LINE = 1 << 20
_AT_ONCE = 50  # arms that come back or go in one commit: some 20 ms
_line = msgspec.json.Decoder(str | dict[str, Any]).decode


class _Arm(msgspec.Struct, forbid_unknown_fields=True):
    key: str
    image_url: str | None = None
    url: str | None = None


class _Count(msgspec.Struct, forbid_unknown_fields=True):
    count: int = 0
    keys: list[str | _Arm] = []


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
    upsert, beside = _upsert_in(request), Beside()
    keys = keys_in(request, beside)
    if keys is None:
        wanted: _Count = await request.read(_Count)
        if wanted.count and not wanted.keys:
            added = await _count(service, request, wanted.count)
        else:
            added = await _import(service, request, _once(wanted.keys, beside), beside, upsert)
    else:
        added = await _import(service, request, keys, beside, upsert)
    added.ignored = list(beside.ignored)
    await service.note(request.caller, request.experiment, f"add {count(added.added, 'arm')}")
    return Response(msgspec.json.encode(added))


def _upsert_in(request: Request) -> bool:
    given = request.query.get("upsert", "false")
    if given not in ("true", "false"):
        raise invalid(f"`upsert` must be true or false, got {given[:100]!r}.")
    return given == "true"


def keys_in(request: Request, beside: Beside) -> AsyncIterator[list[str]] | None:
    """Return the keys of a request that is a stream; None if it is JSON.

    What else there is, columns or fields, is noted in `beside`.
    """
    kind = request.headers.get(b"content-type", b"application/json").split(b";")[0].strip()
    read = {b"application/x-ndjson": _ndjson, b"text/csv": _csv}.get(kind)
    return None if read is None else read(request.pieces(), beside)


async def keys_of_json(request: Request, beside: Beside) -> AsyncIterator[list[str]]:
    """Return the keys of a request that is {"keys": [...]}."""
    wanted: _Count = await request.read(_Count)
    if wanted.count:
        raise invalid("`count` adds arms that are called by number; give `keys`.")
    return _once(wanted.keys, beside)


async def _once(arms: list[str | _Arm], beside: Beside) -> AsyncIterator[list[str]]:
    keys = []
    for place, arm in enumerate(arms, 1):
        where, key = f"Key {place}", arm if isinstance(arm, str) else arm.key
        keys.append(_checked(key, where))
        if isinstance(arm, _Arm):
            beside.link(key, {"image_url": arm.image_url, "url": arm.url}, where)
    yield keys


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
    service: Service,
    request: Request,
    batches: AsyncIterator[list[str]],
    beside: Beside,
    upsert: bool,
) -> m.AddedArms:
    found: set[int] | None = set() if upsert else None
    async with importing(service, request.experiment) as experiment:
        staged = await publish(service, experiment, batches, beside, found)
        back = [] if found is None else sorted(found & retired_in(experiment))
        await in_pieces(service, experiment, back, [])
    there = 0 if found is None else len(found)
    return m.AddedArms(len(staged), _arms_of(experiment), there, len(back))


@contextlib.asynccontextmanager
async def importing(service: Service, name: str) -> AsyncIterator[Experiment]:
    """Let one request at a time bring keys; if it fails, delete what it has left."""
    experiment = await service.leader.find(name)
    if not experiment.keyed:
        raise refuse(422, "numbers", f"The arms of {name} are numbers: give a `count`.")
    if experiment.importing.locked():
        raise refuse(409, "importing", f"Arms are being added to {name}. Wait for them.")
    async with experiment.importing:
        if experiment.tidying is not None:
            await asyncio.shield(experiment.tidying)
        try:
            yield experiment
        except BaseException:  # also if whoever sends them goes away
            if not experiment.gone:
                service.leader.tidy(experiment)
            raise


async def publish(
    service: Service,
    experiment: Experiment,
    batches: AsyncIterator[list[str]],
    beside: Beside,
    found: set[int] | None,
    check: Callable[[int], None] = lambda added: None,
) -> range:
    """Add the arms of new keys; return their numbers.

    A key that is there already is refused; if `found` is a set, its number is put there instead.
    `check` may refuse when all keys are read, and nothing has changed.
    """
    if found is None:
        experiment.check_can_add()
    staged = await _stage(service, experiment, batches, beside, found)
    if staged and found is not None:
        experiment.check_can_add()
    check(len(staged))

    def change(one: Experiment) -> None:
        if one is not experiment:
            raise LostError("the experiment was loaded anew")
        if staged:
            one.add_arms(len(staged))

    await service.apply(experiment.name, change)
    return staged


def retired_in(experiment: Experiment) -> set[int]:
    """Return the arms that are retired."""
    return set() if experiment.live is None else experiment.live.retired


async def in_pieces(
    service: Service, experiment: Experiment, back: Sequence[int], gone: Sequence[int]
) -> None:
    """Let arms come back, and let others go, some in each commit: others have their turn."""
    for begin in range(0, len(back), _AT_ONCE):
        some = back[begin : begin + _AT_ONCE]
        await service.apply(experiment.name, lambda one, some=some: [*map(one.restore, some)])  # type: ignore[misc]
    for begin in range(0, len(gone), _AT_ONCE):
        some = gone[begin : begin + _AT_ONCE]
        await service.apply(experiment.name, lambda one, some=some: [*map(one.retire, some)])  # type: ignore[misc]


async def _stage(
    service: Service,
    experiment: Experiment,
    batches: AsyncIterator[list[str]],
    beside: Beside,
    found: set[int] | None,
) -> range:
    """Write keys beyond the arms there are; return their numbers."""
    x = experiment.id
    begin = number = _arms_of(experiment)
    try:
        async for keys in batches:
            for k in range(0, len(keys), SOME_ARMS):
                some = keys[k : k + SOME_ARMS]
                new = some
                if found is not None:
                    new = await _unknown(service, x, some, begin, found)
                rows = [(number + place, key) for place, key in enumerate(new)]
                await service.leader.write(lambda db, rows=rows: tables.add_arms(db, x, rows))  # type: ignore[misc]
                number += len(new)
                await _keep_links(service, experiment, some, beside)
    except tables.KeyTakenError as error:
        key = str(error)
        there = await service.leader.read(lambda db: tables.number_of(db, x, key, begin))
        raise (_twice(key) if there is None else _there_already(key)) from error
    return range(begin, number)


async def _keep_links(
    service: Service, experiment: Experiment, keys: list[str], beside: Beside
) -> None:
    """Keep the pictures and pages of arms, those of arms that are there already, too."""
    rows = [(key, *beside.links.pop(key)) for key in keys if key in beside.links]
    if rows:
        x = experiment.id
        await service.leader.write(lambda db: tables.keep_links(db, x, rows))
        experiment.look.links_changed()


async def _unknown(
    service: Service, x: int, keys: list[str], begin: int, found: set[int]
) -> list[str]:
    """Return the keys that are new; the numbers of the others are put into `found`."""
    there = await service.leader.read(lambda db: tables.numbers_of(db, x, keys))
    new = []
    for key in keys:
        number = there.get(key)
        if number is None:
            new.append(key)
        elif number in found or number >= begin:
            raise _twice(key)
        else:
            found.add(number)
    return new


def _twice(key: str) -> RefusedError:
    return refuse(409, "twice", f"The key {key[:100]!r} came twice. Nothing has changed.")


def _there_already(key: str) -> RefusedError:
    return refuse(
        409, "key_exists", f"There is an arm {key[:100]!r} already, and a key can be added "
        f"only once. No arm was added. With `?upsert=true`, those that are there are passed over.",
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


async def _ndjson(pieces: AsyncIterator[bytes], beside: Beside) -> AsyncIterator[list[str]]:
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
            if isinstance(value, str):
                keys.append(_checked(value, f"Line {count}"))
                continue
            keys.append(_checked(value.pop("key", None), f"Line {count}"))
            beside.ignore(value)
            beside.link(keys[-1], value, f"Line {count}")
        yield keys


async def _csv(pieces: AsyncIterator[bytes], beside: Beside) -> AsyncIterator[list[str]]:
    names: list[str] | None = None  # of the columns
    count = 0  # lines before these
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
        if rows and names is None:
            names = rows.pop(0)
            if "key" not in names:
                raise invalid("The first line of the CSV must name a column `key`.")
            column = names.index("key")
            beside.ignore(name for at, name in enumerate(names) if at != column)
            linked = [(at, name) for at, name in enumerate(names) if name in COLUMNS]
            ends.pop(0)
        keys = []
        for row, end in zip(rows, ends, strict=True):
            if row:
                where = f"Line {count + end}"
                keys.append(_checked(row[column] if column < len(row) else None, where))
                if linked:
                    addresses = {name: row[at] for at, name in linked if at < len(row)}
                    beside.link(keys[-1], addresses, where)
        yield keys
        count += done
    if rest:
        raise _no_csv(count, "unexpected end of data")
    if names is None:
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
