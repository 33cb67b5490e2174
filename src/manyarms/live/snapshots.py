"""Convert an experiment to a snapshot and back. A snapshot is a cache of the event log."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int
from manyarms.errors import SavedFileError
from manyarms.live.arms import Seats
from manyarms.live.counts import ArmCounts
from manyarms.live.course import Course
from manyarms.live.experiment import Experiment
from manyarms.live.packing import MALFORMED_ERRORS, pack, taken, unpack
from manyarms.live.settings import Settings, recorded_policy
from manyarms.protocol.pending import PendingRecord
from manyarms.protocol.policy import MOST_ARMS, Policy
from manyarms.protocol.registry import described_policy
from manyarms.protocol.state_dump import (
    Columns,
    column_of_each,
    dump_state,
    restore_state,
    set_each,
)

# loaded by name, because mypy does not resolve the circular import
CODE_VERSION: str = import_module("manyarms").__version__
_COUNTED: dict[str, type[np.generic]] = {
    **dict.fromkeys(("asked", "told", "observed"), np.int64),
    "total": np.float64,
    "season": np.int64,
}
_PENDING: dict[str, type[np.generic]] = {
    **dict.fromkeys(PendingRecord.__annotations__, np.int64),
    "asked": np.float64,
}
_COUNTS = (
    "n_all",
    "first_arms",
    "next",
    "pulls",
    "told",
    "turns",
    "season",
    "first_pull",
    "skipped",
    "expired",
    "unused",
)
_CONTROL = ("turns", "asked", "told", "abandoned")


def snapshot(experiment: Experiment) -> bytes:
    """Return the snapshot of an experiment. Equal experiments give equal bytes."""
    control, course = experiment.control, experiment.course
    about = {name: getattr(experiment, name) for name in _COUNTS}
    about |= {
        "policy": described_policy(experiment.policy),
        "horizon": experiment.horizon,
        "most_pulls": experiment.most_pulls,
        "seed": experiment.seed,
        "last": experiment.last,
        "earned": experiment.earned,
        "delays": experiment.delays,
        "course": [course.step, *([at, *counts] for at, counts in course.points.items())],
        "returned": experiment.seats.count - experiment.n_all,
    }
    if control is not None:
        about["control"] = [*(getattr(control, name) for name in _CONTROL), control.total]
    columns = {
        "retired": _whole(sorted(experiment.retired)),
        "abandoned": np.sort(_whole(experiment.abandoned)),
        "named": _whole(sorted(experiment.named)),
        "recent": _whole(experiment.recent),
        "drawn next": _whole(experiment.drawn_next),
        **_rows("counts", experiment.counts, _COUNTED),
        **_rows("pending", experiment.pending, _PENDING),
        "held pull": _whole(experiment.held),
        "held reward": np.array([*experiment.held.values()], np.float64),
        **_dump_stock(experiment),
        **_dump_seats(experiment.seats),
        **({} if experiment.state is None else dump_state(experiment.state)),
    }
    return pack(about, {name: column for name, column in columns.items() if len(column) > 0})


def restored(
    settings: Settings,
    data: bytes,
    what: str,
    *,
    policy: Policy | None = None,
    now: Callable[[], float] = time.time,
) -> Experiment:
    """Return the experiment of a snapshot; `what` names its store in errors."""
    about, columns = unpack(data, what)
    try:
        experiment = Experiment(settings, now)
        _read(experiment, about, columns, policy, what)
    except SavedFileError:
        raise
    except MALFORMED_ERRORS as error:
        raise SavedFileError(
            f"{what} has a snapshot that does not fit this version of manyarms and its policies: "
            f"{error!r}."
        ) from error
    return experiment


def _read(
    experiment: Experiment,
    about: dict[str, Any],
    columns: Columns,
    policy: Policy | None,
    what: str,
) -> None:
    counts = {name: check_int(name, about[name]) for name in _COUNTS}
    horizon = about["horizon"]
    if experiment.settings.n_arms == 0 and counts["first_arms"] > 0:
        experiment.begin_with(counts["first_arms"])
    if counts["season"] > 1:
        own = recorded_policy(about["policy"], policy, what)
        experiment.n_all = check_int("n_all", counts["n_all"], at_least=1, at_most=MOST_ARMS)
        experiment._begin(own, horizon, check_int("seed", about["seed"]))
    most = about["most_pulls"]
    experiment.most_pulls = None if most is None else check_int("most_pulls", most)
    for name, value in counts.items():
        setattr(experiment, name, value)
    experiment.last = check_int("last", about["last"], at_least=-1)
    experiment.earned = float(about["earned"])
    _read_delays(experiment, about["delays"])
    step, *points = about["course"]
    experiment.course = Course(
        check_int("step", step, at_least=1), {check_int("at", at): of for at, *of in points}
    )
    experiment.retired = set(taken(columns, "retired"))
    experiment.abandoned = set(taken(columns, "abandoned"))
    experiment.named = set(taken(columns, "named"))
    experiment.recent.extend(taken(columns, "recent"))
    experiment.drawn_next = dict.fromkeys(taken(columns, "drawn next"))
    _read_counts(experiment, columns)
    _read_pending(experiment, columns)
    _read_stock(experiment, columns)
    _read_control(experiment, about)
    experiment.seats = _read_seats(experiment.n_all, about, columns)
    if experiment.state is not None:
        restore_state(experiment.state, columns)
    elif experiment.n_all or columns:
        raise ValueError("it has arms but no policy state")
    experiment.from_file = experiment.next > 0 or bool(experiment.counts)


def _whole(numbers: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(numbers, np.int64)


def _rows(name: str, rows: dict[int, Any], fields: dict[str, type[np.generic]]) -> Columns:
    columns = {"number": _whole(rows)} | column_of_each(rows.values(), fields)
    return {f"{name} {field}": column for field, column in columns.items()}


def _read_counts(experiment: Experiment, columns: Columns) -> None:
    arms = taken(columns, "counts number")
    seen = [taken(columns, f"counts {name}", kind) for name, kind in _COUNTED.items()]
    experiment.counts = dict(zip(arms, map(ArmCounts, *seen), strict=True))
    if len(experiment.counts) < len(arms) or any(len(column) != len(arms) for column in seen):
        raise ValueError("an arm has two entries, or an incomplete one")


def _read_pending(experiment: Experiment, columns: Columns) -> None:
    numbers = taken(columns, "pending number")
    pulls = [experiment.pending[number] for number in numbers]  # access creates a record
    for name, kind in _PENDING.items():
        set_each(pulls, name, np.array(taken(columns, f"pending {name}", kind), kind))
    held = taken(columns, "held pull"), taken(columns, "held reward", np.float64)
    experiment.held = dict(zip(*held, strict=True))
    if any(number not in experiment.pending for number in experiment.held):
        raise ValueError("rewards are held of pulls that are not pending")


def _dump_stock(experiment: Experiment) -> Columns:
    rewards = [(arm, reward) for arm, some in experiment.stock.items() for reward in some]
    return {
        "stock arm": _whole(arm for arm, _ in rewards),
        "stock reward": np.array([reward for _, reward in rewards], np.float64),
    }


def _read_stock(experiment: Experiment, columns: Columns) -> None:
    arms, rewards = taken(columns, "stock arm"), taken(columns, "stock reward", np.float64)
    for arm, reward in zip(arms, rewards, strict=True):
        experiment.stock.setdefault(arm, deque()).append(reward)


def _dump_seats(seats: Seats) -> Columns:
    begins, shifts = seats.shifts()
    return {
        "seat arm": _whole(seats.seat_of),
        "seat number": _whole(seats.seat_of.values()),
        "seat begin": _whole(begins),
        "seat shift": _whole(shifts),
    }


def _read_seats(n_all: int, about: dict[str, Any], columns: Columns) -> Seats:
    arms, numbers, begins, shifts = (
        taken(columns, f"seat {name}") for name in ("arm", "number", "begin", "shift")
    )
    returned = check_int("returned", about["returned"], at_most=MOST_ARMS)
    return Seats.restored(n_all, returned, zip(arms, numbers, strict=True), (begins, shifts))


def _read_delays(experiment: Experiment, delays: Any) -> None:
    known = [[int(count), float(total), float(squares)] for count, total, squares in delays]
    if len(known) != len(experiment.delays):
        raise ValueError("its delay statistics do not fit")
    experiment.delays = known


def _read_control(experiment: Experiment, about: dict[str, Any]) -> None:
    control = experiment.control
    if (control is None) != ("control" not in about):
        raise ValueError("it and the settings disagree on whether there is a control")
    if control is not None:
        *counts, total = about["control"]
        for name, count in zip(_CONTROL, counts, strict=True):
            setattr(control, name, check_int(name, count))
        control.total = float(total)
