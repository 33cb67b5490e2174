"""Begin, continue and save experiments in a store."""

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
from manyarms.live.snapshots import CODE_VERSION, restored, season_of, snapshot
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

NAME = "experiment"  # default name of an experiment
_logger = logging.getLogger("manyarms.live")
Clock = Callable[[], float]


def opened(
    parameter: str, address: Any, durable: Literal["process", "power"], *, create: bool
) -> EventStore:
    """Open the store at an address, or raise an error of this package."""
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
    """Begin an experiment in a store, or continue it if it is recorded with the same settings."""
    check_name(name, LONGEST_EXPERIMENT_NAME, "experiment")
    record = store.find(name)
    if record is None:
        try:
            return _begin(store, name, settings, arms, now)
        except DuplicateNameError:
            record = store.find(name)  # another process has just created it
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
    """Continue an experiment; `name` may be None if the store has only one."""
    record = find_experiment(store, name)
    settings = settings_from(record.spec, policy, _what(store, record))
    names = _names_of(store, record, settings)
    return _continued(store, record, settings, names, policy, now)


def find_experiment(store: EventStore, name: str | None) -> ExperimentRecord:
    """Return the record of an experiment, or raise; `name` may be None if there is only one."""
    if name is None:
        return _only(store)
    check_name(name, LONGEST_EXPERIMENT_NAME, "experiment")
    record = store.find(name)
    if record is None:
        known = ", ".join(repr(one.name) for one in store.experiments()[:10]) or "none"
        raise ParameterError(f"{store} has no experiment {shown(name, 100)}. It has: {known}.")
    return record


def replayed(store: EventStore, name: str) -> str:
    """Replay a whole log; return what is wrong with it, or "" if every arm is as recorded."""
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
        return find_experiment(store, found[0].name)  # raises if it is damaged
    names = ", ".join(repr(one.name) for one in found[:10])
    raise ParameterError(
        f"`name` must be given: {store} has {len(found)} experiments{': ' if found else ''}{names}."
    )


def _what(store: EventStore, record: ExperimentRecord) -> str:
    return f"{store}, experiment {record.name!r},"


def _names_of(store: EventStore, record: ExperimentRecord, settings: Settings) -> list[Any]:
    """Return the names of all arms in order; an empty list if arms have numbers."""
    if settings.names is None:
        return []
    names = store.arm_names(record.id)
    if list(names) != list(range(len(names))) or len(names) < settings.n_arms:
        raise SavedFileError(f"{_what(store, record)} lacks arm names. Restore a backup.")
    try:
        return list(names.values() if settings.names == "text" else map(int, names.values()))
    except ValueError as error:
        raise SavedFileError(f"{_what(store, record)} has invalid arm names: {error}.") from error


def _continued(
    store: EventStore,
    record: ExperimentRecord,
    settings: Settings,
    names: Sequence[Any],
    policy: Policy | None,
    now: Clock,
) -> tuple[Context, Recording]:
    """Load the newest snapshot that can be used, and replay the events after it.

    If none can be used, the ledger is made again from the log, and the search from the events of
    its season. The last resort is to play all seasons again.
    """
    errors = []
    for found, from_season in _starts(store, record):
        try:
            context = _replayed_from(
                store, record, settings, names, found, policy, now, from_season=from_season
            )
            saved = 0 if found is None else found.seq
            return context, Recording(store, record, saved=saved, arms=context.arms.count)
        except SavedFileError as error:
            errors.append(error)
            _logger.warning("%s Now trying an older snapshot or the log.", error)
    raise errors[0]


def _replayed_from(
    store: EventStore,
    record: ExperimentRecord,
    settings: Settings,
    names: Sequence[Any],
    found: Snapshot | None,
    policy: Policy | None,
    now: Clock,
    *,
    from_season: int = 0,
) -> Context:
    """Load a snapshot, or start from the settings if `found` is None, and replay later events."""
    what, seq = _what(store, record), 0 if found is None else found.seq
    with gc_paused():
        experiment = _loaded(settings, found, what, policy, now, searching=from_season == 0)
        experiment.status = dict(record.state)
        arms, events = _arms_for(settings, names), store.events(record.id, seq)
        replay(experiment, arms, events, what, policy, from_season=from_season)
    experiment.check_clock()
    if isinstance(arms, ArmNumbers):
        return Context(experiment, ArmNumbers(experiment.ledger.n_all))
    if arms.count != experiment.ledger.n_all:
        raise SavedFileError(f"{what} has {arms.count} names for {experiment.ledger.n_all} arms.")
    return Context(experiment, arms)


def _starts(store: EventStore, record: ExperimentRecord) -> Iterator[tuple[Snapshot | None, int]]:
    """Yield the snapshots from which to replay a log, best first; None is the beginning of the log.

    With the beginning of the log comes the event from which the search is needed. Snapshots of this
    version come first, then the log. The log of an experiment that `save` wrote begins with a
    snapshot, so snapshots of other versions follow instead.
    """
    snapshots = list[Snapshot]()
    for found in store.snapshots(record.id):
        snapshots.append(found)
        if found.version == CODE_VERSION:
            yield found, 0
    if record.state.get("saved"):
        yield from ((found, 0) for found in snapshots if found.version != CODE_VERSION)
        return
    for found in snapshots:
        if (began := season_of(found.data)) > 0:
            yield None, began
    yield None, 0


def _loaded(
    settings: Settings,
    found: Snapshot | None,
    what: str,
    policy: Policy | None,
    now: Clock,
    *,
    searching: bool,
) -> Experiment:
    if found is None:
        return Experiment(settings, now, searching=searching)
    experiment = restored(settings, found.data, what, policy=policy, now=now)
    experiment.seq = found.seq
    return experiment


def _arms_for(settings: Settings, names: Sequence[Any]) -> Arms:
    return ArmNames(names) if settings.names is not None else ArmNumbers(MOST_ARMS)


def save(context: Context, path: Path, name: str) -> None:
    """Write an experiment without its events to a file; replace an existing file."""
    settings = context.experiment.settings
    names = context.arms.names if isinstance(context.arms, ArmNames) else ()
    with replacing(path) as part, open_store(part) as store:
        spec, state = settings.to_spec(), context.experiment.status | {"saved": True}
        record = store.create(name, spec, map(str, names), state=state)
        store.save_snapshot(record.id, 0, CODE_VERSION, snapshot(context.experiment))
        store.close()
        make_replaceable(path)


def _arms_differ(names: Sequence[Any], first: int, given: Arms) -> list[str]:
    """Return how the recorded arms differ from those given, as text; empty if they do not differ.

    The `first` arms of `names` are those with which the experiment began. `given` may be these or
    all arms that it has now.
    """
    if isinstance(given, ArmNumbers):
        if names:
            return [f"arms have names in the store, and n_arms={given.count} was given"]
        if given.count == first:
            return []
        return [f"n_arms is {first} in the store, and {given.count} was given"]
    if not names:
        return [f"arms have numbers in the store (n_arms={first}), and names were given"]
    if given.names in (list(names[:first]), list(names)):
        return []
    fix = "; change arms with sync_arms or add_arms afterwards"
    for place, (old, new) in enumerate(zip(names, given.names, strict=False)):
        if old != new:
            old_name, new_name = shown(old, 60), shown(new, 60)
            return [f"arm {place} is {old_name} in the store, and {new_name} was given{fix}"]
    return [f"there are {first} arms in the store, and {given.count} were given{fix}"]
