"""The live handle: determinism, and errors that change nothing."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from tests.helpers import ALL_POLICIES, EVERY_POLICY, label, play_live, run_python, unit_only
from tests.live.stores import copied, known


def _reward(arm: int, count: int) -> float:
    return float((arm * 7 + count * 3) % 5 == 0)


@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_the_same_seed_and_rewards_give_the_same_arms(policy: ma.Policy) -> None:
    first, again, other = (
        play_live(policy.live(n_arms=1000, horizon=300, seed=seed), 300, _reward)
        for seed in (5, 5, 6)
    )
    assert first == again
    assert first != other


def test_refused_tells_change_nothing() -> None:
    live = ma.MOSS().live(n_arms=10, horizon=5, seed=1)
    with pytest.raises(ma.TurnError, match=r"Cannot tell pull 0: it was not asked for"):
        live.tell(ma.Pull(arm=3, id=0), 1.0)
    pull = live.ask()
    assert (pull.id, live.pulls, live.pending) == (0, 1, [pull])
    wrong = pull._replace(arm=pull.arm + 1)
    with pytest.raises(
        ma.TurnError, match=r"pull 0 of this experiment is of arm .* returned the pull"
    ):
        live.tell(wrong, 1.0)
    live.tell(pull, 1.0)
    with pytest.raises(ma.TurnError, match=r"Cannot tell pull 0: its reward has already been told"):
        live.tell(pull, 1.0)
    live.tell(pull, 1.0, again="ignore")
    assert live.pending == []
    assert live.progress().told == 1


@pytest.mark.parametrize(
    "reward", [math.nan, math.inf, -math.inf, "1", None, [1.0], 10**400, np.array([1.0])]
)
def test_a_bad_reward_changes_nothing(reward: object) -> None:
    live, control = (ma.EmpMOSSPlusPlus().live(n_arms=50, horizon=40, seed=3) for _ in range(2))
    for step in range(40):
        pull, expected = live.ask(), control.ask()
        assert pull == expected
        with pytest.raises(ma.ParameterError, match=r"Cannot tell reward .* finite number"):
            live.tell(pull, reward)  # type: ignore[arg-type]
        for handle in (live, control):
            handle.tell(expected, float(step % 3 == 0))


@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_asks_after_the_horizon_are_refused(policy: ma.Policy) -> None:
    live = policy.live(n_arms=5, horizon=7, seed=2)
    play_live(live, 7, _reward)
    with pytest.raises(ma.TurnError, match="all 7 pulls of the horizon are made"):
        live.ask()
    assert repr(live) == f"<Live {policy}: 7 of 7 pulls on 5 arms>"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_arms": 0, "horizon": 5}, "`n_arms` must be an integer >= 1"),
        ({"n_arms": 2**51, "horizon": 5}, "<= 1125899906842624"),
        ({"n_arms": 5}, r"`horizon` must be given to moss, got None.*such as prospector"),
        ({"n_arms": 5, "horizon": 5, "seed": 2**64}, "`seed` must be"),
    ],
)
def test_bad_input(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ma.ParameterError, match=message):
        ma.MOSS().live(**arguments)  # type: ignore[arg-type]


def test_live_use_imports_neither_numba_nor_a_compiler() -> None:
    run_python(
        "import sys, manyarms as ma\n"
        "assert 'numpy' not in sys.modules\n"
        "live = ma.EmpMOSSPlusPlus().live(n_arms=10**6, horizon=100)\n"
        "for _ in range(100): live.tell(live.ask(), 1.0)\n"
        "heavy = {'numba', 'llvmlite', 'matplotlib', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )


def test_an_ended_pull_may_be_abandoned_repeatedly() -> None:
    live = ma.MOSS().live(n_arms=5, horizon=9)
    told, lost = live.ask(2)
    live.tell(told, 1.0)
    live.abandon(lost)
    before = known(live)
    for pull in (told, lost):
        live.abandon(pull, again="ignore")
        with pytest.raises(ma.TurnError, match=r"Cannot abandon pull \d: it.*again='ignore'"):
            live.abandon(pull)
    with pytest.raises(ma.ParameterError, match="`again` must be one of"):
        live.abandon(told, again="always")
    assert known(live) == before


@pytest.mark.parametrize("policy", EVERY_POLICY, ids=label)
def test_estimates_of_the_largest_rewards_are_numbers(policy: ma.Policy) -> None:
    if unit_only(policy):
        return
    scaled = policy.with_reward_range((0.0, 1.0))
    live = scaled.live(n_arms=3, horizon=30, reward_range=None)
    for sign in (1.0, 1.0, -1.0) * 10:
        live.tell(live.ask(), sign * 1e100)
    progress = live.progress()
    assert math.isfinite(progress.reward)
    assert math.isfinite(progress.mean_reward)
    assert all(math.isfinite(arm.estimate) for arm in live.top(3))
    assert copied(live).progress() == progress


def test_larger_rewards_are_refused() -> None:
    live = ma.MOSS(sigma=2.0).live(n_arms=3, horizon=30, reward_range=None)
    pull = live.ask()
    for reward in (1e308, -1.01e100):
        with pytest.raises(ma.ParameterError, match=r"at most 1e\+100 in size.*still pending"):
            live.tell(pull, reward)
    for limits in ((0.0, 1e101), (-1e308, 0.0)):
        with pytest.raises(ma.ParameterError, match="`reward_range` must be a number"):
            ma.MOSS().live(n_arms=3, horizon=30, reward_range=limits)


def test_wrong_calls_say_what_to_write() -> None:
    policy: Any = ma.MOSS()
    live: Any = policy.live(n_arms=3, horizon=9)
    wrong = (ma.ParameterError, ma.UnknownNameError)
    with pytest.raises(wrong, match=r"by name \(n_arms=..., arms=.*, got \['a', 'b'\] without one"):
        policy.live(["a", "b"])
    with pytest.raises(wrong, match="Unknown parameter of `live`: 'arm'. Did you mean 'arms'?"):
        policy.live(arm=["a"])
    for rewards in ([1.0], {0: 1.0}, 1.0, [(1, 2, 3)]):
        with pytest.raises(wrong, match="must be pairs of a pull .*Nothing was told"):
            live.tell_many(rewards)
    with pytest.raises(wrong, match="parameter of `verdict`: 'eps'. Did you mean 'epsilon'?"):
        live.verdict(eps=0.1)
    for k in (-1, "2"):
        with pytest.raises(wrong, match=f"got {k!r}. Pass the number of pulls"):
            live.ask(k)
    for k in (10**6 + 1, 1 << 70):
        with pytest.raises(wrong, match="`k` must be .* <= 1000000, got .* For more pulls"):
            live.ask(k)
    assert live.pulls == 0
    batch = live.ask(2)
    with pytest.raises(wrong, match=r"`pull` must be an integer .* that was asked for"):
        live.tell("0", 1.0)
    with pytest.raises(wrong, match="For several pulls, use tell_many"):
        live.tell(batch, 1)
    for reward, kind in (("1", "str"), (None, "NoneType"), ([1], "list")):
        with pytest.raises(wrong, match=f"of type {kind}: it must be a finite number from 0 to 1"):
            live.tell(batch[0], reward)
    with pytest.raises(wrong, match=r"in this order, got \(1, 0\)"):
        policy.live(n_arms=3, horizon=9, reward_range=(1, 0))


@pytest.mark.parametrize(
    ("second", "error", "message"),
    [
        ((1, 5.0), ma.ParameterError, r"rewards\[1\], of pull 1: Cannot tell reward 5.0: .*"),
        ((99, 1.0), ma.TurnError, r"rewards\[1\], of pull 99: .* not asked for\. .*"),
        ((0, 1.0), ma.TurnError, r"rewards\[1\], of pull 0: Cannot tell pull 0 twice\. .*"),
    ],
)
def test_a_refused_list_names_the_wrong_entry(
    second: Any, error: type[Exception], message: str
) -> None:
    live = ma.MOSS().live(n_arms=3, horizon=9)
    first, _ = live.ask(2)
    with pytest.raises(error, match=message) as caught:
        live.tell_many([(first, 1.0), second])
    assert str(caught.value).endswith(" Nothing was told.")
    assert "still pending" not in str(caught.value)
    assert len(live.pending) == 2


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_handle_is_not_copied(duplicate: Any) -> None:
    live = ma.MOSS().live(n_arms=3, horizon=30)
    live.ask()
    with pytest.raises(ma.CopyError, match=r"live\.save\(path\) and load"):
        duplicate(live)
    second = copied(live)
    assert second.ask() == live.ask()


def test_a_default_seed_is_drawn_and_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = iter(range(10, 20))
    monkeypatch.setattr("manyarms.live.handle._any_seed", lambda: next(seeds))
    first, second = (ma.MOSS().live(n_arms=10**6, horizon=9) for _ in range(2))
    assert (first.seed, second.seed) == (10, 11)
    assert first.ask() != second.ask()
    for _ in range(2):  # the same script begins and continues
        with ma.MOSS().live(n_arms=9, horizon=9, store=tmp_path / "shop.db") as live:
            assert live.seed == 12
