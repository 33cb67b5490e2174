"""Observed rewards: one by one, or as numbers and sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.live.opening import replayed
from manyarms.store import open_store
from tests.live.opener import Opener, opened
from tests.live.stores import copied, known, leave


def test_counts_equal_single_rewards() -> None:
    one, two = (Opener(first=0).live(arms=["a", "b", "c"], seed=1) for _ in range(2))
    for rewards in ([1.0] * 7 + [0.0] * 113, [0.0]):
        one.observe("b", rewards)
    one.observe("c", [1.0, 1.0])
    two.observe(counts={"b": (120, 7), "c": (2, 2)})
    two.observe(counts={"b": (1, 0)})
    assert one.arms() == two.arms()
    assert one.progress() == two.progress()
    assert one.ask() == two.ask()
    assert opened(one) == opened(two) == {"b": (121, 7.0, 7.0), "c": (2, 2.0, 2.0)}


def test_counts_are_one_event_that_replays(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    counts: dict[Any, Any] = {1: (3, 0.1 + 0.2, 0.07), 0: (1, 1e-3)}
    with Opener(first=0).live(n_arms=3, seed=1, store=path, now=lambda: 1e9) as live:
        live.observe(counts=counts)
        live.observe(counts={})
        assert [event.kind for event in live.events()] == ["observed"]
        live.ask()
        twin = copied(live)
        leave(live)
    with ma.load(path, policy=Opener(first=0), now=lambda: 1e9) as again:
        assert known(again) == known(twin)
        assert again.progress().observed == 4


@pytest.mark.parametrize(
    ("limits", "counts", "squares"),
    [
        ((0.0, 1.0), (120, 7), 7.0),
        ((0.0, 1.0), (4, 2.5), 2.25),  # 1, 1, 0.5 and 0
        ((0.0, 1.0), (4, 2.5, 1.6), 1.6),
        ((-1.0, 3.0), (4, 4.0), 20.0),  # 3, 3, -1 and -1
        ((-1.0, 3.0), (2, 6.0), 18.0),
        (None, (3, 6.0, 14.0), 14.0),
    ],
)
def test_the_sum_of_squares_is_the_largest_possible_one(
    limits: Any, counts: Any, squares: float
) -> None:
    sigma = 0.5 if limits is None else None
    live = ma.MOSS(sigma=sigma).live(n_arms=2, horizon=9, reward_range=limits, seed=1)
    live.observe(counts={1: counts})
    assert live._experiment.ledger.counts[1].squares == pytest.approx(squares, rel=1e-12)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([("a", 1)], "must be a dict from arms"),
        ({"a": 3}, "a number of rewards and their sum, such as (120, 7) for arm 'a'"),
        ({"a": (1, 2, 3, 4)}, "a number of rewards and their sum"),
        ({"a": (0, 0)}, "a number of rewards >= 1"),
        ({"a": (1.5, 1)}, "a number of rewards >= 1"),
        ({"a": (3, float("nan"))}, "finite sums"),
        ({"a": (3, 4)}, "a sum for arm 'a' that is from 0 to 1 times the number of rewards"),
        ({"a": (3, 2, 0.5)}, "a sum of squares for arm 'a' that fits the sum"),
        ({"a": (3, 2, 2.5)}, "a sum of squares for arm 'a' that fits the sum"),
        ({"a": (3, 1), "z": (3, 1)}, "Unknown arm 'z'"),
    ],
)
def test_wrong_counts_are_refused(counts: Any, said: str) -> None:
    live = ma.MOSS().live(arms=["a", "b"], horizon=9, seed=1)
    before = known(live)
    with pytest.raises(ma.ManyarmsError) as error:
        live.observe(counts=counts)
    assert said in str(error.value)
    assert known(live) == before
    unbounded = ma.MOSS(sigma=1.0).live(arms=["a"], horizon=9, seed=1, reward_range=None)
    with pytest.raises(ma.ParameterError, match=r"\(number, sum, sum of squares\) for arm 'a' if"):
        unbounded.observe(counts={"a": (3, 1)})


def test_arguments_of_observe() -> None:
    live: Any = ma.MOSS().live(n_arms=2, horizon=9, seed=1)
    with pytest.raises(ma.ParameterError, match="`counts` cannot be combined"):
        live.observe(1, [1.0], counts={1: (1, 1)})
    with pytest.raises(ma.ParameterError, match="`arm` and `rewards` must be given, or `counts`"):
        live.observe(1)


def test_texts_depend_on_rewards_and_not_on_looks() -> None:
    for look in (False, True):
        live = ma.MOSS().live(n_arms=1, horizon=9, seed=1)
        for pull, reward in zip(live.ask(2), (0.25, 0.75), strict=True):
            live.tell(pull, reward)
            if look:
                str(live)
        assert not live.recommend().rate
    live = ma.MOSS().live(n_arms=1, horizon=9, seed=1)
    live.observe(counts={0: (10, 3)})
    assert live.recommend().rate


def test_a_replay_of_wrong_counts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with ma.MOSS().live(n_arms=3, horizon=9, seed=1, store=path) as live:
        live._experiment.observe_counts([(7, 1, 1.0, 1.0)])
        live._recorder._append()
        leave(live)
    with open_store(path) as store:
        assert "Unknown arm 7" in replayed(store, "experiment")
