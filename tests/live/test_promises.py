"""Random calls on an experiment break no promise, in memory and in a store, also after a kill.

A fixed number of sequences is played every time. At night there are more, from another first seed
each day, which a failure names.
"""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.live import recorder
from tests.live.promises import arrivals, shop
from tests.live.promises.commands import (
    Ask,
    AskAll,
    Name,
    Observe,
    Peek,
    Reopen,
    Season,
    SetBack,
    Tell,
    TellMany,
    Wait,
)
from tests.live.promises.homes import Home, InPostgres, Recorded
from tests.live.promises.search import Failure, Game, check, commands_in, play_in
from tests.live.promises.shop import History, NewSeason, Plant, Planting, Serve
from tests.live.promises.spec import Spec
from tests.live.stores import shared_postgres

__all__ = ["nights_seeds"]

MEMORY, RECORDED = commands_in(Home), commands_in(Recorded)


def nights_seeds(count: int) -> range:
    """Return `count` seeds that begin with the date."""
    first = int(datetime.datetime.now(datetime.UTC).strftime("%Y%m%d")) * 100_000
    return range(first, first + count)


@pytest.mark.patient
@pytest.mark.parametrize(
    ("game", "count"),
    [(MEMORY, 40), (RECORDED, 120), (shop.GAME, 60), (arrivals.GAME, 12)],
    ids=["memory", "recorded", "shop", "arrivals"],
)
def test_random_sequences(game: Game, count: int) -> None:
    check(game, range(count))


@pytest.mark.patient
def test_random_sequences_with_frequent_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "SNAPSHOT_EVERY", 3)
    check(RECORDED, range(1000, 1020))


@pytest.mark.patient
def test_another_process_looks(tmp_path: Path) -> None:
    time = 1000.0
    path = tmp_path / "shop.db"
    live = ma.MOSS().live(
        arms=["a", "b"], horizon=9, store=path, window=10.0, missing=0, now=lambda: time
    )
    live.tell(live.ask(), 1.0)
    live.ask()
    time += 20.0
    code = (
        "import sys, manyarms as ma; live = ma.load(sys.argv[1], now=lambda: 1020.0); "
        "print(live.progress())"
    )
    theirs = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
    )
    assert theirs.stdout == f"{live.progress()}\n"
    live.tell(live.ask(), 1.0)
    live.close()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "count"),
    [(MEMORY, 1000), (RECORDED, 3000), (shop.GAME, 1500), (arrivals.GAME, 300)],
    ids=["memory", "recorded", "shop", "arrivals"],
)
def test_many_random_sequences(game: Game, count: int) -> None:
    check(game, nights_seeds(count))


@pytest.mark.long
@pytest.mark.slow
def test_random_sequences_in_postgres() -> None:
    shared_postgres()  # or skip
    check(commands_in(InPostgres), nights_seeds(300))


ONE = Spec(arms=("a",))
BELOW = Spec(arms=("a",), reward_range=None, sigma=3.0)
SEQUENCES: dict[str, tuple[Any, list[Any]]] = {
    "rewards of the season before come late": (
        Spec(arms=("a",), horizon=8),
        [AskAll(), Season(20), Tell(0, 1.0), AskAll()],
    ),
    "observed rewards and a horizon": (ONE, [Observe(0, 1.0, 3)]),
    "rewards without a range, another policy": (
        BELOW,
        [Observe(0, 3.5, 3), Season(5, "quantile"), Reopen()],
    ),
    "rewards without a range, another sigma": (BELOW, [Season(5, "moss", 1.0)]),
    "rewards without a range, the uplift": (
        Spec(arms=("a",), reward_range=None, sigma=3.0, control="the control"),
        [Ask(5), TellMany(5, 3.5), Season(5, "quantile")],
    ),
    "a clock that is set back": (
        Spec(arms=("a",), window=10.0),
        [Ask(), SetBack(100.0), Wait(20.0)],
    ),
    "a second handle looks after a window": (
        Spec(arms=("a",), window=10.0),
        [Ask(), Peek(20.0), Ask()],
    ),
    "a look writes the ends of windows": (Spec(arms=("a",), window=10.0), [Ask(), Wait(20.0)]),
    "a negative number as a name": (Spec(arms=(-1,)), [Name(0)]),
    "a large number as a name": (Spec(arms=(2**64,)), [Name(0)]),
    "halves that add up to a whole": (ONE, [Ask(2), Tell(0, 0.25), Tell(0, 0.75), Reopen()]),
}
PLANTINGS: dict[str, tuple[Any, list[Any]]] = {
    "a new arm after a history": (Planting(n_arms=2000), [Serve(400), History(1), Plant()]),
    "a new arm after a season": (Planting(n_arms=2000), [Serve(400), NewSeason(), Plant()]),
    "a restored arm after a history": (
        Planting(way="restored untried", n_arms=2000, seed=1),
        [Serve(1500), History(1), Plant()],
    ),
    "a restored winner after a season": (
        Planting(way="restored winner", n_arms=2000),
        [Serve(1500), NewSeason(), Plant()],
    ),
    "a restored winner that is unlucky": (
        Planting(way="restored winner", n_arms=2000, unlucky=True),
        [Serve(400), Plant()],
    ),
    "a winner, then a season": (
        Planting(way="winner, then a season", n_arms=2000),
        [Serve(1500), Plant()],
    ),
    "the history of an initial arm": (
        Planting(way="history of an initial arm", n_arms=2000, seed=1),
        [Serve(1500), Plant()],
    ),
    "a new arm, then a season": (
        Planting(way="new, then a season", n_arms=2000),
        [Serve(1500), Plant()],
    ),
}


@pytest.mark.parametrize("title", SEQUENCES)
def test_sequence(title: str) -> None:
    _keeps(play_in(Recorded)(*SEQUENCES[title]))


@pytest.mark.patient
@pytest.mark.parametrize("title", PLANTINGS)
def test_planting(title: str) -> None:
    _keeps(shop.play_planting(*PLANTINGS[title]))


def _keeps(failure: Failure | None) -> None:
    assert failure is None, str(failure)
