"""The handlers of asks, tells and abandons, which answer after the commit."""

from __future__ import annotations

from manyarms.serve import messages as m
from manyarms.serve.access import Headers
from manyarms.serve.errors import RefusedError, refuse
from manyarms.serve.fields import LONGEST_KEY
from manyarms.serve.requests import Request, Response, answered
from manyarms.serve.service import Service


async def ask(service: Service, request: Request) -> Response:
    """Answer with pulls; the same idempotency key gets the same pulls."""
    wanted: m.Ask = request.body
    key, name = _key_in(request.headers), request.experiment
    if key is not None:
        before = await _asked_before(service, name, key, wanted.k)
        if before is not None:
            return Response(before)
    try:
        return Response(await service.ask(name, wanted.k, key))
    except RefusedError as error:
        if isinstance(error.failure, m.StoppedFailure):
            await _recommend(service, name, error.failure)
        raise


def _key_in(headers: Headers) -> str | None:
    """Return the idempotency key of an ask, if it has one."""
    given = headers.get(b"idempotency-key")
    if not given:
        return None
    key = given.decode("latin-1")
    if len(key) > LONGEST_KEY:
        raise refuse(422, "key", f"An Idempotency-Key has at most {LONGEST_KEY} characters.")
    return key


async def _asked_before(service: Service, name: str, key: str, k: int) -> bytes | None:
    """Return the stored answer to an ask with this key, if it is not in memory."""
    one = service.leader.loaded(name) or await service.leader.loader.find(name)
    if one.all_keys or key in one.keys:
        return None
    found = await service.leader.read(service.leader.store.request, one.id, key)
    return None if found is None else one.asked_before(found.digest, found.answer.encode(), k)


async def _recommend(service: Service, name: str, stopped: m.StoppedFailure) -> None:
    """Add the recommended arm to the answer, if there is one."""
    try:
        summary: m.ExperimentSummary = await service.view("summary", name)
    except RefusedError:
        return
    stopped.recommended = summary.recommended


async def tell(service: Service, request: Request) -> Response:
    """Tell rewards; each has its own result."""
    wanted: m.Tells = request.body
    told = await service.apply(
        request.experiment, lambda one: [one.tell(each.pull, each.reward) for each in wanted.tells]
    )
    return answered(m.ToldMany(told))


async def abandon(service: Service, request: Request) -> Response:
    """Abandon pulls; each has its own result."""
    wanted: m.Abandons = request.body
    told = await service.apply(
        request.experiment, lambda one: [one.abandon(pull) for pull in wanted.pulls]
    )
    return answered(m.ToldMany(told))
