"""Adding arms: by number, or by name as JSON or a stream of NDJSON."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from manyarms.inference.estimates import count
from manyarms.protocol.policy import MOST_ARMS
from manyarms.serve import messages as m
from manyarms.serve import tables
from manyarms.serve.batch import LostError
from manyarms.serve.cleaning import SOME_ARMS
from manyarms.serve.errors import invalid, refuse, unknown_arm
from manyarms.serve.experiment import Experiment
from manyarms.serve.requests import Request, Response, answered
from manyarms.serve.service import Service

_LONGEST_NAME = 1000  # characters
_MOST_LINE = 1 << 20
_AT_ONCE = 50  # arms that come back or go in one commit: some 20 ms
_line = msgspec.json.Decoder(str).decode


class NewArms(msgspec.Struct, forbid_unknown_fields=True):
    """Arms to add: how many, or their names."""

    count: int = 0
    names: list[str] = []


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
    """Add arms: a number of them, or their names. Names that are there already are skipped.

    Names are written beyond the last arm, where they are not visible; one commit publishes them.
    """
    batches = streamed_names(request)
    if batches is None:
        wanted: NewArms = await request.read(NewArms)
        if wanted.count and not wanted.names:
            return await _count(service, request, wanted.count)
        batches = _once(wanted.names)
    known: set[int] = set()
    async with importing(service, request.experiment) as experiment:
        new = await publish(service, experiment, batches, known)
    added = m.AddedArms(len(new), _arms_of(experiment), len(known))
    service.note(request.caller, request.experiment, f"add {count(added.added, 'arm')}")
    return answered(added)


def streamed_names(request: Request) -> AsyncIterator[list[str]] | None:
    """Return the names in a request that is a stream of NDJSON; None if it is JSON."""
    kind = request.headers.get(b"content-type", b"application/json").split(b";")[0].strip()
    return _ndjson(request.pieces()) if kind == b"application/x-ndjson" else None


async def names_of_json(request: Request) -> AsyncIterator[list[str]]:
    """Return the names in a request that is {"names": [...]}."""
    wanted: NewArms = await request.read(NewArms)
    if wanted.count:
        raise invalid("`count` adds arms that are called by number; give `names`.")
    return _once(wanted.names)


async def _once(names: list[str]) -> AsyncIterator[list[str]]:
    yield [_checked(name, f"Name {place}") for place, name in enumerate(names, 1)]


async def _count(service: Service, request: Request, new: int) -> Response:
    def change(experiment: Experiment) -> int:
        if experiment.keyed:
            raise refuse(
                422, "names", f"The arms of {experiment.name} have names: give the new ones."
            )
        if not 1 <= new <= MOST_ARMS:
            raise invalid(f"`count` must be an integer >= 1, got {new}.")
        return experiment.add_arms(new)

    _, there, _ = await service.apply(request.experiment, change)
    service.note(request.caller, request.experiment, f"add {count(new, 'arm')}")
    return answered(m.AddedArms(new, there))


@contextlib.asynccontextmanager
async def importing(service: Service, name: str) -> AsyncIterator[Experiment]:
    """Allow one request at a time to add names; if it fails, delete what it has written."""
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
        except BaseException:  # also if the client disconnects
            if not experiment.gone:
                service.leader.tidy(experiment)
            raise


async def publish(
    service: Service,
    experiment: Experiment,
    batches: AsyncIterator[list[str]],
    known: set[int],
    check: Callable[[int], None] = lambda added: None,
) -> range:
    """Add the arms of new names; return their numbers.

    The numbers of names that are there already are put into `known`. `check` may refuse when all
    names are read, and nothing has changed.
    """
    staged = await _stage(service, experiment, batches, known)
    if staged:
        experiment.check_can_add()
    check(len(staged))

    def change(one: Experiment) -> None:
        if one is not experiment:
            raise LostError("the experiment was loaded anew")
        if staged:
            one.add_arms(len(staged))

    await service.apply(experiment.name, change)
    return staged


async def in_pieces(
    service: Service, experiment: Experiment, back: Sequence[int], gone: Sequence[int]
) -> None:
    """Restore and retire arms, some in each commit, so that other requests do not wait."""
    for begin in range(0, len(back), _AT_ONCE):
        some = back[begin : begin + _AT_ONCE]
        await service.apply(experiment.name, lambda one, some=some: [*map(one.restore, some)])  # type: ignore[misc]
    for begin in range(0, len(gone), _AT_ONCE):
        some = gone[begin : begin + _AT_ONCE]
        await service.apply(experiment.name, lambda one, some=some: [*map(one.retire, some)])  # type: ignore[misc]


async def _stage(
    service: Service, experiment: Experiment, batches: AsyncIterator[list[str]], known: set[int]
) -> range:
    """Write new names beyond the arms there are; return their numbers."""
    x = experiment.id
    begin = number = _arms_of(experiment)
    async for names in batches:
        for k in range(0, len(names), SOME_ARMS):
            some = list(dict.fromkeys(names[k : k + SOME_ARMS]))
            there = await service.leader.read(
                lambda db, some=some: tables.numbers_of(db, x, some)  # type: ignore[misc]
            )
            known.update(found for found in there.values() if found < begin)
            new = [name for name in some if name not in there]
            rows = [(number + place, name) for place, name in enumerate(new)]
            await service.leader.write(lambda db, rows=rows: tables.add_arms(db, x, rows))  # type: ignore[misc]
            number += len(new)
    return range(begin, number)


def _checked(name: str, where: str) -> str:
    if not 1 <= len(name) <= _LONGEST_NAME or "\0" in name:
        raise invalid(
            f"{where}: a name must have 1 to {_LONGEST_NAME} characters, without NUL. No arm was "
            f"added."
        )
    return name


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
    number = 0
    async for lines in _lines(pieces):
        names = []
        for line in lines:
            number += 1
            if not line.strip():
                continue
            try:
                names.append(_checked(_line(line), f"Line {number}"))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise invalid(
                    f'Line {number}: {error}. A line holds one name, as JSON: "red". No arm was '
                    f"added."
                ) from error
        yield names
