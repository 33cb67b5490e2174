"""Prospector with changing arms and late rewards, in full scans of lists.

The guard is the algorithm in docs/guard.md, the rule that of `Prospector`, and trials are those of
docs/changing_catalogue.md. Rewards are in [0, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tests.reference.field.kl import divergence, largest
from tests.reference.guarded import Stage, levels, stages
from tests.reference.leaders import Leaders
from tests.reference.moss import Shuffle
from tests.reference.prospector import Ranking, Sums
from tests.reference.words import FRESH, TIES, below, stream


@dataclass(eq=False)
class Pulled:
    """A pull."""

    slot: Opened
    who: str  # "guard", "keeper", "rule" or "trial"
    period: int
    floor: float  # -inf before the end of the first stage
    reward: float | None = None
    pending: bool = True
    late: bool = False


@dataclass(eq=False)
class Opened:
    """An arm with a place in the order."""

    place: int
    arm: int
    made: list[Pulled] = field(default_factory=list)
    pulls: int = 0  # rewards told; with known rewards, those of their prior, too
    total: float = 0.0
    known: tuple[int, float] = (0, 0.0)  # the number and the sum of known rewards
    out: int = 0  # the period in which the guard dropped it
    retired: bool = False

    @property
    def late(self) -> int:
        return sum(pull.late and pull.pending for pull in self.made)

    @property
    def complete(self) -> tuple[int, float]:
        """The number and the sum of the rewards before the first pending pull."""
        count, total = self.known
        for pull in self.made:
            if pull.pending:
                break
            if pull.reward is not None:
                count, total = count + 1, total + pull.reward
        return count, total


class Groups(Shuffle):
    """A shuffle that deals the arms that lie at `newest` or after it before all others."""

    newest = 0

    def next(self) -> int:
        if self.newest >= len(self.places):
            return super().next()
        at = self.newest + below(self.words.next(), len(self.places) - self.newest)
        arm, self.places[at] = self.places[at], self.places[self.newest]
        self.places[self.newest] = self.places[self.drawn]
        self.newest, self.drawn = self.newest + 1, self.drawn + 1
        return arm


class ChangingProspector:
    """Prospector with asks, tells and abandons in any order, and changing arms."""

    def __init__(
        self, n: int, horizon: int | None, key: int, *, trials: float = 0.02, beta: float = 0.5
    ) -> None:
        self.trials, self.beta = trials, beta
        self.order = Shuffle(n, stream(key, FRESH))
        self.newcomers = Groups(0, self.order.words)
        self.ties = stream(key, TIES)
        self.means, self.uppers = Ranking(Leaders(self.ties)), Ranking(Leaders(self.ties))
        self.retired: set[int] = set()
        self.slots: list[Opened] = []
        self.made: list[Pulled] = []
        self.current = self.hint = self.learned = -1
        self.told, self.total, self.firsts, self.seen = 0, 0.0, 0.0, 0
        self.best, self.ceiling, self.spent = -math.inf, 1.0, 0.0
        self.sums, self.unit = Sums(), 1.0
        self.ranked = (0, 1.0)  # the period and the unit of the stored upper bounds
        self.on_trial: list[Opened] = []
        self.turn, self.looks, self.paid = 0, 0, 0.0
        self.known, self.has_news = 0, False
        self.period, self.guess = 0, horizon is None
        self.begin(horizon or 256)

    # The guard

    @property
    def arms(self) -> int:
        """The number of arms that have or can get a place in the order."""
        return len(self.slots) + len(self.unopened())

    def unopened(self) -> set[int]:
        return set(self.order.places) - self.retired - {slot.arm for slot in self.slots}

    def begin(self, horizon: int) -> None:
        self.horizon, self.period = horizon, self.period + 1
        self.lost, self.dropped = 0.0, False
        self.floor, self.keeper = -math.inf, -1
        self.power, self.log = horizon**self.beta, max(1.0, math.log(horizon))
        self.plan(0)

    def plan(self, number: int) -> None:
        self.stage, self.testing = number, -1
        planned = stages(self.horizon, self.beta, self.arms)
        self.test: Stage | None = planned[number] if number < len(planned) else None
        self.size = self.test.arms if self.test else 0

    def guards(self) -> Opened | None:
        """Return the slot that a stage pulls now."""
        while self.test is not None and len(self.made) >= self.test.start:
            if self.testing < 0:
                for place in (self.learned, self.hint):
                    self.lift(place)
                if 1 - self.floor > self.test.error:
                    self.testing = 0
            if self.testing >= 0:
                slot = self.tested(self.test)
                if slot is not None or self.testing < self.size:
                    return slot
            self.plan(self.stage + 1)
        return None

    def tested(self, stage: Stage) -> Opened | None:
        place = self.testing
        while place < self.size:
            if place == len(self.slots):
                if self.unopened():
                    return self.open(self.order)
                self.size = place
                break
            if self.is_done(self.slots[place], stage):
                self.testing += place == self.testing
            elif self.slots[place].late == 0:
                return self.slots[place]
            place += 1
        return None

    def is_done(self, slot: Opened, stage: Stage) -> bool:
        pulls, total = slot.complete
        if slot.retired or slot.out == self.period:
            return True
        below = pulls > 0 and total / pulls < self.floor
        if below and pulls * divergence(total / pulls, self.floor) > stage.level:
            slot.out = self.period
            return True
        if pulls < stage.pulls:
            return False
        self.lift(slot.place)
        return True

    def lift(self, place: int) -> None:
        if not 0 <= place < len(self.slots) or self.slots[place].retired:
            return
        pulls, total = self.slots[place].complete
        if pulls > 0:
            low, _ = levels(self.horizon)
            bound = min(max(1 - largest(1 - total / pulls, low / pulls), 0.0), 1.0)
            if bound > self.floor:
                self.floor, self.keeper = bound, place

    # The rule

    def open(self, order: Shuffle, first: int = 0) -> Opened | None:
        """Open the next arm of an order that is neither retired nor open."""
        while order.left > 0:
            arm = first + order.next()
            if arm in self.unopened():
                self.slots.append(Opened(len(self.slots), arm))
                return self.slots[-1]
        return None

    def shrunk(self) -> list[float]:
        average = self.firsts / max(1, self.seen)
        return [
            -math.inf
            if slot.retired or slot.pulls == 0
            else (slot.total + average) / (slot.pulls + 1)
            for slot in self.slots
        ]

    def most_shrunk(self) -> int:
        """Return a slot with the largest shrunk mean, -1 without rewards."""
        shrunk = self.shrunk()
        best = max(shrunk, default=-math.inf)
        if best == -math.inf:
            return -1
        tied = [place for place, value in enumerate(shrunk) if value == best]
        return tied[0] if len(tied) == 1 else tied[below(self.ties.next(), len(tied))]

    def rests(self, slot: Opened) -> bool:
        return (
            not slot.retired and slot.late > 0 and (slot.pulls == 0 or slot.late >= 4 * slot.pulls)
        )

    def mean(self, slot: Opened) -> float:
        if slot.retired:
            return -math.inf
        if self.rests(slot):
            return -1e100 * (1.0 + slot.late) / (1.0 + slot.pulls)
        return slot.total / slot.pulls if slot.pulls else -1e50

    def upper(self, slot: Opened) -> float:
        if slot.retired or self.rests(slot):
            return self.mean(slot)
        if slot.pulls == 0:
            return math.inf
        log_n = math.log(self.arms)
        log = self.log - log_n - math.log(slot.pulls)
        level = max(0.0, 0.5 * log, log - log_n) / slot.pulls
        return self.unit * largest(slot.total / slot.pulls / self.unit, level)

    def rank(self, slot: Opened) -> None:
        self.means.set(slot.place, self.mean(slot))
        if self.ranked[0]:
            self.uppers.set(slot.place, self.upper(slot))

    def cost(self) -> float:
        return (self.told * self.best if self.told else 0.0) - self.total

    def set_target(self) -> None:
        self.best = min(max(self.shrunk()), 1.0)
        cost = max(0.0, self.cost())
        if self.best == -math.inf:
            self.ceiling, self.spent = self.unit, 0.0
            return
        self.unit = self.sums.unit(self.best)
        power = self.unit * self.power
        if cost < 0.5 * power:
            self.ceiling, self.spent = self.unit - cost / self.horizon, 0.0
        else:
            gain = min(2.5 * max(0.0, self.best - self.firsts / self.seen), self.best)
            self.ceiling = min(self.unit, self.best + gain)
            self.spent = cost / (1.5 * self.log * power)

    def reaches(self, mean: float) -> bool:
        return mean >= self.ceiling or ((self.ceiling - mean) / self.unit) ** 1.5 <= self.spent

    def keep_or_lead(self, ranking: Ranking) -> Opened:
        place = self.current
        if not (0 <= place < len(ranking.values)) or (
            ranking.values[place].value < ranking.highest()
        ):
            place = ranking.leader()
        return self.slots[place]

    def choose(self) -> Opened:
        if self.reaches(self.means.highest()):
            return self.keep_or_lead(self.means)
        searching = not self.reaches(self.best)
        if any(map(self.rests, self.slots)) and self.spent > 0.0 and not searching:
            if self.current >= 0 and self.shrunk()[self.current] >= self.best:
                return self.slots[self.current]
            return self.slots[self.most_shrunk()]
        fresh = self.open(self.order) if self.unopened() else None
        if fresh is not None:
            return fresh
        if not searching:
            return self.keep_or_lead(self.means)
        period, unit = self.ranked
        if period != self.period or abs(self.unit - unit) > 0.1 * unit:
            self.ranked = self.period, self.unit
            for slot in self.slots:
                self.uppers.set(slot.place, self.upper(slot))
        return self.keep_or_lead(self.uppers)

    # Trials

    def tried(self) -> Opened | None:
        """Return the arm whose trial pull is due."""
        pause = 1 / self.trials if self.trials else math.inf
        made = len(self.made)
        if made % 2 or made - self.paid < pause or self.best == -math.inf or self.dropped:
            return None
        first = len(self.order.places) - len(self.newcomers.places)
        slot = self.open(self.newcomers, first)  # the newest group is drawn first
        if slot is None and self.looks and self.unopened():
            self.looks -= 1
            slot = self.open(self.order)
        if slot is not None:
            self.on_trial.append(slot)
        elif self.on_trial:
            slot = self.next_on_trial()
        if slot is not None:
            self.paid = max(self.paid, made - (1 + self.power) * pause) + pause
        return slot

    def next_on_trial(self) -> Opened | None:
        if self.turn >= len(self.on_trial):
            self.turn = 0
        slot = self.on_trial[self.turn]
        failed = slot.pulls * self.best - slot.total >= self.unit
        if slot.retired or slot.place == self.current or failed:
            self.on_trial[self.turn] = self.on_trial[-1]
            self.on_trial.pop()
            return None
        self.turn += 1
        return None if slot.late else slot

    # Calls

    def ask(self) -> int:
        if self.made and self.made[-1].pending:
            self.made[-1].late = True
            self.rank(self.made[-1].slot)
        if self.has_news:
            self.set_target()
            self.has_news = False
        self.guess_horizon()
        if self.testing < 0 and self.test is not None and len(self.made) >= self.test.start:
            self.hint = self.most_shrunk()
        who, slot = "trial", self.tried()
        if slot is None:
            who, slot = "guard", self.guards()
        if slot is None and self.dropped and self.keeper >= 0:
            who, slot = "keeper", self.slots[self.keeper]
        if slot is None:
            who, slot = "rule", self.choose()
            self.current = slot.place
        floor = self.floor if self.stage > 0 else -math.inf
        pull = Pulled(slot, who, self.period, floor)
        slot.made.append(pull)
        self.made.append(pull)
        return slot.arm

    def guess_horizon(self) -> None:
        horizon = self.horizon
        while self.guess and 4 * (len(self.made) + self.known) >= horizon:
            horizon *= 2
        if horizon != self.horizon:
            self.begin(horizon)

    def credit(self, arm: int, count: int, total: float, squares: float) -> int:
        """Count known rewards of an arm, or of the next one; return the arm."""
        if arm < 0:
            slot = self.open(self.order) if self.unopened() else None
        else:
            slot = next(slot for slot in self.slots if slot.arm == arm)
        if slot is None:
            return -1
        slot.known = slot.known[0] + count, slot.known[1] + total
        self.known += count
        self.guess_horizon()
        self.sums.rewards += total
        self.sums.squares += squares
        self.told += count
        self.total += total
        if slot.pulls == 0:
            self.seen += 1
            self.firsts += total / count
            average = self.firsts / self.seen
            unit = self.sums.unit(self.best)
            weight = int(min(unit / average, 1000.0)) - 1 if unit > average > 0.0 else 0
            count, total = count + weight, total + weight * self.firsts / self.seen
        slot.pulls += count
        slot.total += total
        self.rank(slot)
        self.has_news = True
        return slot.arm

    def tell(self, number: int, reward: float) -> None:
        pull = self.made[number]
        slot = pull.slot
        pull.reward = reward
        if pull.who == "rule":
            self.learned = slot.place
            if pull.floor > -math.inf and pull.period == self.period:
                self.lost += pull.floor - reward
                self.dropped |= self.lost > 4 * self.power * self.log
        if slot.pulls == 0:
            self.seen += 1
            self.firsts += reward
        slot.pulls += 1
        slot.total += reward
        self.sums.add(reward)
        if pull.who != "trial":
            self.told += 1
            self.total += reward
        self.told_now(pull)

    def told_now(self, pull: Pulled) -> None:
        """Rank with the pull still late, then without it, as the package does."""
        self.rank(pull.slot)
        self.set_target()
        pull.pending = False
        if pull.late:
            self.rank(pull.slot)

    def abandon(self, number: int) -> None:
        self.made[number].pending = False
        self.rank(self.made[number].slot)

    def arrive(self, count: int) -> None:
        new = len(self.newcomers.places)
        waiting = new - self.newcomers.drawn
        for _ in range(min(waiting, waiting + count - int(self.power))):
            Shuffle.next(self.newcomers)  # an earlier one loses its trial
        self.newcomers.newest = new
        self.newcomers.places += range(new, new + count)
        arms = len(self.order.places)
        self.order.places += range(arms, arms + count)
        self.ranked = (0, self.unit)
        if self.testing < 0:
            self.plan(self.stage)

    def retire(self, arm: int) -> None:
        self.retired.add(arm)
        self.ranked = (0, self.unit)
        slot = next((slot for slot in self.slots if slot.arm == arm), None)
        if slot is not None:
            slot.retired = True
        if slot is not None and slot.place == self.keeper:
            self.period += 1
            self.floor, self.keeper = -math.inf, -1
            for other in self.slots:
                self.lift(other.place)
        if self.testing < 0:
            self.plan(self.stage)
        if slot is None:
            return
        self.means.set(slot.place, -math.inf)
        if self.current == slot.place:
            self.current = -1
        if self.seen > 0:
            cost = self.cost()
            if max(self.shrunk()) < self.best:
                self.told, self.total, self.looks = 0, -cost, int(self.power)
                self.set_target()
