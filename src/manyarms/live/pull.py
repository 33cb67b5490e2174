"""A pull, and who may listen to what happens to it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

__all__ = ["Observer", "Pull"]


class Pull(NamedTuple):
    """An arm to pull now.

    Attributes
    ----------
    arm
        The arm's number, or its name where arms have names.
    id
        Which pull of the game this is, from 0: enough to tell its reward later.
    """

    arm: Any
    id: int


class Observer(Protocol):
    """Hears of everything that changes a handle, while the handle is locked."""

    def begin(self) -> None:
        """Hear that something is about to change; may refuse it."""

    def asked(self, number: int, arm: int) -> None:
        """Hear that pull `number` was asked for; so what began is done."""

    def told(self, number: int, reward: float) -> None:
        """Hear that a reward is about to be told; begins, and may refuse."""

    def abandoned(self, number: int) -> None:
        """Hear that a pull is about to be abandoned; begins, and may refuse."""

    def rearranged(self) -> None:
        """Hear that arms came or went; so what began is done."""

    def done(self) -> None:
        """Hear that what began is done."""
