"""Statistics of all tried arms, as columns.

A Python loop over a million arms would be too slow, so `TriedArms.update` is given only the arms
that have changed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.scale import KEEP_ERROR, lower_confidence_bound
from manyarms.inference.confidence_sequences import (
    divergence,
    in_blocks,
    spent_error,
    uniform_half_width,
    uniform_interval,
)
from manyarms.inference.estimates import ArmEstimate, Progress, is_rate
from manyarms.inference.facts import Facts
from manyarms.inference.reported import reward_warnings

ERROR = 0.05  # probability that any interval is ever wrong
_GIVEN = {"asked": np.int64, "told": np.int64, "total": np.float64, "missing": np.int64,
          "retired": np.bool_}  # fmt: skip
_COLUMNS = {"arm": np.int64, **_GIVEN, "_low": np.float64, "_high": np.float64,
            "_stale": np.bool_}  # fmt: skip


class TriedArms:
    """The tried arms of an experiment, in the order of their first pulls or rewards.

    An arm's place in this order determines its share of the error (`spent_error`) and never
    changes.

    Attributes
    ----------
    facts
        Facts about the experiment.
    size
        The number of arms tried.
    arm, asked, told, total, missing, retired
        Columns: the arm's number, its number of pulls, the number (including observed ones) and the
        sum of its rewards, its number of pulls without a reward, and whether it is retired.
    """

    arm: NDArray[np.int64]
    asked: NDArray[np.int64]
    told: NDArray[np.int64]
    total: NDArray[np.float64]
    missing: NDArray[np.int64]
    retired: NDArray[np.bool_]
    _low: NDArray[np.float64]
    _high: NDArray[np.float64]
    _stale: NDArray[np.bool_]  # whether the interval must be computed again

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.size = 0
        self._places: dict[int, int] = {}
        self._intervals_due = self._highest_due = True
        self._highest: int | None = None
        self._buffers: dict[str, NDArray[np.generic]] = {
            name: np.zeros(0, kind) for name, kind in _COLUMNS.items()
        }
        self._grow([])

    def update(
        self, facts: Facts, arms: Sequence[int], columns: Mapping[str, Iterable[Any]]
    ) -> None:
        """Set the columns of some arms; new arms get the next places."""
        self.facts = facts
        if not arms:
            return
        self._grow([arm for arm in arms if arm not in self._places])
        places = np.fromiter(map(self._places.__getitem__, arms), np.int64, len(arms))
        for name, kind in _GIVEN.items():
            getattr(self, name)[places] = np.fromiter(columns[name], kind, len(arms))
        self._stale[places] = self._intervals_due = self._highest_due = True

    def _grow(self, fresh: list[int]) -> None:
        begin, end = self.size, self.size + len(fresh)
        if end > len(self._buffers["arm"]):
            more = max(1024, end, 2 * begin) - len(self._buffers["arm"])
            for name, column in self._buffers.items():
                self._buffers[name] = np.concatenate([column, np.zeros(more, column.dtype)])
        for name, column in self._buffers.items():
            setattr(self, name, column[:end])
        self.arm[begin:] = fresh
        self._low[begin:], self._high[begin:] = self.facts.reward_range or (-math.inf, math.inf)
        self._places.update(zip(fresh, range(begin, end), strict=True))
        self.size = end

    # Queries

    def places(self, arms: Collection[int]) -> list[int]:
        """Return the places of those arms that were tried."""
        return [self._places[arm] for arm in arms if arm in self._places]

    def place(self, arm: int) -> int | None:
        """Return the place of an arm; None if it was never tried."""
        return self._places.get(arm)

    def intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return all lower and all upper bounds, valid for all arms at once and at any time.

        The error is spent over the arms in the order of their first pulls, because the arm that
        looks best is chosen among all of them.
        """
        if self._intervals_due:
            places = np.flatnonzero(self._stale & (self.told > 0))
            self._low[places], self._high[places] = self.intervals_at(places, ERROR)
            self._stale[places] = self._intervals_due = False
        return self._low, self._high

    def intervals_at(
        self, places: NDArray[np.int64], error: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the intervals of arms with rewards; `error` is that of all arms together."""
        return uniform_interval(
            self.told[places],
            self.total[places],
            bounds=self.facts.reward_range,
            sigma=self.facts.scale.sigma,
            error=spent_error(error, places + 1),
        )

    def at(self, place: int) -> ArmEstimate:
        """Return the estimate of the arm at a place."""
        low, high = self.intervals()
        told = int(self.told[place])
        return ArmEstimate(
            arm=self.facts.name_of(int(self.arm[place])),
            estimate=float(self.total[place]) / told if told else math.nan,
            interval=(float(low[place]), float(high[place])),
            pulls=int(self.asked[place]),
            told=told,
            retired=bool(self.retired[place]),
            rate=self.rate,
        )

    def all(self) -> list[ArmEstimate]:
        """Return the estimates of all arms that were tried."""
        return [self.at(place) for place in range(self.size)]

    def top(self, k: int) -> list[ArmEstimate]:
        """Return the recommended arm and the others with the largest lower bounds, `k` in all."""
        return [self.at(place) for place in self.best(k)]

    @property
    def rate(self) -> bool:
        """Whether means of rewards are rates."""
        facts = self.facts
        return is_rate(facts.reward, facts.reward_range, zero_or_one=facts.zero_or_one)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Whether each arm is available and has a reward."""
        return (self.told > 0) & ~self.retired

    def kept(self) -> int | None:
        """Return the place of the recommended arm; None if no available arm has a reward."""
        chosen = self.facts.chosen
        own = None if chosen is None else self.place(chosen)
        if own is not None and self.told[own] > 0 and not self.retired[own]:
            return own
        if self._highest_due:
            self._highest, self._highest_due = self._find_highest(), False
        return self._highest

    def _find_highest(self) -> int | None:
        """Return the place of the largest lower bound."""
        present = self.present
        best, highest = None, -math.inf
        for place in self._candidates(present) if present.any() else ():
            lower = lower_confidence_bound(
                int(self.told[place]), float(self.total[place]), self.facts.scale, highest
            )
            if lower > highest:
                best, highest = place, lower
        return best

    def _candidates(self, present: NDArray[np.bool_]) -> list[int]:
        """Return the places that can have the largest lower bound; of equal arms, the first."""
        scale, told, total = self.facts.scale, self.told, self.total
        reward = total - scale.low * told if scale.low else total
        good = {int(np.argmax(np.where(present, column, -math.inf))) for column in (reward, told)}
        bar = max(
            lower_confidence_bound(int(told[k]), float(total[k]), scale, -math.inf) for k in good
        )
        # if all rewards are the smallest possible, the first arm is recommended
        near = np.append(int(np.argmax(present)), self._may_exceed(present, bar))
        order = np.lexsort((total[near], told[near]))  # stable: equal arms keep their order
        pairs = np.column_stack((told[near], total[near]))[order]
        differ = np.any(pairs[1:] != pairs[:-1], axis=1)
        first: list[int] = near[np.sort(order[np.append(True, differ)])].tolist()
        return first

    def _may_exceed(self, present: NDArray[np.bool_], bar: float) -> NDArray[np.int64]:
        """Return a superset of the places with a lower bound of `bar` or more.

        If the lower bound is above `bar`, the likelihood ratio of the observed mean against `bar`
        is at least 1 over the error.
        """
        scale, least = self.facts.scale, -math.log(KEEP_ERROR) - 1e-6
        mean = (bar - scale.low) / scale.width if scale.width else 0.0
        enough = 1
        if 0.0 < mean < 1.0:
            enough = math.ceil(least / -math.log(mean))  # if all rewards are the largest possible
        near = []
        for part in in_blocks(self.size):
            places = part.start + np.flatnonzero(present[part] & (self.told[part] >= enough))
            told, total = self.told[places], self.total[places]
            if scale.width == 0.0:
                lower = total / told - uniform_half_width(told, scale.sigma, error=KEEP_ERROR)
                places = places[lower >= bar - 1e-9 * (1.0 + abs(bar))]
            elif 0.0 < mean < 1.0:
                ones = np.minimum((total - scale.low * told) / scale.width, told)
                above = ones >= mean * told * (1.0 - 1e-9)
                places = places[above & (divergence(told, ones, mean) >= least)]
            near.append(places)
        return np.concatenate(near)

    def best(self, k: int) -> list[int]:
        """Return the places of the arms that `top` returns."""
        kept = self.kept()
        if kept is None:
            return []
        others = [place for place in self._leaders(k) if place != kept] if k > 1 else []
        return [kept, *others][:k]

    def _leaders(self, k: int) -> list[int]:
        """Return the places of the `k` largest lower bounds; of equal ones, the arm tried first.

        Arms are tried in random order, so ties are broken at random.
        """
        lows = np.where(self.present, self.intervals()[0], -math.inf)
        there = min(k, int(self.present.sum()))
        least = np.partition(lows, self.size - there)[self.size - there]
        among = np.flatnonzero(lows >= least)
        order: list[int] = among[np.argsort(-lows[among], kind="stable")][:there].tolist()
        return order

    def order(self, sort: str) -> NDArray[np.int64]:
        """Return all places sorted by a column, the largest first."""
        known = self.told > 0
        if sort == "low":
            keys = np.where(known, self.intervals()[0], -math.inf)
        elif sort == "estimate":
            keys = np.where(known, self.total / np.maximum(self.told, 1), -math.inf)
        else:
            keys = self.asked if sort == "pulls" else self.told
        return np.argsort(-keys, kind="stable")

    def rivals(self, place: int) -> int:
        """Return how many other available arms have an upper bound above this arm's lower bound."""
        low, high = self.intervals()
        return int((high[self.present] > low[place]).sum()) - 1

    def progress(self, stage: str) -> Progress:
        """Return the progress of the experiment; `stage` is what the policy is doing, as text."""
        facts, control, reward = self.facts, self.facts.control, self.facts.earned
        return Progress(
            pulls=facts.pulls,
            horizon=facts.horizon,
            told=facts.told,
            pending=facts.pending,
            abandoned=facts.abandoned,
            stage=stage,
            arms_touched=self.size,
            n_arms=facts.n_arms,
            reward=reward,
            mean_reward=reward / facts.told if facts.told else math.nan,
            observed=facts.observed,
            reward_name=facts.reward,
            rate=self.rate,
            control=None if control is None else control.name,
            control_pulls=0 if control is None else control.asked,
            control_mean=control.total / control.told if control and control.told else math.nan,
            warning=reward_warnings(facts),
        )
