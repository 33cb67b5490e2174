"""Verdicts about targets, relative margins, and predictions of further pulls.

With an error rate of 5 %, the numbers of wrong verdicts exceed their bounds with probability 0.001.
The seeds are fixed.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.inference import outlook, tried_arms
from manyarms.inference.question import Slack
from tests.fixed import Fixed
from tests.inference.random_events import new
from tests.live.stores import copied

RUNS = 16
WRONG = 4  # of 16; at 5 % each, more have probability 0.0009


def first_stop(seed: int, arms: int, pulls: int, mean: float = 0.5, **asked: Any) -> int | None:
    """Return when a verdict first says stop, checked after every tenth pull; all arms are alike."""
    live = ma.policy("uniform").live(n_arms=arms, horizon=pulls + 1, seed=seed)
    luck = np.random.default_rng(seed)
    for k in range(pulls):
        live.tell(live.ask(), float(luck.random() < mean))
        if k % 10 == 9 and live.verdict(**asked).stop:
            return k + 1
    return None


def stops(runs: int, **options: Any) -> int:
    return sum(first_stop(seed, **options) is not None for seed in range(runs))


# No arm is above the target, or better than arm 0. The best-looking of all arms is chosen.
ALIKE = {"arms": 40, "pulls": 1000, "target": 0.5}
RIVAL = {"arms": 40, "pulls": 1000, "target": "0"}


@pytest.mark.slow
@pytest.mark.parametrize("options", [ALIKE, RIVAL], ids=["number", "arm"])
def test_targets_are_seldom_reached_by_chance(options: Any) -> None:
    assert stops(RUNS, **options) <= WRONG


@pytest.mark.slow
@pytest.mark.parametrize(("options", "error"), [(ALIKE, 0.05), (RIVAL, 0.9)], ids=["number", "arm"])
def test_intervals_without_correction_would_be_wrong(
    options: Any, error: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Show that the test above can fail."""
    monkeypatch.setattr(
        tried_arms, "spent_error", lambda _, number: np.full(np.shape(number), error)
    )
    assert stops(RUNS, **options) > WRONG


def test_a_target_is_reached_when_the_lower_bound_is_above_it() -> None:
    live = new(n_arms=3)
    live.observe(0, [1.0, 0.0] * 100)
    live.observe(1, [1.0] * 200)
    limit = live.recommend().interval[0]
    assert live.verdict(target=limit - 1e-9).stop
    above = live.verdict(target=limit)
    assert not above.stop
    assert (above.target, above.lower_bound) == (limit, limit)
    high = live.arms()[0].interval[1]
    gap = limit - high
    for margin in (gap - 1e-9, f"{100 * (limit / high - 1) - 1e-6:.9f}%"):
        assert live.verdict(target="0", margin=margin).stop
    for margin in (gap + 1e-9, f"{100 * (limit / high - 1) + 1e-6:.9f}%"):
        said = live.verdict(target="0", margin=margin)
        assert not said.stop
    named = ma.MOSS().live(arms=[3, 7], horizon=9, seed=1)
    named.observe(7, 1.0)
    assert not named.verdict(target="7").stop
    for target in ("b", "8"):
        with pytest.raises(ma.UnknownArmError, match="Unknown arm .* number or names an arm"):
            named.verdict(target=target)
    with_control = ma.MOSS().live(arms=[3, 7], horizon=9, control="now", seed=1)
    with pytest.raises(ma.UnknownArmError, match='names an arm, or "control"'):
        with_control.verdict(target="contol")
    with pytest.raises(ma.UnknownArmError, match="Unknown arm 'x'"):
        live.verdict(target="x")
    with pytest.raises(ma.ParameterError, match="`target` must be a number such as 0.7, or the na"):
        live.verdict(target="70 %")
    odd = ma.MOSS().live(arms=["70%", "b"], horizon=9, seed=1)
    assert odd.verdict(target="70%").target == "70%"  # an arm's name
    with pytest.raises(ma.ParameterError, match="`epsilon` cannot be combined with `target`"):
        live.verdict(target=0.5, epsilon=0.1)
    with pytest.raises(ma.ParameterError, match="`margin` needs a `target` that names"):
        live.verdict(target=0.5, margin=0.1)


def test_a_relative_margin_is_checked_at_the_lower_bound() -> None:
    """Within 20 % of c is within L / 4 of it, if L is 80 % of c."""
    live = new(n_arms=3)
    for arm, ones in enumerate((150, 138, 10)):
        live.observe(arm, [1.0] * ones + [0.0] * (200 - ones))
    limit = live.verdict().lower_bound
    for percent in (5, 20, 30, 40, 60):
        share = percent / 100
        here = live.verdict(epsilon=f"{percent}%")
        there = live.verdict(epsilon=limit * share / (1 - share))
        assert (here.stop, here.beaten) == (there.stop, there.beaten)
    assert {live.verdict(epsilon=f"{percent} %").stop for percent in (5, 60)} == {False, True}
    assert (Slack(0.2, True).best(0.8), Slack(0.2, True).more(1.0)) == (1.0, 1.2)


def test_epsilon_is_a_setting(tmp_path: Any) -> None:
    live = ma.MOSS().live(n_arms=3, horizon=9, seed=1, epsilon="25 %")
    live.tell(live.ask(), 1.0)
    assert live.verdict().epsilon == "25%"
    assert live.verdict(epsilon=0.2).epsilon == 0.2
    live.season(horizon=9)
    live.save(tmp_path / "saved.db")
    with ma.load(tmp_path / "saved.db") as saved:
        assert saved.verdict().epsilon == "25%"
    assert new(n_arms=3).verdict().epsilon == "10%"
    below = ma.MOSS().live(n_arms=3, horizon=9, reward_range=(-1.0, 3.0))
    assert below.verdict().epsilon == pytest.approx(0.4)
    free = ma.MOSS(sigma=2.0).live(n_arms=3, horizon=9, reward_range=None)
    assert free.verdict().epsilon == pytest.approx(0.4)
    for asked in (free, below):
        with pytest.raises(ma.ParameterError, match="`epsilon` must be a number if rewards can"):
            asked.verdict(epsilon="10%")
    with pytest.raises(ma.ParameterError, match="`epsilon` must be a number"):
        ma.MOSS().live(n_arms=3, horizon=9, epsilon=0)


def _played(live: ma.Live, pulls: int, means: Any, seed: int = 1) -> None:
    luck = np.random.default_rng(seed)
    for _ in range(pulls):
        pull = live.ask()
        live.tell(pull, float(luck.random() < means[pull.arm]))


def test_a_policy_that_pulls_one_arm_has_settled() -> None:
    live = Fixed(arm=3).live(n_arms=9, seed=1)
    _played(live, 199, [0.5] * 9)
    assert live.verdict().outcome == "go on"
    _played(live, 1, [0.5] * 9)
    said = live.verdict()
    assert (said.outcome, said.stop, said.more) == ("settled", False, None)
    assert copied(live).verdict() == said
    follow(live, said.advice)
    _played(live, 1000, [float(arm == 3) for arm in range(9)])
    assert live.verdict().stop


@pytest.mark.parametrize("limits", [(0.0, 1.0), (-0.35, 0.65), (100.0, 101.0), None], ids=str)
def test_a_suggested_target_can_be_reached(limits: Any) -> None:
    low = limits[0] if limits else 7.0
    sigma = None if limits else 0.5
    live = Fixed(arm=3, sigma=sigma).live(n_arms=101, seed=1, reward_range=limits)
    for pull in live.ask(1000):
        live.tell(pull, low + float(pull.id % 31 < 3))
    said = live.verdict()
    assert said.outcome == "settled"
    assert "live.verdict(target=" in said.advice
    reached = follow(live, said.advice)
    assert reached.stop
    assert low < reached.target < said.lower_bound


def test_it_has_not_settled_while_others_are_pulled() -> None:
    live = Fixed(arm=3).live(n_arms=9, seed=1)
    _played(live, 300, [0.5] * 9)
    live._experiment.ledger.recent.extend([0] * 101)  # as if another arm had also been pulled
    live._experiment.ledger.recent.extend([3] * 899)
    assert live.verdict().outcome == "go on"
    assert outlook.settled_share(live._tried_arms(), 0) == 0.0


def test_predicted_pulls_are_about_right() -> None:
    """After a third of the pulls, they are right within a factor of three."""
    ratios = []
    for seed in range(8):
        live = ma.policy("uniform").live(n_arms=3, horizon=20_000, seed=seed)
        guesses: dict[int, int | None] = {}
        while not (said := live.verdict()).stop and live.pulls < 20_000:
            guesses[live.pulls] = said.more
            _played(live, 50, [0.3, 0.6, 0.45], seed=live.pulls + seed)
        end = live.pulls
        at = min(guesses, key=lambda pulls: abs(pulls - end / 3))
        if (guess := guesses[at]) is not None:
            ratios.append(guess / (end - at))
    assert len(ratios) >= 6
    assert all(1 / 3 < ratio < 3 for ratio in ratios), ratios


def test_predicted_pulls_where_most_rewards_are_lost() -> None:
    """With 1 of 8 pulls rewarded they are right within a factor of three, too."""
    ratios = []
    for seed in range(4):
        luck = np.random.default_rng(seed)
        live = ma.policy("uniform").live(n_arms=3, horizon=40_000, seed=seed)
        guesses: dict[int, int | None] = {}
        while not (said := live.verdict()).stop and live.pulls < 40_000:
            guesses[live.pulls] = said.more
            for pull in live.ask(400):
                if luck.random() < 1 / 8:
                    live.tell(pull, float(luck.random() < (0.3, 0.6, 0.45)[pull.arm]))
                else:
                    live.abandon(pull)
        end = live.pulls
        at = min(guesses, key=lambda pulls: abs(pulls - end / 3))
        if (guess := guesses[at]) is not None:
            ratios.append(guess / (end - at))
    assert len(ratios) >= 3
    assert all(1 / 3 < ratio < 3 for ratio in ratios), ratios


def test_a_prediction_with_few_pulls_left() -> None:
    live = ma.policy("uniform").live(n_arms=3, horizon=310, seed=1)
    _played(live, 300, [0.3, 0.6, 0.5])
    said = live.verdict()
    assert said.more is not None
    follow(live, said.advice)
    _played(live, said.more, [0.3, 0.6, 0.5])
    sample = ma.Prospector().live(n_arms=50_000, seed=1)
    _played(sample, 210, np.full(50_000, 0.9))
    drawn = sample.verdict()
    assert drawn.missing.startswith("Only ")


def follow(live: ma.Live, advice: str) -> Any:
    """Run the call in an advice, as a user would paste it."""
    (call,) = re.findall(r"live\.\w+\(.*\)", advice)
    return eval(call, {"live": live, "ma": ma})


def test_a_settled_policy_needs_a_target() -> None:
    """If a policy has settled after few draws, no season tries more arms; a target can be shown."""
    means = np.where(np.arange(300) % 50 == 0, 0.9, 0.3)
    live = ma.Prospector().live(n_arms=300, seed=2)
    _played(live, 3000, means, seed=2)
    said = live.verdict(epsilon="20%")
    assert (said.outcome, said.met < 168) == ("settled", True)
    assert follow(live, said.advice).stop


def test_a_control_is_a_target() -> None:
    """The bounds are those of `uplift`, whose coverage has its own tests."""
    live = ma.MOSS().live(n_arms=3, horizon=3000, seed=1, control="today", share=0.4)
    luck = np.random.default_rng(1)
    assert live.verdict(target="control").headline.startswith("Too early to say: no rewards")
    while live.pulls < 1500:
        pull = live.ask()
        live.tell(pull, float(luck.random() < (0.5 if pull.arm == "today" else 0.8)))
    low, times = live.uplift().interval[0], live.uplift().ratio_interval[0]
    assert low > 0.1
    for margin, above in ((low - 1e-6, low + 1e-6), (_share(times - 1e-6), _share(times + 1e-6))):
        for name in ("control", "today"):
            said = live.verdict(target=name, margin=margin)
            assert said.stop
            assert not live.verdict(target=name, margin=above).stop
    asked = live.verdict(target="control", margin=0.9)
    assert (asked.outcome, asked.missing) == ("go on", f"So far: {live.uplift()}.")
    with pytest.raises(ma.ParameterError, match="this experiment has no control"):
        new(n_arms=3).verdict(target="control")


def _share(ratio: float) -> str:
    return f"{100 * (ratio - 1):.9f}%"


@pytest.mark.parametrize("policy", [ma.MOSS(), ma.Prospector()], ids=str)
def test_a_verdict_if_all_rewards_are_the_smallest_possible(policy: ma.Policy) -> None:
    live = policy.live(n_arms=40, horizon=600, seed=1)
    for k in range(600):
        if k == 99:
            assert live.verdict().outcome == "too early to say"
        live.tell(live.ask(), 0.0)
        if k == 500:
            verdict = live.verdict()
    assert (verdict.outcome, verdict.stop) == ("nothing earned", False)
    assert verdict.headline.startswith("Nothing earned so far: ")
    arms = {arm.arm: arm for arm in live.arms()}
    said = r"All 501 rewards of (\d+) arms are 0, the smallest possible\. The mean of "
    found = re.search(
        said + r"arm (\d+), which has the most rewards, is at most (\S+) % \(", str(verdict)
    )
    assert found is not None
    assert int(found[1]) <= len(arms)
    assert 100 * arms[int(found[2])].interval[1] <= float(found[3]) < 100
    assert live.verdict().outcome == "out of pulls"
    assert "All 600 rewards" in str(live.verdict())
    below = policy.live(n_arms=2, horizon=600, seed=1, reward_range=(-2.0, 1.0))
    for _ in range(150):
        below.tell(below.ask(), -2.0)
    assert "All 150 rewards of 2 arms are -2, the smallest" in str(below.verdict(epsilon=0.01))
    below.tell(below.ask(), -1.5)
    assert below.verdict(epsilon=0.01).outcome != "nothing earned"
