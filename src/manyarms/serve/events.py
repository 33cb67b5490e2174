"""The event log over HTTP, page by page."""

from __future__ import annotations

from functools import partial

import msgspec

from manyarms.live.control import ARM
from manyarms.live.databases import Database
from manyarms.live.store import EventKind
from manyarms.serve import messages as m
from manyarms.serve.errors import invalid, unknown_experiment
from manyarms.serve.requests import Request, Response, answered
from manyarms.serve.service import Service

_LIMIT = 1000  # events of a page
_MOST = 10_000
_KINDS = {int(kind): kind.word for kind in EventKind}
_WITH_REWARD = (EventKind.TOLD, EventKind.OBSERVED, EventKind.ANSWERED, EventKind.REPORTED)


async def events(service: Service, request: Request) -> Response:
    """Return a page of events: those after the number `after`, at most `limit`."""
    after = _number(request, "after", 0, (0, 1 << 60))
    limit = _number(request, "limit", _LIMIT, (1, _MOST))
    asked = partial(_page, name=request.experiment, after=after, limit=limit)
    return answered(await service.leader.read(asked))


def _number(request: Request, name: str, default: int, ends: tuple[int, int]) -> int:
    text = request.query.get(name, str(default))
    if not (text.isdecimal() and len(text) < 19 and ends[0] <= int(text) <= ends[1]):
        said = f"`{name}` must be an integer from {ends[0]} to {ends[1]}, got {text[:100]!r}."
        raise invalid(said)
    return int(text)


def _page(database: Database, name: str, after: int, limit: int) -> m.EventPage:
    row = database.find(name)
    if row is None or row.spec == "null":
        raise unknown_experiment(name)
    control = msgspec.json.decode(row.spec, type=m.Spec).control
    rows = database.run(
        "SELECT e.seq, e.kind, e.at, e.pull, e.arm, a.key, e.reward FROM events e LEFT JOIN arms a "
        f"ON a.experiment = e.experiment AND a.number = e.arm AND e.kind <> {EventKind.ADDED:d} "
        "WHERE e.experiment = :x AND e.seq > :after ORDER BY e.seq LIMIT :limit",
        x=row.id,
        after=after,
        limit=limit,
    )
    found = []
    for seq, kind, at, pull, arm, key, reward in rows:
        called = key or arm
        if arm == ARM and control is not None:
            called = control
        told = reward if kind in _WITH_REWARD else None
        number = pull if pull >= 0 else None
        found.append(m.EventView(seq, _KINDS[kind], at, number, called, told))
    return m.EventPage(found, found[-1].seq if len(found) == limit else None)
