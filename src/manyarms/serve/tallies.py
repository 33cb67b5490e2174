"""What is known of every arm that was tried, in columns: new events change only their own arms.

With a million arms tried, views must not look at each of them in Python. The numbers are those of
`manyarms.live.estimates`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.confidence_sequences import spent_error, uniform_limits
from manyarms.live.estimates import ERROR, ArmEstimate
from manyarms.live.game import LiveGame
from manyarms.protocol.policy import recommend
from manyarms.protocol.recommend import KEEP_ERROR, lower_limit, scale_of

Numbers = NDArray[Any]
_MANY = 50_000
_COLUMNS = {"arm": np.int64, "asked": np.int64, "told": np.int64, "total": np.float64,
            "low": np.float64, "high": np.float64, "keep": np.float64,
            "retired": np.bool_}  # fmt: skip


class Tallies:
    """The arms of a game that were tried, in the order of their first pulls.

    Attributes
    ----------
    game
        Whose they are.
    size
        How many there are.
    arm, asked, told, total, low, high, keep, retired
        Columns; they may be longer than `size`. By `keep` arms are recommended: it is the lower
        limit at the error that the one rule has, `protocol.recommend`.
    """

    arm: Numbers
    asked: Numbers
    told: Numbers
    total: Numbers
    low: Numbers
    high: Numbers
    keep: Numbers
    retired: Numbers

    def __init__(self, game: LiveGame) -> None:
        self.game = game
        self._places: dict[int, int] = {}
        self._retired = 0
        self._scale = scale_of(game.policy, game.reward_range)
        self.size = 0
        for name, kind in _COLUMNS.items():
            setattr(self, name, np.zeros(0, kind))
        self._unknown = game.reward_range or (-math.inf, math.inf)
        self.refresh(game.tally)

    def refresh(self, changed: Iterable[int]) -> None:
        """Look at arms anew; those that were never tried before come by themselves."""
        game = self.game
        fresh = list(islice(game.tally, self.size, None)) if len(game.tally) > self.size else []
        self._grow(fresh)
        places = [self._places[arm] for arm in {*changed, *fresh} if arm in self._places]
        if places:
            self._set(np.array(sorted(places)))
        if len(game.retired) != self._retired:
            self._retired = len(game.retired)
            gone = [self._places[arm] for arm in game.retired if arm in self._places]
            self.retired[gone] = True

    def _grow(self, fresh: list[int]) -> None:
        end = self.size + len(fresh)
        if end > len(self.arm):
            room = max(1024, end, 2 * len(self.arm))
            for name, kind in _COLUMNS.items():
                wider: Numbers = np.zeros(room, kind)
                wider[: self.size] = getattr(self, name)[: self.size]
                setattr(self, name, wider)
        self.arm[self.size : end] = fresh
        self.low[self.size : end], self.high[self.size : end] = self._unknown
        self._places |= {arm: place for place, arm in enumerate(fresh, self.size)}
        self.size = end

    def _set(self, places: Numbers) -> None:
        arms = self.arm[places].tolist()
        known = [self.game.known(arm) for arm in arms]
        self.asked[places] = [self.game.tally[arm].asked for arm in arms]
        self.told[places] = [count for count, _ in known]
        self.total[places] = [total for _, total in known]
        told = places[self.told[places] > 0]
        if len(told):
            self.low[told], self.high[told] = self._limits(told, spent_error(ERROR, told + 1))
            self.keep[told] = self._limits(told, KEEP_ERROR)[0]

    def _limits(self, places: Numbers, error: Any) -> tuple[Numbers, Numbers]:
        return uniform_limits(
            self.told[places],
            self.total[places],
            bounds=self.game.reward_range,
            sigma=self._scale.sigma,
            error=error,
        )

    # What views ask

    def place(self, arm: int) -> int | None:
        """Return where an arm is; None if it was never tried."""
        return self._places.get(arm)

    def at(self, place: int) -> ArmEstimate:
        """Return what is known of the arm at a place."""
        told = int(self.told[place])
        return ArmEstimate(
            arm=int(self.arm[place]),
            estimate=float(self.total[place]) / told if told else math.nan,
            interval=(float(self.low[place]), float(self.high[place])),
            pulls=int(self.asked[place]),
            told=told,
            retired=bool(self.retired[place]),
        )

    @property
    def present(self) -> Numbers:
        """Whether each arm is there, and a reward is known of it."""
        present: Numbers = (self.told[: self.size] > 0) & ~self.retired[: self.size]
        return present

    def kept(self) -> int | None:
        """Return the place of the arm that `recommend()` of the game returns; None if no arm's."""
        present, seat = self.present, recommend(self.game.state)
        own = None if seat < 0 else self.place(self.game.seats.arm(seat))
        if own is not None and present[own]:
            return own
        if not present.any():
            return None
        keep = np.where(present, self.keep[: self.size], -math.inf)
        # The rule decides itself among those that look best: columns are rounded in their own way.
        near = np.flatnonzero(keep >= keep.max() - 1e-9 * (1.0 + abs(keep.max())))
        best, highest = int(near[0]), -math.inf
        for place in near.tolist():
            limit = lower_limit(
                int(self.told[place]), float(self.total[place]), self._scale, highest
            )
            if limit > highest:
                best, highest = place, limit
        return best

    def best(self, k: int) -> list[int]:
        """Return the places of `k` arms, as `top` of the game does: the recommended one first."""
        kept = self.kept()
        if kept is None:
            return []
        others = [place for place in self._leaders(k) if place != kept]
        return [kept, *others][:k]

    def _leaders(self, k: int) -> list[int]:
        """Return the places of the `k` largest lower limits; ties fall to the arm met first."""
        lows = np.where(self.present, self.low[: self.size], -math.inf)
        there = min(k, int(self.present.sum()))
        least = np.partition(lows, self.size - there)[self.size - there]
        among = np.flatnonzero(lows >= least)
        order: list[int] = among[np.argsort(-lows[among], kind="stable")][:there].tolist()
        return order

    def order(self, sort: str) -> Numbers:
        """Return all places, the largest first; what nothing is known of comes last."""
        told = self.told[: self.size]
        known = told > 0
        if sort == "low":
            keys = np.where(known, self.low[: self.size], -math.inf)
        elif sort == "estimate":
            keys = np.where(known, self.total[: self.size] / np.maximum(told, 1), -math.inf)
        else:
            keys = self.asked[: self.size] if sort == "pulls" else told
        return np.argsort(-keys, kind="stable")

    def rivals(self, place: int) -> int:
        """Return how many others have an upper limit above an arm's lower one."""
        return int((self.high[: self.size][self.present] > self.low[place]).sum()) - 1

    def histogram(self) -> list[int]:
        """Return how many arms have 1, 2-3, 4-7, ... pulls."""
        _, powers = np.frexp(self.asked[: self.size].astype(np.float64))
        counts: list[int] = np.bincount(powers)[1:].tolist() if self.size else []
        return counts

    @property
    def reward(self) -> float:
        """The sum of all rewards; of very many arms in a hurry, so with a rounding error."""
        totals = self.total[: self.size]
        return float(totals.sum()) if self.size > _MANY else math.fsum(totals.tolist())
