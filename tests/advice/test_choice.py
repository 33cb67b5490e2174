"""The choice, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from manyarms.advice.play import Game, choose


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
