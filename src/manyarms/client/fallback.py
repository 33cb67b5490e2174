"""The arm that an ask returns if the service returns no pull."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from manyarms.core.checks import shown
from manyarms.errors import ManyarmsError, ParameterError, StoppedError
from manyarms.live.pulls import NO_PULL, Pull

_FRESH = 60.0  # seconds until the recommended arm is requested again
_logger = logging.getLogger("manyarms.client")


class Fallback:
    """The latest recommended arm, and whether fallbacks were logged."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._arm: Any = None
        self._at: float | None = None
        self._in_use = False
        self._warned = False

    def remember(self, arm: Any) -> None:
        """Remember the recommended arm; None (unknown) keeps the previous one."""
        self._at = self._clock()
        self._arm = self._arm if arm is None else arm

    @property
    def stale(self) -> bool:
        """Return whether to request the recommended arm again."""
        return self._at is None or self._clock() - self._at >= _FRESH

    def answered(self) -> None:
        """Record that the service returned a pull, so that the next fallback is logged again."""
        self._in_use = False

    def pull(self, fallback: bool | str | int, error: ManyarmsError) -> Pull:
        """Return the fallback pull, or raise `error` if there is none or the call was wrong."""
        if isinstance(error, ParameterError):
            raise error
        if isinstance(error, StoppedError) and error.recommended is not None:
            self.remember(error.recommended.arm)
        arm = self._arm if fallback is True else fallback
        if arm is None:
            raise error
        if not self._in_use:
            self._in_use = True
            _logger.warning(
                "Asks now return the fallback, arm %r, because the service returned no pull: %s",
                arm,
                error,
            )
        return Pull(arm, NO_PULL)

    def ignores(self, pull: Pull | int) -> bool:
        """Return whether a pull is a fallback pull; warn if it is the first one."""
        number = pull.id if isinstance(pull, Pull) else pull
        if type(number) is not int or number != NO_PULL:
            return False
        if not self._warned:
            self._warned = True
            _logger.warning(
                "A fallback pull was told or abandoned. This has no effect, because the "
                "experiment did not choose its arm. For such pulls, `is_fallback` is True. This is "
                "logged once."
            )
        return True


def check_fallback(fallback: Any) -> bool | str | int | None:
    """Return a valid `fallback`, or raise; None if there is none."""
    if fallback is None or fallback is False:
        return None
    if not isinstance(fallback, bool | str | int):
        raise ParameterError(
            f"`fallback` must be the name of an arm, or True for the latest recommended arm, got "
            f"{shown(fallback)}.",
            parameter="fallback",
        )
    return fallback
