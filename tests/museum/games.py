"""A game that plays itself, and what is written down of one: for the museum's writer and its tests.

Only what every version of `Live` has is used, and all chances are fixed, so that the code of an
earlier version and today's can be compared.
"""

from __future__ import annotations

import random
import zlib
from pathlib import Path
from typing import Any

import manyarms as ma
from manyarms.simulation.tables import read_results


def chance_of(*what: object) -> float:
    """Return a number in [0, 1) that depends on `what` alone."""
    return zlib.crc32(" ".join(map(str, what)).encode()) / 2**32


def reward_of(pull: int, arm: int | str) -> float:
    """Return the reward of a pull: 0 or 1, with a mean that depends on the arm."""
    return float(chance_of("reward", pull, arm) < chance_of("mean", arm))


def play(live: ma.Live, steps: int, seed: int) -> list[Any]:
    """Ask, tell late, and abandon; return the arms that were asked for."""
    dice = random.Random(seed)
    arms = []
    for _ in range(steps):
        pending = live.pending
        luck = dice.random()
        if not pending or (luck < 0.5 and len(pending) < 10):
            arms.append(live.ask().arm)
        elif luck < 0.52:
            arms.extend(pull.arm for pull in live.ask(3))
        elif luck < 0.56:
            live.abandon(dice.choice(pending))
        else:
            pull = dice.choice(pending)
            live.tell(pull, reward_of(pull.id, pull.arm))
    return arms


def facts(live: ma.Live) -> dict[str, Any]:
    """Return what a handle knows."""
    told = live.progress().told
    table = live.to_dataframe()
    tallies = [
        [row.arm, int(row.pulls), int(row.told), float(row.estimate), bool(row.retired)]
        for row in table.itertuples()
    ]
    return {
        "pulls": live.pulls,
        "arms": live.n_arms,
        "told": told,
        "pending": [[pull.id, pull.arm] for pull in live.pending],
        # an arm without a reward has no estimate, which JSON has no word for
        "tallies": [row if row[2] else [*row[:3], None, row[4]] for row in tallies],
        "recommended": live.recommend().arm if told else None,
    }


def known(live: ma.Live, *, steps: int = 40) -> dict[str, Any]:
    """Return what a handle knows, and the arms that it asks for as it goes on."""
    return {**facts(live), "next": play(live, steps, seed=1)}


def regrets(folder: Path) -> list[dict[str, Any]]:
    """Return the regret of every run in a folder of results, cell by cell."""
    return [
        {label: cell.of(label)[:, -1].tolist() for label in cell.policies}
        for cell in read_results(folder).cells
    ]
