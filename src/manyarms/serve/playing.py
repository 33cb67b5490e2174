"""Asks, tells and abandons: from a request to its answer, once what it did is committed."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from manyarms.serve import messages as m
from manyarms.serve import tables
from manyarms.serve.access import Headers
from manyarms.serve.asks import AskedBefore, GivenPulls
from manyarms.serve.batch import Batch
from manyarms.serve.errors import RefusedError, refuse, told_before
from manyarms.serve.experiment import Experiment
from manyarms.serve.requests import Request, Response, answered
from manyarms.serve.service import Service

_MOST_KEY = 200  # characters
_encode = msgspec.json.Encoder().encode


async def ask(service: Service, request: Request) -> Response:
    """Give out pulls; an ask that repeats a key gets the same pulls."""
    wanted: m.Ask = request.body
    key = _key_in(request.headers)
    found: AskedBefore | None = None
    if key is not None:
        found = await _asked_before(service, request.experiment, key)

    def change(experiment: Experiment) -> GivenPulls:
        before = found if key is None else experiment.keys.get(key, found)
        if before is not None:
            return experiment.asked_before(before, wanted.k)
        return experiment.ask(wanted.k, key)

    given, batch = await _given(service, request.experiment, change)
    pulls = [m.GivenPull(pull, arm) for pull, arm in given.named(batch)]
    return Response(_encode(m.Asked(pulls)))


async def _given(
    service: Service, name: str, change: Callable[[Experiment], GivenPulls]
) -> tuple[GivenPulls, Batch]:
    """Ask until there is a pull to be made: observed rewards may answer thousands before."""
    while True:
        try:
            _, given, batch = await service.apply(name, change)
            if given.pulls:
                return given, batch
        except RefusedError as error:
            if isinstance(error.failure, m.StoppedFailure):
                await _recommend(service, name, error.failure)
            raise


def _key_in(headers: Headers) -> str | None:
    """Return the key of an ask, if it has one."""
    given = headers.get(b"idempotency-key")
    if not given:
        return None
    key = given.decode("latin-1")
    if len(key) > _MOST_KEY:
        raise refuse(422, "key", f"An Idempotency-Key has at most {_MOST_KEY} characters.")
    return key


async def _asked_before(service: Service, name: str, key: str) -> AskedBefore | None:
    """Return what the database says of a key, if the experiment does not remember all of them."""
    experiment = service.leader.playing(name) or await service.leader.find(name)
    if experiment.all_keys or key in experiment.keys:
        return None
    x = experiment.id
    row = await service.leader.read(lambda database: tables.ask_key(database, x, key))
    return None if row is None else AskedBefore.of(*row)


async def _recommend(service: Service, name: str, stopped: m.StoppedFailure) -> None:
    """Say which arm to deploy, if that is known: the answer is right without it."""
    try:
        summary: m.ExperimentSummary = await service.view("summary", name)
    except RefusedError:
        return
    stopped.recommended = summary.recommended


async def tell(service: Service, request: Request) -> Response:
    """Tell rewards; each gets its own result."""
    wanted: m.Tells = request.body
    _, results, batch = await service.apply(
        request.experiment,
        lambda one: [(one.tell(tell.pull, tell.reward), tell) for tell in wanted.tells],
    )
    told = [
        told or told_before(tell.pull, batch.ended.get(tell.pull), tell.reward)
        for told, tell in results
    ]
    return Response(_encode(m.ToldMany(told)))


async def abandon(service: Service, request: Request) -> Response:
    """Abandon pulls."""
    wanted: m.Abandons = request.body
    _, results, batch = await service.apply(
        request.experiment, lambda one: [(one.abandon(pull), pull) for pull in wanted.pulls]
    )
    return answered(
        m.ToldMany(
            [told or told_before(pull, batch.ended.get(pull), None) for told, pull in results]
        )
    )
