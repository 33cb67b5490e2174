"""The whole list of an experiment's arms: what must come, come back and go."""

from __future__ import annotations

from functools import partial

from manyarms.inference.estimates import count
from manyarms.live.syncing import changes, check_changes
from manyarms.serve import messages as m
from manyarms.serve import tables
from manyarms.serve.errors import as_refusals, invalid
from manyarms.serve.experiment import Experiment
from manyarms.serve.importing import importing, in_pieces, keys_of_json, publish, streamed_keys
from manyarms.serve.requests import Request, Response, answered
from manyarms.serve.service import Service

_NAMED = 10_000  # keys that the database is asked for at a time


async def sync_arms(service: Service, request: Request) -> Response:
    """Let exactly the given arms be in play.

    New arms come in one commit, before any goes. If it ends midway, the same request does the rest.
    """
    batches = streamed_keys(request) or await keys_of_json(request)
    found: set[int] = set()
    async with importing(service, request.experiment) as experiment:

        def check(added: int) -> None:
            if not added and not found:
                raise invalid("The list must hold at least one key, got none. Nothing has changed.")
            if experiment.live is not None:
                with as_refusals():
                    check_changes(experiment.live, added, *changes(experiment.live, found))

        new = await publish(service, experiment, batches, found, check)
        assert experiment.live is not None
        back, gone = changes(experiment.live, found | {*new})
        await in_pieces(service, experiment, back, gone)
    there, _, _ = await service.apply(experiment.name, lambda one: None)
    assert there.live is not None
    called = await _keys(service, experiment, [*new, *back, *gone])
    came, came_back, went = ([called[number] for number in some] for some in (new, back, gone))
    done = m.SyncedKeys(came, came_back, went, there.live.n_arms)
    said = ", ".join(f"{len(some)} {what}" for what, some in _done(done).items() if some)
    if said:
        now = count(done.n_arms, "arm")
        service.note(request.caller, request.experiment, f"sync to {now}: {said}")
    return answered(done)


def _done(done: m.SyncedKeys) -> dict[str, list[str]]:
    return {"added": done.added, "restored": done.restored, "retired": done.retired}


async def _keys(service: Service, experiment: Experiment, numbers: list[int]) -> dict[int, str]:
    keys: dict[int, str] = {}
    for begin in range(0, len(numbers), _NAMED):
        some = numbers[begin : begin + _NAMED]
        asked = partial(tables.keys_of, experiment=experiment.id, numbers=some)
        keys |= await service.leader.read(asked)
    return keys
