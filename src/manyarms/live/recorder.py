"""Run one call at a time, all or nothing, and commit its events before it returns."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from manyarms.errors import ManyarmsError, StoreError, TurnError
from manyarms.live import calls
from manyarms.live.arms import ArmNames
from manyarms.live.calls import Context
from manyarms.live.experiment import Experiment
from manyarms.live.replaying import blame_loaded_state
from manyarms.live.snapshots import CODE_VERSION, snapshot
from manyarms.store import Append, Event, EventStore, ExperimentRecord

# what a handle is `doing`, beside None and the names of calls that change something
_LOOKING = "a call"  # nothing has changed yet
_CLOSED = "close"
_STOPPED = "stop"
_NOT_KEPT = "store"  # the experiment is whole, but nothing can be recorded any more

SNAPSHOT_EVERY = 20_000  # events, at least: to replay them takes a fraction of a second
_CHEAP = 20_000  # arms tried: a snapshot of so many takes a few hundredths of a second
_logger = logging.getLogger("manyarms.live")
_new = tuple.__new__  # makes a NamedTuple in half the time of its class
_left_behind: list[EventStore] = []  # by forks: never closed or collected, they are the parent's


def snapshot_is_due(experiment: Experiment, events: int) -> bool:
    """Whether so many events came after the last snapshot that another one is worth its time."""
    return events >= max(SNAPSHOT_EVERY, len(experiment.counts))


class Recording:
    """The log of one experiment in a store."""

    def __init__(
        self, store: EventStore, record: ExperimentRecord, *, saved: int, arms: int
    ) -> None:
        self.store, self.record = store, record
        self.saved = saved  # the event of the last snapshot, or of the last attempt
        self._named = arms  # how many of them are stored

    def __str__(self) -> str:
        return f"{self.store}, experiment {self.record.name!r}"

    def append(self, context: Context, events: Sequence[Event]) -> None:
        """Commit events, and the names of the arms that they add."""
        names: list[tuple[int, str]] = []
        if context.arms.count > self._named:
            if isinstance(context.arms, ArmNames):
                fresh = context.arms.names[self._named :]
                names = [(self._named + k, str(name)) for k, name in enumerate(fresh)]
            self._named = context.arms.count
        self.store.commit([_new(Append, (self.record.id, events[0].seq - 1, events, names, ()))])
        if snapshot_is_due(context.experiment, events[-1].seq - self.saved):
            self.snapshot(context.experiment)

    def snapshot(self, experiment: Experiment) -> None:
        """Store a snapshot; if that fails, the log has everything."""
        self.saved = experiment.seq
        try:
            data = snapshot(experiment)
            self.store.save_snapshot(self.record.id, experiment.seq, CODE_VERSION, data)
        except Exception as error:  # of any kind: the events are recorded
            _logger.warning("No snapshot of %s was stored: %r", self, error)

    def close(self, experiment: Experiment, *, whole: bool) -> None:
        """Close the store, after a last snapshot if that is cheap."""
        if whole and experiment.seq > self.saved and len(experiment.counts) <= _CHEAP:
            self.snapshot(experiment)
        self.store.close()


class Recorder:
    """Runs one call at a time, all or nothing, and records its events.

    Until all of that is done, every other call is refused: one from a signal handler, which the
    lock of its own thread would let in, and all that come after one was interrupted midway.
    """

    __slots__ = ("_context", "_process", "_recording", "_refusal", "doing", "lock")

    def __init__(self, context: Context, recording: Recording | None = None) -> None:
        self._context, self._recording = context, recording
        self.lock = threading.RLock()
        self.doing: str | None = None
        self._refusal = ""  # why nothing goes on, once that is so
        self._process = 0 if recording is None else os.getpid()  # that opened the store
        if recording is not None:
            context.experiment.log = []

    @property
    def recording(self) -> Recording | None:
        """Where events are recorded; None without a store, and once it is closed."""
        return self._recording

    def do(self, call: Callable[..., Any], *given: Any) -> Any:
        """Return what the change of a call returns; None if there is nothing to do.

        What the call raises is a refusal: nothing has changed. What its change raises, or the
        store, shuts the handle.
        """
        with self.lock:
            if self._context.experiment.window is not None and call is not calls.expire:
                self.do(calls.expire)
            if self.doing is not None:
                self._refuse()
            try:
                self.doing = _LOOKING
                change = call(self._context, *given)
                if change is None:
                    return None
                self.doing = call.__name__
                result = change()
                if self._process:
                    self._append()
                self.doing = _LOOKING
                return result
            except BaseException as error:
                self._ended_midway(error)
                raise
            finally:
                if self.doing is _LOOKING:
                    self.doing = None

    def _ended_midway(self, error: BaseException) -> None:
        """Shut the handle, unless nothing had changed; blame a loaded state if there is one."""
        if self.doing in (None, _LOOKING, _CLOSED, _STOPPED, _NOT_KEPT):
            return
        what = f"`{self.doing}`"
        self._stop(f"{what} was interrupted by {error!r}. {self._way_out()}")
        experiment = self._context.experiment
        if isinstance(error, Exception) and experiment.from_file:
            with blame_loaded_state(experiment, what):
                raise error

    def _append(self) -> None:
        experiment, recording = self._context.experiment, self._recording
        events, experiment.log = experiment.log or [], []
        if recording is None:  # closed by a signal handler, or left to the parent by a fork
            self._stop(self._refusal)
            self._refuse()
        if not events:  # an empty list of arms
            return
        try:
            recording.append(self._context, events)
        except BaseException as error:
            why = str(error) if isinstance(error, StoreError) else repr(error)
            refusal = f"{recording} was not written: {why} {self._way_out()}"
            self._stop(refusal, _NOT_KEPT)
            if isinstance(error, StoreError):
                raise error.framed("", f" {self._way_out()}") from None
            if isinstance(error, Exception):
                raise StoreError(refusal) from error
            raise

    @contextlib.contextmanager
    def looking(self) -> Iterator[Context]:
        """Refuse changes while the experiment is read; end windows that are over before.

        A closed handle may still be read, and one whose store has failed.
        """
        with self.lock:
            if self._context.experiment.window is not None and self.doing is None:
                self.do(calls.expire)
            before = self.doing
            if before not in (None, _CLOSED, _NOT_KEPT):
                self._refuse()
            self.doing = _LOOKING
            try:
                yield self._context
            except ManyarmsError:
                raise
            except Exception as error:
                with blame_loaded_state(self._context.experiment, "The call"):
                    raise error
            finally:
                if self.doing is _LOOKING:
                    self.doing = before

    def close(self) -> None:
        """Close the store."""
        with self.lock:
            recording = self._recording
            if recording is None:
                return
            whole = self.doing is None or self.doing is _LOOKING
            if whole:
                self.doing = _CLOSED
            self._refusal = self._refusal or (
                f"{recording} is closed. Open it again with load(...)."
            )
            self._recording = None
            recording.close(self._context.experiment, whole=whole)

    def forked(self) -> None:
        """Give up the store after a fork. The lock is new: its owner stayed in the parent."""
        self.lock = threading.RLock()
        if self._recording is not None:
            _left_behind.append(self._recording.store)
            self._stop(
                f"{self._recording} was opened by process {self._process}, and this is a forked "
                f"process. Use the handle in the first one only."
            )
            self._recording = None
        elif self.doing is _LOOKING:
            self.doing = None

    def _stop(self, refusal: str, how: str = _STOPPED) -> None:
        """Refuse all calls from now on; `_NOT_KEPT` only those that would have to be recorded."""
        self.doing, self._refusal = how, refusal

    def _refuse(self) -> NoReturn:
        refusal = self._refusal or (
            f"Cannot do this now: `{self.doing}` has not finished. Do not use the handle in signal "
            f"handlers. If the call was interrupted: {self._way_out()}"
        )
        kind: type[ManyarmsError] = StoreError if self._process else TurnError
        raise kind(refusal)

    def _way_out(self) -> str:
        if not self._process:
            return "The handle may be half changed: load a saved one, or start a new one."
        return "Open it again with load(...), and check whether the last call was recorded."
