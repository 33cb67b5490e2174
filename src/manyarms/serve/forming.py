"""The batch of an experiment that is being formed: who waits for it, and what they are told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from manyarms.live.databases import Batch

__all__ = ["Answers", "AskedBefore", "BrokenError", "Forming", "Given", "LostError"]

_logger = logging.getLogger("manyarms.serve")


class BrokenError(Exception):
    """The policy failed midway: the handle must be dropped, and what is kept loaded again."""


class LostError(Exception):
    """Another node has taken over, or the handle was dropped: look again who owns it."""


class AskedBefore(NamedTuple):
    """What an ask with this key was given."""

    pull: int
    k: int
    again: tuple[int, ...]
    body: str

    @property
    def pulls(self) -> list[int]:
        """All of them, in order."""
        return [*self.again, *range(self.pull, self.pull + self.k)]


class Given(NamedTuple):
    """The pulls of an ask; the arms of those that are in flight."""

    pulls: list[int]
    again: int
    arms: dict[int, int]


@dataclass
class Answers:
    """What the database said when a batch was committed."""

    ended: dict[int, tuple[int, float, int]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)


@dataclass
class Forming:
    """A batch, who waits for it, and what they want to know of the database."""

    batch: Batch
    done: asyncio.Future[Answers]
    repeated: set[int] = field(default_factory=set)  # pulls that are not in flight
    names_repeated: bool = False  # whether the keys of their arms are wanted, too
    dirty: bool = False
    callbacks: list[Callable[[asyncio.Future[Answers]], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.done.add_done_callback(self._call)

    def when_done(self, callback: Callable[[asyncio.Future[Answers]], None]) -> None:
        """Call back when the batch is committed, or nobody waits for it any more."""
        if self.done.done():  # the database was away for long: those who waited have gone
            self.done.add_done_callback(callback)
        else:
            self.callbacks.append(callback)

    def _call(self, done: asyncio.Future[Answers]) -> None:
        """Let all hear of it in one go: the loop takes longer to call each by itself."""
        for callback in self.callbacks:
            try:
                callback(done)
            except (
                Exception,
                asyncio.CancelledError,
            ):  # of one client: the others get their answers all the same
                _logger.exception("an answer failed")
