"""Run one call at a time, and commit its events before it returns."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from manyarms.errors import ManyarmsError, StoreError, TurnError
from manyarms.live.arms import ArmNames
from manyarms.live.calls import Context
from manyarms.live.experiment import Experiment
from manyarms.live.replaying import loaded_state_errors
from manyarms.live.snapshots import CODE_VERSION, snapshot
from manyarms.store import Append, Event, EventStore, ExperimentRecord

# values of `Recorder.doing`, besides None and the names of calls that change something
_READING = "a call"  # nothing has changed yet
_CLOSED = "close"
_STOPPED = "stop"
_NOT_RECORDED = "store"  # the experiment is consistent, but the store failed

SNAPSHOT_EVERY = 20_000  # events, at least; replaying them takes a fraction of a second
_CHEAP = 20_000  # arms tried; their snapshot takes a few hundredths of a second
_logger = logging.getLogger("manyarms.live")
_new = tuple.__new__  # creates a NamedTuple twice as fast as its class does
# stores of the parent process after a fork, kept here so that they are never closed
_parents_stores: list[EventStore] = []


def snapshot_is_due(experiment: Experiment, events: int) -> bool:
    """Return whether another snapshot is due, given the number of events since the last one."""
    return events >= max(SNAPSHOT_EVERY, len(experiment.ledger.counts))


class Recording:
    """The log of one experiment in a store."""

    def __init__(
        self, store: EventStore, record: ExperimentRecord, *, saved: int, arms: int
    ) -> None:
        self.store, self.record = store, record
        self.saved = saved  # the event of the last snapshot, or of the last attempt
        self._named = arms  # the number of arms whose names are stored

    def __str__(self) -> str:
        return f"{self.store}, experiment {self.record.name!r}"

    def append(self, context: Context, events: Sequence[Event]) -> None:
        """Commit events and the names of the arms that they add."""
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
        """Store a snapshot. If that fails, only log a warning: the events are recorded."""
        self.saved = experiment.seq
        try:
            data = snapshot(experiment)
            self.store.save_snapshot(self.record.id, experiment.seq, CODE_VERSION, data)
        except Exception as error:
            _logger.warning("No snapshot of %s was stored: %r", self, error)

    def close(self, experiment: Experiment, *, whole: bool) -> None:
        """Store a last snapshot if that is cheap, and close the store."""
        if whole and experiment.seq > self.saved and len(experiment.ledger.counts) <= _CHEAP:
            self.snapshot(experiment)
        self.store.close()


class Recorder:
    """Runs one call at a time, and records its events.

    Until a call and its recording are done, all others are refused. So a call from a signal handler
    is refused, which the lock would admit because it is of the same thread. After an interrupted
    call, all later calls are refused.
    """

    __slots__ = ("_context", "_process", "_recording", "_refusal", "_windows", "doing", "lock")

    def __init__(self, context: Context, recording: Recording | None = None) -> None:
        self._context, self._recording = context, recording
        self._windows = context.experiment.settings.window is not None
        self.lock = threading.RLock()
        self.doing: str | None = None
        self._refusal = ""  # why calls are refused; empty if they are not
        self._process = 0 if recording is None else os.getpid()  # the one that opened the store
        if recording is not None:
            context.experiment.log = []

    @property
    def recording(self) -> Recording | None:
        """Where events are recorded; None without a store, or if it is closed."""
        return self._recording

    def do(self, call: Callable[..., Any], *given: Any) -> Any:
        """Run a call, and return the result of its change; None if there is nothing to do.

        An error of the call itself is a refusal: nothing has changed. After an error of its change
        or of the store, later calls are refused.
        """
        with self.lock:
            if self.doing is not None:
                self._refuse()
            if self._windows:
                self._expire()
            try:
                self.doing = _READING
                change = call(self._context, *given)
                if change is None:
                    return None
                self.doing = call.__name__
                result = change()
                if self._process:
                    self._append()
                self.doing = _READING
                return result
            except BaseException as error:
                self._interrupted(error)
                raise
            finally:
                if self.doing is _READING:
                    self.doing = None

    def _interrupted(self, error: BaseException) -> None:
        """Refuse later calls, unless nothing has changed; name a loaded state as a likely cause."""
        if self.doing in (None, _READING, _CLOSED, _STOPPED, _NOT_RECORDED):
            return
        what = f"`{self.doing}`"
        self._stop(f"{what} was interrupted by {error!r}. {self._fix()}")
        experiment = self._context.experiment
        if isinstance(error, Exception) and experiment.from_file:
            with loaded_state_errors(experiment, what):
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
            refusal = f"{recording} was not written: {why} {self._fix()}"
            self._stop(refusal, _NOT_RECORDED)
            if isinstance(error, StoreError):
                raise error.framed("", f" {self._fix()}") from None
            if isinstance(error, Exception):
                raise StoreError(refusal) from error
            raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[Context]:
        """Expire windows that have ended, and refuse changes while the experiment is read.

        Reading writes nothing: the events of windows wait for the next call that changes something.
        The experiment can also be read if the handle is closed, or if its store has failed.
        """
        with self.lock:
            if self.doing is None and self._windows:
                self._expire()
            before = self.doing
            if before not in (None, _CLOSED, _NOT_RECORDED):
                self._refuse()
            self.doing = _READING
            try:
                yield self._context
            except ManyarmsError:
                raise
            except Exception as error:
                with loaded_state_errors(self._context.experiment, "The call"):
                    raise error
            finally:
                if self.doing is _READING:
                    self.doing = before

    def _expire(self) -> None:
        """Expire windows that have ended; their events are not recorded yet."""
        try:
            self.doing = "expire"
            self._context.experiment.expire()
            self.doing = None
        except BaseException as error:
            self._interrupted(error)
            raise

    def close(self) -> None:
        """Close the store. Events of windows that were not recorded yet follow at the next load."""
        with self.lock:
            recording, unrecorded = self._recording, self._context.experiment.log
            if recording is None:
                return
            whole = (self.doing is None or self.doing is _READING) and not unrecorded
            if whole:
                self.doing = _CLOSED
            self._refusal = self._refusal or (
                f"{recording} is closed. Open it again with load(...)."
            )
            self._recording = None
            recording.close(self._context.experiment, whole=whole)

    def forked(self) -> None:
        """Disconnect from the store in a child process, and replace the lock.

        A thread of the parent may have held the lock, and does not exist in the child.
        """
        self.lock = threading.RLock()
        if self._recording is not None:
            _parents_stores.append(self._recording.store)
            self._stop(
                f"{self._recording} was opened by process {self._process}, and this is a forked "
                f"process. Use the handle only in the process that opened it."
            )
            self._recording = None
        elif self.doing is _READING:
            self.doing = None

    def _stop(self, refusal: str, how: str = _STOPPED) -> None:
        """Refuse all later calls; with `_NOT_RECORDED`, only those that change something."""
        self.doing, self._refusal = how, refusal

    def _refuse(self) -> NoReturn:
        refusal = self._refusal or (
            f"Cannot do this now: `{self.doing}` has not finished. Do not use the handle in signal "
            f"handlers. If the call was interrupted: {self._fix()}"
        )
        kind: type[ManyarmsError] = StoreError if self._process else TurnError
        raise kind(refusal)

    def _fix(self) -> str:
        if not self._process:
            return "The experiment may be half changed: load a saved one, or start a new one."
        return "Open it again with load(...), and check whether the last call was recorded."
