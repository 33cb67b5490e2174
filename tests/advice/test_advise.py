"""`advise`: its problems, policies, choice and text, and wrong arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.advice import Advice, _choice, _problems, _usual
from manyarms.instances import Gaussian, from_means, from_rewards, planted, reservoir
from manyarms.instances.reservoir import UniformMeans


def small(**given: Any) -> Advice:
    usual = {"horizon": 60, "replications": 3, "policies": ["moss", "ss-greedy"]}
    return ma.advise(**{**usual, **({} if "instance" in given else {"n_arms": 500}), **given})


def usual(**given: Any) -> list[str]:
    known = {"objective": "earn", "instance": None, "pending": 0, "m_at_least": None}
    return list(_usual(**{**known, "best_mean": None, **given}))


def test_problems_have_the_given_size() -> None:
    # n = 2e6, T = 1e5: hardness 0.2, 0.4 and 0.6 are n/m = 2 * 10, 2 * 100 and 2 * 1000
    problems = _problems(2_000_000, 100_000, None, [0.9, 0.5])
    assert list(problems) == [
        "100,000 best arms of mean 0.9",
        "10,000 best arms of mean 0.9",
        "1,000 best arms of mean 0.9",
        "Beta(2, 5) means up to 0.9",
        "100,000 best arms of mean 0.5",
        "10,000 best arms of mean 0.5",
        "1,000 best arms of mean 0.5",
        "Beta(2, 5) means up to 0.5",
    ]
    assert [one.best_mean for one in problems.values()] == [0.9] * 4 + [0.5] * 4
    assert problems["1,000 best arms of mean 0.5"].n_best == 1000
    # the paper's other means, 0.1 to 0.5, in proportion
    assert problems["1,000 best arms of mean 0.9"].largest_gap == pytest.approx(0.8)
    assert problems["1,000 best arms of mean 0.5"].largest_gap == pytest.approx(4 / 9)


def test_best_means_may_differ_in_the_last_digit() -> None:
    close = [0.05, 0.05 + 1e-9]
    problems = _problems(2_000_000, 100_000, None, close)
    assert [one.best_mean for one in problems.values()] == [0.05] * 4 + [close[1]] * 4
    assert len(_problems(100, 1000, 5, [0.5, float(np.nextafter(0.5, 1.0))])) == 6


def test_the_number_of_best_arms_bounds_the_problems() -> None:
    # n = 2e6, T = 1e3: 1000 best arms have hardness 1, and a third of that is a factor of 10
    assert list(_problems(2_000_000, 1000, 1000, [0.9])) == [
        "100,000 best arms of mean 0.9",
        "10,000 best arms of mean 0.9",
        "1,000 best arms of mean 0.9",
    ]
    beyond = _problems(2_000_000, 1000, 3, [0.9])
    assert list(beyond) == list(_problems(2_000_000, 1000, 1000, [0.9]))
    assert list(_problems(10, 1000, 9, [0.9])) == ["9 best arms of mean 0.9"]
    assert "1 best arm of mean 0.9" in _problems(10, 1000, None, [0.9])


def test_policies_know_only_what_the_user_knows() -> None:
    earn = ["ma.Prospector()", "ma.EmpMOSSPlusPlus()", "ma.MOSSPlusPlus()", "ma.MOSS()"]
    earn += ['ma.policy("ss-greedy")', 'ma.policy("empirical-cbt")']
    assert usual() == earn
    assert usual(m_at_least=7) == [*earn, "ma.MOSSOracle(m=7, index='kl++')"]
    told = ["ma.Parallel(best_mean=0.8)", "ma.Patience(best_mean=0.8, bound='kl')"]
    assert usual(best_mean=0.8) == [*earn, *told]
    find = usual(objective="find")
    assert find[:2] == ["ma.Scout()", 'ma.policy("sequential-halving")']
    assert len(find) == 6


def test_policies_fit_the_rewards() -> None:
    any_rewards = ["ma.EmpMOSSPlusPlus()", "ma.MOSSPlusPlus()", "ma.MOSS()"]
    any_rewards += ['ma.policy("ss-greedy")']
    normal = planted(n=9, m=1, rewards=Gaussian())
    wide = from_rewards({"a": [0, 9], "b": [2]})
    for instance in (normal, wide):
        assert usual(instance=instance) == any_rewards
    assert usual(instance=normal, m_at_least=2)[-1] == "ma.MOSSOracle(m=2)"
    assert usual(instance=normal, best_mean=0.8)[-1] == "ma.Patience(best_mean=0.8)"


def test_late_rewards_are_counted() -> None:
    late = usual(pending=5)
    assert late[:2] == ["ma.Prospector()", "ma.EmpMOSSPlusPlus(count_late=True)"]
    on_time, delayed = (small(policies=["ss-greedy"], pending=pending) for pending in (0, 5))
    assert delayed.rows != on_time.rows
    assert "500 arms, 60 pulls, 5 pending; 3 replications" in " ".join(str(delayed).split())


def test_rows_agree_with_a_simulation() -> None:
    advice = small(seed=4, m_at_least=50, best_mean=0.8, replications=4)
    assert advice.problems == tuple(f"{m} best arms of mean 0.8" for m in (147, 86, 50))
    others = [0.8 * ninths / 9 for ninths in range(1, 6)]
    losses = []
    for m in (147, 86, 50):
        arms = planted(n=500, m=m, best=0.8, others=others)
        result = ma.simulate(ma.MOSS(), arms, horizon=60, replications=4, seed=4)
        losses.append(100 * result.regret[0, :, -1] / (60 * arms.largest_gap))
    (row,) = (row for row in advice.rows if row.policy == "moss")
    assert row.by_problem == pytest.approx(np.mean(losses, axis=1))
    assert row.mean == pytest.approx(np.mean(losses))
    assert row.median == pytest.approx(np.median(losses))
    assert row.worst == max(row.by_problem)
    assert row.se == pytest.approx(np.std(np.mean(losses, axis=0), ddof=1) / 2)
    assert [one.mean for one in advice.rows] == sorted(one.mean for one in advice.rows)


def test_find_counts_the_recommended_arm() -> None:
    own = from_means([0.1] * 40 + [0.9], label="last year's")
    advice = small(instance=own, objective="find", policies=["moss"], horizon=200)
    result = ma.simulate(ma.MOSS(), own, horizon=200, replications=3)
    assert advice.rows[0].mean == pytest.approx(100 * result.simple_regret.mean() / 0.8)
    assert (advice.n_arms, advice.problems) == (41, ("last year's",))
    assert "0 % means that a best arm is recommended at the end," in str(advice)
    assert "worst problem" not in str(advice)  # there is only one


@pytest.mark.parametrize(
    "instance",
    [
        reservoir(UniformMeans()),
        from_means([0.5, 0.5]),  # nothing can be lost
        from_means([0.1 + 0.2, 0.3]),
        from_rewards({"umbrella": [0, 0, 12], "coat": [0, 80]}),
    ],
)
def test_instances_of_all_kinds(instance: ma.instances.Instance) -> None:
    advice = small(instance=instance)
    assert all(0.0 <= row.mean <= 100.0 for row in advice.rows)
    if instance.n_best == instance.n_arms:
        assert not any(row.worst for row in advice.rows)


@pytest.mark.parametrize("option", ["m_at_least", "best_mean"])
def test_options_without_an_effect_are_refused(option: str) -> None:
    message = f"`{option}` must be left out with `instance` and `policies`, got 1"
    with pytest.raises(ma.ParameterError, match=message):
        small(instance=from_means([0.2, 0.5]), **{option: 1})


def test_the_lowest_mean_is_chosen() -> None:
    noise = np.array([-1.0, 1.0, -1.0, 1.0])[None, :, None]
    losses = np.array([9.0, 5.0, 7.0])[:, None, None] + 0.1 * noise * [[[1]], [[2]], [[3]]]
    assert _choice(losses, ["a", "b", "c"]) == (1, ())


def test_of_indistinguishable_policies_the_first_is_chosen() -> None:
    noise = np.array([-1.0, 1.0, -1.0, 1.0])[:, None] * np.ones(2)
    losses = np.stack([5.1 + noise, 5.0 - noise, 9.0 + 0.1 * noise])
    assert _choice(losses, ["a", "b", "c"]) == (0, ("b",))


def test_the_first_line_is_the_answer_and_lines_fit() -> None:
    advice = small(replications=8, best_mean=(0.2, 0.9))
    assert "Beta(2, 5) means up to 0.2" in advice.problems
    assert (advice.label, advice.alike) == ("ss-greedy", ())
    assert eval(advice.code, {"ma": ma}) == advice.policy
    first, empty, head, *_ = str(advice).splitlines()
    lost = f"{advice.rows[0].mean:.2g} % on average"
    assert first == f'Use ma.policy("ss-greedy"): it loses least, {lost}.'
    assert empty == ""
    assert head.startswith("loss in %  mean  ± error")
    assert max(map(len, str(advice).splitlines())) <= 80
    unsure = replace(advice, alike=("moss", "uniform"))
    first, second, *_ = str(unsure).splitlines()
    assert first == f'Use ma.policy("ss-greedy"): it loses {lost}; none is clearly better.'
    assert second == "No clear difference from: moss, uniform."
    assert str(advice).endswith("be added later, use ma.Prospector(), which tries new arms.")
    assert str(replace(advice, policy=ma.Prospector())).endswith("Prospector tries them.")


def test_own_policies() -> None:
    mine = ma.MOSSPlusPlus(beta=0.6)
    advice = small(policies=[mine])
    assert (advice.policy, advice.code) == (mine, "moss++(beta=0.6)")
    assert small(policies="moss").policy == ma.MOSS()


def test_replications_fit_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms.advice._FEWEST", 2)
    monkeypatch.setattr("manyarms.advice._BUDGET", 5 * 100 * 60 * 8 * 2)
    assert small(replications=None).replications == 5
    monkeypatch.setattr("manyarms.advice._BUDGET", 1)
    assert small(replications=None).replications == 2
    monkeypatch.setattr("manyarms.advice._BUDGET", 1e12)
    monkeypatch.setattr("manyarms.advice._MOST", 3)
    assert small(replications=None).replications == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_arms": None}, "Exactly one of `n_arms` and `instance` must be given, got none"),
        ({"horizon": 10**8}, "they only make a problem easier"),
        ({"pending": 60}, "`pending` must be an integer >= 0 and <= 59, got 60"),
        ({"objective": "win"}, "`objective` must be one of 'earn', 'find'"),
        ({"m_at_least": 500}, "`m_at_least` must be an integer >= 1 and <= 499, got 500"),
        ({"best_mean": (0.5, 0.1)}, "two numbers of which the first is smaller"),
        (
            {"policies": ["moss", ma.MOSS()]},
            "`policies` must have different labels, got moss twice",
        ),
    ],
)
def test_wrong_arguments_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ma.ParameterError, match=message):
        small(**given)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ma.UnknownNameError, match="Did you mean 'moss'"):
        small(policies=["mosss"])


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "name"),
    [
        # Prospector loses least on random problems (docs/leaderboard.md), Scout finds best
        ({"n_arms": 20_000, "horizon": 10_000}, "prospector"),
        ({"n_arms": 20_000, "horizon": 10_000, "objective": "find"}, "scout"),
        # many good arms, all far below 1: a greedy choice among sqrt(T) arms
        (
            {"n_arms": 5000, "horizon": 20_000, "m_at_least": 1500, "best_mean": (0.4, 0.5)},
            "ss-greedy",
        ),
    ],
)
def test_it_recommends_the_best_policy_of_known_problems(given: dict[str, Any], name: str) -> None:
    assert ma.advise(**given, replications=30).policy == ma.policy(name)
