"""Plays of a few thousand pulls, in which one arm is clearly better than all others.

The best arm always earns 1, except that its first reward may be 0; every other arm earns 1 with a
probability from 0.02 to 0.3. It is planted in one of several ways among random events.

False alarms. That a new arm is tried is not random: an arm that waits is pulled once in 50 pulls
(docs/changing_catalogue.md). With at least 30 rewards, another arm looks as good as the best arm,
whose mean is then 29/30 or more, with probability 0.3^29 < 1e-15; with fewer rewards, it loses that
place with each failure, and 500 pulls without a failure of most of them have probability 0.3^250.
So a play fails by chance only if trials come late, which the limits allow for twice over.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import manyarms as ma
from tests.live.promises import promises
from tests.live.promises.promises import BrokenError
from tests.live.promises.search import Failure, Game

TRIAL = 50  # pulls for each arm that waits (docs/changing_catalogue.md)
AFTER = 2000  # pulls after the last event
LAST = 500  # of these, in which the best arm must get most pulls
HORIZON = 3000  # of a policy that needs one
HISTORY = 30  # rewards

WITHOUT_NEW_ARMS = ["from the start", "history of an initial arm", "winner, then a season"]
WAYS = [
    *WITHOUT_NEW_ARMS,
    *("new", "new in a sync", "new, then a season", "history of a new arm"),
    *("restored untried", "restored winner"),
]


@dataclass(frozen=True)
class Planting:
    """A shop, and how its best arm comes."""

    policy: str = "prospector"
    way: str = "new"
    n_arms: int = 60
    batch: int = 1
    window: bool = False  # rewards count ten seconds later; a pull takes a second
    unlucky: bool = False  # whether the best arm's first reward after its arrival is 0
    limits: tuple[float, float] = (0.0, 1.0)  # the rewards for failure and success
    seed: int = 0


class Shop:
    """A planting that is played."""

    def __init__(self, planting: Planting) -> None:
        self.planting, self.dice, self.time = planting, random.Random(planting.seed), 1000.0
        self.finder = planting.policy == "scout"
        self.arms = [f"arm {k}" for k in range(planting.n_arms)]
        self.mean = {arm: self.dice.uniform(0.02, 0.3) for arm in self.arms}
        self.retired: list[str] = []
        self.best: str | None = None
        self.next_is_bad = False
        self.asked: list[str] = []
        self.since: int | None = None  # the number of pulls when the best arm came
        self.arrivals = 0  # arms that were added, restored or observed, and may wait for a trial
        settings: dict[str, Any] = {"now": lambda: self.time, "reward_range": planting.limits}
        if planting.window:
            settings |= {"window": 10.0, "missing": planting.limits[0], "hold": True}
        policy = ma.Scout() if self.finder else ma.Prospector()
        horizon = HORIZON if self.finder else None
        self.live = policy.live(arms=self.arms, horizon=horizon, seed=planting.seed, **settings)

    def reward(self, arm: str) -> float:
        success = self.dice.random() < self.mean[arm]
        if arm == self.best and self.next_is_bad:
            success = self.next_is_bad = False
        return self.planting.limits[success]

    def serve(self, visitors: int) -> None:
        batch = self.planting.batch
        for _ in range(visitors // batch):
            horizon = self.live.horizon
            if horizon is not None and horizon - self.live.pulls < batch:
                return
            self.time += batch
            for pull in self.live.ask(batch):
                self.asked.append(pull.arm)
                self.live.tell(pull, self.reward(pull.arm))

    @property
    def there(self) -> list[str]:
        return [arm for arm in self.arms if arm not in self.retired]

    def others(self, arms: list[str]) -> list[str]:
        return [arm for arm in arms if arm != self.best]

    def new(self, count: int) -> list[str]:
        names = [f"arm {len(self.mean) + k}" for k in range(count)]
        self.mean |= {arm: self.dice.uniform(0.02, 0.3) for arm in names}
        self.arrivals += count
        self.arms += names
        return names

    def untried(self) -> str | None:
        """Return an available arm without a pull or a reward."""
        tried = {estimate.arm for estimate in self.live.arms()}
        return next((arm for arm in self.there if arm not in tried), None)

    def retire(self, arm: str) -> None:
        self.live.retire(arm)
        self.retired.append(arm)

    def restore(self, arm: str) -> None:
        self.live.restore(arm)
        self.retired.remove(arm)
        self.arrivals += 1

    def observe(self, arm: str, count: int) -> None:
        self.live.observe(arm, [self.reward(arm) for _ in range(count)])
        self.arrivals += 1

    def season(self) -> None:
        self.live.season(horizon=HORIZON if self.finder else None)

    def check(self) -> None:
        """Play on, and check what the best arm gets."""
        if self.best is None or self.since is None:
            return
        horizon = self.live.horizon
        self.serve(AFTER if horizon is None else horizon - self.live.pulls)
        later, last = self.asked[self.since :], self.asked[-LAST:]
        limit = max(300, TRIAL * (self.arrivals + 2)) + 2 * self.planting.batch
        limit += 20 if self.planting.window else 0
        if not self.finder and self.planting.way != "from the start":
            waited = later.index(self.best) if self.best in later else None
            promises.the_best_arm_is_tried_in_time(waited, limit)
        recommended = self.live.recommend().arm == self.best
        promises.the_best_arm_earns(last.count(self.best) / LAST, recommended, self.finder)


class Event:
    """Something that happens to a shop."""

    changes_arms = False

    def apply(self, shop: Shop) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class Serve(Event):
    visitors: int

    def apply(self, shop: Shop) -> None:
        shop.serve(self.visitors)


@dataclass(frozen=True)
class AddArms(Event):
    count: int
    changes_arms = True

    def apply(self, shop: Shop) -> None:
        shop.live.add_arms(shop.new(self.count))


@dataclass(frozen=True)
class RetireArm(Event):
    which: int
    changes_arms = True

    def apply(self, shop: Shop) -> None:
        others = shop.others(shop.there)
        shop.retire(others[self.which % len(others)])


@dataclass(frozen=True)
class RestoreArm(Event):
    which: int
    changes_arms = True

    def apply(self, shop: Shop) -> None:
        if retired := shop.others(shop.retired):
            shop.restore(retired[self.which % len(retired)])


@dataclass(frozen=True)
class SyncArms(Event):
    """A day on which some arms are new, one goes, and one may come back."""

    new: int
    which: int
    changes_arms = True

    def apply(self, shop: Shop) -> None:
        names, others = shop.new(self.new), shop.others(shop.there)
        gone = [others[self.which % len(others)]] if len(others) > self.new + 5 else []
        gone = [arm for arm in gone if arm not in names]
        retired = shop.others(shop.retired)
        back = [retired[self.which % len(retired)]] if retired and self.which % 2 else []
        shop.live.sync_arms([arm for arm in [*shop.there, *back] if arm not in gone])
        shop.retired = [arm for arm in shop.retired if arm not in back] + gone
        shop.arrivals += len(back)


@dataclass(frozen=True)
class History(Event):
    """The history of another arm, most often of one that was never pulled."""

    which: int
    count: int = 20

    def apply(self, shop: Shop) -> None:
        tried = set(shop.asked) if self.which % 4 else set()
        others = shop.others(shop.there)
        among = [arm for arm in others if arm not in tried] or others
        shop.observe(among[self.which % len(among)], self.count)


@dataclass(frozen=True)
class NewSeason(Event):
    def apply(self, shop: Shop) -> None:
        shop.season()


@dataclass(frozen=True)
class Plant(Event):
    """The best arm comes. An arm that was never pulled can become the best one."""

    def apply(self, shop: Shop) -> None:
        if shop.best is not None:
            return
        way, is_new = shop.planting.way, "new" in shop.planting.way
        best = shop.new(1)[0] if is_new else shop.untried()
        if best is None:
            return
        shop.best, shop.mean[best] = best, 1.0
        if way == "new in a sync":
            shop.live.sync_arms(shop.there)
        elif is_new:
            shop.live.add_arms([best])
        if "winner" in way or "history" in way:
            shop.observe(best, HISTORY)
        if way.startswith("restored"):
            shop.serve(600 if "winner" in way else 0)
            shop.retire(best)
            shop.serve(100)
            shop.restore(best)
        if "season" in way:
            shop.season()
        shop.next_is_bad, shop.since = shop.planting.unlucky, len(shop.asked)


def random_planting(dice: random.Random) -> tuple[Planting, list[Event]]:
    """Return a random planting, with the events before and after the best arm comes."""
    policy = dice.choice(["prospector", "prospector", "scout"])
    finder = policy == "scout"
    way = dice.choice(WITHOUT_NEW_ARMS if finder else WAYS)
    from_the_start = way == "from the start"
    sizes = [20, 60, 200, 2000] if "new" in way else [200, 2000]  # so that some arms are not tried
    planting = Planting(
        policy=policy,
        way=way,
        n_arms=20 if from_the_start else dice.choice(sizes),
        batch=dice.choice([1, 1, 10]),
        window=dice.random() < 0.3,
        unlucky=dice.random() < 0.3 and not from_the_start,
        limits=(0.0, 1.0) if finder else dice.choice([(0.0, 1.0), (0.0, 1.0), (-5.0, 5.0)]),
        seed=dice.randrange(10**6),
    )
    before = [_random_event(dice) for _ in range(dice.randint(0, 8))]
    after: list[Event] = [
        dice.choice([Serve(100), AddArms(1), History(dice.randrange(999))])
        for _ in range(dice.randint(0, 2))
    ]
    first: list[Event] = [] if from_the_start else [Serve(dice.choice([400, 400, 1500])), *before]
    rest = [*after, *before] if from_the_start else after
    events = [*first, Plant(), *rest]
    return planting, [event for event in events if not (finder and event.changes_arms)]


def _random_event(dice: random.Random) -> Event:
    which = dice.randrange(999)
    few = dice.randint(1, 3)
    events = [
        *[Serve(200), Serve(200), AddArms(few), RetireArm(which), RestoreArm(which)],
        *[SyncArms(few, which), History(which), NewSeason()],
    ]
    return dice.choice(events)


def play_planting(planting: Planting, events: list[Event]) -> Failure | None:
    """Play a planting; return its failure."""
    shop = Shop(planting)
    try:
        for event in events:
            event.apply(shop)
        shop.check()
    except BrokenError as broken:
        return Failure(planting, events, broken)
    return None


def simpler_plantings(planting: Planting) -> list[dict[str, Any]]:
    """Return changes that make a planting simpler."""
    plain = {"limits": (0.0, 1.0), "window": False, "unlucky": False, "batch": 1, "n_arms": 20}
    return [{name: v} for name, v in plain.items() if getattr(planting, name) != v]


GAME = Game(random_planting, play_planting, simpler_plantings)
