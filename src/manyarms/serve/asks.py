"""What an ask was given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from operator import eq
from typing import NamedTuple

from manyarms.live.control import ARM
from manyarms.live.game import LiveGame
from manyarms.serve.batch import Batch


def compact(numbers: Sequence[int]) -> Sequence[int]:
    """Return numbers as a range if they have no gaps: thousands of asks are remembered.

    >>> compact([4, 5, 6]), compact([4, 6]), compact([])
    (range(4, 7), [4, 6], range(0, 0))
    """
    first = numbers[0] if numbers else 0
    whole = range(first, first + len(numbers))
    return whole if all(map(eq, numbers, whole)) else numbers


def in_flight(live: LiveGame, pulls: Iterable[int]) -> dict[int, int]:
    """Return the arms of those pulls that are in flight."""
    if live.control is None:
        flight = live.flight
        return {pull: flight[pull].arm for pull in pulls if pull in flight}
    found = ((pull, live.flying(pull)) for pull in pulls)
    return {pull: arm for pull, arm in found if arm is not None}


class AskedBefore(NamedTuple):
    """What an ask with a key was given: its pulls, of which the first `again` were in flight."""

    pulls: Sequence[int]
    again: int
    body: str

    @classmethod
    def of(cls, pull: int, k: int, again: str | None, body: str) -> AskedBefore:
        """Read what the database holds: pulls that were in flight, and a range of new ones."""
        earlier = json.loads(again) if again else []
        if isinstance(earlier, dict):  # between the new ones some were answered at once
            return cls(earlier["pulls"], earlier["again"], body)
        new = range(pull, pull + k)
        return cls(compact([*earlier, *new]) if earlier else new, len(earlier), body)

    def columns(self) -> tuple[int, int, str | None, str]:
        """Return what the database is to hold."""
        earlier, new = list(self.pulls[: self.again]), compact(self.pulls[self.again :])
        if isinstance(new, range):
            first = new.start
            return first, len(new), json.dumps(earlier) if earlier else None, self.body
        return 0, 0, json.dumps({"pulls": list(self.pulls), "again": self.again}), self.body


class GivenPulls(NamedTuple):
    """The pulls of an ask.

    Attributes
    ----------
    pulls, again
        The pulls, of which the first `again` were in flight before.
    arms
        The arms of those that are in flight.
    names
        Keys of arms, as far as they were known; None if arms are numbers.
    control
        What the control is called, if there is one.
    """

    pulls: Sequence[int]
    again: int
    arms: dict[int, int]
    names: dict[int, str] | None
    control: str | int | None = None

    def named(self, batch: Batch) -> list[tuple[int, str | int]]:
        """Return each pull with what the user calls its arm, once the batch is committed."""
        arms, names = self.arms, self.names
        if batch.ended:
            arms = arms | {pull: end[2] for pull, end in batch.ended.items()}
        if self.control is not None:
            return [(pull, self._called(arms[pull], batch)) for pull in self.pulls]
        if names is None:
            return [(pull, arms[pull]) for pull in self.pulls]
        found = batch.names
        return [(pull, names.get(arms[pull]) or found[arms[pull]]) for pull in self.pulls]

    def _called(self, arm: int, batch: Batch) -> str | int:
        if arm == ARM and self.control is not None:
            return self.control
        return arm if self.names is None else self.names.get(arm) or batch.names[arm]
