"""A function for each route: from a request to an answer."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from manyarms.errors import ManyarmsError
from manyarms.live.databases import Database
from manyarms.protocol.registry import policy_names
from manyarms.serve import messages as m
from manyarms.serve import transfer
from manyarms.serve.access import add_token as keep_token
from manyarms.serve.access import new_token, ticket, ticket_pull
from manyarms.serve.errors import RefusedError, failure_of, refuse
from manyarms.serve.game import check_spec
from manyarms.serve.openapi import description
from manyarms.serve.owned import AskedBefore, Given, Owned, told_before
from manyarms.serve.requests import Request, Response
from manyarms.serve.service import Service

__all__ = ["HANDLERS", "answered"]

Handler = Callable[[Service, Request], Awaitable[Response]]
_encode = msgspec.json.Encoder().encode
_SORTS = ("low", "estimate", "pulls", "told", "arm")
_MOST_KEY = 200
_EDGE = "~"  # what keys begin with that nodes make for each other


def answered(answer: Any, status: int = 200) -> Response:
    """Return an answer as JSON."""
    return Response(_encode(answer), status)


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
    key = _key_of(request)
    body = f"{wanted.k} {wanted.worker or ''}"

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
    browser = request.caller is not None and request.caller.role == "browser"
    if wanted.tickets or browser:
        sign = owned.secret, owned.name
        pulls = [
            m.GivenPull(pull, owned.arm_name(arms[pull]), ticket(*sign, pull, owned.generation))
            for pull in given.pulls
        ]
    else:
        pulls = [m.GivenPull(pull, owned.arm_name(arms[pull])) for pull in given.pulls]
    return answered(m.Asked(pulls, given.again))


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
    text = _encode(spec).decode()
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
    """Delete a stopped experiment with all it has."""
    name = request.experiment

    def check(owned: Owned) -> Owned:
        if owned.live is not None and owned.state != "stopped":
            raise refuse(409, "not_stopped", f"{name!r} must be stopped before it is deleted.")
        return owned

    owned, _, _ = await service.apply(name, check, forwarded=request.forwarded)
    service.node.forget(owned)

    def drop(database: Database) -> None:
        with database.transaction():
            for table in ("events", "ask_keys", "arms", "snapshots", "minutes"):
                database.run(f"DELETE FROM {table} WHERE experiment = :x", x=owned.id)
            database.run("DELETE FROM experiments WHERE id = :x", x=owned.id)

    await service.node.write(drop)
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


async def extend(service: Service, request: Request) -> Response:
    """Lengthen the horizon, where the policy can."""
    wanted: m.Extend = await request.read(m.Extend)
    owned, _, _ = await service.apply(
        request.experiment,
        lambda owned: owned.extend(wanted.horizon),
        forwarded=request.forwarded,
    )
    await service.note(request.caller, request.experiment, f"extend to {wanted.horizon}")
    return answered(m.Done(owned.name, owned.state))  # type: ignore[arg-type]


async def retire(service: Service, request: Request) -> Response:
    """Let an arm go."""
    key = request.arguments["key"]

    async def change(owned: Owned) -> bool:
        return owned.retire(await transfer.number_of(service, owned, key))

    owned, _, _ = await service.apply(request.experiment, change, forwarded=request.forwarded)
    await service.note(request.caller, request.experiment, f"retire {key}")
    return answered(m.Done(owned.name, owned.state))  # type: ignore[arg-type]


# Views


def _chosen(request: Request, name: str, default: int, most: int) -> int:
    text = request.query.get(name, str(default))
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise refuse(422, "invalid", f"`{name}` must be an integer from 1 to {most}, got {text!r}.")
    return int(text)


async def arms(service: Service, request: Request) -> Response:
    """Return a page of arms."""
    sort = request.query.get("sort", "low")
    if sort not in _SORTS:
        raise refuse(422, "invalid", f"`sort` must be one of {', '.join(_SORTS)}, got {sort!r}.")
    cursor, search = request.query.get("cursor", ""), request.query.get("search", "")
    return answered(
        await service.view(
            "arms",
            request.experiment,
            search=search[:1000],
            sort=sort,
            cursor=cursor,
            limit=_chosen(request, "limit", 50, 1000),
        )
    )


async def arm(service: Service, request: Request) -> Response:
    """Return one arm."""
    found = await service.view("arm", request.experiment, key=request.arguments["key"])
    if found is None:
        raise transfer.unknown_arm(request.arguments["key"])
    return answered(found)


async def leaders(service: Service, request: Request) -> Response:
    """Return the best arms."""
    k = _chosen(request, "k", 20, 1000)
    return answered(await service.view("leaders", request.experiment, k=k))


async def in_flight(service: Service, request: Request) -> Response:
    """Return what is waited for, the oldest pulls among it."""
    limit = _chosen(request, "limit", 20, m.MOST_PULLS)
    return answered(await service.view("in_flight", request.experiment, limit=limit))


def _view(what: str) -> Handler:
    async def handler(service: Service, request: Request) -> Response:
        return answered(await service.view(what, request.experiment))

    return handler


async def health(service: Service, request: Request) -> Response:
    """Return how it is doing."""
    return answered(await service.health(request.experiment))


# Tokens, and the node itself


async def list_tokens(service: Service, request: Request) -> Response:
    """Return all tokens, without the tokens."""
    rows = await service.node.read(
        lambda database: database.run(
            "SELECT name, role, experiment, origins, rate, expires FROM tokens ORDER BY name"
        )
    )
    return answered(
        m.TokenList([m.Token(n, r, x, json.loads(o), q, e) for n, r, x, o, q, e in rows])
    )


async def add_token(service: Service, request: Request) -> Response:
    """Make a token."""
    wanted: m.NewToken = await request.read(m.NewToken)
    if wanted.role == "browser" and not (wanted.origins and wanted.rate and wanted.experiment):
        raise refuse(
            422,
            "invalid",
            "A token of role browser needs `experiment`, `origins` and `rate`: everybody who sees "
            "the page has it.",
        )
    token = new_token()
    if not await service.node.write(lambda database: keep_token(database, wanted, token)):
        raise refuse(409, "exists", f"There is a token {wanted.name!r}. Choose another name.")
    service.access.forget()
    await service.note(request.caller, wanted.experiment, f"add token {wanted.name}")
    return answered(m.AddedToken(wanted.name, token), 201)


async def drop_token(service: Service, request: Request) -> Response:
    """Take a token back."""
    name = request.arguments["token"]
    rows = await service.node.write(
        lambda database: database.run(
            "DELETE FROM tokens WHERE name = :name RETURNING name", name=name
        )
    )
    service.access.forget()
    if not rows:
        raise refuse(404, "unknown_token", f"There is no token {name!r}.")
    await service.note(request.caller, None, f"drop token {name}")
    return answered(m.Done(name, "stopped"))


async def session(service: Service, request: Request) -> Response:
    """Say who is asking."""
    caller = request.caller
    assert caller is not None
    return answered(m.Session(caller.name, caller.role, caller.experiment))  # type: ignore[arg-type]


async def healthz(service: Service, request: Request) -> Response:
    """Say that the process runs."""
    return answered(m.Ready(ready=True))


async def readyz(service: Service, request: Request) -> Response:
    """Say whether requests are answered."""
    why = service.not_ready()
    return answered(m.Ready(not why, why), 503 if why else 200)


async def metrics(service: Service, request: Request) -> Response:
    """Return numbers for Prometheus."""
    return Response(service.metrics.text(), kind="text/plain; version=0.0.4; charset=utf-8")


async def openapi(service: Service, request: Request) -> Response:
    """Return the description of all routes."""
    return Response(description(tuple(policy_names())))


HANDLERS: dict[str, Handler] = {
    "list_all": list_all,
    "put": put,
    "get": get,
    "delete": delete,
    "ask": ask,
    "tell": tell,
    "abandon": abandon,
    "add_arms": transfer.add_arms,
    "retire": retire,
    "pause": _set_state("pause", "paused"),
    "resume": _set_state("resume", "running"),
    "stop": _set_state("stop", "stopped"),
    "extend": extend,
    "export": transfer.export,
    "arms": arms,
    "arm": arm,
    "leaders": leaders,
    "minutes": _view("minutes"),
    "in_flight": in_flight,
    "exploring": _view("exploring"),
    "health": health,
    "list_tokens": list_tokens,
    "add_token": add_token,
    "drop_token": drop_token,
    "session": session,
    "healthz": healthz,
    "readyz": readyz,
    "metrics": metrics,
    "openapi": openapi,
}
