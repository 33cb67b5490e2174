"""The race: who goes on, how often they play, who is chosen, and who may be as good; by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.advice.candidates import candidates
from manyarms.advice.question import Question
from manyarms.advice.race import Race, _Rounds, affordable, race
from manyarms.advice.reasons import reasons
from manyarms.instances import grouped
from manyarms.theory import Problem
from tests.advice.test_question import ask

HORIZON = 100


def played(*regrets: Any, proven: bool = True) -> Race:
    """A race that is over: regret by (run, case) for each candidate."""
    asked = ask(m_at_least=30, policies="all")
    label = "prospector" if proven else "uniform"
    player = next(one for one in candidates(asked) if one.label == label)
    arms = grouped(sizes=[1, 9], means=[1.0, 0.0])
    values = [np.array(one, np.float64) for one in regrets]
    cases = values[0].shape[1]
    (case, *_) = ask(n=None, horizon=HORIZON, instance=arms).cases()
    assert case.problem == Problem(10, 1, HORIZON)
    return Race(
        cases=[case] * cases,
        players=[player] * len(values),
        regrets=values,
        missed=[one * 0.0 for one in values],
        left=list(range(len(values))),
        horizon=HORIZON,
    )


def test_the_smallest_worst_excess_wins() -> None:
    # shares by case: A 10 %, 50 %; B 20 %, 20 %; C 60 %, 15 %.
    # lowest: 10 %, 15 %; excesses: A 0, 35; B 10, 5; C 50, 0; worst: 35, 10, 50
    made = played([[10, 50]], [[20, 20]], [[60, 15]])
    made.choose()
    assert made.winner == 1
    assert made.worst == pytest.approx([0.35, 0.10, 0.50])
    assert (made.best_in(0), made.best_in(1)) == (0, 2)


def test_losses_count_in_proportion_where_the_scale_was_said() -> None:
    cases = ask(n=1000, horizon=HORIZON, best_between=(0.09, 0.9), m_at_least=100).cases()
    assert [case.unit for case in cases] == pytest.approx([0.08, 0.8] * (len(cases) // 2))
    assert {case.unit for case in ask(n=1000).cases()} == {1.0}
    made = played([[1, 30]], [[5, 20]])  # at most 8 and 80 can be lost
    made.cases = cases[:2]
    made.choose()
    assert made.worst == pytest.approx([0.125, 0.5])
    assert made.winner == 0
    made.cases = [replace(case, scaled=False) for case in cases[:2]]
    made.choose()
    assert made.worst == pytest.approx([0.10, 0.04])
    assert made.winner == 1


def test_a_guarantee_is_worth_a_tenth() -> None:
    made = played([[20, 20]], [[21.9, 21.9]], [[21.9, 22.1]], proven=False)
    proven = played([[1, 1]]).players[0]
    for seat, winner in ((1, 1), (2, 0)):  # within a tenth in every case, and not
        made.players = [made.players[0]] * 3
        made.players[seat] = proven
        made.choose()
        assert made.winner == winner


def test_the_best_of_each_case_goes_on() -> None:
    # worst excesses: 1, 5, 2, 90; the last is best in the second case
    made = played([[10, 11]], [[15, 10]], [[12, 12]], [[100, 10 - 1]])
    made.keep(3)
    assert made.left == [0, 2, 3]
    made.keep(2)
    assert made.left == [0, 3]


def test_runs_that_agree_tell_apart_and_few_do_not() -> None:
    luck = np.random.default_rng(0).uniform(0, 5, (300, 1))
    clear = played(luck, luck + 40)
    clear.choose()
    assert clear.not_told_apart() == []
    assert clear.undecided_on_average() == {}
    few = played(luck[:3], luck[:3] + 40)
    few.choose()
    assert few.not_told_apart() == [1]
    assert few.undecided_on_average()[1] > 3


def test_the_usual_run_tells_apart_what_means_cannot() -> None:
    """0.08 % of the horizon against 0.44 %, in each of 215 runs; a miss may cost all of it."""
    luck = np.random.default_rng(0).uniform(0, 0.05, (215, 1))
    near = played(0.08 + luck, 0.44 + luck)
    near.choose()
    assert near.not_told_apart() == []
    needed = near.undecided_on_average()
    assert list(needed) == [1]
    assert 215 < needed[1] < 5000
    text = " ".join(reasons(ask(), near, []))
    assert "In the usual run it loses less than all others (medians of 215 runs)." in text
    assert re.search(r"On average, rare misses included, it cannot .* about [\d,]+ more runs", text)
    same = played(luck, luck[::-1])  # as good as each other
    same.choose()
    assert len(same.not_told_apart()) == 1


def test_who_is_better_elsewhere_is_told_apart_by_the_worst_excess() -> None:
    luck = np.random.default_rng(1).uniform(0, 2, (400, 2))
    # worst excesses: 10 (first case), 60 (second case)
    made = played(np.add(luck, [20, 10]), np.add(luck, [10, 70]))
    made.choose()
    assert made.winner == 0
    assert made.not_told_apart() == []
    assert made.undecided_on_average() == {}
    # 10 and 12 are too near to each other, on average
    close = played(np.add(luck, [20, 10]), np.add(luck, [10, 22]))
    close.choose()
    assert list(close.undecided_on_average()) == [1]


def test_the_budget_decides_who_plays() -> None:
    short, long = (ask(n=1000, horizon=t, policies="all") for t in (100, 10**6))
    everyone = candidates(short)
    assert affordable(short, everyone) == everyone
    few = affordable(long, candidates(long))
    assert len(few) == 14
    left_out = {player.label for player in candidates(long)} - {player.label for player in few}
    assert {"thompson", "ucb1"} <= left_out
    told = ask(n=1000, horizon=10**6, m_at_least=5, best_mean=0.8, policies="all")
    assert "moss-oracle" in {player.label for player in affordable(told, candidates(told))}


def _race(asked: Question, replications: int | None, **options: Any) -> Race:
    usual: dict[str, Any] = {"seed": 0, "workers": 1, "progress": False}
    return race(asked, candidates(asked), replications, **usual | options)


def test_rounds_end_with_eight_and_are_as_one_run() -> None:
    own = [ma.MOSS(exploration=k / 10 + 0.1) for k in range(20)]
    asked = ask(n=200, horizon=30, policies=own, best_mean=0.8, m_at_least=40)
    found = _race(asked, 8)
    assert sorted({len(each) for each in found.regrets}) == [2, 4, 8]
    assert len(found.left) == 8
    assert found.runs == 8
    case = found.cases[-1]
    for k in found.left[:2]:
        whole = ma.simulate(own[k], case.instance, horizon=30, replications=8, checkpoints=1)
        assert found.regrets[k][:, -1].tolist() == whole.regret[0, :, -1].tolist()
        assert found.missed[k][:, -1].tolist() == (whole.best_pulls[0] == 0).tolist()


@pytest.mark.parametrize(("best", "joins"), [(0.5, True), (1.0, False)])
def test_a_guard_plays_if_what_it_guards_leads(best: float, joins: bool) -> None:
    """Many good arms of mean 0.5 are for ss-greedy; where best arms never fail, others lead."""
    arms = grouped(sizes=[200, 300], means=[best, 0.1])
    found = _race(ask(n=None, horizon=300, instance=arms), 4)
    labels = [player.label for player in found.players]
    assert ("guarded-ss-greedy" in labels) == joins
    assert found.players[found.winner].policy.name.endswith("ss-greedy") == joins
    k = labels.index("guarded-ss-greedy" if joins else "prospector")
    policy, runs = found.players[k].policy, len(found.regrets[k])
    alone = ma.simulate(policy, arms, horizon=300, replications=runs, checkpoints=1)
    assert found.regrets[k][:, -1].tolist() == alone.regret[0, :, -1].tolist()


@pytest.mark.compiled
def test_time_allows_so_many_runs() -> None:
    asked = ask(n=50, horizon=20, policies=["moss"], best_mean=0.8)
    assert _race(asked, None).runs == 400


def test_pulls_in_flight_are_played() -> None:
    asked = ask(n=60, horizon=40, policies=["moss"], best_mean=0.8, m_at_least=10, in_flight=7)
    found = _race(asked, 3)
    policy, case = ma.MOSS(count_late=True), found.cases[-1]
    late = ma.simulate(policy, case.instance, horizon=40, replications=3, delay=7)
    assert found.regrets[0][:, -1].tolist() == late.regret[0, :, -1].tolist()


def test_the_progress_of_rounds_never_falls() -> None:
    shares: list[float] = []
    shown = _Rounds(lambda done, total, note: shares.append(round(done / total, 3)))
    for left, total in ((3, 10_000), (2, 5_000), (1, 40_000)):
        heard = shown.next(left)
        for done in (0, total // 2, total):
            heard(done, total, "")
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
