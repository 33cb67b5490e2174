"""The leaderboard: who plays what; ranks, losses, profiles by hand; the page says the numbers."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

import manyarms as ma
from manyarms.protocol import described
from manyarms.report.text import as_markdown
from manyarms.simulation import Cell, Experiment, Player, Result, cell
from manyarms.studies.leaderboard.problems import (
    CONTESTS,
    FEWEST,
    SECONDS,
    SuiteProblem,
    contests,
    entered,
    problems,
)
from manyarms.studies.leaderboard.report import (
    LEADERBOARD,
    leaderboard_csv,
    page,
    profiles,
    tails_table,
)
from manyarms.studies.leaderboard.standings import (
    Placing,
    _ratio,
    in_short,
    losses,
    placings,
    standings,
    tails,
    where_we_lose,
)
from manyarms.studies.study import reproduce
from tests.report.made import made_result

DOCS = Path(__file__).parent.parent.parent / "docs"
SUITE = {problem.name: problem for problem in problems()}


# Who plays on what


def players(name: str) -> dict[str, Player]:
    return {player.label: player for player in entered(SUITE[name], 100).players}


def test_the_suite_has_problems_near_to_the_papers_and_far_from_them() -> None:
    assert Counter(problem.family for problem in SUITE.values()) == {
        "Figure 2(a)": 9,
        "smaller gaps": 6,
        "Gaussian rewards": 2,
        "extreme sizes": 4,
        "infinitely many arms": 5,
    }
    paper = SUITE["Fig. 2(a), alpha 0.4"]
    assert (paper.instance.n_arms, paper.instance.n_best, paper.horizon) == (20_000, 132, 50_000)
    best = {problem.instance.best_mean for problem in SUITE.values()}
    assert best == {0.5, 0.55, 0.6, 0.8, 0.9, 1.0}
    wide = SUITE["n = 1 000 000, T = 10 000, alpha 0.2"]
    assert (wide.instance.n_arms, wide.horizon) == (1_000_000, 10_000)
    assert SUITE["n = 100, T = 50 000, m = 1"].instance.n_best == 1


def test_everybody_plays_who_applies_and_nobody_else() -> None:
    coins, normal, perfect = (
        set(players(name))
        for name in ("Fig. 2(a), alpha 0.4", "Gaussian, alpha 0.4", "Beta(1, 1) means")
    )
    registered = set(ma.policy_names())
    for name, entry in described().items():
        plays = name in registered and entry.scaling != "arms tried" and not entry.finds
        assert (name in perfect) == plays
        assert (name in coins) == (plays and not entry.perfect_best)
        assert (name in normal) == (plays and not entry.perfect_best and entry.rewards == "any")
    assert {"empmoss++(kl)", "patience(kl)", "empirical-cbt"} <= coins - normal
    assert {"prospector", "prospector(bold)", "guarded-ss-greedy", "guarded-empmoss++"} <= coins
    assert {"ss-greedy", "ss-greedy(T^2/3)"} <= coins & normal
    wide = vars(players("Fig. 2(a), alpha 0.4")["ss-greedy(T^2/3)"].policy)
    assert wide["exponent"] == 2 / 3


def test_tables_say_what_players_know() -> None:
    found = players("Beta(1, 1) means")
    assert found["moss"].parameters == {"knowledge": "none", "perfect_best": 0}
    assert found["patience(kl)"].parameters == {"knowledge": "mu*", "perfect_best": 0}
    assert found["cbt"].parameters == {"knowledge": "mu*", "perfect_best": 1}


def test_those_who_know_m_are_told_it() -> None:
    paper = SUITE["Fig. 2(a), alpha 0.4"]
    assert paper.ratio == pytest.approx(20_000 / 132)
    oracle = vars(players(paper.name)["moss-oracle"].policy)
    assert oracle["alpha"] == pytest.approx(paper.instance.problem(50_000).alpha)
    uniform = SUITE["Beta(1, 1) means"]  # P(mean >= 1 - e) = e, and e = 1 / sqrt(T)
    assert uniform.ratio == pytest.approx(math.sqrt(50_000))
    triangle = SUITE["Beta(1, 3) means"]  # P = e^3, and e = T^(-1/4)
    assert triangle.ratio == pytest.approx(50_000 ** (3 / 4))


@pytest.mark.parametrize(
    ("name", "b", "weight"),
    [("Beta(1, 1) means", 1.0, 1.0), ("Beta(2, 2) means", 2.0, 3.0)],  # 6 x (1-x) is the density
)
def test_those_who_know_the_shape_are_told_it(name: str, b: float, weight: float) -> None:
    told = vars(players(name)["cbt"].policy)
    assert told["b"] == b
    assert told["weight"] == pytest.approx(weight)


def test_slow_policies_play_less_often() -> None:
    few = ma.instances.planted(n=10, m=1)
    for player in entered(SuiteProblem("f", "p", few), 1000).players:
        seconds = 50_000 * pull_nanoseconds(described()[player.policy.name]) / 1e9
        assert player.replications == FEWEST or player.replications * seconds <= SECONDS
    long = entered(SuiteProblem("f", "p", few, 10**10), 100)
    assert {player.replications for player in long.players} == {FEWEST}


CAPTIONS = "caption,votes,not_funny,somewhat_funny,funny\nA,10,5,5,0\nB,10,6,4,0\nC,10,9,1,0\n"


def test_contests_come_as_the_paper_has_them_and_otherwise(contest_folder: Path) -> None:
    for name in ("652_lil-KLUCB", "652_other", "7"):
        (contest_folder / f"{name}.csv").write_text(CAPTIONS)
    found = {problem.name: problem.instance for problem in contests()}
    assert list(found) == [
        "contest 7",
        "contest 652",
        "contest 652, no threshold",
        "contest 652, shares as voted",
        "contest 652_other",
    ]
    assert found["contest 652"].n_best == 2  # 0.4 / 0.5 reaches 0.8
    assert found["contest 652, no threshold"].n_best == 1
    assert found["contest 652, shares as voted"].best_mean == 0.5


@pytest.mark.usefixtures("contest_folder")
def test_without_files_there_is_a_stand_in() -> None:
    (problem,) = contests()
    assert (problem.name, problem.instance.is_stand_in) == ("contest 652 (stand-in)", True)
    assert (problem.horizon, problem.family) == (100_000, CONTESTS)
    everybody = {player.label for player in entered(problem, 2).players}
    assert everybody == set(players("Beta(1, 1) means"))  # the best mean is 1 in both


def test_the_numbers_of_the_last_run_are_of_this_suite() -> None:
    lines = (DOCS / "leaderboard.csv").read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert {row["problem"] for row in rows} >= set(SUITE)
    known = players("Beta(1, 1) means")
    for row in rows:
        assert row["knowledge"] == known[row["policy"]].parameters["knowledge"]
    text = (DOCS / "leaderboard.md").read_text(encoding="utf-8")
    assert all(name in text for name in SUITE)
    assert (DOCS / "figures" / "leaderboard.svg").exists()


# What is made of the runs

KNOWLEDGE = {"patience": "mu*", "cbt": "mu*"}


def played(
    problem: str, regrets: Mapping[str, Any], *, missed: int = 0, family: str = "coins"
) -> Result:
    """Return what policies lost on a problem; `missed` are runs of empMOSS++."""
    return made_result(
        regrets,
        missed={"empmoss++": missed},
        parameters={"problem": problem, "family": family},
        told={
            policy: {
                "knowledge": KNOWLEDGE.get(policy, "none"),
                "perfect_best": int(policy == "cbt"),
            }
            for policy in regrets
        },
    )


def table_of(*results: Result) -> list[Placing]:
    return [placing for result in results for placing in placings(result)]


NOISE = np.array([-1.0, 1.0, -2.0, 2.0])


def around(*means: float, noise: Any = NOISE) -> dict[str, Any]:
    """Return regrets around these means, of some or all of three policies."""
    policies = ("empmoss++", "greedy", "patience")
    return {policy: mean + noise for policy, mean in zip(policies, means, strict=False)}


EASY = around(100, 50) | {"patience": 25 + NOISE[:2]}
THREE = [
    played("easy", EASY, missed=1),
    played("hard", around(10, 40, 20)),
    played("contest 1", around(30, 30), family=CONTESTS),
]


def test_placings_by_hand() -> None:
    table = {(placing.problem, placing.policy): placing for placing in table_of(*THREE)}
    easy = table["easy", "empmoss++"]
    summary = easy.summary
    assert (summary.replications, summary.mean, summary.median) == (4, 100.0, 100.0)
    assert summary.miss_rate == 0.25
    assert summary.se == pytest.approx(np.sqrt(10 / 3) / 2)  # the squares add up to 10
    assert (easy.relative, easy.relative_equal) == (4.0, 2.0)
    assert easy.rank == (3.0, 1.0, 3.0)  # four runs leave every rank possible
    assert easy.rank_equal == (2.0, 1.0, 2.0)
    assert table["easy", "patience"].summary.replications == 2
    assert table["easy", "patience"].rank_equal == (1.0, 1.0, 1.0)  # it has no equals
    assert [placing.policy for placing in placings(THREE[0])] == ["patience", "greedy", "empmoss++"]


def test_equal_regrets_share_a_rank() -> None:
    assert [p.rank for p in placings(THREE[2])] == [(1.0, 1.0, 2.0)] * 2


def test_ranks_that_cannot_be_told_are_all_possible() -> None:
    luck = np.random.default_rng(1)
    result = played("p", {name: luck.normal(10, 1, 30) for name in "abc"})
    assert sorted(p.rank for p in placings(result)) == [(1, 1, 3), (2, 1, 3), (3, 1, 3)]


def test_shared_luck_stays_shared() -> None:
    # b has 40 more in every run, which is less than the runs vary: alone, their means overlap
    shared = np.random.default_rng(2).normal(400, 150, 200)
    first, second = placings(played("p", {"a": shared, "b": shared + 40}))
    assert (first.rank, second.rank) == ((1, 1, 1), (2, 2, 2))
    assert first.summary.high > second.summary.low


@pytest.mark.slow
def test_ranks_hold_what_they_promise() -> None:
    """Of 200 tables, at most 20 have ranks for a policy that its true rank is not among.

    Its rare misses cost 700. With probability 0.05 each, more than 20 do with probability 1e-3;
    seeds are fixed.
    """
    luck, wrong = np.random.default_rng(5), 0
    for _ in range(200):
        missed = luck.random(60) < 0.02
        regrets = {
            "a": np.where(missed, 700.0, luck.normal(100, 5, 60)),  # mean 112
            "b": luck.normal(108, 5, 60),
            "c": luck.normal(130, 5, 60),
        }
        (own,) = (p for p in placings(played("p", regrets)) if p.policy == "a")
        wrong += not own.rank.low <= 2.0 <= own.rank.high
    assert wrong <= 20


def test_standings_by_hand() -> None:
    order = {standing.policy: standing for standing in standings(table_of(*THREE))}
    emp = order["empmoss++"]
    assert (emp.problems, emp.runs) == (3, 4)
    assert emp.relative == pytest.approx((4 * 1 * 1) ** (1 / 3))
    assert emp.relative_equal == pytest.approx(2 ** (1 / 3))
    assert (emp.worst.relative_equal, emp.worst.problem) == (2.0, "easy")
    assert emp.rank == pytest.approx((3 + 1 + 1) / 3)
    assert (order["patience"].problems, order["patience"].runs) == (2, 2)
    assert list(order) == ["patience", "empmoss++", "greedy"]


def test_tails_by_hand() -> None:
    found = {tail.policy: tail for tail in tails(table_of(*THREE[:2]))}
    emp = found["empmoss++"]
    assert emp.mean == pytest.approx(math.sqrt((100 / 25) * (10 / 10)))
    assert emp.worst == pytest.approx(math.sqrt((102 / 25) * (12 / 10)))
    high = np.quantile(NOISE, 0.99)
    assert emp.q99 == pytest.approx(math.sqrt((100 + high) / 25 * (10 + high) / 10))
    assert (emp.missed, emp.most_missed.problem) == (0.125, "easy")
    assert found["greedy"].missed == 0.0
    rows = {row[0]: row[4:] for row in tails_table(table_of(*THREE)).rows}
    assert rows["empmoss++"] == ["8.3%", "25%", "easy"]
    assert rows["greedy"] == ["0.0%", "0%", "-"]


MANY = np.tile(NOISE, 50)
SURE = [
    played("easy", around(400, 200, noise=MANY) | {"patience": 100 + NOISE}),
    played("hard", around(10, 400, 200, noise=MANY)),
    THREE[2],
]


def test_losses_are_to_those_who_know_no_more_and_beyond_doubt() -> None:
    assert losses(table_of(THREE[0]), "empmoss++") == []  # four runs: greedy may miss
    table = table_of(*SURE)

    def lost(policy: str) -> list[tuple[str, str, float]]:
        return [(own.problem, best.policy, factor) for factor, own, best in losses(table, policy)]

    assert lost("empmoss++") == [("easy", "greedy", 2.0)]
    assert lost("patience") == [("hard", "empmoss++", 20.0)]  # who knows nothing may be named too
    assert lost("nobody") == []
    assert losses(placings(played("p", {"a": [1.0, 9.0], "b": [2.0, 3.0]})), "a") == []  # doubtful
    assert losses(placings(played("p", {"a": [1.0, 2.0]})), "a") == []


def test_where_we_lose_is_said_in_words() -> None:
    text = where_we_lose(table_of(*SURE))
    assert text.startswith("**empMOSS++** loses on 1 of 3 problems (coins 1 of 2)")
    assert 'It loses most on "easy", with 2 times the regret of greedy' in text
    alone = where_we_lose(placings(played("p", {"empmoss++": [1.0, 2.0]})))
    assert "**empMOSS++** loses on none of its 1 problems." in alone


def test_four_sentences_come_first() -> None:
    table = table_of(*SURE)
    text = in_short(table, standings(table))
    assert text.count(". ") == 3
    assert text.startswith(
        "3 policies played 3 problems, and none is best on all of them. Of those"
    )
    # among equals it has 2, 1 and 1 times the least regret
    assert "it has 1.26 times the least regret among them" in text
    assert "Patience, which knows the best mean, " in text
    assert text.endswith("beat empMOSS++ on 1 of its 3, Patience on 1 of its 2 problems.")
    alone = placings(played("p", {"moss": [1.0, 2.0]}))
    assert in_short(alone, standings(alone)).endswith("1 times on its worst problem.")


def test_ratios_to_no_regret() -> None:
    assert (_ratio(0.0, 0.0), _ratio(1.0, 0.0), _ratio(3.0, 2.0)) == (1.0, math.inf, 1.5)


# The page, the table, the figure


def page_of(*results: Result) -> str:
    table = table_of(*results)
    return as_markdown(list(page(table, standings(table), "f.svg", "Seed 3.")))


def test_the_page_says_the_numbers() -> None:
    text = page_of(*THREE)
    assert text.startswith("# The leaderboard\n\n![Performance profiles: ")
    assert text.endswith("\n\nSeed 3.")
    assert "**On the contests.**" in text
    assert "**On the contests.**" not in page_of(*THREE[:2])
    assert "Higher is better.](f.svg)" in text
    assert "| empmoss++ | nothing | 4.00 (25%) | 1.00 (0%) |" in text
    assert "| patience | μ* | 1.00 (0%) | 2.00 (0%) |" in text
    apart = page_of(THREE[0], played("hard", {"empmoss++": [1.0, 2.0]}))
    assert "| patience | μ* | 1.00 (0%) | - |" in apart


def test_rules_for_a_perfect_best_arm_stand_apart() -> None:
    text = page_of(played("easy", EASY | {"cbt": [5.0, 6.0]}), *THREE[1:])
    told, _, apart = text.partition("### Made for a best mean of 1")
    assert "| patience | 2 |" in told
    assert "| cbt | 1 |" in apart


def test_the_table_is_csv_with_its_provenance() -> None:
    first, *lines = leaderboard_csv(table_of(*THREE), {"seed": 3}).splitlines()
    assert first == "# seed: 3"
    read = list(csv.DictReader(lines))
    assert len(read) == 8
    found = next(r for r in read if (r["problem"], r["policy"]) == ("easy", "empmoss++"))
    assert (found["mean"], found["rank"], found["rank_equal_low"]) == ("100", "3", "1")
    assert (found["worst"], found["mostly_missed"]) == ("102", "0.25")


def named(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def test_the_figure_has_a_panel_for_each_kind_of_knowledge() -> None:
    table = table_of(*THREE)
    left, right = profiles(table, standings(table)).axes
    assert left.get_title() == "knows nothing about the means"
    assert right.get_title() == "knows the best mean"
    assert named(left) == ["empMOSS++", "greedy"]
    of_emp = left.lines[0]
    assert np.asarray(of_emp.get_xdata()).tolist() == [1.0, 2.0, 100.0]
    assert np.asarray(of_emp.get_ydata()).tolist() == pytest.approx([2 / 3, 1.0, 1.0])


def test_a_crowd_is_grey() -> None:
    table = placings(played("p", {f"policy {k}": [k + 1.0, k + 2.0] for k in range(15)}))
    names = named(profiles(table, standings(table)).axes[0])
    assert len(names) == 10
    assert names[-1] == "6 others"


# All of it, small


def small_suite(replications: int, seed: int) -> list[Experiment]:
    def on(name: str, m: int) -> Cell:
        def player(policy: ma.Policy, knowledge: str, runs: int = replications) -> Player:
            return Player(policy, policy.name, runs, {"knowledge": knowledge, "perfect_best": 0})

        return cell(
            [
                player(ma.EmpMOSSPlusPlus(), "none"),
                player(ma.Patience(), "mu*", 2),
                player(ma.MOSSOracle(alpha=0.3), "m"),
            ],
            ma.instances.planted(n=200, m=m),
            horizon=60,
            checkpoints=1,
            parameters={"problem": name, "family": "coins"},
        )

    return [Experiment("leaderboard", (on("few", 5), on("many", 50)), seed)]


@pytest.mark.slow
def test_it_plays_ranks_and_writes(tmp_path: Path) -> None:
    small = replace(LEADERBOARD, experiments=small_suite)
    report = reproduce([small], tmp_path, replications=3, seed=1, workers=1)
    assert [str(path.relative_to(tmp_path)) for path in report.files][:5] == [
        *(f"figures/leaderboard.{ending}" for ending in ("pdf", "svg", "png")),
        *(f"leaderboard.{ending}" for ending in ("md", "csv")),
    ]
    titles = [table.title for table in report.shown if not isinstance(table, str)]
    assert titles[0] == "Knows nothing about the means"
    assert len(titles) == 3
    text = (tmp_path / "leaderboard.md").read_text()
    assert "## Where we lose\n\n**empMOSS++** loses on" in text
    assert text.index("figures/leaderboard.svg") < text.index("3 policies played 2 problems")
    assert "(figures/leaderboard.svg)" in text
    lines = (tmp_path / "leaderboard.csv").read_text().splitlines()
    assert lines[0] == "# command: manyarms reproduce leaderboard --replications 3 --seed 1"
    assert "# seed: 1" in lines
    assert any(line.startswith("few,coins,patience,mu*,2,") for line in lines)
    (line,) = (line for line in lines if line.startswith("few,coins,empmoss++"))
    few = ma.instances.planted(n=200, m=5)
    result = ma.simulate(ma.EmpMOSSPlusPlus(), few, horizon=60, replications=3, seed=1)
    assert float(line.split(",")[5]) == pytest.approx(np.mean(result.regret[0, :, -1]), rel=1e-4)
