"""The text of verdicts and warnings; other tests check numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import manyarms as ma
from manyarms.inference.delays import Delays
from manyarms.inference.next_steps import HANDLE, SERVICE
from manyarms.inference.question import asked
from manyarms.inference.reported import late_rewards_warning
from manyarms.inference.verdict import give_verdict
from tests.fixed import Fixed
from tests.inference.random_events import new

SURE = "(95 % confidence, valid for all arms at once and at any time)"


def known(**rewards: tuple[int, int]) -> ma.Live:
    """Return an experiment whose arms have given numbers of successes and failures."""
    live = ma.MOSS().live(arms=list(rewards), horizon=1000, seed=1)
    for arm, (ones, zeros) in rewards.items():
        live.observe(arm, [1.0] * ones + [0.0] * zeros)
    return live


def close(**more: tuple[int, int]) -> ma.Live:
    return known(a=(120, 80), b=(100, 100), **more)


def early() -> ma.Live:
    return known(a=(1, 1), b=(0, 0))


def settled(arms: int = 9) -> ma.Live:
    live = Fixed(arm=3).live(n_arms=arms, seed=1)
    for pull in live.ask(300):
        live.tell(pull, float(pull.id % 2))
    return live


def over() -> ma.Live:
    live = new(n_arms=2, horizon=200)
    for pull in live.ask(200):
        live.tell(pull, float(pull.id % 2))
    return live


def searched() -> ma.Live:
    live = ma.Scout().live(n_arms=200, horizon=200, seed=1)
    for pull in live.ask(200):
        live.tell(pull, float(pull.arm % 7 == 0))
    return live


# An experiment, the arguments of `verdict`, and a part of its text
SAID: list[tuple[Callable[[], ma.Live], dict[str, Any], str]] = [
    # the first line
    (new, {}, "Too early to say: no rewards have been reported yet."),
    (early, {}, "Too early to say: go on. The best so far is arm 'a'.\n"),
    (lambda: settled(100), {}, "To get a verdict, pull all arms equally often: "),
    (lambda: settled(101), {}, "Say which mean is good enough, for example "),
    (early, {"target": 0.2}, "is arm 'a'.\nThe mean of arm 'a' is 50 % so far, after 2 rewards"),
    (close, {}, "Go on: arm 'a' is the best so far, but it could still be more than 10 % worse "
                "than the best of the 2 arms.\n"),
    (close, {"epsilon": 0.1}, "Go on: arm 'a' is the best so far, but its mean could still be more "
                              "than 10 percentage points below that of the best of the 2 arms.\n"),
    (close, {"epsilon": "40%"}, "Stop and deploy arm 'a': it is at most 40 % worse than the best "
                                "of the 2 arms (95 % confidence).\nOf the 2 arms tried, none can "
                                "be better by more than that. The mean of arm 'a' is at least "),
    (close, {"target": 0.3}, "Stop and deploy arm 'a': its mean is above 30 % (95 % "
                             "confidence).\nThe mean of arm 'a' is at least "),
    (close, {"target": 0.6}, "Go on: arm 'a' is the best so far, but its mean is not shown to be "
                             "above 60 %.\n"),
    (close, {"target": "b"}, "but it is not shown to be better than 'b'.\n"),
    (close, {"target": "b", "margin": "5%"}, "it is not shown to be more than 5 % better than 'b'"),
    (close, {"target": "b", "margin": 0.05}, "its mean is not shown to be more than 5 percentage "
                                             "points above that of 'b'.\n"),
    (settled, {}, "Settled on arm 3 without a guarantee: it could still be more than 10 % worse "
                  "than the best of the 9 arms.\nThe policy, fixed(arm=3), gave it 100 % of the "
                  "last 300 pulls. If this continues, more pulls will not lead to “stop”."),
    (over, {}, "Out of pulls. Best so far: arm 1, but it could still be more than 10 % worse than "
               "the best of the 2 arms.\n"),
    # the target itself
    (close, {"target": "a"}, "Go on: arm 'a' is the best so far, and it is itself the target.\nNo "
                             "other arm is ahead of the target so far. Say which mean is good "
                             "enough, for example live.verdict(target=0.47)."),
    (early, {"target": "a"}, "No other arm is ahead of the target so far."),
    # bounds that no mean can exceed
    (lambda: close(c=(1, 1)), {"target": "c", "margin": "5%"},
     "So far its mean is 60 %, and that of 'c' 50 %. 'c' needs more rewards: it has 2, and its "
     "mean could still be "),
    (close, {"target": "b", "margin": "100%"},
     "No mean can be above the largest reward, 100 %, so this margin cannot be reached. Choose a "
     "smaller one. The mean of arm 'a' is at least "),
    (lambda: close(c=(0, 0)), {"target": "c"}, "'c' has no rewards yet."),
    # what is missing
    (close, {"target": 0.7}, "So far its mean is 60 %, which is not above the target."),
    (close, {}, "It could still be more than 10 % worse than 1 of the 2 arms; to stop, this must "
                "be ruled out for all of them. Least certain: 'b' (upper bound "),
    (lambda: close(c=(0, 0)), {}, "1 arm has no reward yet."),
    (settled, {}, "(fixed(arm=3) is not known to choose new arms at random, so the arms that were "
                  "tried say nothing about the others.)"),
    # advice
    (settled, {}, "To get a verdict, pull all arms equally often: "
                  'live.season(policy=ma.policy("uniform"), horizon=1000). '
                  "What this costs is not known, because 8 arms were not tried."),
    (settled, {"target": 0.9}, "enough, for example live.verdict(target=0.39)."),
    (settled, {"target": 0.9, "confidence": 0.8}, "live.verdict(target=0.4, confidence=0.8)."),
    (over, {}, "To continue after the last pull: live.season(horizon=1000)."),
    (searched, {}, "To continue after the last pull: "
                   "live.season(policy=ma.EmpMOSSPlusPlus(), horizon=1000)."),
    # the interval
    (early, {}, "The mean of arm 'a' is 50 % so far, after 2 rewards, and at least "),
    (early, {}, f" {SURE}."),
    (over, {}, f" {SURE}."),
]  # fmt: skip


@pytest.mark.parametrize(("known", "question", "said"), SAID)
def test_the_text_of_a_verdict(
    known: Callable[..., ma.Live], question: dict[str, Any], said: str
) -> None:
    live = known() if known is not new else new(n_arms=3)
    assert said in str(live.verdict(**question))


def test_it_is_too_early_while_the_mean_could_be_one_sigma_lower() -> None:
    """Without bounds, half of the mean has no meaning."""
    live = ma.MOSS(sigma=2.0).live(n_arms=2, horizon=1000, seed=1, reward_range=None)
    outcomes = []
    for count in (4, 40):
        live.observe(0, [1.0] * count)
        verdict = live.verdict(epsilon=0.5)
        outcomes.append((verdict.outcome, bool(1.0 - verdict.lower_bound > 2.0)))
    assert outcomes == [("too early to say", True), ("go on", False)]


def test_advice_of_a_handle_is_valid_code() -> None:
    for text in HANDLE[:-1]:
        advice = text.format(
            pulls=1000, mean=0.5, quantile=0.05, cost="", confidence=", confidence=0.9"
        )
        live = settled()
        (call,) = re.findall(r"live\.\w+\(.*\)", advice)
        eval(call, {"live": live, "ma": ma})
        assert live.verdict() is not None


def test_advice_of_the_service_names_its_pages() -> None:
    tried = settled()._tried_arms()
    said = give_verdict(tried, asked(tried.facts), steps=SERVICE)
    assert said.advice == (
        "To get a verdict, pull all arms equally often: under Settings, begin a season with the "
        "policy uniform and the horizon 1000. What this costs is not known, because 8 arms were "
        "not tried."
    )
    stopped = give_verdict(tried, asked(tried.facts), steps=SERVICE, stopped=True)
    assert stopped.advice.startswith("A stopped experiment cannot be resumed.")


def test_no_arm_in_play_has_a_reward() -> None:
    live = known(a=(1, 1), b=(0, 0))
    live.retire("a")
    assert str(live.verdict()) == "Too early to say: every arm with a reward is retired."


REFUSED = [
    ({"epsilon": 10}, "`epsilon` must be smaller than the range of rewards, which is 1, got 10: "
                      "every arm would be good enough. For 10 %, pass '10%'."),
    ({"epsilon": 1.0}, "which is 1, got 1: every arm would be good enough."),
    ({"target": 5}, "`target` is a mean reward and must be between 0 and 1, got 5. For 5 %, pass "
                    "0.05."),
    ({"target": 0.5, "epsilon": 0.1}, "`epsilon` cannot be combined with `target`, got 0.1. Leave "
                                      "out one of them."),
    ({"target": 0.5, "margin": 0.1}, "`margin` needs a `target` that names an arm or the control, "
                                     "got 0.1. If the target is a number, add the margin to it."),
]  # fmt: skip


@pytest.mark.parametrize(("question", "said"), REFUSED)
def test_wrong_arguments_are_refused(question: dict[str, Any], said: str) -> None:
    with pytest.raises(ma.ParameterError) as refused:
        new(n_arms=3).verdict(**question)
    assert str(refused.value).endswith(said)


def test_an_epsilon_as_large_as_the_range_is_refused() -> None:
    with pytest.raises(ma.ParameterError, match="which is 4, got 4"):
        ma.MOSS().live(n_arms=3, horizon=9, reward_range=(-1, 3), epsilon=4)
    assert ma.MOSS(sigma=2.0).live(n_arms=3, horizon=9, reward_range=None, epsilon=4).n_arms == 3


def test_late_rewards_that_differ() -> None:
    delays = Delays()
    for k in range(2000):
        delays.count(3, 100.0 * (k % 2), float(k % 2 == 0), k)
    assert late_rewards_warning(delays, hold=True) == ""
    assert late_rewards_warning(delays, hold=False) == (
        "The mean reward depends on the delay, so arms look better or worse than they are while "
        "their late rewards are missing. Start the next experiment with `window` and `hold`: then "
        "early and late rewards count at the same time."
    )


def test_a_finder_recommends_in_a_season_once_it_knows_the_earlier_rewards() -> None:
    live = searched()
    best = live.recommend()
    live.season(horizon=100)
    assert live.recommend() == best
    live.tell(live.ask(), 1.0)
    assert live._experiment.search is not None
    assert live.recommend().arm == live._experiment.search.recommended
