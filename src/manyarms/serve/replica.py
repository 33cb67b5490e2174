"""A copy of an experiment that follows its log; what views are computed from."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from manyarms.errors import ParameterError
from manyarms.live import estimates
from manyarms.live.databases import Database, ExperimentRow
from manyarms.live.estimates import ArmEstimate, Progress
from manyarms.live.tallies import Tallies, tallies_of
from manyarms.live.verdict import CONFIDENCE, EPSILON, QUANTILE, StopVerdict, give_verdict
from manyarms.protocol.recommend import sigma_of
from manyarms.serve.game import Game, ReplayError, as_replay_error, policy_of

_MOST_NAMES = 100_000  # keys that are remembered


def place_of(cursor: str) -> int:
    """Return the number that a cursor is; 0 if there is none. Raises a `ParameterError`."""
    if cursor and not (cursor.isdecimal() and len(cursor) < 19):
        raise ParameterError(
            f"`cursor` must be one that an earlier answer gave, got {cursor[:100]!r}."
        )
    return int(cursor or 0)


class GoneError(Exception):
    """There is no experiment of this name, or no longer."""


class Replica:
    """Follows one experiment in a database.

    Attributes
    ----------
    row
        The experiment's row, as it was last read.
    game
        The game up to `game.head`.
    alarm
        What is wrong, if something is: then the game stands where it stood.
    """

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        row = database.find(name)
        if row is None:
            raise GoneError(name)
        self.row = row
        self.alarm = ""
        try:
            self.game = Game.load(database, row)
        except ReplayError as error:
            self.alarm = str(error)
            with as_replay_error(name):
                self.game = Game(row)
        self.policy = policy_of(self.game.spec.policy).label
        self._looked = time.monotonic()
        self._names: dict[int, str] = {}
        self._cache: dict[str, tuple[int, Any]] = {}

    @property
    def age(self) -> float:
        """Seconds since the log was last looked at."""
        return time.monotonic() - self._looked

    def follow(self) -> bool:
        """Catch up with the log; whether something was new. Raises if the experiment is gone."""
        row = self._database.find(self.row.name)
        if row is None or row.id != self.row.id:
            raise GoneError(self.row.name)
        return self.follow_to(row)

    def follow_to(self, row: ExperimentRow) -> bool:
        """Catch up with a row of the experiment."""
        before = self.game.head
        self.row = row
        if not self.alarm:
            try:
                self._catch_up(row)
            except ReplayError as error:
                self.alarm = str(error)
        self._looked = time.monotonic()
        return self.game.head > before

    def _catch_up(self, row: ExperimentRow) -> None:
        if self.game.live is None and row.first_arms:
            self.game.keyed = bool(row.keyed)
            self.game.begin(row.first_arms)
        if row.head < self.game.head:  # a backup was restored
            self.game = Game.load(self._database, row)
            self._cache.clear()
        self.game.state = row.state
        self.game.follow(self._database, row.head)

    # What views look at; computed once for each head

    def _once(self, what: str, compute: Any) -> Any:
        head = self.game.head
        if what not in self._cache or self._cache[what][0] != head:
            self._cache[what] = head, compute()
        return self._cache[what][1]

    @property
    def tallies(self) -> Tallies | None:
        """Every arm that was tried; None before the first arms are there."""
        live = self.game.live
        return None if live is None else tallies_of(live)

    def ordered(self, sort: str) -> Any:
        """Return the places of all arms that were tried, the largest first."""
        return self._once(f"order {sort}", lambda: self.tallies and self.tallies.order(sort))

    def progress(self) -> Progress:
        """Return how far the game is."""
        live, tallies = self.game.live, self.tallies
        assert live is not None
        assert tallies is not None
        how: Progress = self._once("progress", lambda: estimates.progress(live, tallies.reward))
        return how

    def verdict(self) -> StopVerdict | None:
        """Return whether the game may stop, by the defaults of `Live.verdict`."""
        live = self.game.live
        if live is None:
            return None
        low, high = live.reward_range or (0.0, 2.0 * sigma_of(live.policy))
        return self.judged(EPSILON * (high - low), QUANTILE, CONFIDENCE)

    def judged(self, epsilon: float, quantile: float, confidence: float) -> StopVerdict | None:
        """Return the answer to one's own question; None without arms."""
        tallies = self.tallies
        if tallies is None:
            return None
        return give_verdict(tallies, epsilon, quantile, confidence, name_of=self._name)

    def of_arm(self, number: int) -> ArmEstimate:
        """Return what is known of an arm, tried or not."""
        live, tallies = self.game.live, self.tallies
        assert live is not None
        place = None if tallies is None else tallies.place(number)
        if place is not None and tallies is not None:
            return tallies.at(place)
        limits = live.reward_range or (-math.inf, math.inf)
        return ArmEstimate(number, math.nan, limits, 0, 0, number in live.retired)

    def names(self, numbers: Sequence[int]) -> dict[int, str | int]:
        """Return what the user calls arms."""
        if not self.game.keyed:
            return {number: number for number in numbers}
        missing = [number for number in numbers if number not in self._names]
        if len(self._names) + len(missing) > _MOST_NAMES:
            self._names.clear()
            missing = list(numbers)
        if missing:
            self._names |= self._database.keys_of(self.game.id, missing)
        return {number: self._names.get(number, number) for number in numbers}

    def _name(self, number: int) -> str | int:
        return self.names([number])[number]

    def number(self, key: str) -> int | None:
        """Return the number of an arm; None if there is none."""
        if self.game.keyed:
            return self._database.number_of(self.game.id, key, self.row.n_arms)
        is_number = key.isdecimal() and len(key) < 19
        return int(key) if is_number and int(key) < self.row.n_arms else None

    def listed(self, search: str, after: str, limit: int) -> tuple[list[int], str | None]:
        """Return arms whose keys begin so, after a cursor, and the cursor of what follows."""
        if not self.game.keyed:
            begin = place_of(after) + 1 if after else 0
            if search:
                number = self.number(search)
                return ([] if number is None else [number]), None
            numbers = list(range(begin, min(self.row.n_arms, begin + limit)))
            more = begin + limit < self.row.n_arms
            return numbers, str(numbers[-1]) if more and numbers else None
        rows = self._database.run(
            "SELECT number, key FROM arms WHERE experiment = :x AND key >= :low AND key > :after "
            "AND key < :high AND number < :n ORDER BY key LIMIT :limit",
            x=self.game.id,
            low=search,
            high=search + "\U0010ffff" if search else "\U0010ffff" * 4,
            after=after,
            n=self.row.n_arms,
            limit=limit,
        )
        self._names |= dict(rows)
        return [number for number, _ in rows], rows[-1][1] if len(rows) == limit else None

    def minutes(self, points: int) -> tuple[int, list[tuple[Any, ...]]]:
        """Return what happened, in at most a given number of points, and how many minutes each has.

        A point has its number, then what was asked, told, abandoned, the rewards, and fresh arms.
        """
        found: tuple[int, list[tuple[Any, ...]]] = self._once(
            f"minutes {points}", lambda: self._minutes(points)
        )
        return found

    def _minutes(self, points: int) -> tuple[int, list[tuple[Any, ...]]]:
        x = self.game.id
        ends = self._database.run(
            "SELECT min(minute), max(minute) FROM minutes WHERE experiment = :x", x=x
        )
        first, last = ends[0]
        if first is None:
            return 1, []
        step = -(-(last - first + 1) // points)
        step += (last // step - first // step) >= points  # both ends may be parts of a point
        rows = self._database.run(
            "SELECT minute / :step, sum(asked), sum(told), sum(abandoned), sum(reward), sum(fresh) "
            "FROM minutes WHERE experiment = :x GROUP BY 1 ORDER BY 1",
            x=x,
            step=step,
        )
        return step, rows

    def last_hour(self) -> tuple[int, float]:
        """Return how many rewards were told in the last hour, and their sum."""
        rows = self._database.run(
            "SELECT sum(told), sum(reward) FROM minutes WHERE experiment = :x AND minute > :since",
            x=self.game.id,
            since=int(time.time() // 60) - 60,
        )
        return int(rows[0][0] or 0), float(rows[0][1] or 0.0)
