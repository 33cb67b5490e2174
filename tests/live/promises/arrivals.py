"""Days on which many arms come at once, by a random mixture of calls between two pulls.

An arrival is one group: more arms come than may wait (docs/changing_catalogue.md), and all of them
are tried, one within 50 pulls for each that waits. This is not random, so there are no false
alarms.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.live.promises import promises
from tests.live.promises.promises import BrokenError
from tests.live.promises.search import Failure, Game
from tests.live.promises.shop import TRIAL, Planting, Shop


@dataclass(frozen=True)
class Arrival:
    """How many arms are new, back with and without rewards, gone, and have a history."""

    new: int = 110
    back: int = 0
    back_untried: int = 0
    gone: int = 0
    history: int = 0  # of arms that were there
    calls: int = 1  # the number of calls
    batch: int = 1
    seed: int = 0


BEFORE = 600  # pulls; then about 90 arms may wait
_N_ARMS = 20_000  # so that few of the new ones are drawn by chance


def play_arrival(arrival: Arrival, events: list[object]) -> Failure | None:
    """Play an arrival; return its failure. There are no events besides."""
    shop = Shop(Planting(n_arms=_N_ARMS, batch=arrival.batch, seed=arrival.seed))
    shop.serve(BEFORE - 200)
    tried = [estimate.arm for estimate in shop.live.arms()]
    back = tried[: arrival.back] + [a for a in shop.arms if a not in tried][: arrival.back_untried]
    for arm in back:
        shop.retire(arm)
    shop.serve(200)
    new = shop.new(arrival.new)
    came = len(shop.asked)
    _let_come(shop, arrival, new, back)
    shop.serve(TRIAL * (len(new) + len(back) + arrival.history + 2) + 2 * arrival.batch)
    count = len(set(new) & set(shop.asked[came:]))
    try:
        promises.the_newest_arrival_is_tried(count, len(new), str(arrival))
    except BrokenError as broken:
        return Failure(arrival, [], broken)
    return None


def _let_come(shop: Shop, arrival: Arrival, new: list[str], back: list[str]) -> None:
    """Add and restore arms, by one sync or by several calls in random order."""
    live, dice = shop.live, shop.dice
    others = [arm for arm in shop.there if arm not in new and arm not in back]
    for arm in dice.sample(others, arrival.history):
        shop.observe(arm, 5)
    gone = dice.sample(others, arrival.gone)
    if arrival.calls == 1:
        live.sync_arms([arm for arm in shop.arms if arm not in gone])
    else:
        size = -(-len(new) // arrival.calls)
        parts = [new[k : k + size] for k in range(0, len(new), size)]
        calls: list[tuple[Callable[[list[str]], object], list[str]]]
        calls = [*((live.add_arms, part) for part in parts), *((live.restore, [a]) for a in back)]
        dice.shuffle(calls)
        for call, arms in calls:
            call(arms)
        if gone:
            live.retire(gone)
    shop.retired = gone


def random_arrival(dice: random.Random) -> Arrival:
    """Return a random arrival."""
    return Arrival(
        back=dice.choice([0, 1, 5]),
        back_untried=dice.choice([0, 0, 1, 5]),
        gone=dice.choice([0, 20]),
        history=dice.choice([0, 0, 3]),
        calls=dice.choice([1, 2, 5]),
        batch=dice.choice([1, 1, 10]),
        seed=dice.randrange(10**6),
    )


def simpler_arrivals(arrival: Arrival) -> list[dict[str, int]]:
    """Return changes that make an arrival simpler."""
    plain = {"back": 0, "back_untried": 0, "gone": 0, "history": 0, "calls": 1, "batch": 1}
    return [{name: v} for name, v in plain.items() if getattr(arrival, name) != v]


GAME = Game(lambda dice: (random_arrival(dice), []), play_arrival, simpler_arrivals)
