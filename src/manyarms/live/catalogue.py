"""The part of a handle that changes which arms there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from manyarms.core.jit import Dispatched, check_bodies
from manyarms.errors import TurnError
from manyarms.live.pull import Observer
from manyarms.live.views import Views
from manyarms.protocol.in_flight import lose
from manyarms.protocol.policy import arrive, retire

__all__ = ["Catalogue"]


class Catalogue(Views):
    """Arms may come and go while the game is on."""

    _observer: Observer | None

    def add_arms(self, arms: int | Iterable[str | int]) -> list[Any]:
        """Add arms: they join those that fresh arms are drawn from. Return their names.

        MOSS++ and empMOSS++ draw from them when their next iteration begins, Quantile with its
        next round, the others at once if their set has room. It takes time in proportion to the
        arms touched, so add many with one call.

        Parameters
        ----------
        arms
            How many, where arms are called by number; their names, where they have names.
        """
        with self._lock:
            self._check_bodies(arrive)
            first = self._arms.count
            self._begin()
            try:
                added = self._arms.add(arms)
            except Exception:  # it refuses before it changes anything
                self._done()
                raise
            if added > 0:
                arrive(self._state, added)
                self._rearranged()
            self._done()
            return [self._arms.name(number) for number in range(first, first + added)]

    def retire(self, arm: str | int) -> None:
        """Never ask for an arm again.

        Rewards of its pulls in flight may still be told: they count in the tables, and teach the
        policy nothing. It takes time in proportion to the arms touched.

        Parameters
        ----------
        arm
            The arm's number or name.
        """
        with self._lock:
            self._check_bodies(retire)
            number = self._arms.number(arm)
            if number in self._retired:
                raise TurnError(f"Cannot retire arm {arm!r}: it is retired already.")
            if self.n_arms == 1:
                raise TurnError(f"Cannot retire arm {arm!r}: it is the last one. Add others first.")
            self._begin()
            for flying, pull in self._flight.items():
                if pull.arm == number:
                    lose(self._state, cast(Any, self._flight), flying)
            self._retired.add(number)
            retire(self._state, number)
            self._rearranged()

    def _check_bodies(self, function: Dispatched[..., Any]) -> None:
        """Raise, before anything changes, unless the policy can do this."""
        state = self._state
        while state is not None:
            check_bodies(state, (function,))
            state = getattr(state, "inner", None)  # of a policy that wraps another

    def _begin(self) -> None:
        if self._observer is not None:
            self._observer.begin()

    def _done(self) -> None:
        if self._observer is not None:
            self._observer.done()

    def _rearranged(self) -> None:
        if self._observer is not None:
            self._observer.rearranged()
