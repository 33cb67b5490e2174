"""From a request to its answer: a function for each route, but those of pulls, arms and seasons."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from manyarms.live.databases import Database
from manyarms.serve import messages as m
from manyarms.serve import queries as q
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
from manyarms.serve.experiment import Experiment
from manyarms.serve.game import check_spec
from manyarms.serve.importing import number_of
from manyarms.serve.requests import Request, Response, answered
from manyarms.serve.service import Service
from manyarms.serve.settings import change_settings, same_but_settings

# Experiments


async def put(service: Service, request: Request) -> Response:
    """Create an experiment, or find it if it exists with the same spec."""
    spec: m.Spec = request.body
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
    changes: m.Changes = request.body
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
    """Delete a stopped experiment. Its rows are deleted later, some at a time."""
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
            # it cannot be loaded, so it cannot be stopped first
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
    return answered(await service.listing(request.caller, request.query.cursor))


def set_state(action: str, state: m.State) -> Any:
    """Return what pauses, resumes or stops an experiment."""

    async def handler(service: Service, request: Request) -> Response:
        name = request.experiment
        experiment, _, _ = await service.apply(name, lambda one: one.set_state(state))
        if state != "running":  # what follows may be an upgrade, or a long rest
            service.leader.in_background(service.leader.snapshots.save(experiment))
        service.note(request.caller, name, action)
        return answered(m.Done(name, experiment.phase))

    return handler


async def retire(service: Service, request: Request) -> Response:
    """Retire an arm."""
    key = request.arguments["name"]
    number = await number_of(service, request.experiment, key)
    return await _come_or_gone(service, request, lambda one: one.retire(number), f"retire {key}")


async def restore(service: Service, request: Request) -> Response:
    """Restore a retired arm."""
    wanted: m.Restore = request.body
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
    """Observe rewards of an arm that no pull earned."""
    wanted: m.Observe = request.body
    number = await number_of(service, request.experiment, str(wanted.arm))
    experiment, kept, _ = await service.apply(
        request.experiment, lambda one: one.observe(number, wanted.rewards)
    )
    service.note(request.caller, request.experiment, f"observe {wanted.arm}: {kept}")
    return answered(m.Observed(experiment.name, experiment.phase, kept))


# Views


def view(what: str) -> Any:
    """Return what answers with a view, as the query says."""

    async def handler(service: Service, request: Request) -> Response:
        chosen = {} if request.query is None else msgspec.structs.asdict(request.query)
        return answered(await service.view(what, request.experiment, **chosen))

    return handler


async def arm(service: Service, request: Request) -> Response:
    """Return one arm."""
    found = await service.view("arm", request.experiment, key=request.arguments["name"])
    if found is None:
        raise unknown_arm(request.arguments["name"])
    return answered(found)


async def verdict(service: Service, request: Request) -> Response:
    """Say whether the recommended arm is good enough to stop."""
    query: q.VerdictQuery = request.query
    chosen = {
        name: value for name, value in msgspec.structs.asdict(query).items() if value is not None
    }
    for name in ("epsilon", "margin"):
        if name in chosen:
            chosen[name] = _number_or_share(name, chosen[name])
    if query.target is not None:
        chosen["target"] = _number_or_name(query.target)
    said = await service.view("verdict", request.experiment, **chosen)
    if said is None:
        raise refuse(
            409, "no_arms", f"{request.experiment} has no arms yet. POST some to .../arms first."
        )
    return answered(said)


def _number_or_share(name: str, text: str) -> float | str:
    if "%" in text:
        return text
    try:
        return float(text)
    except ValueError:
        said = f"`{name}` must be a number, or a percentage such as 10%, got {text[:100]!r}."
        raise invalid(said) from None


def _number_or_name(text: str) -> float | str:
    """Return a target: a number, else a name. A name in quotes may look like a number.

    >>> _number_or_name("0.5"), _number_or_name("control"), _number_or_name('"7"')
    (0.5, 'control', '7')
    """
    with contextlib.suppress(ValueError):
        return float(text)
    with contextlib.suppress(msgspec.DecodeError, UnicodeError):
        return msgspec.json.decode(text, type=str)
    return text


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
