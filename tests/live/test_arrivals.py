"""Arms that come and go between two pulls are one group, whatever calls made them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.live import search
from manyarms.live.arms import ArmNumbers
from manyarms.live.opening import replayed
from manyarms.live.replaying import replay
from manyarms.protocol.policy import arrive
from manyarms.store import open_store
from tests.live.stores import copied, known, leave

SHOP = [f"picture {k}" for k in range(3000)]


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the groups that policies are told of."""
    sizes: list[int] = []

    def counted(state: Any, count: int) -> None:
        sizes.append(count)
        arrive(state, count)

    monkeypatch.setattr(search, "arrive", counted)
    return sizes


def played(pulls: int, seed: int = 1, **given: Any) -> tuple[ma.Live, random.Random]:
    """Return a shop that has settled on a picture, all of whose rates are small."""
    live = ma.Prospector().live(arms=SHOP, seed=seed, **given)
    chance = random.Random(seed)
    play(live, chance, pulls)
    return live, chance


def play(live: ma.Live, chance: random.Random, pulls: int) -> set[Any]:
    asked = set()
    for _ in range(pulls):
        pull = live.ask()
        asked.add(pull.arm)
        rate = 0.2 if str(pull.arm).endswith("7") else 0.05
        live.tell(pull, float(chance.random() < rate))
    return asked


def test_arrivals_between_two_pulls_are_one_group(groups: list[int]) -> None:
    live = ma.Prospector().live(n_arms=50, seed=1)
    live.tell(live.ask(), 1.0)
    live.retire([40, 41, 42])
    live.ask()
    live.add_arms(2)
    live.restore(41)
    live.add_arms(3)
    live.retire([42 + 10, 1])  # the first of the last three is never available
    live.restore([40, 1])  # 1 was never pulled, so it waits for a trial like the others
    assert groups == []
    live.ask(3)
    assert groups == [8]
    live.add_arms(1)
    live.ask()
    assert groups == [8, 1]


@pytest.mark.parametrize("back", [0, 1, 40])
@pytest.mark.parametrize("history", ["", "old", "new", "season"])
def test_new_arms_are_tried_whatever_else_comes(back: int, history: str) -> None:
    """Returning arms and history take no trial from arms that are new in the same sync."""
    live, chance = played(1500)
    gone = [arm.arm for arm in live.top(10_000)[-back:]] if back else []
    if gone:
        live.retire(gone)
        play(live, chance, 10)
    if history == "old":
        live.observe(counts={f"picture {k}": (40, k % 3) for k in range(900)})
    if history == "season":
        live.season()
    new = [f"new {k}" for k in range(100)]
    live.sync_arms([*SHOP, *new])
    if history == "new":
        live.observe(counts=dict.fromkeys(new[:50], (50, 2)))
        new = new[50:]
    live.add_arms(["another"])
    asked = play(live, chance, 6000)
    assert len(asked & {*new, "another"}) >= 0.98 * len(new)


def test_the_newest_group_keeps_its_trials_if_there_is_no_room() -> None:
    live, chance = played(1500)
    live.add_arms([f"first {k}" for k in range(400)])
    play(live, chance, 50)
    live.add_arms([f"second {k}" for k in range(200)])
    asked = play(live, chance, 12_000)
    assert sum(str(arm).startswith("second") for arm in asked) == 200
    # there is room for 90 in all, so those of the first group are tried like any fresh arm
    assert sum(str(arm).startswith("first") for arm in asked) < 250


def test_the_newest_group_is_tried_first() -> None:
    """Arms of yesterday that still wait take no trial from those of today."""
    live, chance = played(3000)
    for day in range(3):
        live.sync_arms([*SHOP, *(f"day {k}, {j}" for k in range(day + 1) for j in range(60))])
        asked = play(live, chance, 1500)
        assert sum(str(arm).startswith(f"day {day}") for arm in asked) >= 29  # 30 trials
    again = copied(live)
    assert {again.ask().arm for _ in range(500)} == {live.ask().arm for _ in range(500)}


@pytest.mark.parametrize("back", [0, 1, 3])
@pytest.mark.parametrize("history", ["", "observed", "season", "seasons"])
def test_most_of_the_new_arms_of_a_day_are_tried_on_it(back: int, history: str) -> None:
    """On average 76 %; 2500 visitors have 50 trials, for 60 new arms and those that are back."""
    live, chance = played(2500)
    there, away, tried = dict.fromkeys(SHOP), list[str](), 0
    for day in range(5):
        if history == "observed" and day in (0, 2):
            some = chance.sample(sorted(there), 200)
            live.observe(counts={arm: (40, chance.randrange(4)) for arm in some})
        if history == "seasons" or (history == "season" and day == 2):
            live.season()
        new = [f"day {day}, {k}" for k in range(60)]
        away += (gone := chance.sample(sorted(there), 36))
        again = [away.pop(chance.randrange(len(away))) for _ in range(back)]
        there = dict.fromkeys([*(there.keys() - set(gone)), *again, *new])
        live.sync_arms([*there])
        tried += len(play(live, chance, 2500) & set(new))
    assert tried >= 0.76 * 300


def test_a_group_in_parts_is_one_group_after_its_last_part(groups: list[int]) -> None:
    live = ma.Prospector().live(n_arms=10, seed=1)
    live.tell(live.ask(), 1.0)
    live.retire([3, 4])
    live.ask()
    experiment, log = live._experiment, list[Any]()
    before = copied(live)
    experiment.log, experiment.syncing = log, True
    experiment.add(4, more=True)
    live._context.arms.add(range(10, 14))  # type: ignore[arg-type]
    assert {live.ask().arm for _ in range(20)} <= {*range(10)} - {3, 4}
    experiment.restore(3, more=True)
    live.ask()
    experiment.restore(4)
    assert groups == []
    live.ask(2)
    assert groups == [6]
    replay(before._experiment, ArmNumbers(14), log, "it", None)
    assert known(before) == known(live)
    assert groups == [6, 6]


def test_a_group_without_its_last_part_ends_with_the_next_pull(groups: list[int]) -> None:
    """If the process that adds the parts ends."""
    live = ma.Prospector().live(n_arms=10, seed=1)
    log = live._experiment.log = list[Any]()
    live._experiment.add(4, more=True)
    live._context.arms.add(range(10, 14))  # type: ignore[arg-type]
    again = copied(live)
    assert again._experiment.search is not None
    assert again._experiment.search.more
    for handle in (live, again):
        handle.ask()
    assert groups == [4, 4]
    assert [event.detail for event in log if event.kind == "added"][1:] == [{"count": 0}]


def test_all_arms_may_be_replaced_between_two_pulls(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    for policy in (ma.Prospector(), ma.MOSS(), ma.EmpMOSSPlusPlus(), ma.Guarded(ma.MOSS())):
        name = policy.name
        with policy.live(arms=["a", "b"], horizon=99, seed=1, store=path, name=name) as live:
            live.tell_many([(pull, 1.0) for pull in live.ask(9)])
            live.sync_arms(["c"])
            live.sync_arms(["d"])
            assert {pull.arm for pull in live.ask(5)} == {"d"}
            live.sync_arms(["a"])
            assert live.ask().arm == "a"
            leave(live)
        with open_store(path) as store:
            assert replayed(store, name) == ""
