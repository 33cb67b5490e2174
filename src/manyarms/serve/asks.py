"""What an ask was given."""

from __future__ import annotations

import json
from typing import NamedTuple

from manyarms.serve.batch import Batch


class AskedBefore(NamedTuple):
    """What an ask with a key was given: its pulls, of which the first `again` were in flight."""

    pulls: list[int]
    again: int
    body: str

    @classmethod
    def of(cls, pull: int, k: int, again: str | None, body: str) -> AskedBefore:
        """Read what the database holds: pulls that were in flight, and a range of new ones."""
        earlier = json.loads(again) if again else []
        if isinstance(earlier, dict):  # between the new ones some were answered at once
            return cls(earlier["pulls"], earlier["again"], body)
        return cls([*earlier, *range(pull, pull + k)], len(earlier), body)

    def columns(self) -> tuple[int, int, str | None, str]:
        """Return what the database is to hold."""
        earlier, new = self.pulls[: self.again], self.pulls[self.again :]
        first = new[0] if new else 0
        if new == list(range(first, first + len(new))):
            return first, len(new), json.dumps(earlier) if earlier else None, self.body
        return 0, 0, json.dumps({"pulls": self.pulls, "again": self.again}), self.body


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
    """

    pulls: list[int]
    again: int
    arms: dict[int, int]
    names: dict[int, str] | None

    def named(self, batch: Batch) -> list[tuple[int, str | int]]:
        """Return each pull with what the user calls its arm, once the batch is committed."""
        arms, names = self.arms, self.names
        if batch.ended:
            arms = arms | {pull: end[2] for pull, end in batch.ended.items()}
        if names is None:
            return [(pull, arms[pull]) for pull in self.pulls]
        found = batch.names
        return [(pull, names.get(arms[pull]) or found[arms[pull]]) for pull in self.pulls]
