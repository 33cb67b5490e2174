"""Verdicts: a stop is right, and otherwise the verdict says what is missing.

With an error rate of 5 %, the numbers of wrong verdicts exceed their bounds with probability 0.001.
The seeds are fixed.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.inference.confidence_sequences import evidence_below
from manyarms.inference.sample import Sample
from manyarms.live.answers import facts_of
from tests.fixed import Fixed
from tests.inference.random_events import new
from tests.live.stores import copied


def stopped(
    policy: ma.Policy,
    means: Any,
    *,
    most_pending: int = 1,
    noise: float = 0.0,
    seed: int = 0,
    **asked: Any,
) -> ma.StopVerdict | None:
    """Return the first verdict that says stop, checked after every 50 pulls, or None.

    Rewards are 0 and 1, or Gaussian with this `noise`.
    """
    limits = None if noise else (0.0, 1.0)
    live = policy.live(n_arms=len(means), horizon=1000, seed=seed, reward_range=limits)
    luck = np.random.default_rng(seed)
    for k in range(1000):
        live.ask()
        waiting = live._experiment.ledger.pending
        if len(waiting) >= most_pending:
            number = list(waiting)[int(luck.integers(len(waiting)))]
            mean = means[waiting[number].arm]
            live.tell(number, luck.normal(mean, noise) if noise else float(luck.random() < mean))
        if k % 50 == 49:
            verdict = live.verdict(**asked)
            if verdict.stop:
                return verdict
    return None


def wrong(verdict: ma.StopVerdict, means: Any) -> bool:
    best = np.sort(means)[::-1][math.floor(verdict.quantile * len(means))]
    less = verdict.epsilon
    if isinstance(less, str):
        less = best * float(less.rstrip("%")) / 100
    return bool(means[verdict.arm] < best - less)


def rare(n: int, best: int, poor: float) -> Any:
    """Return means in random order, of which few are 0.8."""
    means = np.full(n, poor)
    means[np.random.default_rng(n).permutation(n)[:best]] = 0.8
    return means


# the fewest good arms with which a poor arm is wrong: 5 % and one more
HARD = rare(1000, 51, 0.0)
ONE_BY_ONE = ma.Patience(best_mean=0.5)  # pulls each arm until its mean is too low
NORMAL = np.random.default_rng(5).normal(size=3000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "means", "asked"),
    [
        (ma.MOSSOracle(size=190), HARD, {"epsilon": 0.5}),
        (ma.MOSSOracle(size=190), HARD, {"epsilon": 0.5, "most_pending": 9}),
        (ma.MOSSOracle(size=190), HARD, {"epsilon": "60%"}),
        (
            ma.MOSSOracle(size=60, sigma=0.5),
            NORMAL,
            {"epsilon": 1.0, "quantile": 0.2, "noise": 0.5},
        ),
    ],
    ids=["in turn", "late", "a share", "Gaussian"],
)
def test_verdicts_that_stop_are_right(policy: ma.Policy, means: Any, asked: Any) -> None:
    verdicts = [stopped(policy, means, seed=seed, **asked) for seed in range(30)]
    given = [verdict for verdict in verdicts if verdict is not None]
    assert len(given) > 15
    assert f" of the {given[0].met} arms tried at random, the rewards" in str(given[0])
    assert sum(wrong(verdict, means) for verdict in given) <= 6  # more: probability 0.001


def test_a_sample_that_is_too_small_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show that the tests above can fail."""
    monkeypatch.setattr(Sample, "likely", lambda _, few, size: float(few > 0))
    monkeypatch.setattr(Sample, "least", lambda _: 10)
    verdicts = [stopped(ONE_BY_ONE, HARD, seed=seed, epsilon=0.5) for seed in range(30)]
    given = [verdict for verdict in verdicts if verdict is not None]
    assert sum(wrong(verdict, HARD) for verdict in given) > 6


def test_the_error_of_the_sample_is_used_and_not_exceeded() -> None:
    """The worst case: good arms are as rare as allowed, each open with probability 1/2."""
    live = new(ma.MOSS(), n_arms=100_000)
    sample = Sample(live._tried_arms().facts, np.zeros(2000, np.bool_), 0.05, 0.04, 0.5)
    rule = [(size, sample.allowed(size, error)) for size, error in sample.sizes()]
    assert rule[0][1] == 0
    luck, runs = np.random.default_rng(1), 4000
    opened = np.cumsum(luck.random((runs, 2000)) < 0.025, axis=1)
    failed = np.mean([any(row[size - 1] <= most for size, most in rule) for row in opened])
    assert 0.008 < failed < 0.02  # half of 0.04, of which nine tenths are spent


@pytest.mark.parametrize(("bounds", "mean"), [((0.0, 1.0), 0.8), ((0.0, 1.0), 0.1), (None, 0.3)])
def test_evidence_is_seldom_against_the_true_mean(bounds: Any, mean: float) -> None:
    luck, runs, length = np.random.default_rng(3), 1000, 400
    draws = luck.random((runs, length)) < mean if bounds else luck.normal(mean, 0.5, (runs, length))
    totals = np.cumsum(draws, axis=1)
    counts = np.broadcast_to(np.arange(1, length + 1), totals.shape)
    evidence = evidence_below(counts.ravel(), totals.ravel(), mean, bounds=bounds)
    crossed = (evidence.reshape(runs, length) > 2.0).any(axis=1).mean()
    assert crossed < 0.5 + 3.1 * math.sqrt(0.25 / runs)  # false alarm 0.001
    for bar in (mean + 0.05, mean + 0.1):  # and evidence grows with the bar
        higher = evidence_below(counts.ravel(), totals.ravel(), bar, bounds=bounds)
        assert (higher >= evidence * (1 - 1e-9)).all()
    assert evidence_below([5], [0.0], 1.0).item() == math.inf
    assert evidence_below([5], [0.0], 0.0).item() == 1.0


def _filled(live: ma.Live, rewards: dict[int, list[float]]) -> ma.Live:
    for arm, some in rewards.items():
        live.observe(arm, some)
    return live


def test_few_arms_are_compared_with_each_other() -> None:
    live = _filled(new(n_arms=3), {0: [1.0] * 200, 1: [0.0] * 200})
    verdict = live.verdict(epsilon=0.2, quantile=0.0)
    assert not verdict.stop
    assert "1 arm has no reward yet." in verdict.missing
    live.observe(2, [0.0] * 200)
    verdict = live.verdict(epsilon=0.2, quantile=0.0)
    assert (verdict.stop, verdict.arm, verdict.beaten) == (True, 0, 3)
    assert verdict.missing == ""
    live.retire(0)
    assert live.verdict(epsilon=0.2, quantile=0.0).arm in (1, 2)
    assert replace(verdict, quantile=0.1, at_first=True).headline == (
        "Stop and deploy arm 0: its mean is at most 20 percentage points below that of the best of "
        "the 3 initial arms (95 % confidence)."
    )


@pytest.mark.parametrize("n_arms", [3, 100])
def test_few_arms_need_no_sample(n_arms: int) -> None:
    """5 % of 3 arms is less than one, and no sample of 100 arms can be large enough."""
    live = new(ma.Prospector(), n_arms=n_arms)
    live.tell(live.ask(), 1.0)
    asked = live.verdict()
    assert f"{n_arms - 1} arms have no reward yet." in asked.missing
    assert asked.lower_bound == live.verdict(quantile=0.0).lower_bound  # all error is for intervals
    top, last = n_arms // 20, n_arms - n_arms // 20 - 1
    for arm in range(last):
        live.observe(arm, [float(arm == 1), 0.0] * 300)
    verdict = live.verdict()
    assert f"ruled out for all {f'but {top}' if top else 'of them'}." in verdict.missing
    live.observe(last, [0.0] * 5)
    said = live.verdict().missing
    assert re.search(rf"Least certain: .*\b{last} \(upper bound [79]\S+ %, [56] rewards\)", said)
    live.observe(last, [0.0] * 400)
    verdict = live.verdict()
    assert (verdict.stop, verdict.arm, verdict.unsettled) == (True, 1, 0)
    assert verdict.tried - verdict.beaten <= top


def test_the_arm_is_not_its_own_rival() -> None:
    live = ma.MOSS().live(n_arms=3, horizon=501, seed=1)
    for _ in range(500):
        pull = live.ask()
        live.tell(pull, float(pull.arm == 1))
    verdict = live.verdict()
    assert (verdict.stop, verdict.beaten, verdict.unsettled) == (True, 3, 0)


def test_after_the_horizon_the_verdict_does_not_say_go_on() -> None:
    live = new(ma.MOSS(), n_arms=3, horizon=4)
    last = live.ask(4)[-1]
    live.tell_many([(pull, 1.0) for pull in live.pending if pull != last])
    verdict = live.verdict()
    assert verdict.outcome == "out of pulls"
    assert verdict.headline == (
        f"Out of pulls. Best so far: arm {verdict.arm}, but it could still be more than 10 % worse "
        f"than the best of the 3 arms."
    )
    assert verdict.advice.startswith("First report the 1 pending reward. To continue ")


def test_the_verdict_says_what_is_missing() -> None:
    live = new(ma.MOSS(), n_arms=1000)
    nothing = "Too early to say: no rewards have been reported yet."
    assert str(live.verdict()) == nothing
    assert live.verdict().arm is None
    for pull in live.ask(50):
        live.tell(pull, 0.0)
    take = int(re.findall(r"at least (\d+)", live.verdict().missing)[0])
    assert live.verdict().missing == (
        "Only 50 arms have been tried at random so far. A statement about the top 5 % needs at "
        f"least {take}."
    )
    assert "and at least 0 % (95 % confidence, valid for all arms at once and at any time)." in str(
        live.verdict()
    )
    assert live.verdict().lower_bound == live.recommend().interval[0]
    for pull in live.ask(take - 50):
        live.tell(pull, 1.0)
    verdict = live.verdict()
    assert (verdict.met, verdict.n_arms) == (take, 1000)
    assert re.fullmatch(
        rf"It could still be more than 10 % worse than \d+ of the first {take} arms tried at "
        rf"random; to stop, this must be ruled out for all of them\.",
        verdict.missing,
    )
    assert str(verdict).startswith(
        f"Too early to say: go on. The best so far is arm {verdict.arm}.\n{verdict.missing} The "
    )
    fixed = Fixed(arm=3).live(n_arms=9, seed=1)
    fixed.tell(fixed.ask(), 1.0)
    assert "fixed(arm=3) is not known to choose new arms at random" in fixed.verdict().missing


def test_arms_that_could_not_be_drawn_are_subtracted() -> None:
    live = new(ma.MOSS(), n_arms=1000)
    experiment = live._experiment
    sample = Sample(facts_of(experiment, int), np.zeros(0, np.bool_), 0.05, 0.04, 0.5)
    assert sample.top == 51
    live.retire([1, 2])  # never tried
    live.observe(3, [1.0])
    less = Sample(facts_of(experiment, int), np.zeros(0, np.bool_), 0.05, 0.04, 0.5)
    assert less.top == 48
    assert less.least() > sample.least()
    live.retire(list(range(100, 160)))
    assert live.verdict().missing.startswith(
        "63 of the 1000 initial arms could not be drawn at random: "
    )
    assert live.verdict().missing.endswith(" “stop” may never come: ask for one.")
    assert live.verdict().met == 0  # the observed arm was not drawn at random
    live.restore(1)
    pull = live.ask()
    assert live._experiment.ledger.missed == {1, 2, 3, *range(100, 160)} - {pull.arm} | {1}
    assert copied(live).verdict() == live.verdict()


def test_a_season_keeps_the_arms_met_by_chance() -> None:
    live = new(ma.MOSS(), n_arms=1000, horizon=60)
    for pull in live.ask(50):
        live.tell(pull, 0.0)
    live.observe(live.ask().arm, 1.0)
    live.season(horizon=50)
    assert live.verdict().met == 51
    live.add_arms(5)
    live.season(horizon=50)
    said = live.verdict()
    assert (said.met, said.at_first, said.n_arms) == (51, True, 1000)


def test_the_verdict_prints_and_its_arguments_are_checked() -> None:
    live = ma.MOSS().live(arms=["<b>", "b"], horizon=9, seed=1)
    live.observe("<b>", [1.0] * 100)
    live.observe("b", [0.0] * 100)
    verdict = live.verdict(epsilon=0.3)
    assert str(verdict).startswith(
        "Stop and deploy arm '<b>': its mean is at most 30 percentage points below that of the "
        "best of the 2 arms (95 % confidence).\n"
    )
    assert "&lt;b&gt;" in verdict._repr_html_()
    ET.fromstring(verdict._repr_html_())
    assert "leaving aside the top 50 % of the 2 arms (" in replace(verdict, quantile=0.5).headline
    for name, value in (("epsilon", 0), ("quantile", 1.0), ("quantile", -0.1), ("confidence", 1),
                        ("epsilon", -1), ("epsilon", "100%"), ("epsilon", "0%"), ("target", True),
                        ("target", math.nan), ("epsilon", "a"), ("epsilon", True)):  # fmt: skip
        with pytest.raises(ma.ParameterError, match=f"`{name}` must be a (finite )?number"):
            live.verdict(**{name: value})  # type: ignore[arg-type]  # so it is refused


def test_missing_rewards_give_a_warning() -> None:
    """If most failures of an arm are abandoned, the verdict is wrong, and warns about it."""
    rates, luck = [0.5, 0.3, 0.4], np.random.default_rng(1)
    said = {}
    for share in (0.0, 0.01, 0.8):
        live = ma.policy("uniform").live(n_arms=3, horizon=6000, seed=1)
        for pull in live.ask(6000):
            reward = float(luck.random() < rates[pull.arm])
            if pull.arm == 1 and reward == 0.0 and luck.random() < share:
                live.abandon(pull)
            else:
                live.tell(pull, reward)
        said[share] = live.verdict()
        assert said[share].stop
    assert said[0.0].arm == said[0.01].arm == 0
    assert said[0.0].warning == said[0.01].warning == ""
    wrong = said[0.8]
    assert wrong.arm == 1
    assert re.match(r"5\d % of the pulls of arm 1 and 1\d % of all pulls have no reward: ",
                    wrong.warning)  # fmt: skip
    assert str(wrong).endswith(" this verdict can be wrong.")


def test_a_retired_and_restored_arm_counts_once() -> None:
    live = ma.Prospector().live(arms=[f"picture {k}" for k in range(400)], seed=1)
    for _ in range(50):
        live.tell(live.ask(), reward=1.0)
    untried = 400 - len(live.top(400))
    best = live.recommend().arm
    others = [f"picture {k}" for k in range(400) if f"picture {k}" != best]
    for _ in range(2):
        live.retire(others)
        live.restore(others)
        said = str(live.verdict())
        assert f"{untried} of the 400 initial arms could not be drawn at random" in said
