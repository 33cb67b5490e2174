"""The ledger, the search, and what answers read."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.live import kinds, opening
from manyarms.live.experiment import _LESSONS, Experiment
from manyarms.live.ledger import RULES
from manyarms.live.replaying import _Checked
from manyarms.live.search import Search
from manyarms.live.snapshots import join_parts, split_parts
from tests.inference.random_events import new
from tests.live.stores import copied, known, leave

REASONS = {kinds.AT_RANDOM, kinds.NEW, kinds.RETURNED, kinds.BY_NUMBER}


def test_every_kind_of_event_is_recorded_checked_and_learned() -> None:
    names = {name: kind for name, kind in vars(kinds).items() if name.isupper()}
    every = set(names.values()) - REASONS
    assert set(RULES) == every
    checked = _Checked(new()._context, "it", None, 0)
    assert set(checked._rules) == every
    assert every - set(_LESSONS) == {kinds.ASKED, kinds.HELD, kinds.SEASON}


def busy(seed: int, **given: Any) -> tuple[ma.Live, list[float]]:
    """Return a handle after calls of all kinds in three seasons, and its clock."""
    clock = [1e9]
    settings: dict[str, Any] = {"window": 50.0, "missing": 0.0, "now": lambda: clock[0]}
    settings |= {"arms": [f"arm {k}" for k in range(12)], "seed": seed} | given
    live = ma.Prospector().live(**settings)
    chance = random.Random(seed)
    for step in range(150):
        clock[0] += 1.0
        if step == 50:
            live.season(policy=ma.EmpMOSSPlusPlus(), horizon=150)
        if step == 100:
            live.season(policy=ma.Prospector())
        if step % 10 == 3:
            live.observe(f"arm {chance.randrange(12)}", [1.0, 0.0])
        if step % 25 == 7:
            live.observe(counts={f"arm {chance.randrange(12)}": (5, 1.25)})
            live.sync_arms([f"arm {k}" for k in chance.sample(range(14), 9)] + [f"new {step}"])
        for pull in live.ask(2):
            if chance.random() < 0.6:
                live.tell(pull, float(chance.random() < 0.4))
            elif chance.random() < 0.3:
                live.abandon(pull)
    return live, clock


@pytest.mark.parametrize("seed", range(4))
def test_answers_are_the_same_after_a_load(seed: int, tmp_path: Path) -> None:
    """With and without an earlier look, from a snapshot and from events."""

    def answers(live: ma.Live) -> tuple[Any, ...]:
        return str(live), live.arms(), live.verdict(), live.verdict(target=0.3), live.top(5)

    path = tmp_path / "shop.db"
    live, clock = busy(seed, store=path, name="shop")
    clock[0] += 20
    unread = copied(live)
    before = answers(live)
    assert answers(unread) == before
    live.close()
    for _ in range(2):
        with ma.load(path, now=lambda: clock[0]) as again:
            assert answers(again) == before
            leave(again)
        link = sqlite3.connect(path)
        link.execute("DELETE FROM snapshots")
        link.commit()
        link.close()


@pytest.mark.parametrize("damage", ["data", "version"])
def test_a_search_that_cannot_be_used_is_made_again(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is replayed without a search up to the season."""
    path = tmp_path / "shop.db"
    live, clock = busy(1, store=path, name="shop")
    expected = known(live)
    live.close()
    link = sqlite3.connect(path)
    ((seq, data),) = link.execute("SELECT seq, data FROM snapshots").fetchall()
    began, ledger, search = split_parts(data)
    assert 0 < began < seq
    if damage == "version":
        link.execute("UPDATE snapshots SET version = 'other'")
    else:
        monkeypatch.setattr(opening, "restored", _fails)
    link.commit()
    link.close()
    searches: list[ma.Policy] = []
    make = Search.__init__

    def counted(self: Search, policy: ma.Policy, *given: Any, **named: Any) -> None:
        searches.append(policy)
        make(self, policy, *given, **named)

    monkeypatch.setattr(Search, "__init__", counted)
    with ma.load(path, now=lambda: clock[0]) as again:
        assert known(again) == expected
        assert searches == [ma.Prospector()]  # only that of the last season
        leave(again)
    assert join_parts(began, ledger, search) == data


def _fails(*given: Any, **named: Any) -> Experiment:
    raise ma.SavedFileError("damaged")


def test_a_second_look_shows_what_changed() -> None:
    live = new(ma.MOSS(), n_arms=4)
    first = live.ask()
    live.tell(first, 1.0)
    other = (first.arm + 1) % 4
    assert [arm.arm for arm in live.arms()] == [first.arm]
    live.observe(counts={other: (10, 4)})
    live.retire(other)
    assert [arm.arm for arm in live.arms()] == [first.arm, other]
    assert live.arms()[1].retired
    assert live.arms() == copied(live).arms()
