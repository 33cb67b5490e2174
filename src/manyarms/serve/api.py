"""A function for each route: from a request to an answer."""

from __future__ import annotations

import json
import secrets

import msgspec

from manyarms.errors import ManyarmsError
from manyarms.live.databases import Database
from manyarms.serve import messages as m
from manyarms.serve.access import ticket, ticket_pull
from manyarms.serve.api_looking import LOOKING
from manyarms.serve.errors import RefusedError, failure_of, refuse
from manyarms.serve.exporting import export
from manyarms.serve.game import check_spec
from manyarms.serve.importing import add_arms, number_of
from manyarms.serve.node import unavailable
from manyarms.serve.owned import AskedBefore, Given, Owned, told_before
from manyarms.serve.requests import Handler, Request, Response, answered
from manyarms.serve.service import Service

__all__ = ["HANDLERS"]

_MOST_KEY = 200
_MOST_OF_A_PAGE = 10  # pulls of an ask by the role browser
_EDGE = "~"  # what keys begin with that nodes make for each other


# Asks and tells


def _key_of(request: Request) -> str | None:
    """Return the key of an ask, if it has one."""
    given = request.headers.get(b"idempotency-key", b"").decode("latin-1")
    if given:
        own = given.startswith(_EDGE) and not request.forwarded
        if len(given) > _MOST_KEY or own:
            raise refuse(
                422,
                "key",
                f"An Idempotency-Key has at most {_MOST_KEY} characters, and does not begin with "
                f"{_EDGE}.",
            )
        return given
    return request.made_key or None


async def ask(service: Service, request: Request) -> Response:
    """Give out pulls."""
    wanted: m.Ask = await request.read(m.Ask)
    browser = request.caller is not None and request.caller.role == "browser"
    if browser:
        _check_page(wanted)
    key = _key_of(request)
    # a page that guesses the key of another program's ask does not get its pulls
    body = f"page {wanted.k}" if browser else f"{wanted.k} {wanted.worker or ''}"

    async def change(owned: Owned) -> Given:
        before = await _asked_before(service, owned, key) if key is not None else None
        if before is not None:
            return owned.asked_before(before, body)
        return owned.ask(wanted.k, wanted.worker, key, body)

    try:
        owned, given, answers = await service.apply(
            request.experiment, change, forwarded=request.forwarded, once=key is None
        )
    except RefusedError as error:
        if isinstance(error.failure, m.StoppedFailure):
            raise await _with_recommendation(service, request.experiment, error) from error
        raise
    arms = given.arms | {pull: end[2] for pull, end in answers.ended.items()}
    if wanted.tickets or browser:
        sign = owned.secret, owned.name
        pulls = [
            m.GivenPull(pull, owned.arm_name(arms[pull]), ticket(*sign, pull, owned.generation))
            for pull in given.pulls
        ]
    else:
        pulls = [m.GivenPull(pull, owned.arm_name(arms[pull])) for pull in given.pulls]
    return answered(m.Asked(pulls, given.again))


def _check_page(wanted: m.Ask) -> None:
    """Bound what everybody who sees a page may ask for: no pulls of others, and few."""
    if wanted.worker is not None:
        raise refuse(403, "role", "The role browser may not name a `worker`.")
    if wanted.k > _MOST_OF_A_PAGE:
        raise refuse(
            403, "role", f"The role browser may ask for {_MOST_OF_A_PAGE} pulls at once, not more."
        )


async def _asked_before(service: Service, owned: Owned, key: str) -> AskedBefore | None:
    before = owned.keys.get(key)
    if before is not None or (owned.all_keys and not key.startswith(_EDGE)):
        return before
    row = await service.node.read(lambda database: database.ask_key(owned.id, key))
    if row is None:
        return owned.keys.get(key)  # it may have come meanwhile
    return AskedBefore(row[0], row[1], tuple(json.loads(row[2] or "[]")), row[3])


async def _with_recommendation(service: Service, name: str, refusal: RefusedError) -> RefusedError:
    stopped = refusal.failure
    assert isinstance(stopped, m.StoppedFailure)
    try:
        summary: m.ExperimentSummary = await service.view("summary", name)
        stopped.recommended = summary.recommended
    except RefusedError:
        pass  # the scribe is away: the answer is right without it
    return refusal


async def tell(service: Service, request: Request) -> Response:
    """Let rewards come."""
    wanted: m.Tells = await request.read(m.Tells)
    browser = request.caller is not None and request.caller.role == "browser"

    def change(owned: Owned) -> list[tuple[m.Told | None, int, float]]:
        results: list[tuple[m.Told | None, int, float]] = []
        for one in wanted.tells:
            pull = _pull_of(owned, one, browser)
            if isinstance(pull, m.Told):
                results.append((pull, 0, 0.0))
            else:
                results.append((owned.tell(pull, one.reward), pull, one.reward))
        return results

    _, results, answers = await service.apply(
        request.experiment, change, forwarded=request.forwarded
    )
    return answered(
        m.ToldMany(
            [
                told or told_before(pull, answers.ended.get(pull), reward)
                for told, pull, reward in results
            ]
        )
    )


def _pull_of(owned: Owned, one: m.Tell, browser: bool) -> int | m.Told:
    try:
        if one.ticket is not None and one.pull is None:
            return ticket_pull(owned.secret, owned.name, one.ticket, owned.generation)
        if one.pull is None or one.ticket is not None:
            raise refuse(422, "invalid", "A tell needs `pull` or `ticket`, one of them.")
        if browser:
            raise refuse(403, "role", "The role browser may tell by `ticket` only.")
    except RefusedError as error:
        why = error.failure
        pull = -1 if one.pull is None else one.pull
        return m.Told(pull, applied=False, status=why.status, code=why.code, message=why.message)
    return one.pull


async def abandon(service: Service, request: Request) -> Response:
    """Go on without some rewards."""
    wanted: m.Abandons = await request.read(m.Abandons)
    if request.caller is not None and request.caller.role == "browser":
        raise refuse(403, "role", "The role browser may not abandon pulls.")
    _, results, answers = await service.apply(
        request.experiment,
        lambda owned: [(owned.abandon(pull), pull) for pull in wanted.pulls],
        forwarded=request.forwarded,
    )
    return answered(
        m.ToldMany(
            [told or told_before(pull, answers.ended.get(pull), None) for told, pull in results]
        )
    )


# Experiments


async def put(service: Service, request: Request) -> Response:
    """Create an experiment; the same one again is no mistake."""
    spec: m.Spec = await request.read(m.Spec)
    name = request.experiment
    try:
        check_spec(spec)
    except ManyarmsError as error:
        raise RefusedError(failure_of(error)) from error
    if spec.early == "hold" and spec.window is None:
        raise refuse(422, "invalid", "`early: hold` needs a `window`, in seconds.")
    text = msgspec.json.encode(spec).decode()
    secret = secrets.token_hex(32)

    def create(database: Database) -> bool:
        state, arms = ("running", spec.n_arms) if spec.n_arms else ("empty", 0)
        keyed = int(spec.n_arms is None)
        made = database.create(name, text, state, secret, keyed=keyed, n_arms=arms)
        row = database.find(name)
        if row is None or row.spec != text:
            raise refuse(
                409, "exists", f"There is another experiment {name!r}. Choose another name."
            )
        return made

    made = await service.node.write(create)
    if made:
        await service.note(request.caller, name, "create")
    return answered(await service.view("summary", name), 201 if made else 200)


async def delete(service: Service, request: Request) -> Response:
    """Delete a stopped experiment. It is gone at once; the scribe deletes its rows bit by bit."""
    name = request.experiment

    def check(owned: Owned) -> Owned:
        if owned.live is not None and owned.state != "stopped":
            raise refuse(409, "not_stopped", f"{name!r} must be stopped before it is deleted.")
        return owned

    owned, _, _ = await service.apply(name, check, forwarded=request.forwarded)

    if not await service.node.write(lambda database: database.bury(owned.id, owned.epoch)):
        raise unavailable("Another node has taken over. Send it again.")
    service.node.forget(owned)
    await service.note(request.caller, name, "delete")
    return answered(m.Done(name, "stopped"))


async def get(service: Service, request: Request) -> Response:
    """Return an experiment at a glance."""
    return answered(await service.view("summary", request.experiment))


async def list_all(service: Service, request: Request) -> Response:
    """Return the experiments that the caller may see."""
    assert request.caller is not None
    return answered(await service.listing(request.caller))


def _set_state(action: str, state: m.State) -> Handler:
    async def handler(service: Service, request: Request) -> Response:
        name = request.experiment
        await service.apply(name, lambda owned: owned.set_state(state), forwarded=request.forwarded)
        await service.note(request.caller, name, action)
        return answered(m.Done(name, state))

    return handler


async def retire(service: Service, request: Request) -> Response:
    """Let an arm go."""
    key = request.arguments["key"]

    async def change(owned: Owned) -> bool:
        return owned.retire(await number_of(service, owned, key))

    owned, applied, _ = await service.apply(request.experiment, change, forwarded=request.forwarded)
    if applied:
        await service.note(request.caller, request.experiment, f"retire {key}")
    return answered(m.Retired(owned.name, owned.state, applied))  # type: ignore[arg-type]


HANDLERS: dict[str, Handler] = {
    "list_all": list_all,
    "put": put,
    "get": get,
    "delete": delete,
    "ask": ask,
    "tell": tell,
    "abandon": abandon,
    "add_arms": add_arms,
    "retire": retire,
    "pause": _set_state("pause", "paused"),
    "resume": _set_state("resume", "running"),
    "stop": _set_state("stop", "stopped"),
    "export": export,
    **LOOKING,
}
