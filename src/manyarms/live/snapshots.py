"""Convert an experiment to a snapshot and back. A snapshot is a cache of the event log.

It has two parts, the ledger and the search, after the number of the event with which the season
began and the length of the ledger's part. If a part cannot be used, because it is damaged or was
written by other code, the ledger is made again from the events of the log, and the search from
those of its season.
"""

from __future__ import annotations

import contextlib
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int
from manyarms.errors import SavedFileError
from manyarms.inference.delays import Delays, no_bins
from manyarms.inference.facts import CONTROL
from manyarms.live.arms import Seats
from manyarms.live.counts import ArmCounts, OpenPull
from manyarms.live.course import Course
from manyarms.live.experiment import Experiment
from manyarms.live.ledger import Ledger
from manyarms.live.packing import MALFORMED_ERRORS, pack, taken, unpack
from manyarms.live.search import Search
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
_NUMBERS = struct.Struct("<QQ")  # the event with which the season began; the ledger's length
_HEADER = struct.Struct("<QQI")  # these, and the checksum of them and of the ledger
_Kinds = dict[str, type[np.generic]]
_COUNTED: _Kinds = {
    **dict.fromkeys(("asked", "told", "observed"), np.int64),
    **dict.fromkeys(("total", "squares"), np.float64),
}
_OPEN: _Kinds = {"arm": np.int64, "asked": np.float64, "ends": np.float64}
_PROPOSED: _Kinds = dict.fromkeys(PendingRecord.__annotations__, np.int64)
_COUNTS = (
    *("n_all", "first_arms", "next", "pulls", "told", "observed", "n_abandoned", "expired"),
    *("season", "season_pulls"),
)
_CONTROL = ("asked", "told", "abandoned")
_SEATED = ("n_seated", "n_arms", "first_arms")


def snapshot(experiment: Experiment) -> bytes:
    """Return the snapshot of an experiment. Equal experiments give equal bytes."""
    ledger, search = _dump_ledger(experiment.ledger), b""
    if experiment.search is not None:
        search = _dump_search(experiment.search)
    return join_parts(experiment.ledger.began, ledger, search)


def restored(
    settings: Settings,
    data: bytes,
    what: str,
    *,
    policy: Policy | None = None,
    now: Callable[[], float] = time.time,
) -> Experiment:
    """Return the experiment of a snapshot; `what` names its store in errors."""
    experiment = Experiment(settings, now, searching=False)
    with _errors_of_snapshots(what):
        _read_ledger(experiment.ledger, data, what)
        found = _read_search(experiment, data, policy, what)
    experiment.search, experiment.searching = found, True
    experiment.from_file = experiment.ledger.next > 0 or bool(experiment.ledger.counts)
    return experiment


@contextlib.contextmanager
def _errors_of_snapshots(what: str) -> Iterator[None]:
    try:
        yield
    except SavedFileError:
        raise
    except MALFORMED_ERRORS as error:
        raise SavedFileError(
            f"{what} has a snapshot that does not fit this version of manyarms and its policies: "
            f"{error!r}."
        ) from error


def join_parts(began: int, ledger: bytes, search: bytes) -> bytes:
    """Return a snapshot; the search's part is empty before there are arms."""
    checksum = zlib.crc32(ledger, zlib.crc32(_NUMBERS.pack(began, len(ledger))))
    return _HEADER.pack(began, len(ledger), checksum) + ledger + search


def split_parts(data: bytes) -> tuple[int, bytes, bytes]:
    """Return the event with which the season began, and the parts: the ledger and the search."""
    began, length, checksum = _HEADER.unpack_from(data)
    begin = _HEADER.size
    ledger, search = data[begin : begin + length], data[begin + length :]
    if zlib.crc32(ledger, zlib.crc32(_NUMBERS.pack(began, length))) != checksum:
        raise ValueError("its header or its ledger is damaged")
    return began, ledger, search


def season_of(data: bytes) -> int:
    """Return the event with which a snapshot's season began; 0 if it cannot be read."""
    return 0 if len(data) < _HEADER.size else _HEADER.unpack_from(data)[0]


# The ledger


def _dump_ledger(ledger: Ledger) -> bytes:
    control, course = ledger.control, ledger.course
    about = {name: getattr(ledger, name) for name in _COUNTS}
    about |= {
        "promised": ledger.promised,
        "earned": ledger.earned,
        "fractional": ledger.fractional,
        "latest": ledger.latest,
        "delays": _delays(ledger.delays),
        "course": [course.step, *([at, *counts] for at, counts in course.points.items())],
    }
    if control is not None:
        about["control"] = [*(getattr(control, name) for name in _CONTROL), control.total]
    columns = {
        "retired": _whole(sorted(ledger.retired)),
        "abandoned": _whole(ledger.abandoned),
        "named": _whole(sorted(ledger.named)),
        "missed": _whole(sorted(ledger.missed)),
        "recent": _whole(ledger.recent),
        **_rows("counts", ledger.counts, _COUNTED),
        **_rows("pending", ledger.pending, _OPEN),
        "held pull": _whole(ledger.held),
        "held reward": np.array([*ledger.held.values()], np.float64),
    }
    return _pack(about, columns)


def _read_ledger(ledger: Ledger, data: bytes, what: str) -> None:
    ledger.began, part, _ = split_parts(data)
    about, columns = unpack(part, what)
    for name in _COUNTS:
        setattr(ledger, name, check_int(name, about[name]))
    check_int("n_all", ledger.n_all, at_most=MOST_ARMS)
    if (ledger.began > 0) != (ledger.season > 1):
        raise ValueError("its season cannot have begun with that event")
    promised = about["promised"]
    ledger.promised = None if promised is None else check_int("promised", promised)
    ledger.earned, ledger.fractional = float(about["earned"]), float(about["fractional"])
    _read_delays(ledger.delays, about["delays"])
    step, *points = about["course"]
    ledger.course = Course(
        check_int("step", step, at_least=1), {check_int("at", at): of for at, *of in points}
    )
    ledger.retired = set(taken(columns, "retired"))
    ledger.abandoned = dict.fromkeys(taken(columns, "abandoned"))
    ledger.named = set(taken(columns, "named"))
    ledger.missed = set(taken(columns, "missed"))
    ledger.recent.extend(taken(columns, "recent"))
    _read_counts(ledger, columns)
    _read_pending(ledger, columns)
    ledger.restore_windows(float(about["latest"]))
    _read_control(ledger, about)
    if columns:
        raise ValueError(f"it has unknown columns: {next(iter(columns))[:40]!r}")


def _read_counts(ledger: Ledger, columns: Columns) -> None:
    arms = taken(columns, "counts number")
    seen = [taken(columns, f"counts {name}", kind) for name, kind in _COUNTED.items()]
    ledger.counts = dict(zip(arms, map(ArmCounts, range(len(arms)), *seen), strict=True))
    if len(ledger.counts) < len(arms) or any(len(column) != len(arms) for column in seen):
        raise ValueError("an arm has two entries, or an incomplete one")


def _read_pending(ledger: Ledger, columns: Columns) -> None:
    numbers = taken(columns, "pending number")
    pulls = [taken(columns, f"pending {name}", kind) for name, kind in _OPEN.items()]
    ledger.pending = dict(zip(numbers, map(OpenPull, *pulls), strict=True))
    if any(len(column) != len(numbers) for column in pulls):
        raise ValueError("a pending pull has an incomplete entry")
    held = taken(columns, "held pull"), taken(columns, "held reward", np.float64)
    ledger.held = dict(zip(*held, strict=True))
    if any(number not in ledger.pending for number in ledger.held):
        raise ValueError("rewards are held of pulls that are not pending")


def _delays(delays: Delays) -> list[Any]:
    compared = [[arm, delays.places[arm], bins] for arm, bins in delays.compared.items()]
    return [delays.begun, delays.bins, compared]


def _read_delays(delays: Delays, about: Any) -> None:
    begun, bins, compared = about
    delays.begun, delays.bins = check_int("begun", begun), _bins(bins)
    for given, place, bins in compared:
        arm = check_int("arm", given, at_least=CONTROL)
        delays.compared[arm] = _bins(bins)
        delays.places[arm] = check_int("place", place, at_least=1)


def _bins(bins: Any) -> list[list[float]]:
    checked = [[int(count), float(total), float(squares)] for count, total, squares in bins]
    if len(checked) != len(no_bins()):
        raise ValueError("its delay statistics do not fit")
    return checked


def _read_control(ledger: Ledger, about: dict[str, Any]) -> None:
    control = ledger.control
    if (control is None) != ("control" not in about):
        raise ValueError("it and the settings disagree on whether there is a control")
    if control is not None:
        *counts, total = about["control"]
        for name, count in zip(_CONTROL, counts, strict=True):
            setattr(control, name, check_int(name, count))
        control.total = float(total)


# The search


def _dump_search(search: Search) -> bytes:
    about: dict[str, Any] = {name: getattr(search, name) for name in _SEATED}
    about |= {
        "policy": described_policy(search.policy),
        "horizon": search.horizon,
        "seed": search.seed,
        "last": search.last,
        "news": [search.has_news, search.more],
        "returned": search.seats.count - search.n_seated,
    }
    due = [*search.due.values()]
    columns = {
        "opened": _whole(sorted(search.opened)),
        "gone": _whole(sorted(search.gone)),
        "leaving": _whole(search.leaving),
        "returning": _whole(search.returning),
        "earlier": _whole(search.earlier),
        "returned": _whole(search.returned),
        "due arm": _whole(search.due),
        "due place": _whole(known[0] for known in due),
        "due count": _whole(known[1] for known in due),
        "due total": np.array([known[2] for known in due], np.float64),
        "due squares": np.array([known[3] for known in due], np.float64),
        **_rows("pending", search.pending, _PROPOSED),
        **_dump_seats(search.seats),
        **dump_state(search.state),
    }
    return _pack(about, columns)


def _read_search(
    experiment: Experiment, data: bytes, policy: Policy | None, what: str
) -> Search | None:
    part, ledger, settings = split_parts(data)[2], experiment.ledger, experiment.settings
    if not part:
        if ledger.n_all:
            raise ValueError("it has arms but no policy state")
        return None
    about, columns = unpack(part, what)
    n_seated, n_arms, first_arms = (
        check_int(name, about[name], at_least=1, at_most=ledger.n_all) for name in _SEATED
    )
    if n_arms != ledger.n_all or not first_arms <= n_seated:
        raise ValueError("its numbers of arms do not fit")
    own = settings.policy
    if ledger.season > 1:
        own = recorded_policy(about["policy"], policy, what)
    elif about["policy"] != described_policy(own):
        raise ValueError("its policy is another one")
    horizon = about["horizon"]
    horizon = None if horizon is None else check_int("horizon", horizon, at_least=1)
    seed = check_int("seed", about["seed"], at_most=2**64 - 1)
    state = settings.new_state(own, first_arms, horizon)
    search = Search(own, state, n_arms=first_arms, horizon=horizon, seed=seed)
    seats = _read_seats(n_seated, about, columns)
    search.restore_seats(seats, n_seated=n_seated, n_arms=n_arms)
    search.last = check_int("last", about["last"], at_least=-1)
    search.has_news, search.more = map(bool, about["news"])
    search.gone = set(taken(columns, "gone"))
    for name in ("leaving", "returning", "earlier", "returned"):
        setattr(search, name, dict.fromkeys(taken(columns, name)))
    search.opened = set(taken(columns, "opened"))
    _read_due(search, columns)
    _read_proposed(search, columns)
    restore_state(search.state, columns)
    return search


def _read_due(search: Search, columns: Columns) -> None:
    arms, places, counts = (taken(columns, f"due {name}") for name in ("arm", "place", "count"))
    sums = (taken(columns, f"due {name}", np.float64) for name in ("total", "squares"))
    rows = map(list, zip(places, counts, *sums, strict=True))
    search.due = dict(zip(arms, rows, strict=True))
    if any(not 0 <= arm < search.n_arms for arm in arms) or any(count < 1 for count in counts):
        raise ValueError("its known rewards do not fit")


def _read_proposed(search: Search, columns: Columns) -> None:
    numbers = taken(columns, "pending number")
    pulls = [search.pending[number] for number in numbers]  # access creates a record
    for name, kind in _PROPOSED.items():
        set_each(pulls, name, np.array(taken(columns, f"pending {name}", kind), kind))


def _dump_seats(seats: Seats) -> Columns:
    begins, shifts = seats.shifts()
    return {
        "seat arm": _whole(seats.seat_of),
        "seat number": _whole(seats.seat_of.values()),
        "seat begin": _whole(begins),
        "seat shift": _whole(shifts),
    }


def _read_seats(n_arms: int, about: dict[str, Any], columns: Columns) -> Seats:
    arms, numbers, begins, shifts = (
        taken(columns, f"seat {name}") for name in ("arm", "number", "begin", "shift")
    )
    returned = check_int("returned", about["returned"], at_most=MOST_ARMS)
    return Seats.restored(n_arms, returned, zip(arms, numbers, strict=True), (begins, shifts))


def _pack(about: dict[str, Any], columns: Columns) -> bytes:
    return pack(about, {name: column for name, column in columns.items() if len(column) > 0})


def _whole(numbers: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(numbers, np.int64)


def _rows(name: str, rows: dict[int, Any], fields: dict[str, type[np.generic]]) -> Columns:
    columns = {"number": _whole(rows)} | column_of_each(rows.values(), fields)
    return {f"{name} {field}": column for field, column in columns.items()}
