"""Load experiments from the store when they are needed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from manyarms.errors import ManyarmsError, StoreUnavailableError
from manyarms.live.opening import continue_experiment
from manyarms.serve import clock
from manyarms.serve.errors import RefusedError, unavailable, unknown_experiment, unreachable
from manyarms.serve.experiment import MOST_ENDED, MOST_KEYS, ServedExperiment
from manyarms.serve.messages import Failure
from manyarms.store import EventStore

if TYPE_CHECKING:
    from manyarms.serve.leader import Leader

_RETRY = 10.0  # seconds until a failed load is tried again
_THREADS = 3  # one for windows, one for the list, one for requests
_logger = logging.getLogger("manyarms.serve")


class Loader:
    """Loads experiments for the leader in threads; concurrent requests share one load."""

    def __init__(self, leader: Leader) -> None:
        self._leader = leader
        self._threads = ThreadPoolExecutor(_THREADS, "loads")
        self._in_turn = asyncio.Lock()
        self._loading: dict[str, asyncio.Task[ServedExperiment]] = {}
        self._broken: dict[str, tuple[float, Failure]] = {}

    async def find(self, name: str) -> ServedExperiment:
        """Return an experiment; load it if necessary."""
        leader = self._leader
        one = leader.loaded(name)
        if one is not None:
            return one
        leader.check_leads()
        leader.check_stays(name)
        until, failure = self._broken.get(name, (0.0, None))
        if failure is not None and until > time.monotonic():
            raise RefusedError(failure)
        task = self._loading.get(name)
        if task is None:
            task = self._loading[name] = leader.in_background(self._load(name))
        return await asyncio.shield(task)

    def trouble(self, name: str) -> str:
        """Return why the last load of an experiment failed; empty if it did not."""
        failure = self._broken.get(name, (0.0, None))[1]
        return "" if failure is None else failure.message

    async def _load(self, name: str) -> ServedExperiment:
        leader, term = self._leader, self._leader.terms

        def load() -> ServedExperiment:
            leader.check_leads()  # the term may have ended while this waited for a thread
            return read(leader.store, name)

        try:
            one = await asyncio.get_running_loop().run_in_executor(self._threads, load)
        except StoreUnavailableError as error:
            raise unreachable(error) from error
        except RefusedError:
            raise
        except Exception as error:  # other experiments are not affected
            _logger.error("%s", error, exc_info=not isinstance(error, ManyarmsError))
            failure = Failure("replay", f"{name} cannot be loaded: {error}", 503)
            self._broken[name] = time.monotonic() + _RETRY, failure
            raise RefusedError(failure) from error
        finally:
            if term == leader.terms:
                self._loading.pop(name, None)
        if term != leader.terms or not leader.leads:
            raise unavailable(
                "Nothing was done: another process leads now. Send the request again."
            )
        leader.check_stays(name)
        leader.serve(one)
        self._broken.pop(name, None)
        if gc.get_freeze_count():  # `server.run` has frozen objects, in its own process
            gc.freeze()
        return one

    async def load_those_with_windows(self) -> None:
        """Load all experiments with a window, because windows end without a request."""
        records = await self._leader.read(self._leader.store.experiments)
        await self._load_each(one.name for one in records if one.spec.get("window") is not None)

    async def load_in_turn(self, names: Iterable[str]) -> None:
        """Load experiments one by one, also if several pages of the list ask for some."""
        async with self._in_turn:
            await self._load_each(names)

    async def _load_each(self, names: Iterable[str]) -> None:
        for name in names:
            with contextlib.suppress(RefusedError):
                await self.find(name)

    def forget(self, name: str) -> None:
        """Forget why an experiment could not be loaded."""
        self._broken.pop(name, None)

    def reset(self) -> None:
        """Forget current and failed loads, because this process no longer leads."""
        self._loading.clear()
        self._broken.clear()

    def close(self) -> None:
        """Shut down the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def read(store: EventStore, name: str) -> ServedExperiment:
    """Load an experiment, the answers to its last asks, and how its last pulls ended."""
    if store.find(name) is None:
        raise unknown_experiment(name)
    context, recording = continue_experiment(store, name, None, clock.now)
    one = ServedExperiment(context, recording.record, saved=recording.saved)
    for request in store.last_requests(one.id, MOST_KEYS):
        one.keys[request.key] = request.digest, request.answer.encode()
    one.all_keys = len(one.keys) < MOST_KEYS
    for event in store.events(one.id, max(0, one.experiment.seq - MOST_ENDED)):
        one.learn(event)
    one.view_data.refresh()  # not in the event loop, because there may be a million arms
    return one
