"""The handlers of the API, except those in `asks` and `importing`."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec
from msgspec import UNSET

from manyarms.errors import DuplicateNameError, ParameterError, StoreDamagedError
from manyarms.inference.facts import CONTROL
from manyarms.inference.question import check_setting, check_target
from manyarms.live import arm_calls, calls
from manyarms.live.arms import ArmNumbers
from manyarms.live.settings import Settings, check_settings, differences, settings_from
from manyarms.protocol.registry import policy
from manyarms.serve import messages as m
from manyarms.serve import queries as q
from manyarms.serve.errors import (
    LostError,
    RefusedError,
    as_refusals,
    invalid,
    refuse,
    unavailable,
    unknown_experiment,
)
from manyarms.serve.experiment import ServedExperiment
from manyarms.serve.requests import Request, Response, answered
from manyarms.serve.service import Service
from manyarms.serve.views import number_of
from manyarms.store import ExperimentRecord

# Experiments


async def put(service: Service, request: Request) -> Response:
    """Create an experiment; if it exists with the same settings, return its summary."""
    spec: m.Spec = request.body
    name, leader = request.experiment, service.leader
    with as_refusals():
        settings = _settings(spec)
        check_goal(spec.target, settings)
    made = await leader.write(_create, service, name, settings, spec)
    if made:
        service.note(request.caller, name, "create")
    return answered(await service.view("summary", name), 201 if made else 200)


def _settings(spec: m.Spec) -> Settings:
    given = {name: getattr(spec, name) for name in spec.__struct_fields__ if name != "target"}
    given |= {
        "n_arms": 0 if spec.n_arms is None else ArmNumbers(spec.n_arms).count,
        "names": "text" if spec.n_arms is None else None,
        "seed": secrets.randbits(48) if spec.seed is None else spec.seed,
    }
    settings = check_settings(policy(given.pop("policy")), **given)
    settings.new_state(settings.policy, 1, 1)  # raises if a parameter is missing
    return settings


def _create(service: Service, name: str, settings: Settings, spec: m.Spec) -> bool:
    """Create an experiment; return False if it exists, and refuse if its settings differ."""
    status = {"state": "running"} | ({} if spec.target is None else {"target": spec.target})
    try:
        service.store.create(name, settings.to_spec(), state=status)
        return True
    except DuplicateNameError:
        try:
            found = service.store.find(name)
        except StoreDamagedError as error:
            raise refuse(503, "replay", f"{name} cannot be loaded: {error}") from error
    if found is not None:
        _check_same(found, settings, ignore_seed=spec.seed is None)
    return False


def _check_same(there: ExperimentRecord, ours: Settings, *, ignore_seed: bool) -> None:
    with as_refusals():
        recorded = settings_from(there.spec, None, repr(there.name))
    # `epsilon` may have been changed since
    found = [
        one
        for one in differences(ours, recorded, ignore_seed=ignore_seed)
        if not one.startswith("epsilon ")
    ]
    if (recorded.n_arms, recorded.names) != (ours.n_arms, ours.names) and ours.names is None:
        found.append(f"n_arms is {recorded.n_arms} in the store, and {ours.n_arms} was given")
    if found or (recorded.names is None) != (ours.names is None):
        why = "; ".join(found) or "the arms of one have names, those of the other numbers"
        raise refuse(
            409,
            "exists",
            f"There is an experiment {there.name!r} with other settings: {why}. Choose another "
            f"name.",
        )


def check_goal(target: float | str | None, settings: Settings) -> None:
    """Raise unless a target is valid for an experiment."""
    if target == "control":
        if settings.control is None:
            raise ParameterError(
                "`target` must be a number or null if there is no control, got 'control'.",
                parameter="target",
            )
    elif target is not None:
        check_target(target, settings.reward_range)


async def change(service: Service, request: Request) -> Response:
    """Change `epsilon` or `target`, which say when an arm is good enough to stop."""
    given = msgspec.structs.asdict(request.body)
    changes = {name: value for name, value in given.items() if value is not UNSET}
    settings = (await service.leader.loader.find(request.experiment)).experiment.settings
    with as_refusals():
        if "epsilon" in changes:
            check_setting(changes["epsilon"], settings.reward_range)
        check_goal(changes.get("target"), settings)
    await service.set_status(request.experiment, **changes)
    service.note(request.caller, request.experiment, f"change {changes}")
    return answered(await service.view("summary", request.experiment))


async def delete(service: Service, request: Request) -> Response:
    """Delete a stopped experiment. Its rows are deleted later, some at a time."""
    name, leader = request.experiment, service.leader
    try:
        one: ServedExperiment | None = await leader.loader.find(name)
    except RefusedError as error:
        if error.failure.code != "replay":
            raise
        one = None  # it cannot be loaded, and so it cannot be stopped first
    if one is not None and one.phase not in ("stopped", "finished", "empty"):
        raise refuse(409, "not_stopped", f"{name!r} must be stopped before it is deleted.")
    with leader.deleting(name):
        if one is not None:
            await _settle(one)
            leader.drop(one, "the experiment was deleted")
        records = await leader.read(service.store.experiments)  # `find` refuses damaged ones
        found = next((record for record in records if record.name == name), None)
        if found is None:
            raise unknown_experiment(name)
        await leader.write(service.store.delete, found.id)
    leader.deleted(name)
    service.note(request.caller, name, "delete")
    return answered(m.Done(name, "stopped"))


async def _settle(one: ServedExperiment) -> None:
    """Wait until all changes are committed; a failed commit would drop all experiments."""
    try:
        while not one.is_committed:
            await one.committed_all()
    except LostError as error:
        raise unavailable(f"Nothing was done: {error}. Send the request again.") from None


async def list_all(service: Service, request: Request) -> Response:
    """Return a page of the experiments."""
    return answered(await service.listing(request.query.cursor))


def set_state(action: str, state: str) -> Any:
    """Return the handler that pauses, resumes or stops an experiment."""

    async def handler(service: Service, request: Request) -> Response:
        name = request.experiment
        one = await service.set_status(name, state=state)
        service.note(request.caller, name, action)
        return answered(m.Done(name, one.phase))

    return handler


async def season(service: Service, request: Request) -> Response:
    """Begin a season: the experiment continues under its name, and keeps all rewards."""
    wanted: m.NewSeason = request.body
    with as_refusals():
        chosen = None if wanted.policy is None else policy(wanted.policy)
    await service.apply(
        request.experiment,
        lambda one: one.do(calls.season, chosen, wanted.horizon, wanted.seed),
    )
    service.note(request.caller, request.experiment, "season")
    return answered(await service.view("summary", request.experiment))


async def events(service: Service, request: Request) -> Response:
    """Return a page of events: those after the number `after`, at most `limit`."""
    query: q.EventsQuery = request.query
    one = await service.leader.loader.find(request.experiment)
    if query.after >= one.committed:
        return answered(m.EventPage([], None))
    control = one.experiment.settings.control

    def page() -> list[m.EventView]:
        rows = islice(service.store.history(one.id, query.after), query.limit)
        return [
            m.EventView(seq, kind, at, pull, control if arm == CONTROL else arm, reward, detail)
            for seq, at, kind, pull, arm, reward, detail in rows
        ]

    async with service.event_pages:
        found = await service.leader.read(page)
    return answered(m.EventPage(found, found[-1].seq if len(found) == query.limit else None))


# Arms


async def retire(service: Service, request: Request) -> Response:
    """Retire an arm."""
    return await _retire_or_restore(service, request, arm_calls.retire, "retired")


async def restore(service: Service, request: Request) -> Response:
    """Restore a retired arm."""
    return await _retire_or_restore(service, request, arm_calls.restore, "not_retired")


async def _retire_or_restore(
    service: Service, request: Request, call: Callable[..., Any], done: str
) -> Response:
    """Retire or restore an arm; if that was already done, answer that nothing changed."""
    arm = str(request.body.arm)

    def change(one: ServedExperiment) -> tuple[m.State, bool]:
        try:
            one.do(call, _called(one, arm))
        except RefusedError as error:
            if error.failure.code != done:
                raise
            return one.phase, False
        return one.phase, True

    phase, applied = await service.apply(request.experiment, change)
    if applied:
        service.note(request.caller, request.experiment, f"{call.__name__} {arm}")
    return answered(m.ArmChange(request.experiment, phase, applied))


def _called(one: ServedExperiment, arm: str) -> Any:
    """Return the name of an arm as the experiment has it, or refuse."""
    with as_refusals():
        return one.context.name(number_of(one.view_data, arm))


async def observe(service: Service, request: Request) -> Response:
    """Import rewards of an arm, or numbers and sums of rewards of several arms."""
    wanted: m.Observe = request.body
    counts, rewards = wanted.counts, wanted.rewards
    if (counts is None) == (wanted.arm is None or rewards is None):
        raise invalid("Send either `arm` and `rewards`, or `counts`.")

    def change(one: ServedExperiment) -> m.State:
        if counts is None:
            one.do(calls.observe, _called(one, str(wanted.arm)), rewards)
        else:
            one.do(calls.observe_counts, {_called(one, arm): of for arm, of in counts.items()})
        return one.phase

    phase = await service.apply(request.experiment, change)
    kept = len(rewards or ()) if counts is None else sum(int(of[0]) for of in counts.values())
    what = str(wanted.arm) if counts is None else f"{len(counts)} arms"
    service.note(request.caller, request.experiment, f"observe {what}: {kept}")
    return answered(m.Observed(request.experiment, phase, kept))


# Views


def view(what: str) -> Any:
    """Return the handler that answers with a view; the query has its arguments."""

    async def handler(service: Service, request: Request) -> Response:
        chosen = {} if request.query is None else msgspec.structs.asdict(request.query)
        return answered(await service.view(what, request.experiment, **chosen))

    return handler


async def arm(service: Service, request: Request) -> Response:
    """Return one arm."""
    name = request.arguments["name"]
    return answered(await service.view("arm", request.experiment, arm=name))


async def verdict(service: Service, request: Request) -> Response:
    """Return whether the recommended arm is good enough to stop."""
    given = msgspec.structs.asdict(request.body)
    question = {name: value for name, value in given.items() if value is not None}
    return answered(await service.view("verdict", request.experiment, **question))


# The process itself


async def healthz(service: Service, request: Request) -> Response:
    """Answer that the process runs."""
    return answered(m.Ready(ready=True))


async def readyz(service: Service, request: Request) -> Response:
    """Answer whether this process answers requests."""
    why = service.not_ready()
    return answered(m.Ready(not why, why), 503 if why else 200)


async def metrics(service: Service, request: Request) -> Response:
    """Return the metrics for Prometheus."""
    return Response(service.metrics.text(), kind="text/plain; version=0.0.4; charset=utf-8")
