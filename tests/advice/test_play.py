"""Who plays, how often, and what is known without playing; the choice, by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.advice.advise import _code as code
from manyarms.advice.play import Game, _replications, choose, play
from manyarms.advice.question import Candidate, Question, candidates
from tests.advice.test_question import ask


def play_all(
    asked: Question, players: list[Candidate], replications: int | None, **options: Any
) -> list[list[Game]]:
    usual: dict[str, Any] = {"seed": 0, "workers": 1, "progress": lambda *_: None}
    return play(asked, players, replications, **usual | options)


def test_candidates_follow_what_is_known() -> None:
    def names(**given: float) -> list[str]:
        return [player.policy.name for player in candidates(ask(**given))]

    assert names() == ["moss", "moss++", "hybrid-moss++", "quantile", "empmoss++"]
    assert names(m_at_least=30)[1] == "moss-oracle"  # ceil(100/30 log sqrt(50)) = 7 arms
    assert names(m_at_least=3) == names()  # 65 arms for 50 pulls: that is MOSS
    assert {"parallel", "patience"} <= set(names(best_mean=0.7))
    betas = [player.label for player in candidates(ask(betas=[0.6, 0.75]))]
    assert "moss++ beta=0.6" in betas
    assert "empmoss++ beta=0.75" in betas


def test_the_largest_sets() -> None:
    # T = 1024, beta = 1/2: p = 5 and K_1 = 2^6; T^0.5 log(32) 2 = 221.8 arms for the oracle
    players = candidates(ask(n=10_000, horizon=1024, alpha_at_most=0.5))
    arms = {player.policy.name: player.arms for player in players}
    assert arms == {"moss": 10_000, "moss-oracle": 222, "moss++": 64, "empmoss++": 64,
                    "hybrid-moss++": 64, "quantile": 15}  # fmt: skip  # ceil(2^(0.347 * 11)) = 15


def test_rates_by_hand() -> None:
    asked = ask(n=100, horizon=10_000, alpha_at_most=0.1, best_mean=0.9)
    rates = {p.policy.name: p.rate and p.rate(0.2) for p in candidates(asked)}
    hardest = math.log(100 / (2 * 20)) / math.log(10_000)  # 20 = ceil(100 / (2 * 10^0.4))
    assert rates["moss"] == pytest.approx(0.75)  # sqrt(n T) = 10^3
    assert rates["moss-oracle"] == pytest.approx((1 + hardest) / 2)
    assert rates["parallel"] == rates["patience"] == pytest.approx(0.6)
    assert rates["moss++"] == rates["hybrid-moss++"] == pytest.approx(0.7)  # 1 + 0.2 - 0.5
    assert rates["quantile"] == pytest.approx(0.674)
    assert rates["empmoss++"] is None
    (moss, *_) = candidates(ask(n=50, horizon=50))
    assert moss.rate is not None
    assert moss.rate(0.2) == 1.0


def test_what_to_type() -> None:
    assert code(ma.MOSSPlusPlus(beta=0.5)) == "ma.MOSSPlusPlus(beta=0.5)"
    assert code(ma.MOSS()) == "ma.MOSS()"
    assert code(ma.MOSSOracle(m=50)) == "ma.MOSSOracle(m=50)"
    for player in candidates(ask(best_mean=0.7, m_at_least=30)):
        assert eval(code(player.policy), {"ma": ma}) == player.policy


def test_replications_follow_the_budget() -> None:
    asked = ask(n=10**9, horizon=10**6, betas=[0.5, 0.75])
    runs = {p.label: _replications(asked, p, 40) for p in candidates(asked)}
    # 16e9 / 40 games = 0.4 s each; a run of 10^6 pulls takes 0.04 s with small sets: 10 of them;
    # with large ones (2^16 arms) 0.15 s: 2.7, rounded down to 2, and never less than 4
    assert runs["moss++ beta=0.5"] == 10
    assert runs["moss++ beta=0.75"] == 4
    assert runs["moss"] == 2
    assert _replications(ask(n=10, horizon=5), candidates(ask())[0], 40) == 200


def test_progress_goes_from_nothing_to_all() -> None:
    seen: list[tuple[int, int]] = []
    asked = ask(n=40, horizon=30)
    players = candidates(asked)
    games = play_all(asked, players, 3, progress=lambda done, total, _: seen.append((done, total)))
    assert [len(row) for row in games] == [len(players)] * len(asked.problems())
    total = 3 * 30 * len(players) * len(asked.problems())
    assert seen == sorted(seen)
    assert {whole for _, whole in seen} == {total}
    assert seen[-1] == (total, total)


def test_one_pull_is_known_exactly() -> None:
    # 3 best arms of 5 (of one pull, hardness 0), the others 0.1 and 0.2: mean (0.8 + 0.7)/5
    asked = ask(n=5, horizon=1)
    for game in play_all(asked, candidates(asked), 9)[0]:
        assert game.exact
        assert game.regrets.tolist() == pytest.approx([0.3])
        assert game.median == 0.0
        assert game.miss_rate == pytest.approx(0.4)


def test_a_round_of_every_arm_best_loses_nothing() -> None:
    asked = ask(n=7, horizon=10**6, m_at_least=7)
    (row,) = play_all(asked, candidates(asked), None)
    assert all(game.exact and game.regrets.tolist() == [0.0] for game in row)


@pytest.mark.compiled
def test_the_mean_that_is_not_played_is_the_one_that_is() -> None:
    """MOSS with n >= T: the exact mean against 400 runs, false alarm 1e-6.

    A pull loses at most 0.8, and T pulls without replacement vary less than with it: the standard
    deviation of a run is at most 0.4 sqrt(T) = 40, of the mean of 400 runs 2; 4.9 of them are 9.8.
    """
    asked = ask(n=12_000, horizon=10_000, m_at_least=600)
    (moss, *_) = candidates(asked)
    exact = play_all(asked, [moss], 5)
    assert all(game.exact for (game,) in exact)
    for problem, (game,) in zip(asked.problems(), exact, strict=True):
        result = ma.simulate(
            ma.MOSS(), asked.instance(problem), horizon=10_000, replications=400, checkpoints=1
        )
        played = result.regret[0, :, -1]
        assert abs(played.mean() - game.regrets[0]) <= 9.8
        assert abs(float(np.median(played)) - game.median) <= 1.3 * 9.8  # sqrt(pi/2): the median's
        assert game.miss_rate == pytest.approx(float((result.best_pulls == 0).mean()), abs=1e-6)


def game(*regrets: float) -> Game:
    return Game(np.array(regrets), float(np.median(regrets)), 0.0)


def test_the_smallest_worst_excess_wins() -> None:
    # T = 100; shares by problem: A 10 %, 50 %; B 20 %, 20 %; C 60 %, 15 %.
    # lowest: 10 %, 15 %; excesses: A 0, 35; B 10, 5; C 50, 0; worst: 35, 10, 50
    easy = [game(10, 10), game(20, 20), game(60, 60)]
    hard = [game(50, 50), game(20, 20), game(15, 15)]
    made = choose([easy, hard], 100)
    assert made.winner == 1
    assert made.worst == pytest.approx([0.35, 0.10, 0.50])
    assert made.shares[1] == pytest.approx([0.50, 0.20, 0.15])
    assert made.wins.tolist() == [0, 1, 0]


def test_of_policies_that_do_alike_the_first_is_taken() -> None:
    # worst excesses 0.4 %, 0, 0.6 % of the horizon: the first is within half a percent
    assert choose([[game(104), game(100), game(106)]], 1000).winner == 0
    assert choose([[game(106), game(100), game(104)]], 1000).winner == 1


def test_nothing_lost_is_a_tie() -> None:
    made = choose([[game(0, 0), game(0, 0)]], 10)
    assert made.winner == 0
    assert made.worst.tolist() == [0, 0]


def test_wins_measure_how_sure_the_choice_is() -> None:
    # the second is better by 10 % of the horizon on average, or not: half of the runs say 40 %
    # more, half 60 % less. Of 10 runs drawn anew, the mean of +40 and -60 is above -0.5 with
    # probability P(Binomial(10, 1/2) >= 6) = 386/1024 (6 times +40, 4 times -60 is 0: alike)
    swing = game(*([90, 10 - 20] * 5))
    made = choose([[game(*([50] * 10)), swing]], 100)
    assert made.winner == 1
    # standard deviation of a share of 500 samples: at most 0.022; five of them are 4e-7
    assert made.wins[0] == pytest.approx(386 / 1024, abs=0.11)
    assert made.wins.sum() == pytest.approx(1)


def test_equally_many_runs_stay_paired() -> None:
    # the second loses exactly 1 % more in every run, whatever the luck: no sample differs
    luck = np.random.default_rng(0).uniform(0, 100, 20)
    made = choose([[game(*(luck + 1)), game(*luck)]], 100)
    assert made.wins.tolist() == [0, 1]
