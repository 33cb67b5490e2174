"""The false alarms, and the power, of the warning about late rewards that differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.inference.delays import MOST_COMPARED, Delays
from manyarms.inference.reported import late_rewards_warning
from tests.live.stores import copied

AMOUNTS = (20.0, 40.0)


def share_of_warnings(mean_if_late: float, *, mean: float, runs: int = 200) -> float:
    """Return the share of runs with a warning at any of 40 looks at up to 4000 rewards."""
    rng, warned = np.random.default_rng(20), 0
    for _ in range(runs):
        times = rng.exponential(600, 4000)
        rewards = rng.random(4000) < np.where(times < 60, mean, mean_if_late)
        delays, seen = Delays(), False
        for k, (delay, reward) in enumerate(zip(times, rewards, strict=True)):
            delays.count(0, delay, float(reward), k)
            if k % 100 == 99:
                seen = seen or late_rewards_warning(delays, hold=False) != ""
        warned += seen
    return warned / runs


@pytest.mark.patient
@pytest.mark.parametrize("mean", [0.001, 0.01, 0.1, 0.5, 0.97])
def test_at_most_one_percent_false_alarms(mean: float) -> None:
    """At 1 % per run, more than 6 warnings in 200 runs have probability 0.004 (for each mean)."""
    assert share_of_warnings(mean, mean=mean) <= 0.01 + 3 * (0.01 * 0.99 / 200) ** 0.5


def test_lower_late_rewards_are_detected() -> None:
    assert share_of_warnings(0.05, mean=0.15, runs=50) >= 0.9


@pytest.mark.parametrize("reward_range", [None, (0.0, 1000.0)])
@pytest.mark.parametrize("means", [(20.0, 40.0), (30.0, 30.0)], ids=["differ", "equal"])
def test_different_amounts_are_detected(
    reward_range: tuple[float, float] | None, means: tuple[float, float]
) -> None:
    rng, warned = np.random.default_rng(3), 0
    for _ in range(100):
        delays, seen = Delays(), False
        for k, reward in enumerate(rng.normal(0.0, 10.0, 300)):
            delays.count(0, 100.0 * (k % 2), means[k % 2] + reward, k)
            if k % 30 == 29:
                seen |= late_rewards_warning(delays, hold=False, reward_range=reward_range) != ""
        warned += seen
    # 6 or more of 100 at 1 % each have probability 0.0005
    assert warned == 100 if means == AMOUNTS else warned <= 5


def play(live: ma.Live, pulls: int, mean: Callable[[Any], float], delay: Any, rng: Any) -> None:
    """Play in batches; `delay` returns the delay of a batch's next pull."""
    clock = live._experiment.now
    while pulls > 0:
        asked = live.ask(min(pulls, 200))
        pulls -= len(asked)
        begin = clock.time  # type: ignore[attr-defined]
        for at, pull in sorted(((delay(pull), pull) for pull in asked), key=lambda one: one[0]):
            clock.time = begin + at  # type: ignore[attr-defined]
            live.tell(pull, float(rng.random() < mean(pull.arm)))


class Clock:
    time = 1000.0

    def __call__(self) -> float:
        return self.time


POLICIES = [ma.Prospector(), ma.EmpMOSSPlusPlus(count_late=True), ma.MOSS()]


def warnings(case: str, seed: int) -> bool:
    """Return whether there was a warning; within each arm, delay and reward are independent."""
    rng, policy = np.random.default_rng(seed), POLICIES[seed % 3]
    control: dict[str, Any] = {"control": "now", "share": 0.3} if case == "control" else {}
    means = rng.beta(2, 5, 400)
    live = policy.live(n_arms=200, horizon=9000, seed=seed, now=Clock(), **control)
    if case == "control":
        play(live, 4000, lambda arm: 0.1 if arm == "now" else means[arm],
             lambda pull: 0.5 if pull.arm == "now" else rng.exponential(100), rng)  # fmt: skip
        return live.progress().warning != ""
    play(live, 600 if case == "a day" else 2000, means.__getitem__,
         lambda _: rng.exponential(9000 if case == "a day" else 1), rng)  # fmt: skip
    warned = live.progress().warning != ""
    if case == "new arms":
        live.add_arms(200)
        means[200:] = np.minimum(0.95, means[200:] + 0.4)
    play(live, 3000, means.__getitem__,
         lambda pull: rng.exponential(3 if pull.arm < 200 else 300), rng)  # fmt: skip
    return warned or live.progress().warning != ""


@pytest.mark.parametrize("case", ["a day", "new arms", "control"])
def test_no_false_alarms_while_a_policy_learns(case: str) -> None:
    """At 1 % each, 2 or more of 12 have probability 0.006."""
    assert sum(warnings(case, seed) for seed in range(12)) <= 1


def test_few_arms_are_compared_and_a_winner_takes_the_place_of_another() -> None:
    delays = Delays()
    for arm in range(1000):
        for k in range(30):
            delays.count(arm, 1.0, 0.0, k)
    assert set(delays.compared) == set(range(MOST_COMPARED))
    for k in range(1000):
        delays.count(1000, float(k % 2), float(k % 2), k)
    assert len(delays.compared) == MOST_COMPARED
    assert 1000 in delays.compared
    assert late_rewards_warning(delays, hold=False) != ""


def test_the_control_is_compared_with_itself_and_a_copy_warns_too() -> None:
    live = ma.MOSS().live(n_arms=3, horizon=999, control="now", share=0.5, now=Clock())
    rng = np.random.default_rng(1)
    play(live, 800, lambda _: float(live._experiment.now() > 1e9), lambda _: 1.0, rng)
    late = Delays()
    for k in range(200):
        late.count(-1, 100.0 * (k % 2), float(k % 2), k)
    live._experiment.ledger.delays = late
    assert "depends on the delay" in live.progress().warning
    again = copied(live)
    assert again.progress().warning == live.progress().warning
    assert again._experiment.ledger.delays.compared == late.compared
