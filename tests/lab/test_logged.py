"""Replay of logged data: it finds what a real game would, and refuses what was not random."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.core.statistics import mean_interval
from manyarms.core.uniformity import uniformity_doubt

MEANS = np.array([0.2, 0.5, 0.8, 0.3])
pytestmark = pytest.mark.interpreted


def log_of(rows: int, seed: int = 0, means: Any = MEANS) -> dict[str, Any]:
    luck = np.random.default_rng(seed)
    arms = luck.integers(len(means), size=rows)
    return {"arm": arms, "reward": (luck.random(rows) < means[arms]).astype(float)}


def test_a_replay_is_a_real_game() -> None:
    """Its mean reward is, over many logs, that of live games; a false alarm in a thousand."""
    runs, pulls = 60, 200
    replayed = [
        ma.replay(log_of(1200, seed), ma.MOSS(), horizon=pulls, seed=seed)["moss"]
        for seed in range(runs)
    ]
    assert {(each.games, each.matched) for each in replayed} == {(1, pulls)}
    real = []
    for seed in range(runs):
        luck = np.random.default_rng(1000 + seed)
        live = ma.MOSS().live(n_arms=4, horizon=pulls, seed=seed)
        for _ in range(pulls):
            pull = live.ask()
            live.tell(pull, float(luck.random() < MEANS[pull.arm]))
        real.append(live.progress().mean_reward)
    got = [each.mean_reward for each in replayed]
    spread = np.sqrt((np.var(got) + np.var(real)) / runs)
    assert abs(np.mean(got) - np.mean(real)) < 3.3 * spread


def test_it_is_fair_to_all_and_says_how_far_it_came() -> None:
    result = ma.replay(log_of(4000), [ma.MOSS(), ma.policy("uniform"), ma.Prospector()])
    assert (result.rows, result.n_arms) == (4000, 4)
    assert result.horizon == 936
    assert [each.policy for each in result] == ["moss", "uniform", "prospector"]
    assert result["moss"].mean_reward > 0.7
    assert abs(result["uniform"].mean_reward - result.mean_reward) < 0.05
    assert "4000 rows, 4 arms, games of 936 pulls; choosing at random earned 0.4" in str(result)
    assert "A few games say little about the next one" in str(result)
    long = ma.replay(log_of(400), ma.MOSS(), horizon=500)["moss"]
    assert (long.games, long.interval, 50 < long.matched < 150) == (0, (0.0, 1.0), True)
    assert "(the log ended)" in str(ma.replay(log_of(400), ma.MOSS(), horizon=500))
    with pytest.raises(KeyError, match="No policy 'mos' was replayed, but moss"):
        ma.replay(log_of(400), ma.MOSS())["mos"]


def test_a_log_has_room_for_many_games_one_after_the_other() -> None:
    log = log_of(4000)
    many = ma.replay(log, ma.MOSS(), horizon=100, seed=5)
    assert (many["moss"].games, many["moss"].matched) == (9, 900)
    assert "few games" not in str(many)
    at, means = 0, []
    for game in range(9):
        live, total = ma.MOSS().live(n_arms=4, horizon=100, seed=5 + game), 0.0
        for _ in range(100):
            pull = live.ask()
            while log["arm"][at] != pull.arm:
                at += 1
            live.tell(pull, log["reward"][at])
            total, at = total + log["reward"][at], at + 1
        means.append(total / 100)
    assert many["moss"].mean_reward == pytest.approx(np.mean(means))
    limits = mean_interval(np.array(means), bounds=(0.0, 1.0))
    assert many["moss"].interval == pytest.approx(limits[1:])
    free = ma.replay(log, ma.MOSS(sigma=0.5), horizon=100, seed=5, reward_range=None)["moss"]
    assert (free.mean_reward, free.interval) == (many["moss"].mean_reward, (-np.inf, np.inf))


@pytest.mark.patient
@pytest.mark.parametrize("name", ["greedy", "uniform", "ucb1"])
@pytest.mark.parametrize("means", [(0.5, 0.6, 0.7, 0.8), (0.9, 0.1)], ids=["close", "apart"])
def test_limits_hold_for_policies_that_settle_early_too(name: str, means: Any) -> None:
    """Greedy's games differ: with limits for the arms of one path, up to all of these fail."""
    logs, games, pulls = 60, 8, 40
    policy, outside, earned = ma.policy(name), [], []
    for seed in range(logs):
        log = log_of(len(means) * (games + 1) * pulls, 100 + seed, np.array(means))
        one = ma.replay(log, policy, horizon=pulls, n_arms=len(means), seed=100 * seed)[name]
        assert one.games >= games - 2
        outside.append(one.interval)
        earned.append(one.mean_reward)
    expected = np.mean(earned)
    low, high = np.array(outside).T
    assert np.sum((low > expected) | (expected > high)) <= 6  # of 60, each with 5 %: once in 100
    assert np.mean(high - low) < 0.6


def test_logs_come_from_anywhere(tmp_path: Path) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    log = log_of(800)
    known = ma.replay(log, ma.MOSS())
    named = {"arm": [f"item {k}" for k in log["arm"]], "reward": log["reward"].astype(bool)}
    frame = pandas.DataFrame(named)
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.rename(columns={"reward": "click"}).to_parquet(tmp_path / "log.parquet")
    others = [frame, polars.DataFrame(named), arrow.table(named), tmp_path / "log.csv"]
    for other in others:
        assert ma.replay(other, ma.MOSS()) == known
    assert ma.replay(str(tmp_path / "log.parquet"), ma.MOSS(), reward="click") == known
    for wrong, message in (
        ({"arm": [1, 2]}, "must have a column 'reward', got arm"),
        ({"arm": [1, 2], "reward": ["x", "y"]}, "must have numbers in 'reward'"),
        ({"arm": [1], "reward": [np.nan]}, "must have rows with an arm and a reward"),
        (3, "must be a table or a path, got int"),
        ({"arm": log["arm"], "reward": 3 * log["reward"]}, "rewards within `reward_range`"),
    ):
        with pytest.raises(ma.ParameterError, match=message):
            ma.replay(wrong, ma.MOSS())
    (tmp_path / "no.parquet").write_bytes(b"nothing")
    for name, why in (("no.parquet", "Parquet"), ("none.csv", "there is none")):
        with pytest.raises(ma.ParameterError, match=f"`log` must name a CSV or Parquet .*{why}"):
            ma.replay(tmp_path / name, ma.MOSS())


def test_rows_that_say_nothing_are_left_out_and_counted() -> None:
    log = log_of(800)
    known = ma.replay(log, ma.MOSS())
    rewards = [*log["reward"], np.nan, 1.0]
    for arms in ([*log["arm"], 1, np.nan], [*map("item {}".format, log["arm"]), "item 1", None]):
        result = ma.replay({"arm": arms, "reward": rewards}, ma.MOSS())
        assert (result.left_out, result.policies) == (2, known.policies)
        assert "rows left out, without an arm or a reward: 2" in str(result)
    assert "left out" not in str(known)


@pytest.mark.parametrize(
    ("log", "given", "message"),
    [
        ({"arm": [1, 2, 1], "reward": [0, 1]}, {}, "got 3 values in 'arm' and 2 in 'reward'"),
        ({"arm": ["a"] * 9, "reward": [1] * 9}, {}, "at least 2 arms, got only arm a. If"),
        (log_of(40), {"n_arms": 0}, "`n_arms` must be an integer >= 2, got 0"),
        (log_of(0), {}, "`log` must have rows with an arm and a reward, got an empty log"),
        (log_of(40), {"n_arms": 3}, "`n_arms` must be at least 4, the number of arms in the log"),
        (log_of(20), {}, "6 rows for each arm, 24 for 4 arms, got 20: a pull takes about 4 rows"),
    ],
)
def test_logs_that_cannot_be_replayed_say_why(log: Any, given: Any, message: str) -> None:
    with pytest.raises(ma.ParameterError, match=message):
        ma.replay(log, ma.MOSS(), **given)


def _learned(rows: int) -> dict[str, Any]:
    live, luck = ma.MOSS().live(n_arms=4, horizon=rows, seed=1), np.random.default_rng(2)
    arms, rewards = [], []
    for _ in range(rows):
        pull = live.ask()
        rewards.append(float(luck.random() < MEANS[pull.arm]))
        arms.append(pull.arm)
        live.tell(pull, rewards[-1])
    return {"arm": arms, "reward": rewards}


def _changed(change: Any) -> dict[str, Any]:
    log = log_of(4000)
    log["arm"] = change(log["arm"])
    return log


def _stays_with_winners() -> dict[str, Any]:
    """As often as not an arm is chosen again: more often if it won, less often if not."""
    luck = np.random.default_rng(3)
    arms, rewards = [0], [1.0]
    for _ in range(3999):
        again = luck.random() < (0.4 if rewards[-1] else 0.1)
        arms.append(arms[-1] if again else (arms[-1] + 1 + int(luck.integers(3))) % 4)
        rewards.append(float(luck.random() < 0.5))
    return {"arm": arms, "reward": rewards}


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (_learned(2000), "arms were chosen too unevenly, "),
        (_changed(lambda arm: np.arange(4000) % 4), "an arm followed itself 0 times"),
        (_changed(np.sort), "arms were chosen too unevenly in the first half"),
        (_changed(lambda arm: np.minimum(arm, 2)), "too unevenly, 0 to "),
        (_stays_with_winners(), "whether an arm was chosen again depends on its reward"),
    ],
    ids=["learned", "in turn", "in blocks", "an arm too often", "stays with winners"],
)
def test_logs_that_were_not_random_are_refused(log: Any, reason: str) -> None:
    with pytest.raises(ma.ParameterError, match=f"uniformly random choices.*{reason}"):
        ma.replay(log, ma.MOSS(), n_arms=4)


@pytest.mark.parametrize(
    ("n", "rows"), [(2, 500), (10, 400), (1000, 300), (10**9, 5000), (5000, 20_000)]
)
def test_random_logs_are_not_doubted(n: int, rows: int) -> None:
    for seed in range(100):
        luck = np.random.default_rng(seed)
        doubt = uniformity_doubt(luck.integers(n, size=rows), luck.random(rows), n)
        assert doubt == ""
