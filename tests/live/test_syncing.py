"""`sync_arms` adds, restores and retires arms; repeating it changes nothing."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from tests.live.stores import ADDRESSES, known, leave
from tests.serve.machines import new_name

NAMES = ["red", "blue", "green", "black"]


def in_play(live: ma.Live) -> set[Any]:
    experiment, arms = live._context
    return {arms.name(arm) for arm in range(arms.count) if arm not in experiment.ledger.retired}


def test_the_same_list_again_changes_nothing() -> None:
    live = ma.MOSS().live(arms=NAMES, horizon=100, seed=1)
    done = live.sync_arms(["green", "white", "red"])
    assert (done.added, done.restored, done.retired) == (["white"], [], ["blue", "black"])
    assert (done.n_arms, bool(done)) == (3, True)
    before = known(live)
    again = live.sync_arms(["red", "green", "white"])
    assert not again
    assert str(again) == "3 arms now: nothing has changed"
    assert known(live) == before
    back = live.sync_arms(["blue", "white"])
    assert (back.added, back.restored, back.retired) == ([], ["blue"], ["red", "green"])
    assert str(back).split("\n")[1:] == ["1 restored: 'blue'", "2 retired: 'red', 'green'"]
    assert in_play(live) == {"blue", "white"}
    assert {live.ask().arm for _ in range(4)} == {"blue", "white"}


def test_syncing_equals_single_calls() -> None:
    one, two = (ma.Prospector().live(arms=NAMES, seed=3, now=lambda: 0.0) for _ in range(2))
    dice = random.Random(2)
    for _ in range(60):
        reward = float(dice.random() < 0.4)
        for live in (one, two):
            live.tell(live.ask(), reward)
    one.retire("red")
    two.retire("red")
    one.sync_arms(["pink", "red", "green"])
    two.add_arms(["pink"])
    two.restore("red")
    two.retire(["blue", "black"])
    assert known(one) == known(two)


@pytest.mark.parametrize("seed", range(5))
def test_any_list_leaves_exactly_its_arms(seed: int) -> None:
    dice = random.Random(seed)
    live = ma.EmpMOSSPlusPlus().live(arms=["0"], horizon=2000, seed=seed)
    for _ in range(25):
        wanted = dice.sample([str(k) for k in range(30)], dice.randint(1, 30))
        live.sync_arms(wanted)
        assert in_play(live) == set(wanted)
        for _ in range(dice.randint(0, 20)):
            pull = live.ask()
            assert pull.arm in wanted
            if dice.random() < 0.8:
                live.tell(pull, dice.random())


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "at least one name"),
        ("red", "must be a list of names"),
        ({"red"}, "got a set"),
        (["red", "red"], "'red' twice"),
        ([1.5], "strings or integers"),
    ],
)
def test_refused_lists_change_nothing(names: Any, said: str) -> None:
    live = ma.MOSS().live(arms=NAMES, horizon=100, seed=1)
    before = known(live)
    with pytest.raises(ma.ParameterError, match=said):
        live.sync_arms(names)
    assert known(live) == before


def test_syncing_needs_names_and_a_policy_with_changing_arms() -> None:
    with pytest.raises(ma.ParameterError, match="called by number"):
        ma.MOSS().live(n_arms=3, horizon=9).sync_arms([0, 1])
    fixed = ma.policy("ss-greedy").live(arms=NAMES, horizon=100, seed=1)
    assert not fixed.sync_arms(NAMES)  # without changes, any policy will do
    with pytest.raises(ma.ParameterError, match="^ss-greedy.* cannot retire arms during"):
        fixed.sync_arms(NAMES[:2])
    with pytest.raises(
        ma.ParameterError, match=r"^ss-greedy.* cannot add or restore .* prospector"
    ):
        fixed.sync_arms([*NAMES, "new"])
    assert fixed.n_arms == 4
    scout = ma.Scout().live(arms=NAMES, horizon=100, seed=1)
    with pytest.raises(ma.ParameterError, match="^scout.* cannot retire arms"):
        scout.sync_arms(NAMES[:2])


@pytest.mark.parametrize("place", ADDRESSES)
def test_syncing_is_recorded(place: str, tmp_path: Path) -> None:
    store, name = ADDRESSES[place](tmp_path), new_name()
    with ma.MOSS().live(arms=NAMES, horizon=100, seed=1, store=store, name=name) as live:
        live.tell(live.ask(), 1.0)
        live.sync_arms(["white", "red"])
        live.sync_arms(["white", "blue"])
        live.ask()
        expected = known(live)
        kinds = [event.kind for event in live.events()]
        assert kinds.count("added") == kinds.count("restored") == 1
        leave(live)
    with ma.load(store, name=name) as live:
        assert known(live) == expected
        assert not live.sync_arms(["white", "blue"])


def test_retiring_takes_time_proportional_to_the_arms() -> None:
    """With pending pulls, twice the arms execute at most about twice the lines of code."""

    def lines(n_arms: int) -> int:
        live = ma.Prospector().live(arms=[f"old {k}" for k in range(n_arms)], seed=1)
        pulls = live.ask(n_arms)
        for pull in pulls[: n_arms // 2]:
            live.tell(pull, float(pull.id % 3 == 0))
        assert len({pull.arm for pull in pulls}) > n_arms // 2
        count = 0

        def line(frame: Any, event: str, argument: Any) -> Any:
            nonlocal count
            count += event == "line"
            return line

        before = sys.gettrace()
        sys.settrace(line)
        try:
            live.sync_arms(["new"])
        finally:
            sys.settrace(before)
        assert live.n_arms == 1
        return count

    assert lines(400) < 2.6 * lines(200)
