"""The comparison with the control is valid at all times, for the best-looking arm."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from numpy.typing import NDArray

import manyarms as ma
from manyarms.inference.confidence_sequences import log_evidence, spent_error, uniform_interval
from manyarms.inference.facts import CONTROL
from manyarms.inference.uplift import compare

ERROR = 0.05


def wrong(
    means: NDArray[np.float64], today: float, *, share: float, pulls: int, runs: int, seed: int
) -> tuple[int, int]:
    """Return the number of runs in which the interval of any arm was ever wrong.

    Return also the number of runs in which the usual interval for a difference was ever wrong, for
    the best-looking arm.

    The best-looking arm gets most pulls, as with a policy, and other arms get some. A user may
    choose the time and the arm, so one wrong interval is enough. It is wrong if it excludes the
    true pair of means.
    """
    dice = np.random.default_rng(seed)
    arms = len(means)
    told, ones = np.zeros((runs, arms)), np.zeros((runs, arms))
    log_arm, log_control = np.zeros((runs, arms)), np.zeros(runs)
    count, total = np.zeros(runs), np.zeros(runs)
    weights = np.log(spent_error(1.0, np.arange(1, arms + 1)))
    bad, naive = np.zeros(runs, np.bool_), np.zeros(runs, np.bool_)
    rows = np.arange(runs)
    for step in range(pulls):
        own = dice.random(runs) < share
        reward = dice.random(runs) < today
        chance = (total + 0.5) / (count + 1.0)
        gain = np.where(reward, np.log(chance / today), np.log((1 - chance) / (1 - today)))
        log_control += np.where(own, gain, 0.0)
        count += own
        total += own & reward
        best = np.argmax((ones + 1.0) / (told + 2.0), axis=1)
        arm = np.where(dice.random(runs) < 0.1, step * arms // pulls, best)
        mean = means[arm]
        reward = dice.random(runs) < mean
        chance = (ones[rows, arm] + 0.5) / (told[rows, arm] + 1.0)
        gain = np.where(reward, np.log(chance / mean), np.log((1 - chance) / (1 - mean)))
        ours = ~own
        log_arm[rows, arm] += np.where(ours, gain, 0.0)
        told[rows, arm] += ours
        ones[rows, arm] += ours & reward
        control, worst = np.exp(log_control), np.exp((weights + log_arm).max(axis=1))
        bad |= control / 2 + (1 + control) / 4 * worst > 1 / ERROR
        n, p = np.maximum(told[rows, best], 1.0), ones[rows, best] / np.maximum(told[rows, best], 1)
        c, q = np.maximum(count, 1.0), total / np.maximum(count, 1.0)
        spread = np.sqrt(p * (1 - p) / n + q * (1 - q) / c)
        naive |= (count > 30) & (np.abs(p - q - (means[best] - today)) > 1.96 * spread)
    return int(bad.sum()), int(naive.sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("means", "today", "share"),
    [
        ([0.03] * 30, 0.03, 0.05),  # no arm is better, but thirty arms may look better
        ([0.03] * 29 + [0.04], 0.03, 0.05),
        ([0.5] * 2, 0.5, 0.5),
        ([0.9, 0.02, 0.02], 0.02, 0.05),  # the control is seldom pulled
        ([0.2] * 10, 0.6, 0.3),
    ],
)
def test_intervals_are_wrong_in_few_runs(means: list[float], today: float, share: float) -> None:
    runs = 2000
    found, naive = wrong(np.array(means), today, share=share, pulls=1500, runs=runs, seed=1)
    assert found <= ERROR * runs, found
    assert naive > 3 * ERROR * runs, naive  # intervals can be wrong in these runs


def test_the_intervals_contain_the_compatible_pairs_of_means() -> None:
    dice = random.Random(3)
    for _ in range(40):
        arm = (n := dice.randint(1, 300), float(dice.randint(0, n)))
        control = (n := dice.randint(1, 300), float(dice.randint(0, n)))
        place, error = dice.choice([1, 5, 500]), dice.choice([0.05, 0.2])
        difference, ratio = compare(
            arm, control, place=place, error=error, bounds=(0, 1), sigma=0.5
        )
        p, q = (axis.ravel() for axis in np.meshgrid(*2 * [np.linspace(0.001, 0.999, 200)]))
        now = np.exp(np.minimum(log_evidence(*control, q), 300))
        best = np.exp(np.minimum(log_evidence(*arm, p), 300))
        together = now / 2 + (1 + now) / 4 * spent_error(1.0, place) * best <= 1 / error
        p, q = p[together], q[together]
        near = 0.02
        assert difference[0] - 1e-6 <= (p - q).min() <= difference[0] + near
        assert difference[1] - near <= (p - q).max() <= difference[1] + 1e-6
        assert ratio[0] - 1e-6 <= (p / q).min()
        assert (p / q).max() <= ratio[1] * (1 + 1e-6)


@pytest.mark.parametrize("place", [1, 3, 200])
@pytest.mark.parametrize(("told", "today"), [(1000, 1000), (19_000, 1000), (300, 20_000)])
def test_the_interval_is_narrower_than_two_intervals(place: int, told: int, today: int) -> None:
    for mean, now in ((0.034, 0.03), (0.6, 0.5)):
        arm, control = (told, told * mean), (today, today * now)
        (low, high), _ = compare(arm, control, place=place, error=0.05, bounds=(0, 1), sigma=0.5)
        own = uniform_interval(*arm, error=spent_error(0.025, place))
        other = uniform_interval(*control, error=0.025)
        assert high - low < (own[1] - own[0]) + (other[1] - other[0])


def test_other_ranges_and_no_range() -> None:
    plain = compare((90, 30.0), (40, 10.0), place=2, error=0.1, bounds=(0, 1), sigma=0.5)
    scaled = compare((90, 300.0), (40, 100.0), place=2, error=0.1, bounds=(0, 10), sigma=5.0)
    assert np.allclose(np.array(plain[0]) * 10, scaled[0])
    assert np.allclose(plain[1], scaled[1])
    moved = compare((90, -60.0), (40, -30.0), place=2, error=0.1, bounds=(-1, 0), sigma=0.5)
    assert np.allclose(plain[0], moved[0])
    assert moved[1] == (-math.inf, math.inf)
    low, high = compare((90, 30.0), (40, 10.0), place=2, error=0.1, bounds=None, sigma=0.5)[0]
    assert low < 30 / 90 - 10 / 40 < high


def played(control_mean: float, arm_mean: float, pulls: int) -> ma.Live:
    live = ma.MOSS().live(arms=["a", "b"], horizon=pulls, seed=1, control="current", share=0.2)
    dice = random.Random(1)
    for pull in live.ask(pulls):
        mean = control_mean if pull.arm == "current" else arm_mean if pull.arm == "a" else 0.1
        live.tell(pull, float(dice.random() < mean))
    return live


def test_the_printed_uplift() -> None:
    live = played(0.3, 0.6, 4000)
    uplift = live.uplift()
    assert (uplift.arm, uplift.control, uplift.better) == ("a", "current", True)
    control = live._experiment.ledger.control
    assert control is not None
    assert uplift.control_mean == control.total / control.told
    assert uplift.mean == live.recommend().estimate
    assert uplift.interval[0] < 0.3 < uplift.interval[1]
    assert uplift.ratio_interval[0] < 2 < uplift.ratio_interval[1]
    low, high = (f"+{100 * (bound - 1):.3g} %" for bound in uplift.ratio_interval)
    assert str(uplift) == (
        f"+{100 * (uplift.ratio - 1):.3g} % over current, with 95 % confidence from {low} to "
        f"{high} (valid at any time; current: {100 * uplift.control_mean:.3g} % after "
        f"{control.told} rewards)"
    )
    wider = live.uplift(confidence=0.999)
    assert wider.interval[0] < uplift.interval[0]
    assert "with 99.9 % confidence" in str(wider)
    assert played(0.9, 0.3, 1500).uplift().better is False
    assert played(0.5, 0.5, 300).uplift().better is None
    frame = uplift.to_dataframe()
    assert frame["low"][0] == uplift.interval[0]


def test_uplift_without_rewards_or_of_the_control() -> None:
    alone = ma.MOSS().live(n_arms=3, horizon=9).uplift()
    assert "has no control" in alone.missing
    live = ma.MOSS().live(arms=["a", "b"], horizon=99, seed=1, control="a", share=0.5)
    pulls = live.ask(20)
    assert "no rewards have been reported yet" in str(live.uplift())
    of_control = {n for n, pull in live._experiment.ledger.pending.items() if pull.arm == CONTROL}
    for pull in pulls:
        if pull.id not in of_control:
            live.tell(pull, float(pull.arm == "a"))
    assert "of the control 'a'" in str(live.uplift())
    live.tell(min(of_control), 0.0)
    assert str(live.uplift()) == "The recommended arm is the control itself, a"
    with pytest.raises(ma.ParameterError, match="confidence"):
        live.uplift(confidence=1.0)


def test_no_verdict_against_a_control_without_rewards() -> None:
    live = ma.Prospector().live(n_arms=3, seed=1, reward_range=(0, 1), control="now", share=0.05)
    for _ in range(200):
        pull = live.ask()
        if pull.arm != "now":
            live.tell(pull, 1.0)
    assert not live.verdict(target="control").stop
    for pull in live.pending:
        live.tell(pull, 0.0)
    assert live.verdict(target="control").stop
