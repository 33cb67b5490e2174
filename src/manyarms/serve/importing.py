"""The handlers that add and sync arms, given as JSON or as a stream of NDJSON."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Annotated, Any

import msgspec

from manyarms.errors import ParameterError
from manyarms.inference.estimates import count
from manyarms.live import arm_calls
from manyarms.live.arms import ArmNames
from manyarms.serve import messages as m
from manyarms.serve.errors import as_refusals, invalid, refuse
from manyarms.serve.experiment import ServedExperiment
from manyarms.serve.requests import Request, Response, answered
from manyarms.serve.service import Service
from manyarms.store import check_name

_LONGEST_LINE = 1 << 20  # bytes
_MOST_BYTES = 1 << 30  # of a stream: ten million names of a hundred characters
_AT_ONCE = 1000  # arms that are restored or retired in one commit; this takes about 10 ms
_line = msgspec.json.Decoder(str | int).decode


class NewArms(msgspec.Struct, forbid_unknown_fields=True):
    """Arms to add: how many, or their names."""

    count: Annotated[int, msgspec.Meta(ge=0)] = 0
    names: list[str | int] = []

    def __post_init__(self) -> None:
        if self.count and self.names:
            raise ValueError("send `count` or `names`, not both")


async def add_arms(service: Service, request: Request) -> Response:
    """Add arms: a number of them, or their names. Existing names are skipped."""
    wanted = await _read(request)
    if wanted.count and not wanted.names:
        return await _add_count(service, request, wanted.count)
    async with _importing(service, request.experiment) as one:
        arms = _names_of(one)
        names = _checked(wanted.names, arms.kind)
        new = [name for name in names if arms.known(name) is None]
        if new:
            await service.apply(one.name, partial(_add, one, new))
    added = m.AddedArms(len(new), one.experiment.ledger.n_all, len(names) - len(new))
    service.note(request.caller, request.experiment, f"add {count(added.added, 'arm')}")
    return answered(added)


async def _add_count(service: Service, request: Request, new: int) -> Response:
    def change(one: ServedExperiment) -> int:
        if one.named:
            raise refuse(
                422, "names", f"The arms of {one.name} have names: send the names of the new arms."
            )
        return one.add_arms(new)

    n_arms = await service.apply(request.experiment, change)
    service.note(request.caller, request.experiment, f"add {count(new, 'arm')}")
    return answered(m.AddedArms(new, n_arms))


async def sync_arms(service: Service, request: Request) -> Response:
    """Add, restore and retire arms so that exactly the given ones are available.

    New arms are added in one commit, and others are restored and retired in several. The policy
    sees all arms that come as one group, once the last has come. If the request fails midway,
    sending it again does the rest. With `preview`, nothing changes; the answer has three counts.
    """
    wanted = await _read(request)
    if wanted.count:
        raise invalid("`count` is for arms that have numbers; send `names`.")
    async with _importing(service, request.experiment) as one:
        names = _checked(wanted.names, _names_of(one).kind)
        with as_refusals():
            plan = arm_calls.plan_sync(one.context, names)
        if request.query is not None and request.query.preview:
            return answered(m.SyncPreview(len(plan.new), len(plan.back), len(plan.gone)))
        if plan.new:
            more = len(plan.back) > 0
            await service.apply(one.name, partial(_add, one, plan.new, more=more))
        await _in_pieces(service, one, arm_calls.restore, plan.back, marked=True)
        await _in_pieces(service, one, arm_calls.retire, plan.gone)
    called = one.context.name
    done = m.SyncedArms(
        plan.new, [*map(called, plan.back)], [*map(called, plan.gone)], one.experiment.ledger.n_arms
    )
    changed = {"added": done.added, "restored": done.restored, "retired": done.retired}
    said = ", ".join(f"{len(some)} {what}" for what, some in changed.items() if some)
    if said:
        service.note(request.caller, one.name, f"sync to {count(done.n_arms, 'arm')}: {said}")
    return answered(done)


def _add(
    same: ServedExperiment, names: list[Any], one: ServedExperiment, *, more: bool = False
) -> None:
    _check_same(same, one)
    one.add_arms(names, more=more)


async def _in_pieces(
    service: Service,
    same: ServedExperiment,
    call: Callable[..., Any],
    arms: Sequence[int],
    *,
    marked: bool = False,
) -> None:
    """Restore or retire arms in several commits, so that other requests do not wait for long.

    If `marked`, all but the last are marked as parts of a group of which more follows.
    """
    for begin in range(0, len(arms), _AT_ONCE):
        end = begin + _AT_ONCE
        names = [same.context.name(arm) for arm in arms[begin:end]]
        part = partial(call, more=end < len(arms)) if marked else call

        def change(
            one: ServedExperiment, names: list[Any] = names, part: Callable[..., Any] = part
        ) -> None:
            _check_same(same, one)
            one.do(part, names)

        await service.apply(same.name, change)


def _check_same(same: ServedExperiment, one: ServedExperiment) -> None:
    if one is not same:
        raise refuse(503, "unknown", f"{one.name} was reloaded during this request. Send it again.")


@contextlib.asynccontextmanager
async def _importing(service: Service, name: str) -> AsyncIterator[ServedExperiment]:
    """Find an experiment; refuse if another request is changing its list of arms."""
    one = await service.leader.loader.find(name)
    if one.importing.locked():
        raise refuse(409, "importing", f"Arms are being added to {name}. Wait until that is done.")
    async with one.importing:
        yield one


def _names_of(one: ServedExperiment) -> ArmNames:
    if not isinstance(one.context.arms, ArmNames):
        raise refuse(422, "numbers", f"The arms of {one.name} are numbers: send a `count`.")
    return one.context.arms


# Reading names


async def _read(request: Request) -> NewArms:
    """Return the names in a request: a stream of NDJSON, or JSON."""
    kind = request.headers.get(b"content-type", b"application/json").split(b";")[0].strip()
    if kind != b"application/x-ndjson":
        wanted: NewArms = await request.read(NewArms)
        return wanted
    names: list[str | int] = []
    number, size, rest = 0, 0, b""
    async for piece in request.pieces():
        size += len(piece)
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > _LONGEST_LINE or size > _MOST_BYTES:
            raise invalid(
                f"A line may have at most {_LONGEST_LINE:,} bytes, and a stream {_MOST_BYTES:,}; "
                f"this one has more. Send shorter names, or the list in parts."
            )
        names += _decoded(lines, number)
        number += len(lines)
        await asyncio.sleep(0)  # lets other requests be answered
    names += _decoded([rest], number)
    return NewArms(names=names)


def _decoded(lines: list[bytes], before: int) -> list[str | int]:
    names = []
    for number, line in enumerate(lines, before + 1):
        if not line.strip():
            continue
        try:
            names.append(_line(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise invalid(
                f'Line {number} must be one name as JSON, such as "red". No arm was added.'
            ) from error
    return names


def _checked(names: list[str | int], kind: str) -> list[str] | list[int]:
    """Return each name once, as text or as an integer, as the experiment has them."""
    if kind == "integers":
        return list(dict.fromkeys(map(_integer, names)))
    for place, name in enumerate(names, 1):
        try:
            check_name(str(name))
        except ParameterError as error:
            raise invalid(f"Name {place}: {error} No arm was added.") from error
    return list(dict.fromkeys(map(str, names)))


def _integer(name: str | int) -> int:
    with contextlib.suppress(ValueError):
        if str(int(name)) == str(name):  # "1_0" and " 10" are not 10
            return int(name)
    raise invalid(
        f"The names of these arms are integers, got {str(name)[:100]!r}. No arm was added."
    )
