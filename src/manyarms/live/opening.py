"""Beginning, continuing and saving experiments in a store."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from manyarms.core.checks import check_path, shown
from manyarms.core.files import path_errors, replacing
from manyarms.core.gc_pause import gc_paused
from manyarms.errors import DuplicateNameError, ManyarmsError, ParameterError, SavedFileError
from manyarms.live.arms import ArmNames, ArmNumbers, Arms
from manyarms.live.calls import Context
from manyarms.live.experiment import Experiment
from manyarms.live.recorder import Recording
from manyarms.live.replaying import replay
from manyarms.live.settings import Settings, differences, settings_from
from manyarms.live.snapshots import CODE_VERSION, restored, snapshot
from manyarms.protocol.policy import MOST_ARMS, Policy
from manyarms.store import (
    LONGEST_EXPERIMENT_NAME,
    EventStore,
    ExperimentRecord,
    Snapshot,
    check_name,
    make_replaceable,
    open_store,
)

NAME = "experiment"  # of an experiment that was given none
_logger = logging.getLogger("manyarms.live")
Clock = Callable[[], float]


def opened(
    parameter: str, address: Any, durable: Literal["process", "power"], *, create: bool
) -> EventStore:
    """Open the store at an address, or raise one of our errors."""
    if isinstance(address, str) and "://" in address:
        return open_store(address, durable=durable, create=create)
    path = check_path(parameter, address)
    with path_errors(path, "Name a file that this user may read and write"):
        return open_store(path, durable=durable, create=create)


def begin_or_continue(
    store: EventStore,
    name: str,
    settings: Settings,
    arms: Arms,
    *,
    seed_given: bool,
    now: Clock = time.time,
) -> tuple[Context, Recording]:
    """Begin an experiment in a store, or continue it if its settings are the recorded ones."""
    check_name(name, LONGEST_EXPERIMENT_NAME, "experiment")
    record = store.find(name)
    if record is None:
        try:
            return _begin(store, name, settings, arms, now)
        except DuplicateNameError:
            record = store.find(name)  # another process was faster
            if record is None:
                raise
    recorded = settings_from(record.spec, settings.policy, _what(store, record))
    found = differences(settings, recorded, ignore_seed=not seed_given)
    names = _names_of(store, record, recorded)
    found += _arms_differ(names, recorded.n_arms, arms)
    if found:
        raise ParameterError(
            f"{_what(store, record)} was created with other settings: {'; '.join(found)}. "
            f"Continue it with load({str(store)!r}, name={name!r}), or choose another name."
        )
    return _continued(store, record, recorded, names, settings.policy, now)


def _begin(
    store: EventStore, name: str, settings: Settings, arms: Arms, now: Clock
) -> tuple[Context, Recording]:
    experiment = Experiment(settings, now)
    names = arms.names if isinstance(arms, ArmNames) else ()
    record = store.create(name, settings.to_spec(), map(str, names))
    return Context(experiment, arms), Recording(store, record, saved=0, arms=arms.count)


def continue_experiment(
    store: EventStore, name: str | None, policy: Policy | None, now: Clock = time.time
) -> tuple[Context, Recording]:
    """Continue an experiment; its name may be left out if the store has no other."""
    record = find_experiment(store, name)
    settings = settings_from(record.spec, policy, _what(store, record))
    names = _names_of(store, record, settings)
    return _continued(store, record, settings, names, policy, now)


def find_experiment(store: EventStore, name: str | None) -> ExperimentRecord:
    """Return an experiment, or raise; its name may be left out if the store has no other."""
    if name is None:
        return _only(store)
    check_name(name, LONGEST_EXPERIMENT_NAME, "experiment")
    record = store.find(name)
    if record is None:
        known = ", ".join(repr(one.name) for one in store.experiments()[:10]) or "none"
        raise ParameterError(f"{store} has no experiment {shown(name, 100)}. It has: {known}.")
    return record


def replayed(store: EventStore, name: str) -> str:
    """Replay a whole log; return what is wrong with it, empty if every arm is as recorded."""
    try:
        record = find_experiment(store, name)
        settings = settings_from(record.spec, None, _what(store, record))
        names = _names_of(store, record, settings)
        first = next((one for one in store.snapshots(record.id) if one.seq == 0), None)
        _replayed_from(store, record, settings, names, first, None, time.time)
    except ManyarmsError as error:
        return str(error)
    return ""


def _only(store: EventStore) -> ExperimentRecord:
    found = store.experiments()
    if len(found) == 1:
        return found[0]
    names = ", ".join(repr(one.name) for one in found[:10])
    raise ParameterError(
        f"`name` must be given: {store} has {len(found)} experiments{': ' if found else ''}{names}."
    )


def _what(store: EventStore, record: ExperimentRecord) -> str:
    return f"{store}, experiment {record.name!r},"


def _names_of(store: EventStore, record: ExperimentRecord, settings: Settings) -> list[Any]:
    """Return the names of all arms, in their order; none if arms have numbers."""
    if settings.names is None:
        return []
    names = store.arm_names(record.id)
    if list(names) != list(range(len(names))) or len(names) < settings.n_arms:
        raise SavedFileError(f"{_what(store, record)} lacks names of arms. Restore a backup.")
    try:
        return list(names.values() if settings.names == "text" else map(int, names.values()))
    except ValueError as error:
        raise SavedFileError(f"{_what(store, record)} has wrong names of arms: {error}.") from error


def _continued(
    store: EventStore,
    record: ExperimentRecord,
    settings: Settings,
    names: Sequence[Any],
    policy: Policy | None,
    now: Clock,
) -> tuple[Context, Recording]:
    """Load the newest snapshot that can be used, and replay the events after it."""
    errors = []
    for found in _starts(store, record):
        try:
            context = _replayed_from(store, record, settings, names, found, policy, now)
            saved = 0 if found is None else found.seq
            return context, Recording(store, record, saved=saved, arms=context.arms.count)
        except SavedFileError as error:
            errors.append(error)
            _logger.warning("%s Trying an older snapshot or the whole log.", error)
    raise errors[0]


def _replayed_from(
    store: EventStore,
    record: ExperimentRecord,
    settings: Settings,
    names: Sequence[Any],
    found: Snapshot | None,
    policy: Policy | None,
    now: Clock,
) -> Context:
    """Load a snapshot, or start a new experiment, and replay the events after it."""
    what, seq = _what(store, record), 0 if found is None else found.seq
    with gc_paused():
        experiment = _loaded(settings, found, what, policy, now)
        experiment.status = dict(record.state)
        arms = _arms_for(settings, names)
        replay(experiment, arms, store.events(record.id, seq), what, policy)
    if isinstance(arms, ArmNumbers):
        return Context(experiment, ArmNumbers(experiment.n_all))
    if arms.count != experiment.n_all:
        raise SavedFileError(f"{what} has {arms.count} names for {experiment.n_all} arms.")
    return Context(experiment, arms)


def _starts(store: EventStore, record: ExperimentRecord) -> Iterator[Snapshot | None]:
    """Yield what a log can be replayed from; None is its beginning.

    Snapshots of this version come first. What was saved without its history begins with a snapshot
    before its first event, and another version's is better than none.
    """
    others: list[Snapshot] = []
    for found in store.snapshots(record.id):
        if found.version == CODE_VERSION:
            yield found
        else:
            others.append(found)
    if not record.state.get("saved"):
        yield None
    else:
        yield from others


def _loaded(
    settings: Settings, found: Snapshot | None, what: str, policy: Policy | None, now: Clock
) -> Experiment:
    if found is None:
        return Experiment(settings, now)
    experiment = restored(settings, found.data, what, policy=policy, now=now)
    experiment.seq = found.seq
    return experiment


def _arms_for(settings: Settings, names: Sequence[Any]) -> Arms:
    return ArmNames(names) if settings.names is not None else ArmNumbers(MOST_ARMS)


def save(context: Context, path: Path, name: str) -> None:
    """Write an experiment without its history to a new file, which replaces one that is there."""
    settings = context.experiment.settings
    names = context.arms.names if isinstance(context.arms, ArmNames) else ()
    with replacing(path) as part, open_store(part) as store:
        spec, state = settings.to_spec(), context.experiment.status | {"saved": True}
        record = store.create(name, spec, map(str, names), state=state)
        store.save_snapshot(record.id, 0, CODE_VERSION, snapshot(context.experiment))
        store.close()
        make_replaceable(path)


def _arms_differ(names: Sequence[Any], first: int, given: Arms) -> list[str]:
    """Return how the recorded arms differ from those given, in words; empty if they do not.

    Given may be the arms of the beginning, or those that the experiment has now.
    """
    if isinstance(given, ArmNumbers):
        if names:
            return [f"arms have names there, and numbers here (n_arms={given.count})"]
        return [] if given.count == first else [f"n_arms is {first} there, and {given.count} here"]
    if not names:
        return [f"arms have numbers there (n_arms={first}), and names here"]
    if given.names in (list(names[:first]), list(names)):
        return []
    change = "; change arms with sync_arms or add_arms afterwards"
    for place, (old, new) in enumerate(zip(names, given.names, strict=False)):
        if old != new:
            return [f"arm {place} is {shown(old, 60)} there, and {shown(new, 60)} here{change}"]
    return [f"there are {first} arms, and {given.count} here{change}"]
