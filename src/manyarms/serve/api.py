"""A function for each route: from a request to an answer."""

from __future__ import annotations

import json
import secrets

import msgspec

from manyarms.errors import ManyarmsError
from manyarms.live.databases import Database
from manyarms.serve import messages as m
from manyarms.serve.api_looking import LOOKING
from manyarms.serve.errors import RefusedError, failure_of, refuse
from manyarms.serve.exporting import export
from manyarms.serve.forming import AskedBefore, Given
from manyarms.serve.game import check_spec
from manyarms.serve.importing import add_arms, number_of
from manyarms.serve.moves import AskMove, TellMove, key_in
from manyarms.serve.node import unavailable, unknown
from manyarms.serve.owned import Owned, told_before
from manyarms.serve.requests import Handler, Request, Response, answered
from manyarms.serve.service import Service

__all__ = ["HANDLERS"]


# Asks and tells


async def ask(service: Service, request: Request) -> Response:
    """Give out pulls."""
    wanted: m.Ask = await request.read(m.Ask)
    key = key_in(request.headers, forwarded=request.forwarded) or request.made_key or None
    move = AskMove(wanted, key, browser=_from_a_page(request))

    async def change(owned: Owned) -> Given:
        before = None if move.knows(owned) else await _asked_before(service, owned, move.key)
        return move.change(owned, before)

    try:
        owned, given, answers = await service.apply(
            request.experiment, change, forwarded=request.forwarded, once=move.once
        )
    except RefusedError as error:
        if isinstance(error.failure, m.StoppedFailure):
            raise await _with_recommendation(service, request.experiment, error) from error
        raise
    return Response(move.answer(owned, given, answers))


def _from_a_page(request: Request) -> bool:
    return request.caller is not None and request.caller.role == "browser"


async def _asked_before(service: Service, owned: Owned, key: str | None) -> AskedBefore | None:
    row = await service.node.read(lambda database: database.ask_key(owned.id, key or ""))
    return (
        None
        if row is None
        else AskedBefore(row[0], row[1], tuple(json.loads(row[2] or "[]")), row[3])
    )


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
    move = TellMove(wanted, browser=_from_a_page(request))
    owned, results, answers = await service.apply(
        request.experiment, move.change, forwarded=request.forwarded
    )
    return Response(move.answer(owned, results, answers))


async def abandon(service: Service, request: Request) -> Response:
    """Go on without some rewards."""
    wanted: m.Abandons = await request.read(m.Abandons)
    if _from_a_page(request):
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
            how = "" if row is None else _difference(row.spec, text)
            raise refuse(
                409, "exists", f"There is another experiment {name!r}{how}. Choose another name."
            )
        return made

    made = await service.node.write(create)
    if made:
        await service.note(request.caller, name, "create")
    try:
        return answered(await service.view("summary", name), 201 if made else 200)
    except RefusedError as error:
        if made and error.failure.code == "unavailable":
            raise unknown(f"The summary of {name!r} is not there") from error
        raise


def _difference(theirs: str, ours: str) -> str:
    """Say in what two specs differ.

    >>> _difference('{"n_arms":3}', '{"n_arms":3,"horizon":9}')
    ', with `horizon` null and not 9'
    """
    first, second = (
        msgspec.to_builtins(msgspec.json.decode(s, type=m.Spec)) for s in (theirs, ours)
    )
    found = [
        f"`{key}` {json.dumps(first.get(key))} and not {json.dumps(second.get(key))}"
        for key in first | second
        if first.get(key) != second.get(key)
    ]
    return f", with {', '.join(found)}"


async def delete(service: Service, request: Request) -> Response:
    """Delete a stopped experiment. It is gone at once; the scribe deletes its rows bit by bit."""
    name = request.experiment

    def check(owned: Owned) -> Owned:
        if owned.live is not None and owned.state != "stopped":
            raise refuse(409, "not_stopped", f"{name!r} must be stopped before it is deleted.")
        return owned

    try:
        owned, _, _ = await service.apply(name, check, forwarded=request.forwarded)
        buried = await service.node.write(lambda database: database.bury(owned.id, owned.epoch))
    except RefusedError as error:
        if error.failure.code != "replay":
            raise
        # nobody can play it, so nobody could stop it first
        buried = await service.node.write(lambda database: _buried(database, name))
    if not buried:
        raise unavailable("It has changed meanwhile. Send it again.")
    if (known := service.node.owned.get(name)) is not None:
        service.node.forget(known)
    await service.note(request.caller, name, "delete")
    return answered(m.Done(name, "stopped"))


def _buried(database: Database, name: str) -> bool:
    row = database.find(name)
    return row is not None and database.bury(row.id, row.epoch, in_any_state=True)


async def get(service: Service, request: Request) -> Response:
    """Return an experiment at a glance."""
    return answered(await service.view("summary", request.experiment))


async def list_all(service: Service, request: Request) -> Response:
    """Return a page of the experiments that the caller may see."""
    assert request.caller is not None
    return answered(await service.listing(request.caller, request.query.get("cursor", "")))


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
