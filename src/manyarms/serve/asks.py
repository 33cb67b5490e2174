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


def pending_arms(live: LiveGame, pulls: Iterable[int]) -> dict[int, int]:
    """Return the arms of those pulls that are pending."""
    if live.control is None:
        flight = live.flight
        return {pull: flight[pull].arm for pull in pulls if pull in flight}
    found = ((pull, live.flying(pull)) for pull in pulls)
    return {pull: arm for pull, arm in found if arm is not None}


class AskedBefore(NamedTuple):
    """An ask with a key: how many pulls it asked for, and those it was given."""

    k: int
    pulls: Sequence[int]

    @classmethod
    def of(cls, k: int, pull: int, count: int, pulls: str | None) -> AskedBefore:
        """Read what the database holds."""
        return cls(k, json.loads(pulls) if pulls else range(pull, pull + count))

    def columns(self) -> tuple[int, int, int, str | None]:
        """Return what the database is to hold."""
        consecutive = isinstance(self.pulls, range)
        pulls = None if consecutive else json.dumps(list(self.pulls))
        return self.k, self.pulls[0], len(self.pulls), pulls


class GivenPulls(NamedTuple):
    """The pulls of an ask.

    Attributes
    ----------
    pulls
        The pulls.
    arms
        The arms of those that are pending.
    names
        Keys of arms, as far as they were known; None if arms are numbers.
    control
        What the control is called, if there is one.
    """

    pulls: Sequence[int]
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
