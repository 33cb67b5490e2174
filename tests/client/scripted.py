"""Clients without a service: attempts have scripted outcomes, and waiting takes no time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from manyarms.client import AsyncRemote, Remote
from manyarms.client.answers import Answer
from manyarms.client.base import Attempt, NoAnswer

REFUSED = NoAnswer("ConnectionRefusedError", sent=False)
SILENT = NoAnswer("TimeoutError", sent=True)
STALE = NoAnswer("RemoteDisconnected", sent=True, stale=True)
STANDBY = Answer(503, {"code": "unavailable", "message": "a leads.", "retry_after": "1"})
UNKNOWN = Answer(503, {"code": "unknown"})
BUSY = Answer(429, {"retry_after": "3"})
GIVEN = Answer(200, {"pulls": [{"pull": 4, "arm": "red"}]})


class Script:
    """The outcomes of attempts, and a clock that only waiting and unanswered attempts advance.

    Attributes
    ----------
    attempts
        All attempts so far.
    waits
        How long the client has waited between them (seconds).
    now
        The time (seconds).
    """

    def __init__(self, outcomes: Iterable[Answer | NoAnswer]) -> None:
        self._outcomes = iter(outcomes)
        self.attempts: list[Attempt] = []
        self.waits: list[float] = []
        self.now = 0.0

    def attempt(self, attempt: Attempt) -> Answer | NoAnswer:
        """Return the next outcome."""
        self.attempts.append(attempt)
        outcome = next(self._outcomes)
        self.now += attempt.timeout if outcome is SILENT else 0.0
        return outcome

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.waits.append(seconds)
        self.now += seconds

    def check_done(self) -> None:
        """Check that there was an attempt for every outcome."""
        assert next(self._outcomes, None) is None

    def play(self, *outcomes: Answer | NoAnswer) -> None:
        """Reset, and continue with other outcomes."""
        self.__init__(outcomes)  # type: ignore[misc]

    def remote(self, *urls: str, **settings: Any) -> Remote:
        """Return a client that plays this script."""
        script = self

        class Scripted(Remote):
            _clock = staticmethod(lambda: script.now)
            _sleep = staticmethod(self.sleep)  # type: ignore[assignment]

            def _open(self, headers: dict[str, str]) -> None:
                self._connections = script  # type: ignore[assignment]

        return Scripted(urls or ["http://a:1"], "x", token="t", **settings)

    def async_remote(self, *urls: str, **settings: Any) -> AsyncRemote:
        """Return a client for event loops that plays this script."""
        script = self

        class Scripted(AsyncRemote):
            _clock = staticmethod(lambda: script.now)

            @staticmethod
            async def _sleep(seconds: float) -> None:
                script.sleep(seconds)

            async def _attempt(self, attempt: Attempt) -> Answer | NoAnswer:
                return script.attempt(attempt)

        return Scripted(urls or ["http://a:1"], "x", token="t", **settings)
