"""Asks, tells and abandons: from a request to its answer, once what it did is committed."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from manyarms.serve import messages as m
from manyarms.serve import tables
from manyarms.serve.access import Headers, ticket, ticket_pull
from manyarms.serve.asks import AskedBefore, GivenPulls
from manyarms.serve.batch import Batch
from manyarms.serve.errors import RefusedError, invalid, refuse, refused_tell, told_before
from manyarms.serve.experiment import Experiment
from manyarms.serve.requests import Request, Response, answered
from manyarms.serve.service import Service

_MOST_KEY = 200  # characters
_MOST_OF_A_PAGE = 10  # pulls of an ask by the role browser
_encode = msgspec.json.Encoder().encode


async def ask(service: Service, request: Request) -> Response:
    """Give out pulls; those of an ask with the same key again."""
    wanted: m.Ask = await request.read(m.Ask)
    key, page = _key_in(request.headers), _from_a_page(request)
    body = f"{wanted.k} {wanted.worker or ''}"
    if page:
        _check_page(wanted)
        body = f"page {wanted.k}"
        key = None if key is None else f"page:{key}"  # one that guesses a program's key has its own
    found: AskedBefore | None = None
    if key is not None:
        found = await _asked_before(service, request.experiment, key)

    def change(experiment: Experiment) -> GivenPulls:
        before = found if key is None else experiment.keys.get(key, found)
        if before is not None:
            return experiment.asked_before(before, body)
        return experiment.ask(wanted.k, wanted.worker, key, body)

    experiment, given, batch = await _given(service, request.experiment, change)
    named = given.named(batch)
    if wanted.tickets or page:
        sign, generation = (experiment.secret, experiment.name), experiment.generation
        pulls = [m.GivenPull(pull, arm, ticket(*sign, pull, generation)) for pull, arm in named]
    else:
        pulls = [m.GivenPull(pull, arm) for pull, arm in named]
    return Response(_encode(m.Asked(pulls, given.again)))


async def _given(
    service: Service, name: str, change: Callable[[Experiment], GivenPulls]
) -> tuple[Experiment, GivenPulls, Batch]:
    """Ask until there is a pull to be made: observed rewards may answer thousands before."""
    while True:
        try:
            experiment, given, batch = await service.apply(name, change)
            if given.pulls:
                return experiment, given, batch
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


def _from_a_page(request: Request) -> bool:
    return request.caller is not None and request.caller.role == "browser"


def _check_page(wanted: m.Ask) -> None:
    """Bound what everybody who sees a page may ask for: no pulls of others, and few."""
    if wanted.worker is not None:
        raise refuse(403, "role", "The role browser may not name a `worker`.")
    if wanted.k > _MOST_OF_A_PAGE:
        raise refuse(
            403, "role", f"The role browser may ask for {_MOST_OF_A_PAGE} pulls at once, not more."
        )


async def _recommend(service: Service, name: str, stopped: m.StoppedFailure) -> None:
    """Say which arm to deploy, if that is known: the answer is right without it."""
    try:
        summary: m.ExperimentSummary = await service.view("summary", name)
    except RefusedError:
        return
    stopped.recommended = summary.recommended


async def tell(service: Service, request: Request) -> Response:
    """Let rewards come; each has a result of its own."""
    wanted: m.Tells = await request.read(m.Tells)
    page = _from_a_page(request)

    def change(experiment: Experiment) -> list[tuple[m.Told | None, int, float]]:
        results: list[tuple[m.Told | None, int, float]] = []
        for one in wanted.tells:
            pull = _pull_of(experiment, one, page=page)
            if isinstance(pull, m.Told):
                results.append((pull, 0, 0.0))
            else:
                results.append((experiment.tell(pull, one.reward), pull, one.reward))
        return results

    _, results, batch = await service.apply(request.experiment, change)
    told = [
        told or told_before(pull, batch.ended.get(pull), reward) for told, pull, reward in results
    ]
    return Response(_encode(m.ToldMany(told)))


def _pull_of(experiment: Experiment, one: m.Tell, *, page: bool) -> int | m.Told:
    """Return the pull that a tell names, or why it is refused."""
    if one.pull is not None and one.ticket is None and not page:
        return one.pull
    try:
        if one.ticket is not None and one.pull is None:
            secret, generation = experiment.secret, experiment.generation
            return ticket_pull(secret, experiment.name, one.ticket, generation)
        if one.pull is None or one.ticket is not None:
            raise invalid("A tell needs `pull` or `ticket`, one of them.")
        raise refuse(403, "role", "The role browser may tell by `ticket` only.")
    except RefusedError as error:
        return refused_tell(-1 if one.pull is None else one.pull, error.failure)


async def abandon(service: Service, request: Request) -> Response:
    """Go on without some rewards."""
    wanted: m.Abandons = await request.read(m.Abandons)
    if _from_a_page(request):
        raise refuse(403, "role", "The role browser may not abandon pulls.")
    _, results, batch = await service.apply(
        request.experiment, lambda one: [(one.abandon(pull), pull) for pull in wanted.pulls]
    )
    return answered(
        m.ToldMany(
            [told or told_before(pull, batch.ended.get(pull), None) for told, pull in results]
        )
    )
