"""The pulls that `ask` returns."""

from __future__ import annotations

from typing import Any, NamedTuple

NO_PULL = -1  # the id of a fallback pull


class Pull(NamedTuple):
    """A pull: the arm to use now.

    Attributes
    ----------
    arm
        The arm's number, or its name if arms have names.
    id
        The number of the pull in the experiment, from 0. It is enough to tell the reward later.
    """

    arm: Any
    id: int

    @property
    def is_fallback(self) -> bool:
        """Whether this is the fallback of `Remote.ask`; telling its reward does nothing."""
        return self.id == NO_PULL
