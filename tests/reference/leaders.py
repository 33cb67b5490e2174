"""Choose uniformly at random among the slots with the largest value, at every step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from tests.reference.words import SplitMix64, below


class Valued(Protocol):
    """An object that is ranked by its value, if it has one."""

    value: float


V = TypeVar("V", bound=Valued)


class Leaders(Generic[V]):
    """The list of ties, whose order determines the meaning of a random word.

    Every choice scans all slots, and checks that the list contains those with the largest value.
    The values determine the members, and the history determines their order.
    """

    def __init__(self, words: SplitMix64) -> None:
        self.words = words
        self.forget()

    def forget(self) -> None:
        """Make the next choice create a new list."""
        self.tied: list[V] = []
        self.top: V | None = None  # a slot with a value above that of the list
        self.level = math.inf  # only the top's value is larger

    def changed(self, slot: V, value: float) -> None:
        """Set the value of a slot."""
        slot.value = value
        if slot is self.top:
            if value > self.level:
                return
            self.top = None
        elif slot in self.tied:
            if value == self.level:
                return
            self.tied[self.tied.index(slot)] = self.tied[-1]  # the last one fills the gap
            self.tied.pop()
        if value > self.level and self.top is None:
            self.top = slot
        elif value > self.level:
            self.forget()
        elif value == self.level and self.tied:
            self.tied.append(slot)
        elif not self.tied and self.top is None:
            self.level = math.inf

    def highest(self, slots: Sequence[V]) -> float:
        """Return the largest value, and update the list."""
        self.find(slots)
        return max((slot.value for slot in slots), default=-math.inf)

    def choose(self, slots: Sequence[V]) -> V:
        """Return a slot with the largest value; `slots` are in the order of opening."""
        leaders = self.find(slots)
        if len(leaders) == 1:
            return leaders[0]
        return leaders[below(self.words.next(), len(leaders))]

    def find(self, slots: Sequence[V]) -> list[V]:
        best = max((slot.value for slot in slots), default=-math.inf)
        tied = [slot for slot in slots if slot.value == best]
        if not self.tied and self.top is None:
            if len(tied) == 1 and best > -math.inf:
                self.top = tied[0]
                self.level = max((s.value for s in slots if s is not self.top), default=-math.inf)
            elif tied:
                self.tied, self.level = list(tied), best
        leaders = [self.top] if self.top is not None else self.tied
        assert set(leaders) == set(tied)
        return leaders
