"""What views are computed from: the game as it is, and what the database knows beside it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from manyarms.errors import ParameterError
from manyarms.live import estimates
from manyarms.live.databases import Database
from manyarms.live.estimates import ArmEstimate, Progress
from manyarms.live.tallies import Tallies, tallies_of
from manyarms.live.verdict import CONFIDENCE, EPSILON, QUANTILE, StopVerdict, give_verdict
from manyarms.protocol.recommend import sigma_of
from manyarms.serve import clock, tables
from manyarms.serve.game import Game, policy_of

_MOST_NAMES = 100_000  # keys that are remembered
_REST = 20  # times as long as the verdict of a summary took, until it is given anew


def place_of(cursor: str) -> int:
    """Return the number that a cursor is; 0 if there is none. Raises a `ParameterError`."""
    if cursor and not (cursor.isdecimal() and len(cursor) < 19):
        raise ParameterError(
            f"`cursor` must be one that an earlier answer gave, got {cursor[:100]!r}."
        )
    return int(cursor or 0)


class MissingError(Exception):
    """A view needs what the database knows: ask it with `function`, and view again."""

    def __init__(self, key: str, function: Callable[[Database], Any]) -> None:
        super().__init__(key)
        self.key, self.function = key, function


class Look:
    """What views see of one experiment: its game, and what was computed from it.

    Views only compute. Where they need the database, a `MissingError` says for what: whoever calls
    them puts the result into `answers`, and calls again.

    Attributes
    ----------
    game
        The game, which goes on.
    answers
        What the database said for this view.
    """

    def __init__(self, game: Game) -> None:
        self.game = game
        self._names: dict[int, str] = {}  # keys of arms, as far as they are known
        self.answers: dict[str, Any] = {}
        self.policy = policy_of(game.spec.policy).label
        self._cache: dict[str, tuple[int, Any]] = {}
        self._judged: tuple[float, StopVerdict] | None = None

    @property
    def n_arms(self) -> int:
        """The number of arms that ever came."""
        return 0 if self.game.live is None else self.game.live.arms.count

    def _ask(self, key: str, function: Callable[[Database], Any]) -> Any:
        if key not in self.answers:
            raise MissingError(key, function)
        return self.answers[key]

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

    def refresh(self) -> None:
        """Look at all arms that have changed, so that the next view need not."""
        assert self.game.live is None or self.tallies is not None

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
        """Return whether the game may stop, by the defaults of `Live.verdict`.

        With very many arms it takes time, so it is given anew only after a rest.
        """
        live, begun = self.game.live, time.monotonic()
        if live is None:
            return None
        if self._judged is None or begun > self._judged[0]:
            low, high = live.reward_range or (0.0, 2.0 * sigma_of(live.policy))
            said = self.judged(EPSILON * (high - low), QUANTILE, CONFIDENCE)
            assert said is not None
            ended = time.monotonic()
            self._judged = ended + _REST * (ended - begun), said
        return self._judged[1]

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
        known = {number: self._names[number] for number in numbers if number in self._names}
        missing = sorted({number for number in numbers if number not in known})
        if missing:
            x = self.game.id
            found = self._ask(f"keys {missing}", lambda db: tables.keys_of(db, x, missing))
            self._learn(found)
            known |= found
        return {number: known[number] for number in numbers}

    def _learn(self, names: dict[int, str]) -> None:
        if len(self._names) > _MOST_NAMES:
            self._names.clear()
        self._names |= names

    def _name(self, number: int) -> str | int:
        return self.names([number])[number]

    def number(self, key: str) -> int | None:
        """Return the number of an arm; None if there is none."""
        x, there = self.game.id, self.n_arms
        if self.game.keyed:
            found: int | None = self._ask(
                f"number {key}", lambda db: tables.number_of(db, x, key, there)
            )
            return found
        is_number = key.isdecimal() and len(key) < 19
        return int(key) if is_number and int(key) < there else None

    def listed(self, search: str, after: str, limit: int) -> tuple[list[int], str | None]:
        """Return arms whose keys begin so, after a cursor, and the cursor of what follows."""
        there = self.n_arms
        if not self.game.keyed:
            begin = place_of(after) + 1 if after else 0
            if search:
                number = self.number(search)
                return ([] if number is None else [number]), None
            numbers = list(range(begin, min(there, begin + limit)))
            more = begin + limit < there
            return numbers, str(numbers[-1]) if more and numbers else None
        chosen: dict[str, Any] = {
            "x": self.game.id,
            "low": search,
            "high": search + "\U0010ffff" if search else "\U0010ffff" * 4,
            "after": after,
            "n": there,
            "limit": limit,
        }
        sql = (
            "SELECT number, key FROM arms WHERE experiment = :x AND key >= :low AND key > :after "
            "AND key < :high AND number < :n ORDER BY key LIMIT :limit"
        )
        rows = self._ask(f"list {search} {after} {limit}", lambda db: db.run(sql, **chosen))
        self._learn(dict(rows))
        return [number for number, _ in rows], rows[-1][1] if len(rows) == limit else None

    def minutes(self, points: int) -> tuple[int, list[tuple[Any, ...]]]:
        """Return what happened, in at most a given number of points, and how many minutes each has.

        A point has its number, then what was asked, told, abandoned, the rewards, and fresh arms.
        """
        x = self.game.id
        found: tuple[int, list[tuple[Any, ...]]] = self._ask(
            f"minutes {points}", lambda db: _minutes(db, x, points)
        )
        return found

    def last_hour(self) -> tuple[int, float]:
        """Return how many rewards were told in the last hour, and their sum."""
        x, since = self.game.id, int(clock.now() // 60) - 60
        rows = self._ask(
            "last hour",
            lambda db: db.run(
                "SELECT sum(told), sum(reward) FROM minutes WHERE experiment = :x AND "
                "minute > :since",
                x=x,
                since=since,
            ),
        )
        return int(rows[0][0] or 0), float(rows[0][1] or 0.0)


def _minutes(database: Database, x: int, points: int) -> tuple[int, list[tuple[Any, ...]]]:
    first, last = database.first(
        "SELECT min(minute), max(minute) FROM minutes WHERE experiment = :x", x=x
    )
    if first is None:
        return 1, []
    step = -(-(last - first + 1) // points)
    step += (last // step - first // step) >= points  # both ends may be parts of a point
    rows = database.run(
        "SELECT minute / :step, sum(asked), sum(told), sum(abandoned), sum(reward), sum(fresh) "
        "FROM minutes WHERE experiment = :x GROUP BY 1 ORDER BY 1",
        x=x,
        step=step,
    )
    return step, rows
