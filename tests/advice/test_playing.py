"""How often policies are played, and what is known without playing."""

from __future__ import annotations

import math

import numpy as np
import pytest

import manyarms as ma
from manyarms.advice.advise import _code as code
from manyarms.advice.play import _replications, play
from manyarms.advice.question import candidates
from tests.advice.test_question import ask


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


class Seen:
    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []

    def __call__(self, done: int, total: int, note: str) -> None:
        self.calls.append((done, total))


def test_progress_goes_from_nothing_to_all() -> None:
    asked, seen = ask(n=40, horizon=30), Seen()
    players = candidates(asked)
    games = play(asked, players, replications=3, seed=0, workers=1, progress=seen)
    assert [len(row) for row in games] == [len(players)] * len(asked.problems())
    total = 3 * 30 * len(players) * len(asked.problems())
    assert {whole for _, whole in seen.calls} == {total}
    done = [count for count, _ in seen.calls]
    assert done == sorted(done)
    assert done[-1] == total


def test_one_pull_is_known_exactly() -> None:
    # 3 best arms of 5 (of one pull, hardness 0), the others 0.1 and 0.2: mean (0.8 + 0.7)/5
    asked = ask(n=5, horizon=1)
    games = play(
        asked, candidates(asked), replications=9, seed=0, workers=1, progress=lambda *_: None
    )
    for game in games[0]:
        assert game.exact
        assert game.regrets.tolist() == pytest.approx([0.3])
        assert game.median == 0.0
        assert game.miss_rate == pytest.approx(0.4)


def test_a_round_of_every_arm_best_loses_nothing() -> None:
    asked = ask(n=7, horizon=10**6, m_at_least=7)
    (row,) = play(
        asked, candidates(asked), replications=None, seed=0, workers=1, progress=lambda *_: None
    )
    assert all(game.exact and game.regrets.tolist() == [0.0] for game in row)


@pytest.mark.compiled
def test_the_mean_that_is_not_played_is_the_one_that_is() -> None:
    """MOSS with n >= T: the exact mean against 400 runs, false alarm 1e-6.

    A pull loses at most 0.8, and T pulls without replacement vary less than with it: the standard
    deviation of a run is at most 0.4 sqrt(T) = 40, of the mean of 400 runs 2; 4.9 of them are 9.8.
    """
    asked = ask(n=12_000, horizon=10_000, m_at_least=600)
    (moss, *_) = candidates(asked)
    exact = play(asked, [moss], replications=5, seed=0, workers=2, progress=lambda *_: None)
    assert all(game.exact for (game,) in exact)
    for problem, (game,) in zip(asked.problems(), exact, strict=True):
        result = ma.simulate(
            ma.MOSS(), asked.instance(problem), horizon=10_000, replications=400, checkpoints=1
        )
        played = result.regret[0, :, -1]
        assert abs(played.mean() - game.regrets[0]) <= 9.8
        assert abs(float(np.median(played)) - game.median) <= 1.3 * 9.8  # sqrt(pi/2): the median's
        assert game.miss_rate == pytest.approx(float((result.best_pulls == 0).mean()), abs=1e-6)
