"""One command at a time, done as a whole; and what it did goes to the store."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from manyarms.errors import ManyarmsError, StoreError, TurnError
from manyarms.live.game import LiveGame
from manyarms.live.saving import blame_loaded_state, snapshot
from manyarms.live.store import Store

# what a handle is `doing`, beside None and the names of calls that change something
_LOOKING = "a call"  # nothing has changed yet
_CLOSED = "close"
_STOPPED = "stop"
_NOT_KEPT = "store"  # the game is whole, but nothing can be recorded any more

_CHEAP = 20_000  # arms tried: a snapshot of so many takes a few hundredths of a second
_logger = logging.getLogger(__name__)
_left_behind: list[Store] = []  # by forks: never closed or collected, they are the parent's


class _SnapshotOf:
    def __init__(self, game: LiveGame) -> None:
        self._game = game

    @property
    def arms_tried(self) -> int:
        return len(self._game.tally)

    def __call__(self) -> bytes:
        return snapshot(self._game)


class EventRecorder:
    """Runs one command at a time, all or nothing, and records its events in the store.

    Until all of that is done, every other call is refused: one from a signal handler, which the
    lock of its own thread would let in, and all that come after one was interrupted midway.
    """

    __slots__ = ("_process", "_refusal", "_snapshot", "_unsaved", "doing", "game", "lock", "store")

    def __init__(self, game: LiveGame) -> None:
        self.game = game
        self.lock = threading.RLock()
        self.store: Store | None = None
        self.doing: str | None = None
        self._refusal = ""  # why nothing goes on, once that is so
        self._process = 0  # that opened the store, if there ever was one
        self._snapshot = _SnapshotOf(game)
        self._unsaved = False  # whether events may follow the last snapshot

    def begin(self, game: LiveGame, store: Store, *, unsaved: bool = False) -> None:
        """Record this game from now on; `unsaved`: events follow the store's snapshot."""
        game.log, self._unsaved = [], unsaved
        self.game, self.store, self._process = game, store, os.getpid()
        self._snapshot = _SnapshotOf(game)

    def do(self, command: Callable[..., Any], *given: Any) -> Any:
        """Return what the change of a command returns; None if there is nothing to do.

        What the command raises is a refusal: nothing has changed. What its change raises, or the
        store, shuts the handle.
        """
        with self.lock:
            if self.doing is not None or (self.store is not None and self.store.failure):
                self._refuse()
            try:
                self.doing = _LOOKING
                change = command(*given)
                if change is None:
                    return None
                self.doing = command.__name__
                result = change()
                if self._process:
                    self._append(self.game)
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
        self._stop(f"{what} ended midway with {error!r}. {self._way_out()}")
        if isinstance(error, Exception) and self.game.from_file:
            with blame_loaded_state(self.game, what):
                raise error

    def _append(self, game: LiveGame) -> None:
        events, game.log = game.log or [], []
        if self.store is None:  # closed by a signal handler, or left to the parent by a fork
            self._stop(self._refusal)
            self._refuse()
        if not events:  # an empty list of arms
            return
        self._unsaved = True
        try:
            self.store.append(events, self._snapshot)
        except StoreError as error:  # the store's own words
            self._stop(str(error), _NOT_KEPT)
            raise
        except BaseException as error:
            self._stop(self._not_kept(repr(error)), _NOT_KEPT)
            self._raise(error)

    @contextlib.contextmanager
    def looking(self) -> Iterator[LiveGame]:
        """Refuse changes while the game is read.

        A closed handle may still be read, and one whose store has failed.
        """
        with self.lock:
            before = self.doing
            if before not in (None, _CLOSED, _NOT_KEPT):
                self._refuse()
            self.doing = _LOOKING
            try:
                yield self.game
            except ManyarmsError:
                raise
            except Exception as error:
                with blame_loaded_state(self.game, "The call"):
                    raise error
            finally:
                if self.doing is _LOOKING:
                    self.doing = before

    def compact(self) -> None:
        """Save a snapshot in the store; if that fails, the game goes on."""
        self.do(self._compact, self.game)

    def _compact(self, game: LiveGame) -> None:
        if self.store is not None:
            data = snapshot(game)
            try:
                self.store.save(data)
            except Exception as error:
                raise StoreError(f"{self.store} could not be compacted: {error!r}.") from error

    def close(self) -> None:
        """Close the store."""
        with self.lock:
            store = self.store
            if store is None:
                return
            if store.failure and self.doing is not _NOT_KEPT:
                self._stop(self._not_kept(store.failure), _NOT_KEPT)
            elif self.doing is None or self.doing is _LOOKING:
                self._compact_if_cheap(store)
                self.doing = _CLOSED
            self._refusal = self._refusal or f"{store} is closed. Open it again with recorded(...)."
            self.store = None
            try:
                store.close()
            except Exception as error:
                self._stop(f"{store} could not be closed: {error!r}.", _NOT_KEPT)
                self._raise(error)

    def _compact_if_cheap(self, store: Store) -> None:
        """Let a snapshot be the last of a closed store: any later version can go on from it.

        Only events are tied to the policy's choices. If this fails, they are there all the same.
        """
        cheap = len(self.game.tally) <= _CHEAP and getattr(store, "compact_on_close", True)
        if self._unsaved and cheap and os.getpid() == self._process:
            try:
                store.save(snapshot(self.game))
            except Exception as error:
                if store.failure:
                    self._stop(self._not_kept(store.failure), _NOT_KEPT)
                    store.close()
                    self.store = None
                    self._raise(error)
                _logger.warning("%s could not be compacted when it was closed: %r", store, error)

    def forked(self) -> None:
        """Give up the store after a fork. The lock is new: its owner stayed in the parent."""
        self.lock = threading.RLock()
        if self.store is not None:
            _left_behind.append(self.store)
            self._stop(
                f"{self.store} was opened by process {self._process}, and this one is its fork. "
                f"Let that process do the asking."
            )
            self.store = None
        elif self.doing is _LOOKING:
            self.doing = None

    def _stop(self, refusal: str, how: str = _STOPPED) -> None:
        """Refuse all calls from now on; `_NOT_KEPT` only those that would have to be recorded."""
        self.doing, self._refusal = how, refusal

    def _raise(self, error: BaseException) -> NoReturn:
        if isinstance(error, Exception):
            raise StoreError(self._refusal) from error
        raise error

    def _refuse(self) -> NoReturn:
        refusal = self._refusal
        if self.store is not None and self.store.failure:
            refusal = self._not_kept(self.store.failure)
        elif not refusal:
            refusal = (
                f"Cannot do this now: `{self.doing}` has begun and is not done. Leave the handle "
                f"alone in signal handlers. If it was interrupted: {self._way_out()}"
            )
        kind: type[ManyarmsError] = StoreError if self._process else TurnError
        raise kind(refusal)

    def _not_kept(self, why: str) -> str:
        return f"{self.store} could not be written: {why}. {self._way_out()}"

    def _way_out(self) -> str:
        if not self._process:
            return "It may be half changed: load a handle that was saved, or start a new one."
        return "Open it again with recorded(...): that shows whether the last call is in it."
