"""A function for each route of `routes`, by its name: from a request to an answer."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from manyarms.live.databases import Database
from manyarms.protocol.registry import policy_names
from manyarms.serve import messages as m
from manyarms.serve import tables
from manyarms.serve.errors import (
    RefusedError,
    as_refusals,
    invalid,
    refuse,
    unknown,
    unknown_arm,
    unknown_experiment,
)
from manyarms.serve.events import events
from manyarms.serve.experiment import Experiment
from manyarms.serve.game import check_spec
from manyarms.serve.importing import add_arms, number_of
from manyarms.serve.playing import abandon, ask, tell
from manyarms.serve.requests import Handler, Request, Response, answered
from manyarms.serve.routes import description
from manyarms.serve.seasons import season
from manyarms.serve.service import Service
from manyarms.serve.settings import change_settings, same_but_settings
from manyarms.serve.syncing import sync_arms
from manyarms.serve.views import SORTS

# Experiments


async def put(service: Service, request: Request) -> Response:
    """Create an experiment; the same one again is no mistake."""
    spec: m.Spec = await request.read(m.Spec)
    name = request.experiment
    with as_refusals():
        check_spec(spec)
    if spec.early == "hold" and spec.window is None:
        raise invalid("`early: hold` needs a `window`, in seconds.")
    if spec.season is not None:
        raise invalid("`season` is set by the service: POST to .../season of the earlier one.")
    text = msgspec.json.encode(spec).decode()
    secret = secrets.token_hex(32)

    def create(database: Database) -> bool:
        state, arms = ("running", spec.n_arms) if spec.n_arms else ("empty", 0)
        keyed = int(spec.n_arms is None)
        made = database.create(name, text, state, secret, keyed=keyed, n_arms=arms)
        row = database.find(name)
        if row is None or not _same(row.spec, spec):
            how = "" if row is None else _difference(row.spec, spec)
            raise refuse(
                409, "exists", f"There is another experiment {name!r}{how}. Choose another name."
            )
        return made

    made = await service.leader.write(create)
    if made:
        service.note(request.caller, name, "create")
    try:
        return answered(await service.view("summary", name), 201 if made else 200)
    except RefusedError as error:
        if made and error.failure.code == "unavailable":
            raise unknown(f"The summary of {name!r} is not there") from error
        raise


def _same(theirs: str, ours: m.Spec) -> bool:
    """Return whether a spec is that of an experiment."""
    there = msgspec.json.decode(theirs, type=m.Spec | None)  # null: it is a handle's
    return there is not None and same_but_settings(there, ours)


async def change(service: Service, request: Request) -> Response:
    """Change settings of an experiment."""
    changes: m.Changes = await request.read(m.Changes)
    name = request.experiment
    await service.apply(name, lambda one: change_settings(one, changes))
    service.note(request.caller, name, f"change {msgspec.json.encode(changes).decode()}")
    return answered(await service.view("summary", name))


def _difference(theirs: str, ours: m.Spec) -> str:
    """Say in what two specs differ, without settings, which may differ.

    >>> _difference('{"n_arms":3,"target":0.5}', m.Spec(n_arms=3, horizon=9))
    ', with `horizon` null and not 9'
    """
    there = msgspec.json.decode(theirs, type=m.Spec | None)
    if there is None:
        return ", which is that of a handle"
    first, second = msgspec.to_builtins(there), msgspec.to_builtins(ours)
    found = [
        f"`{key}` {json.dumps(first[key])} and not {json.dumps(second[key])}"
        for key in first
        if first[key] != second[key] and key not in m.Changes.__struct_fields__
    ]
    return f", with {', '.join(found)}"


async def delete(service: Service, request: Request) -> Response:
    """Delete a stopped experiment. It is gone at once; its rows are deleted bit by bit."""
    name, leader, x = request.experiment, service.leader, None
    with contextlib.ExitStack() as meanwhile:

        def check(experiment: Experiment) -> None:
            if experiment.live is not None and experiment.phase not in ("stopped", "finished"):
                raise refuse(409, "not_stopped", f"{name!r} must be stopped before it is deleted.")
            meanwhile.enter_context(leader.burying(name))

        try:
            experiment, _, _ = await service.apply(name, check)
        except RefusedError as error:
            if error.failure.code != "replay":
                raise
            # nobody can play it, so nobody could stop it first
            meanwhile.enter_context(leader.burying(name))
        else:  # all that was applied is committed: what came later would not pass the fence
            leader.forget(experiment, "the experiment was deleted")
            x = experiment.id
        if not await leader.write(lambda database: _buried(database, name, x)):
            raise unknown_experiment(name)
    leader.purge_soon(name)
    service.note(request.caller, name, "delete")
    return answered(m.Done(name, "stopped"))


def _buried(database: Database, name: str, x: int | None) -> bool:
    row = database.find(name)
    return row is not None and x in (None, row.id) and tables.bury(database, row.id)


async def list_all(service: Service, request: Request) -> Response:
    """Return a page of the experiments that the caller may see."""
    assert request.caller is not None
    return answered(await service.listing(request.caller, request.query.get("cursor", "")))


def _set_state(action: str, state: m.State) -> Handler:
    async def handler(service: Service, request: Request) -> Response:
        name = request.experiment
        experiment, _, _ = await service.apply(name, lambda one: one.set_state(state))
        if state != "running":  # what follows may be an upgrade, or a long rest
            service.leader.in_background(service.leader.snapshots.save(experiment))
        service.note(request.caller, name, action)
        return answered(m.Done(name, experiment.phase))

    return handler


async def retire(service: Service, request: Request) -> Response:
    """Let an arm go."""
    key = request.arguments["key"]
    number = await number_of(service, request.experiment, key)
    return await _come_or_gone(service, request, lambda one: one.retire(number), f"retire {key}")


async def restore(service: Service, request: Request) -> Response:
    """Let a retired arm come back."""
    wanted: m.Restore = await request.read(m.Restore)
    key = str(wanted.arm)
    number = await number_of(service, request.experiment, key)
    return await _come_or_gone(service, request, lambda one: one.restore(number), f"restore {key}")


async def _come_or_gone(
    service: Service, request: Request, change: Callable[[Experiment], bool], action: str
) -> Response:
    experiment, applied, _ = await service.apply(request.experiment, change)
    if applied:
        service.note(request.caller, request.experiment, action)
    return answered(m.ComeOrGone(experiment.name, experiment.phase, applied))


async def observe(service: Service, request: Request) -> Response:
    """Keep rewards of an arm that no pull earned."""
    wanted: m.Observe = await request.read(m.Observe)
    number = await number_of(service, request.experiment, str(wanted.arm))
    experiment, kept, _ = await service.apply(
        request.experiment, lambda one: one.observe(number, wanted.rewards)
    )
    service.note(request.caller, request.experiment, f"observe {wanted.arm}: {kept}")
    return answered(m.Observed(experiment.name, experiment.phase, kept))


# Views


def _view(what: str, **readers: Callable[[str, str], Any]) -> Handler:
    """Return what answers with a view; the query may say more, which `readers` check."""

    async def handler(service: Service, request: Request) -> Response:
        query = request.query
        chosen = {name: read(name, query[name]) for name, read in readers.items() if name in query}
        return answered(await service.view(what, request.experiment, **chosen))

    return handler


def _up_to(most: int) -> Callable[[str, str], int]:
    def read(name: str, text: str) -> int:
        if text.isdecimal() and len(text) <= 18 and 1 <= int(text) <= most:
            return int(text)
        said = f"`{name}` must be an integer from 1 to {most}, got {text[:100]!r}."
        raise invalid(said)

    return read


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        said = f"`{name}` must be a number, got {text[:100]!r}."
        raise invalid(said) from None


def _target(name: str, text: str) -> float | str:
    """Read a number or the name of an arm; in double quotes, "7" is a name."""
    with contextlib.suppress(ValueError):
        return float(text)
    if text.startswith('"'):
        with contextlib.suppress(ValueError):
            return str(json.loads(text))
    return text


def _slack(name: str, text: str) -> float | str:
    if "%" in text:
        return text
    try:
        return float(text)
    except ValueError:
        said = f"`{name}` must be a number, or a percentage such as 10%, got {text[:100]!r}."
        raise invalid(said) from None


def _sort(name: str, text: str) -> str:
    if text not in SORTS:
        raise invalid(f"`{name}` must be one of {', '.join(SORTS)}, got {text!r}.")
    return text


def _text(name: str, text: str) -> str:
    return text[:1000]


async def arm(service: Service, request: Request) -> Response:
    """Return one arm."""
    found = await service.view("arm", request.experiment, key=request.arguments["key"])
    if found is None:
        raise unknown_arm(request.arguments["key"])
    return answered(found)


_QUESTION: dict[str, Callable[[str, str], Any]] = {
    "epsilon": _slack, "quantile": _number, "confidence": _number, "target": _target,
    "margin": _slack,
}  # fmt: skip


async def verdict(service: Service, request: Request) -> Response:
    """Say whether the recommended arm is good enough to stop."""
    query, name = request.query, request.experiment
    chosen = {
        field: read(field, query[field]) for field, read in _QUESTION.items() if field in query
    }
    said = await service.view("verdict", name, **chosen)
    if said is None:
        raise refuse(409, "no_arms", f"{name} has no arms yet. POST some to .../arms first.")
    return answered(said)


# The node itself


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
    "change": change,
    "get": _view("summary"),
    "delete": delete,
    "ask": ask,
    "tell": tell,
    "abandon": abandon,
    "add_arms": add_arms,
    "sync_arms": sync_arms,
    "retire": retire,
    "restore": restore,
    "observe": observe,
    "season": season,
    "pause": _set_state("pause", "paused"),
    "resume": _set_state("resume", "running"),
    "stop": _set_state("stop", "stopped"),
    "events": events,
    "arms": _view("arms", search=_text, sort=_sort, cursor=_text, limit=_up_to(1000)),
    "arm": arm,
    "leaders": _view("leaders", k=_up_to(1000)),
    "uplift": _view("uplift", confidence=_number),
    "verdict": verdict,
    "minutes": _view("minutes"),
    "in_flight": _view("in_flight", limit=_up_to(m.MOST_PULLS)),
    "healthz": healthz,
    "readyz": readyz,
    "metrics": metrics,
    "openapi": openapi,
}
