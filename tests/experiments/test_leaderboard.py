"""The leaderboard's suite: which problems, who plays, what they are told, how often."""

from __future__ import annotations

import csv
import math
from collections import Counter
from pathlib import Path

import pytest

import manyarms as ma
from manyarms.experiments import leaderboard_players
from manyarms.experiments.leaderboard import contest_matches, leaderboard
from manyarms.experiments.leaderboard_players import FEWEST, SECONDS, Match, match
from manyarms.instances import stand_in_652
from manyarms.protocol import described

DOCS = Path(__file__).parent.parent.parent / "docs"
SUITE = {m.name: m for m in leaderboard(most_runs=100)}


def labels(of: Match) -> set[str]:
    return {player.label for player in of.players}


def told(of: Match, label: str) -> ma.Policy:
    return next(player.policy for player in of.players if player.label == label)


def test_the_suite_is_the_issues() -> None:
    families = Counter(m.family for m in SUITE.values())
    assert families == {
        "Figure 2(a)": 9,
        "smaller gaps": 6,
        "Gaussian rewards": 2,
        "extreme sizes": 4,
        "infinitely many arms": 5,
    }
    paper = SUITE["Fig. 2(a), alpha 0.4"]
    assert (paper.instance.n_arms, paper.instance.n_best, paper.horizon) == (20_000, 132, 50_000)
    assert {m.instance.best_mean for m in SUITE.values()} == {0.5, 0.55, 0.6, 0.8, 0.9, 1.0}
    wide = SUITE["n = 1 000 000, T = 10 000, alpha 0.2"]
    assert (wide.instance.n_arms, wide.horizon) == (1_000_000, 10_000)
    assert SUITE["n = 100, T = 50 000, m = 1"].instance.n_best == 1


def test_everybody_plays_who_applies_and_nobody_else() -> None:
    coins, normal, perfect = (
        labels(SUITE[name])
        for name in ("Fig. 2(a), alpha 0.4", "Gaussian, alpha 0.4", "Beta(1, 1) means")
    )
    registered = set(ma.policy_names())
    for name, entry in described().items():
        plays = name in registered and entry.knowledge != "arm"
        assert (name in perfect) == plays
        assert (name in coins) == (plays and not entry.perfect_best)
        assert (name in normal) == (plays and not entry.perfect_best and entry.rewards == "any")
    assert {"hybrid-moss++(kl)", "patience(kl)"} <= coins - normal


def test_those_who_know_m_are_told_it() -> None:
    paper = SUITE["Fig. 2(a), alpha 0.4"]
    assert paper.ratio == pytest.approx(20_000 / 132)
    oracle = told(paper, "moss-oracle")
    assert isinstance(oracle, ma.MOSSOracle)
    assert oracle.alpha == pytest.approx(paper.instance.problem(50_000).alpha)
    uniform = SUITE["Beta(1, 1) means"]  # P(mean >= 1 - e) = e, and e = 1 / sqrt(T)
    assert uniform.ratio == pytest.approx(math.sqrt(50_000))
    triangle = SUITE["Beta(1, 3) means"]  # P = e^3, and e = T^(-1/4)
    assert triangle.ratio == pytest.approx(50_000 ** (3 / 4))


@pytest.mark.parametrize(
    ("name", "b", "weight"),
    [("Beta(1, 1) means", 1.0, 1.0), ("Beta(2, 2) means", 2.0, 3.0)],  # 6 x (1-x) is the density
)
def test_those_who_know_the_shape_are_told_it(name: str, b: float, weight: float) -> None:
    entered = labels(SUITE[name])
    for label in {"two-target", "cbt"} & entered:
        policy = told(SUITE[name], label)
        assert vars(policy)["b"] == b
        assert vars(policy)["weight"] == pytest.approx(weight)
    for label in {"ucb-f", "ucb-air"} & entered:
        policy = told(SUITE[name], label)
        assert (vars(policy)["b"], vars(policy)["perfect_best"]) == (b, True)


def test_slow_policies_play_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = ma.instances.planted(n=10, m=1)
    for player in match("p", "f", instance, 50_000, most_runs=1000).players:
        name = player.label.partition("(")[0]
        seconds = player.runs * 50_000 * described()[name].nanoseconds / 1e9
        assert player.runs == FEWEST or seconds <= SECONDS
    monkeypatch.setattr(leaderboard_players, "SECONDS", 1e-9)
    assert {p.runs for p in match("p", "f", instance, 9, most_runs=100).players} == {FEWEST}


def test_contests_have_the_papers_horizon() -> None:
    (contest,) = contest_matches({"stand-in": stand_in_652()}, most_runs=2)
    assert (contest.horizon, contest.family) == (100_000, "caption contests")
    assert contest.pulls == 100_000 * sum(player.runs for player in contest.players)
    assert labels(contest) == labels(SUITE["Beta(1, 1) means"])  # the best mean is 1 in both


def test_the_numbers_of_the_last_run_are_of_this_suite() -> None:
    lines = (DOCS / "leaderboard.csv").read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert {row["problem"] for row in rows} >= set(SUITE)
    known = {name: entry.knowledge for name, entry in described().items()}
    for row in rows:
        assert row["knowledge"] == known[row["policy"].partition("(")[0]]
    page = (DOCS / "leaderboard.md").read_text(encoding="utf-8")
    assert all(name in page for name in SUITE)
    assert (DOCS / "figures" / "leaderboard.svg").exists()
