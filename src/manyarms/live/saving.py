"""The part of a handle that outlives the process: save and load."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from manyarms.core.files import replace_file
from manyarms.errors import SavedFileError
from manyarms.live.arms import Tally
from manyarms.live.catalogue import Catalogue
from manyarms.live.container import NONSENSE, pack, unpack
from manyarms.live.description import (
    describe_arms,
    describe_policy,
    policy_from,
    read_arms,
)
from manyarms.protocol.in_flight import InFlight
from manyarms.protocol.policy import Policy
from manyarms.protocol.state_dump import Columns, dump_state, restore_state

__all__ = ["Saving", "collector_paused", "describe"]

S = TypeVar("S", bound="Saving")


class Saving(Catalogue):
    """Everything a handle knows, as bytes, and back."""

    seed: int
    _first_arms: int

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything the handle knows to a file, which `Live.load` reads.

        A crash at any moment leaves the old file or the new one. The file grows with the arms
        touched and the pulls in flight (and holds the arms' names, if they have names), not with
        `n_arms`. It carries a checksum, and reading it runs no code from it.

        Parameters
        ----------
        path
            Where to; what is there is replaced.
        """
        replace_file(Path(path), self.to_bytes())

    @classmethod
    def load(cls: type[S], path: str | os.PathLike[str], *, policy: Policy | None = None) -> S:
        """Return the handle that was saved; it goes on as if nothing had happened.

        Damaged, foreign and newer files raise `SavedFileError`.

        Parameters
        ----------
        path
            A file that `save` wrote.
        policy
            The policy it was saved with: needed only if that is your own and not registered.
        """
        with collector_paused():
            return cls._from_bytes(Path(path).read_bytes(), policy, str(path))

    def to_bytes(self) -> bytes:
        """Return what `save` writes, to be kept elsewhere. Equal handles give equal bytes."""
        with self._lock:
            columns = {
                "retired": np.array(sorted(self._retired), np.int64),
                "abandoned": np.array(sorted(self._lost), np.int64),
                **_dump_tally(self._tally),
                **_dump_flight(self._flight),
                **dump_state(self._state),
            }
            about = describe(self) | {"pulls": self._pulls}
            return pack(about, {name: c for name, c in columns.items() if len(c) > 0})

    @classmethod
    def from_bytes(cls: type[S], data: bytes, *, policy: Policy | None = None) -> S:
        """Return the handle that `to_bytes` was called on.

        Parameters
        ----------
        data
            What `to_bytes` returned.
        policy
            As for `load`.
        """
        return cls._from_bytes(data, policy, "This")

    @classmethod
    def _from_bytes(cls: type[S], data: bytes, policy: Policy | None, what: str) -> S:
        about, columns = unpack(data, what)
        try:
            policy = policy_from(about["policy"], policy, what)
            make = cast(Any, cls)
            live = make(
                policy,
                n_arms=about["first_arms"],
                horizon=about["horizon"],
                seed=about["seed"],
                reward_range=about["reward_range"],
            )
            live._arms = read_arms(about["arms"])
            live._pulls = about["pulls"]
            live._retired = set(_taken(columns, "retired"))
            live._lost = set(_taken(columns, "abandoned"))
            live._tally = _read_tally(columns)
            _read_flight(live._flight, columns)
            restore_state(live._state, columns)
        except SavedFileError:
            raise
        except NONSENSE as error:
            raise SavedFileError(
                f"{what} does not fit this manyarms and its policies: {error!r}. Read it with the "
                f"version that wrote it."
            ) from error
        return cast(S, live)

    def _become(self, other: Saving) -> None:
        """Take over all that another handle of the same game knows."""
        with self._lock:
            self._arms, self._first_arms = other._arms, other._first_arms
            self._retired, self._lost = other._retired, other._lost
            self._tally, self._flight = other._tally, other._flight
            self._pulls, self._state = other._pulls, other._state


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Look for no garbage while much is made and nothing dropped: it would take half the time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def describe(live: Saving) -> dict[str, Any]:
    """Return what was decided when the game began, and the arms there are."""
    return {
        "policy": describe_policy(live.policy),
        "horizon": live.horizon,
        "seed": int(live.seed),
        "reward_range": live.reward_range,
        "first_arms": live._first_arms,
        "arms": describe_arms(live._arms),
    }


def _dump_tally(tally: dict[int, Tally]) -> Columns:
    seen = tally.values()
    return {
        "tally arm": np.array(list(tally), np.int64),
        "tally asked": np.array([t.asked for t in seen], np.int64),
        "tally told": np.array([t.told for t in seen], np.int64),
        "tally total": np.array([t.total for t in seen], np.float64),
    }


def _read_tally(columns: Columns) -> dict[int, Tally]:
    arms, *seen = (_taken(columns, f"tally {name}") for name in ("arm", "asked", "told", "total"))
    return {arm: Tally(*numbers) for arm, *numbers in zip(arms, *seen, strict=True)}


_IN_FLIGHT = {"slot": "slot", "arm": "arm", "generation": "era", "late": "late"}  # field: column


def _dump_flight(flight: dict[int, InFlight]) -> Columns:
    pulls = flight.values()
    columns = {f: np.array([getattr(p, f) for p in pulls], np.int64) for f in _IN_FLIGHT}
    return {
        "flight number": np.array(list(flight), np.int64),
        **{f"flight {_IN_FLIGHT[field]}": column for field, column in columns.items()},
    }


def _read_flight(flight: dict[int, InFlight], columns: Columns) -> None:
    pulls = [flight[number] for number in _taken(columns, "flight number")]  # made by looking
    for field, name in _IN_FLIGHT.items():
        for pull, number in zip(pulls, _taken(columns, f"flight {name}"), strict=True):
            setattr(pull, field, number)


def _taken(columns: Columns, name: str) -> list[Any]:
    """Take a column out; one that is missing is empty."""
    return cast("list[Any]", columns.pop(name).tolist()) if name in columns else []
