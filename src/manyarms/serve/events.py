"""The event log over HTTP, page by page."""

from __future__ import annotations

from functools import partial

import msgspec

from manyarms.live.control import ARM
from manyarms.live.databases import Database
from manyarms.live.store import EventKind
from manyarms.serve import messages as m
from manyarms.serve.errors import unknown_experiment
from manyarms.serve.queries import EventsQuery
from manyarms.serve.requests import Request, Response, answered
from manyarms.serve.service import Service

_KINDS = {int(kind): kind.word for kind in EventKind}
_WITH_REWARD = (EventKind.TOLD, EventKind.OBSERVED, EventKind.ANSWERED, EventKind.REPORTED)


async def events(service: Service, request: Request) -> Response:
    """Return a page of events: those after the number `after`, at most `limit`."""
    query: EventsQuery = request.query
    asked = partial(_page, name=request.experiment, after=query.after, limit=query.limit)
    return answered(await service.leader.read(asked))


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
