"""Measure what policies earn in a shop whose pictures change every day: docs/changing_catalogue.md.

    python benchmarks/daily.py              both catalogues, 20 runs each (minutes)
    python benchmarks/daily.py --runs 5     fewer runs

A shop has 50,000 pictures with click rates drawn from Beta(2, 60), and 20,000 visitors a day for
six days. Pictures change before each day from the second on. Each run uses handles as a shop would.
Sub-sampled greedy and Thompson sampling cannot add or retire arms, so they begin again: the first
every day, with all pictures; the second with eight random pictures when one of its eight goes. The
A/B test shows eight random pictures for two days, and then the best of them that is left. The table
has the expected clicks of 100 visitors on days 2 to 6, and the standard error.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import manyarms as ma

DAY, DAYS, FIRST, EIGHT = 20_000, 6, 50_000, 8


class Catalogue(NamedTuple):
    """How many pictures are new, gone and back every day."""

    new: int
    gone: int
    back: int


CATALOGUES = {
    "200 new, 200 gone, 20 back": Catalogue(200, 200, 20),
    "500 new": Catalogue(500, 0, 0),
}


def catalogue(change: Catalogue, dice: random.Random) -> list[list[int]]:
    """Return the pictures of each day."""
    days, away, count = [[*range(FIRST)]], list[int](), FIRST
    for _ in range(DAYS - 1):
        gone = set(dice.sample(days[-1], change.gone))
        back = dice.sample(away, min(change.back, len(away)))
        away = [*(set(away) - set(back)), *gone]
        new = range(count, count := count + change.new)
        days.append([*(arm for arm in days[-1] if arm not in gone), *back, *new])
    return days


Days = list[list[int]]


class Shop:
    """Visitors who see a picture, and click or not."""

    def __init__(self, seed: int) -> None:
        self.rates = np.random.default_rng(seed).beta(2, 60, FIRST + 500 * DAYS).tolist()
        self.dice = random.Random(seed)

    def serve(self, live: ma.Live) -> float:
        """Serve the visitors of a day; return the expected clicks of 100."""
        expected, dice, rates = 0.0, self.dice.random, self.rates
        for _ in range(DAY):
            pull = live.ask()
            expected += rates[pull.arm]
            live.tell(pull, float(dice() < rates[pull.arm]))
        return 100 * expected / DAY


def synced(policy: ma.Policy) -> Callable[[Shop, Days, int], list[float]]:
    def play(shop: Shop, days: Days, seed: int) -> list[float]:
        live, earned = policy.live(arms=days[0], seed=seed), [0.0]
        for arms in days:
            live.sync_arms(arms)
            earned.append(shop.serve(live))
        return earned[1:]

    return play


def begun_daily(policy: ma.Policy) -> Callable[[Shop, Days, int], list[float]]:
    def play(shop: Shop, days: Days, seed: int) -> list[float]:
        return [shop.serve(policy.live(arms=arms, seed=seed, horizon=DAY)) for arms in days]

    return play


def eight(policy: ma.Policy, tested: int) -> Callable[[Shop, Days, int], list[float]]:
    """Show eight pictures; after `tested` days, the best of them."""

    def play(shop: Shop, days: Days, seed: int) -> list[float]:
        earned, live, arms = list[float](), None, set[int]()
        for day, there in enumerate(days):
            if live is not None and day >= tested:
                best = next(row.arm for row in live.top(EIGHT) if row.arm in there)
                earned.append(100 * shop.rates[best])
                continue
            if live is None or arms - set(there):
                arms = set(shop.dice.sample(there, EIGHT))
                live = policy.live(arms=sorted(arms), seed=seed, horizon=DAY * DAYS)
            earned.append(shop.serve(live))
        return earned

    return play


PLAYERS = {
    "Prospector": synced(ma.Prospector()),
    "sub-sampled greedy, begun every day": begun_daily(ma.policy("ss-greedy")),
    "A/B test of 8 for two days, then the best": eight(ma.policy("uniform"), 2),
    "Thompson sampling on 8": eight(ma.policy("thompson"), DAYS),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=20)
    runs = range(parser.parse_args().runs)
    print("| policy | " + " | ".join(CATALOGUES) + " |\n| --- |" + " --- |" * len(CATALOGUES))
    for name, play in PLAYERS.items():
        cells = []
        for change in CATALOGUES.values():
            each = [
                np.mean(play(Shop(run), catalogue(change, random.Random(run)), run)[1:])
                for run in runs
            ]
            cells.append(f"{np.mean(each):.1f} ± {np.std(each) / math.sqrt(len(runs)):.1f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
