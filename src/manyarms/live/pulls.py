"""What `ask` returns."""

from __future__ import annotations

from typing import Any, NamedTuple

NO_PULL = -1  # the id of a fallback


class Pull(NamedTuple):
    """An arm to pull now.

    Attributes
    ----------
    arm
        The arm's number, or its name if arms have names.
    id
        Which pull of the experiment this is, from 0: enough to tell its reward later.
    """

    arm: Any
    id: int

    @property
    def is_fallback(self) -> bool:
        """Whether `Remote.ask` returned its fallback: telling it does nothing."""
        return self.id == NO_PULL
