"""What happened in a game, in order: event by event, and as a table of its pulls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.errors import SavedFileError
from manyarms.live.control import ARM, OF_CONTROL
from manyarms.live.packing import MALFORMED_ERRORS, unpack
from manyarms.live.store import EVENTS_THAT_END, Contents, EventKind
from manyarms.protocol.state_dump import Columns

_WORDS = {int(kind): kind.word for kind in EventKind}
_OF_AN_ARM = (EventKind.ASKED, EventKind.RETIRED, EventKind.RESTORED, EventKind.OBSERVED)
_PENDING = 0
_TIMES = ("asked", "told")


class Happening(NamedTuple):
    """An event, in words.

    Attributes
    ----------
    time
        In seconds since 1970; NaN where that was not recorded.
    what
        "asked", "told", "abandoned", "added", "retired", "restored", "observed", or "answered": a
        pull that got a reward observed before.
    pull
        The id of the pull; None where there is none.
    arm
        The arm's number or name; how many, where arms were added.
    reward
        The reward; NaN where there is none.
    """

    time: float
    what: str
    pull: int | None
    arm: Any
    reward: float


class GameHistory:
    """The events that a store of the service has kept of an experiment.

    Iterating gives each event as a `Happening`; `table()` has a row for each pull.

    Parameters
    ----------
    parts
        What the store has kept, oldest first: snapshots, and the events after each.

    Attributes
    ----------
    complete
        Whether it begins with the first event.
    policy, n_arms
        The policy's label, and the arms that the game began with.
    """

    def __init__(self, parts: Sequence[Contents]) -> None:
        try:
            self._read(parts)
        except MALFORMED_ERRORS as error:
            raise SavedFileError(
                f"This history contradicts itself: {error}. manyarms did not write it. Use a copy."
            ) from error

    def _read(self, parts: Sequence[Contents]) -> None:
        opened = [unpack(part.snapshot, "This") for part in parts]
        first = _after_the_last_gap(parts, opened)
        parts, (about, columns) = parts[first:], opened[first]
        self.complete = about["pulls"] == 0
        begun = zip(*(columns.get(f"stock {name}", ()) for name in ("arm", "reward")), strict=True)
        self._stock = [(int(arm), float(reward)) for arm, reward in begun]
        self._first = int(about["pulls"])  # the first pull that was asked for since
        self.policy = str(about["policy"]["label"])
        self.n_arms = int(about["first_arms"])
        self._arms = opened[-1][0]["arms"]
        self._names = [*self._arms.get("names", ()), *parts[-1].events.names]
        events = [part.events for part in parts]
        self._kind, self._pull, self._arm, self._reward = (
            np.concatenate([part[k] for part in events]) for k in range(4)
        )
        self._time = np.concatenate(
            [np.zeros(len(e.kind)) if e.time is None else e.time for e in events]
        )
        self._time[self._time == 0] = np.nan
        self._control = about.get("control", [None])[0]
        ours = self._pull < OF_CONTROL
        self._ended = np.isin(self._kind, EVENTS_THAT_END) & ours
        pulled = (self._kind == EventKind.ASKED) & ours
        before = columns.get("flight number", np.zeros(0, np.int64))
        arms = columns.get("flight arm", np.zeros(0, np.int64))  # of pulls asked for before
        self._numbers = np.concatenate([before, self._pull[pulled]])
        self._arms_pulled = np.concatenate([arms, self._arm[pulled]])
        self._asked = np.concatenate([np.full(len(before), np.nan), self._time[pulled]])
        self._check(ours)

    def _check(self, ours: NDArray[Any]) -> None:
        """Raise if events name pulls or arms that do not exist: a store may hold anything."""
        came = self._arm[self._kind == EventKind.ADDED]
        arms = len(self._names) or self._arms["count"] + came.sum()
        of_arms = np.isin(self._kind, _OF_AN_ARM) & ours
        named = np.concatenate([self._arm[of_arms], self._arms_pulled])
        ends = self._pull[self._ended]
        if not (
            np.isin(self._kind, list(_WORDS)).all()
            and (np.diff(self._numbers) > 0).all()
            and np.isin(ends, self._numbers).all()
            and ((named >= 0) & (named < arms)).all()
            and (self._control is not None or ours.all())
        ):
            raise ValueError("its events are of pulls or arms that never were")

    def __len__(self) -> int:
        return len(self._kind)

    def __repr__(self) -> str:
        begin = "" if self.complete else f", from pull {self._first} on"
        return f"<GameHistory of {len(self)} events{begin}>"

    def __iter__(self) -> Iterator[Happening]:
        ended = self._ended
        arm = self._arm.copy()  # where a pull ended, a store may have left anything there
        arm[self._pull >= OF_CONTROL] = ARM
        arm[ended] = self._arms_pulled[np.searchsorted(self._numbers, self._pull[ended])]
        rewarded = np.isin(self._kind, (EventKind.TOLD, EventKind.OBSERVED, EventKind.ANSWERED))
        reward = np.where(rewarded, self._reward, np.nan)
        columns = (self._time, self._kind, self._pull, arm, reward)
        for time, kind, pull, number, value in zip(*(c.tolist() for c in columns), strict=True):
            name = number if kind == EventKind.ADDED else self._name(number)
            yield Happening(time, _WORDS[kind], None if pull < 0 else pull, name, value)

    def rewards(self) -> dict[int, list[float]]:
        """Return all rewards told or observed, in the order they came, by the arm's number."""
        given: dict[int, list[float]] = {}
        told, seen = self._ended & (self._kind == EventKind.TOLD), self._kind == EventKind.OBSERVED
        arm = self._arm.copy()
        arm[told] = self._arms_pulled[np.searchsorted(self._numbers, self._pull[told])]
        rows = zip(arm[told | seen].tolist(), self._reward[told | seen].tolist(), strict=True)
        for number, reward in (*self._stock, *rows):
            given.setdefault(number, []).append(reward)
        return given

    def _name(self, number: int) -> Any:
        if number == ARM:
            return self._control
        return self._names[number] if self._names else number


def _after_the_last_gap(
    parts: Sequence[Contents], opened: Sequence[tuple[dict[str, Any], Columns]]
) -> int:
    """Return the first part after which none is missing: some may have been dropped."""
    first = 0
    for k, part in enumerate(parts[:-1]):
        ours = part.events.pull < OF_CONTROL
        happened = (
            int(((part.events.kind == EventKind.ASKED) & ours).sum()),
            int((np.isin(part.events.kind, EVENTS_THAT_END) & ours).sum()),
        )
        (asked, ended), (then, done) = _so_far(*opened[k]), _so_far(*opened[k + 1])
        if (then - asked, done - ended) != happened:
            first = k + 1
    return first


def _so_far(about: dict[str, Any], columns: Columns) -> tuple[int, int]:
    """Return how many pulls were asked for before a snapshot, and how many had ended."""
    return about["pulls"], about["pulls"] - len(columns.get("flight number", ()))
