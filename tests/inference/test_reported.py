"""The false alarms of the warning about late rewards that differ."""

import numpy as np
import pytest

from manyarms.inference.reported import count_delay, late_rewards_warning, no_delays


def share_of_warnings(mean_if_late: float, *, mean: float, runs: int = 200) -> float:
    """Return the share of runs with a warning at any of 40 looks at up to 4000 rewards."""
    rng, warned = np.random.default_rng(20), 0
    for _ in range(runs):
        delays = rng.exponential(600, 4000)
        rewards = rng.random(4000) < np.where(delays < 60, mean, mean_if_late)
        bins, seen = no_delays(), False
        for number, (delay, reward) in enumerate(zip(delays, rewards, strict=True), start=1):
            count_delay(bins, delay, float(reward))
            if number % 100 == 0:
                seen = seen or late_rewards_warning(bins, hold=False) != ""
        warned += seen
    return warned / runs


@pytest.mark.patient
@pytest.mark.parametrize("mean", [0.001, 0.01, 0.1, 0.5, 0.97])
def test_at_most_one_percent_false_alarms(mean: float) -> None:
    """At 1 % per run, more than 6 warnings in 200 runs have probability 0.004 (for each mean)."""
    assert share_of_warnings(mean, mean=mean) <= 0.01 + 3 * (0.01 * 0.99 / 200) ** 0.5


def test_lower_late_rewards_are_detected() -> None:
    assert share_of_warnings(0.05, mean=0.15, runs=50) > 0.9


@pytest.mark.parametrize("reward_range", [None, (0.0, 1000.0)])
def test_different_amounts_are_detected(reward_range: tuple[float, float] | None) -> None:
    bins = [(2000, 2000 * mean, 2000 * (mean * mean + 100)) for mean in (20.0, 40.0)]
    assert late_rewards_warning(bins, hold=False, reward_range=reward_range) != ""
