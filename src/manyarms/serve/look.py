"""What views are computed from: the game as it is, and what the database knows beside it."""

from __future__ import annotations

import dataclasses
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from manyarms.errors import ParameterError
from manyarms.inference.estimates import ArmEstimate, Progress
from manyarms.inference.missing import SERVICE
from manyarms.inference.question import asked, names_control
from manyarms.inference.tallies import Tallies
from manyarms.inference.uneven_losses import Loss, uneven_losses
from manyarms.inference.uplift import Uplift, uplift_of, why_no_uplift
from manyarms.inference.verdict import StopVerdict, give_verdict
from manyarms.live.columns import tallies_of
from manyarms.live.control import ARM
from manyarms.live.databases import Database
from manyarms.serve import clock, tables
from manyarms.serve.game import Game, policy_of

_MOST_NAMES = 100_000  # keys that are remembered
_REST = 20  # times as long as a verdict took, or to look for losses, until it is done anew


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
        self.policy = str(policy_of(game.spec.policy))
        self._cache: dict[str, tuple[int, Any]] = {}
        self._losses: tuple[float, list[Loss]] = (0.0, [])
        self._judged: tuple[float, int | None, StopVerdict] | None = None

    @property
    def n_arms(self) -> int:
        """The number of arms that ever came."""
        return 0 if self.game.live is None else self.game.live.arms.count

    def _ask(self, key: str, function: Callable[[Database], Any]) -> Any:
        if key not in self.answers:
            raise MissingError(key, function)
        return self.answers[key]

    # What views look at; computed once for each head, and for each view

    def _once(self, what: str, compute: Any) -> Any:
        head, seen = self.game.head, f"computed: {what}"
        if seen not in self.answers:  # else the view has waited for the database meanwhile
            if what not in self._cache or self._cache[what][0] != head:
                self._cache[what] = head, compute()
            self.answers[seen] = self._cache[what][1]
        return self.answers[seen]

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

    def best(self, k: int) -> list[int]:
        """Return the places of the arm to keep, and of the next ones; `k` in all."""
        places: list[int] = self._once(
            f"best {k}", lambda: [] if self.tallies is None else self.tallies.best(k)
        )
        return places

    def progress(self) -> Progress:
        """Return how far the game is."""
        live, tallies = self.game.live, self.tallies
        assert live is not None
        assert tallies is not None
        how: Progress = self._once(
            "progress", lambda: tallies.progress(live.policy.stage(live.state))
        )
        return how

    def verdict(self) -> StopVerdict | None:
        """Return whether the game may stop, by the experiment's settings.

        It takes time in proportion to the arms tried, so it is given anew only after a rest, or if
        another arm is recommended.
        """
        begun = time.monotonic()
        best = next(iter(self.best(1)), None)
        if self._judged is None or begun > self._judged[0] or best != self._judged[1]:
            said = self.judged()
            if said is None:
                return None
            ended = time.monotonic()
            self._judged = ended + _REST * (ended - begun), best, said
        return self._judged[2]

    def judge_anew(self) -> None:
        """Forget the verdict: it was given by other settings, or in another state."""
        self._judged = None

    def judged(
        self, epsilon: Any = None, target: float | str | None = None, **others: Any
    ) -> StopVerdict | None:
        """Return the answer to one's own question; None without arms."""
        live, tallies = self.game.live, self.tallies
        if live is None or tallies is None:
            return None
        if epsilon is None and target is None:
            epsilon = self.game.spec.epsilon
            if "quantile" not in others:  # nothing was asked that a target would contradict
                target = self.game.spec.target
                epsilon = None if target is not None else epsilon
        if isinstance(target, str):
            others["rival"] = ARM if names_control(tallies.facts, target) else self.number(target)
            if others["rival"] is None:
                raise ParameterError(
                    f"`target` must be a number, the name of an arm, or control where there is "
                    f"one, got {target[:100]!r}.",
                    parameter="target",
                )
        return give_verdict(
            tallies,
            asked(tallies.facts, epsilon=epsilon, target=target, **others),
            name_of=self._name,
            stopped=self.game.state == "stopped",
            ways=SERVICE,
        )

    def uplift(self, confidence: float) -> Uplift | str:
        """Return how much better the recommended arm is than the control, or why that is unknown.

        It is computed once for each head, because it takes ten milliseconds.
        """
        tallies = self.tallies
        if tallies is None:
            return "there are no arms yet."
        if missing := why_no_uplift(tallies.facts, tallies.kept()):
            return missing
        compared: Uplift = self._once(
            f"uplift {confidence}", lambda: uplift_of(tallies, confidence)
        )
        return dataclasses.replace(compared, arm=self._name(compared.arm))

    def losses(self) -> list[Loss]:
        """Return the arms that lose more or fewer rewards than others; anew after a rest."""
        begun, tallies, live = time.monotonic(), self.tallies, self.game.live
        if live is not None and tallies is not None and begun > self._losses[0]:
            pending = Counter(pull.arm for pull in live.flight.values())
            pending[ARM] = len(live.control.flight) if live.control is not None else 0
            found = uneven_losses(tallies, pending, self.game.answered)
            ended = time.monotonic()
            self._losses = ended + _REST * (ended - begun), found
        return self._losses[1]

    def of_arm(self, number: int) -> ArmEstimate:
        """Return what is known of an arm, tried or not."""
        live, tallies = self.game.live, self.tallies
        assert live is not None
        place = None if tallies is None else tallies.place(number)
        if place is not None and tallies is not None:
            return tallies.at(place)
        limits = live.reward_range or (-math.inf, math.inf)
        rate = tallies is not None and tallies.rate
        return ArmEstimate(number, math.nan, limits, 0, 0, number in live.retired, rate)

    def names(self, numbers: Sequence[int]) -> dict[int, str | int]:
        """Return what the user calls arms."""
        if ARM in numbers:
            others = self.names([number for number in numbers if number != ARM])
            return others | {ARM: self.game.spec.control or ""}
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
