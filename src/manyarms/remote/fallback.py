"""What to show when the service cannot be reached in time."""

from __future__ import annotations

import time
from typing import Any

from manyarms.core.checks import check_number, shown
from manyarms.errors import ParameterError, ServiceError
from manyarms.live.pulls import NO_PULL, Pull

_FRESH = 60.0  # seconds until the recommended arm is asked for again
# replay: the experiment cannot be loaded, so nobody refuses anything
_UNREACHED = ("unreachable", "unavailable", "unknown", "rate", "replay", "")


class Fallback:
    """The arm that this client last heard to be recommended."""

    def __init__(self) -> None:
        self._arm: Any = None
        self._at = -_FRESH

    def remember(self, arm: Any) -> None:
        """Note which arm is recommended; None if none is."""
        self._at = time.monotonic()
        self._arm = self._arm if arm is None else arm

    @property
    def stale(self) -> bool:
        """Whether it is time to ask which arm is recommended."""
        return time.monotonic() - self._at >= _FRESH

    def pulls(self, k: int | None, fallback: Any, error: ServiceError) -> Pull | list[Pull]:
        """Return what an ask returns instead, or raise its error again."""
        arm = self._arm if fallback is True else fallback
        reached = error.status not in (0, 429, 502, 503, 504) or error.code not in _UNREACHED
        if arm is None or reached:
            raise error
        instead = Pull(arm, NO_PULL)
        return instead if k is None else [instead] * k


def check_fallback(timeout: Any, fallback: Any) -> tuple[float | None, bool | str | int | None]:
    """Return how long an ask may take, and what it returns otherwise, or raise."""
    if fallback is False:
        fallback = None
    if fallback is not None and not isinstance(fallback, bool | str | int):
        raise ParameterError(
            f"`fallback` must be the name of an arm, or True for the last recommended one, got "
            f"{shown(fallback)}."
        )
    return None if timeout is None else check_number("timeout", timeout, above=0), fallback
