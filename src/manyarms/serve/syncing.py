"""The whole list of an experiment's arms: what must come, come back and go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from manyarms.inference.estimates import count
from manyarms.live.syncing import changes, check_changes
from manyarms.serve import messages as m
from manyarms.serve import tables
from manyarms.serve.errors import as_refusals, invalid
from manyarms.serve.experiment import Experiment
from manyarms.serve.importing import importing, in_pieces, names_of_json, publish, streamed_names
from manyarms.serve.requests import Request, Response, answered
from manyarms.serve.service import Service

_NAMED = 10_000  # names that the database is asked for at a time


async def sync_arms(service: Service, request: Request) -> Response:
    """Add, restore and retire arms so that exactly the given ones are in play.

    New arms are added in one commit, before any is retired. If it ends midway, the same request
    does the rest. With `preview`, nothing changes, and the answer says how many arms would.
    """
    batches = streamed_names(request) or await names_of_json(request)
    preview = request.query is not None and request.query.preview
    try:
        done = await _synced(service, request.experiment, batches, preview=preview)
    except _PreviewError as seen:
        return answered(seen.counts)
    said = ", ".join(f"{len(some)} {what}" for what, some in _done(done).items() if some)
    if said:
        now = count(done.n_arms, "arm")
        service.note(request.caller, request.experiment, f"sync to {now}: {said}")
    return answered(done)


class _PreviewError(Exception):
    """Ends a sync before it has changed anything."""

    def __init__(self, counts: m.SyncPreview) -> None:
        super().__init__(counts)
        self.counts = counts


async def _synced(
    service: Service, name: str, batches: AsyncIterator[list[str]], *, preview: bool
) -> m.SyncedArms:
    found: set[int] = set()
    async with importing(service, name) as experiment:

        def check(added: int) -> None:
            if not added and not found:
                raise invalid(
                    "The list must hold at least one name, got none. Nothing has changed."
                )
            back, gone = list[int](), list[int]()
            if experiment.live is not None:
                back, gone = changes(experiment.live, found)
                with as_refusals():
                    check_changes(experiment.live, added, back, gone)
            if preview:
                raise _PreviewError(m.SyncPreview(added, len(back), len(gone)))

        new = await publish(service, experiment, batches, found, check)
        assert experiment.live is not None
        back, gone = changes(experiment.live, found | {*new})
        await in_pieces(service, experiment, back, gone)
    there, _, _ = await service.apply(name, lambda one: None)
    assert there.live is not None
    called = await _names(service, experiment, [*new, *back, *gone])
    added, restored, retired = ([called[number] for number in some] for some in (new, back, gone))
    return m.SyncedArms(added, restored, retired, there.live.n_arms)


def _done(done: m.SyncedArms) -> dict[str, list[str]]:
    return {"added": done.added, "restored": done.restored, "retired": done.retired}


async def _names(service: Service, experiment: Experiment, numbers: list[int]) -> dict[int, str]:
    names: dict[int, str] = {}
    for begin in range(0, len(numbers), _NAMED):
        some = numbers[begin : begin + _NAMED]
        asked = partial(tables.keys_of, experiment=experiment.id, numbers=some)
        names |= await service.leader.read(asked)
    return names
