"""What an experiment commits at a time, and who waits for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from manyarms.live.databases import LogRow


class LostError(Exception):
    """What was not committed is lost: the database is away, or this process leads no longer."""


@dataclass(slots=True, eq=False)
class Batch:
    """Events that become durable together, if `head` is still the last event.

    Attributes
    ----------
    experiment, head
        Whose they are, and the event after which they follow.
    events
        What happened.
    keys
        Of asks that had one: key, k, pull, count, pulls, time.
    minutes
        By the minute: asked, told, abandoned, the sum of rewards, arms met first.
    columns
        Others of the table `experiments` that change.
    unnamed
        Arms whose keys are wanted; `names` has them when the batch is committed.
    repeated
        Pulls that had ended before; `ended` says how when the batch is committed: the kind of
        event, the reward, the arm. The keys of their arms are wanted, too, if `names_repeated`.
    """

    experiment: int
    head: int
    events: list[LogRow] = field(default_factory=list)
    keys: list[tuple[Any, ...]] = field(default_factory=list)
    minutes: dict[int, list[float]] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)
    unnamed: set[int] = field(default_factory=set)
    names: dict[int, str] = field(default_factory=dict)
    repeated: set[int] = field(default_factory=set)
    names_repeated: bool = False
    ended: dict[int, tuple[int, float, int]] = field(default_factory=dict)
    waiters: list[asyncio.Future[Batch]] = field(default_factory=list)

    @property
    def new_head(self) -> int:
        """The last event, once they are committed."""
        return self.head + len(self.events)

    @property
    def changes(self) -> bool:
        """Whether anything is to be written."""
        return bool(self.events or self.keys or self.columns)

    def settle(self, error: Exception | None = None) -> None:
        """Let those who wait go on; who has gone is passed over."""
        for waiter in self.waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(self)
            else:
                waiter.set_exception(error)
