"""The leaderboard: ranks, losses, profiles by hand; the page says what the numbers say."""

from __future__ import annotations

import csv
import re
from typing import Any

import numpy as np
import pytest

from manyarms.report.leaderboard import Cell, profile, ratio, rows, standings
from manyarms.report.leaderboard_blocks import Table, as_html, as_markdown
from manyarms.report.leaderboard_losses import losses, where_we_lose
from manyarms.report.leaderboard_page import leaderboard_csv, leaderboard_page

pytest.importorskip("matplotlib", reason="the extra `lab` is not installed")

from matplotlib.axes import Axes

from manyarms.report.leaderboard_figure import profiles


def cell(problem: str, policy: str, knowledge: str, regret: Any, missed: int = 0) -> Cell:
    values = np.array(regret, dtype=float)
    return Cell(problem, "coins", policy, knowledge, values, np.arange(values.size) < missed)


def named(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def three_problems() -> list[Cell]:
    noise = np.array([-1.0, 1.0, -2.0, 2.0])
    return [
        cell("easy", "empmoss++", "none", 100 + noise, missed=1),
        cell("easy", "greedy", "none", 50 + noise),
        cell("easy", "patience", "mu*", 25 + noise[:2]),
        cell("hard", "empmoss++", "none", 10 + noise),
        cell("hard", "greedy", "none", 40 + noise),
        cell("hard", "patience", "mu*", 20 + noise),
        cell("contest 1", "empmoss++", "none", 30 + noise),
        cell("contest 1", "greedy", "none", 30 + noise),
    ]


def test_rows_by_hand() -> None:
    table = {(row.problem, row.policy): row for row in rows(three_problems())}
    easy = table["easy", "empmoss++"]
    assert (easy.runs, easy.mean, easy.median, easy.miss_rate) == (4, 100.0, 100.0, 0.25)
    assert easy.se == pytest.approx(np.sqrt(10 / 3) / 2)  # the squares add up to 10
    assert (easy.relative, easy.relative_equal) == (4.0, 2.0)
    assert easy.rank == (3.0, 3.0, 3.0)  # the gaps are far wider than the noise
    assert easy.rank_equal == (2.0, 2.0, 2.0)
    assert table["easy", "patience"].runs == 2
    assert table["easy", "patience"].rank_equal == (1.0, 1.0, 1.0)  # it has no equals
    assert str(easy.rank) == "3"


def test_equal_regrets_share_a_rank() -> None:
    table = [row for row in rows(three_problems()) if row.problem == "contest 1"]
    assert [row.rank for row in table] == [(1.0, 1.0, 1.0)] * 2


def test_ranks_that_cannot_be_told_have_wide_intervals() -> None:
    luck = np.random.default_rng(1)
    cells = [cell("p", name, "none", luck.normal(10, 1, 30)) for name in "abc"]
    for row in rows(cells):
        assert row.rank.low < row.rank.high
        assert row.rank.low <= row.rank.value <= row.rank.high
    assert re.fullmatch(r"\d \[\d, \d\]", str(rows(cells)[0].rank))


def test_shared_luck_stays_shared() -> None:
    # b has 1 more in every run: however the runs are weighed, it is second
    shared = np.random.default_rng(2).normal(100, 50, 40)
    first, second = rows([cell("p", "a", "none", shared), cell("p", "b", "none", shared + 1)])
    assert (first.rank, second.rank) == ((1, 1, 1), (2, 2, 2))


def test_standings_by_hand() -> None:
    order = {standing.policy: standing for standing in standings(three_problems())}
    emp = order["empmoss++"]
    assert emp.problems == 3
    assert emp.relative == pytest.approx((4 * 1 * 1) ** (1 / 3))
    assert emp.relative_equal == pytest.approx(2 ** (1 / 3))
    assert (emp.worst, emp.worst_at) == (2.0, "easy")
    assert emp.rank.value == pytest.approx((3 + 1 + 1) / 3)
    assert order["patience"].problems == 2
    assert list(order) == ["patience", "empmoss++", "greedy"]


def test_profiles_by_hand() -> None:
    table = rows(three_problems())
    factors = np.array([1.0, 1.9, 2.0, 4.0])
    assert profile(table, "empmoss++", factors).tolist() == pytest.approx([2 / 3, 2 / 3, 1, 1])
    among_all = profile(table, "empmoss++", factors, equal=False)
    assert among_all.tolist() == pytest.approx([2 / 3, 2 / 3, 2 / 3, 1])


def test_losses_are_to_those_who_know_no_more_and_beyond_doubt() -> None:
    lost, played = losses(three_problems(), "empmoss++")
    assert played == 3
    assert [(loss.problem, loss.winner, loss.factor) for loss in lost] == [("easy", "greedy", 2.0)]
    lost, played = losses(three_problems(), "patience")  # who knows nothing may be named too
    assert [(loss.problem, loss.winner) for loss in lost] == [("hard", "empmoss++")]
    assert losses(three_problems(), "nobody") == ([], 0)
    doubtful = [cell("p", "a", "none", [1.0, 9.0]), cell("p", "b", "none", [2.0, 3.0])]
    assert losses(doubtful, "a") == ([], 1)
    assert losses([cell("p", "a", "none", [1.0, 2.0])], "a") == ([], 1)


def test_where_we_lose_is_said_in_words() -> None:
    text = where_we_lose(three_problems())
    assert "**empMOSS++** loses on 1 of 3 problems (coins 1 of 3)" in text
    assert 'worst on "easy", with 2 times the regret of greedy' in text
    alone = [cell("p", "empmoss++", "none", [1.0, 2.0])]
    assert "**empMOSS++** loses on none of its 1 problems." in where_we_lose(alone)


def test_ratios_to_no_regret() -> None:
    assert (ratio(0.0, 0.0), ratio(1.0, 0.0), ratio(3.0, 2.0)) == (1.0, np.inf, 1.5)


def test_the_page_is_the_same_in_both_forms_and_needs_no_network() -> None:
    cells = three_problems()
    table, order = rows(cells), standings(cells)
    page = leaderboard_page(
        cells, table, order, svg="<?xml?><svg></svg>", picture="f.svg", provenance={"seed": 3}
    )
    markdown, html = as_markdown(page), as_html(page, title="A & B")
    paragraphs = markdown.split("\n\n")
    assert paragraphs[0] == "# The leaderboard"
    assert paragraphs[1].startswith("Where we lose: **empMOSS++**")
    assert "flattered" in markdown  # by the threshold: there are contests
    assert "![Performance profiles" in markdown
    assert "(f.svg)" in markdown
    assert "| empmoss++ | nothing | 4.00 (25%) | 1.00 (0%) |" in markdown
    assert "| patience | μ* | 1.00 (0%) | 2.00 (0%) | - |" in markdown
    assert "seed 3" in markdown
    assert "<title>A &amp; B</title>" in html
    assert "<svg></svg>" in html
    assert "<details><summary>easy: all numbers</summary>" in html
    assert not re.search(r"https?://|<script|<link|@import|url\(", html)
    without = [c for c in cells if "contest" not in c.problem]
    page = leaderboard_page(
        without, rows(without), standings(without), svg="<svg/>", picture="", provenance={}
    )
    assert "flattered" not in as_markdown(page)


def test_rules_for_a_perfect_best_arm_stand_apart() -> None:
    cells = [*three_problems(), cell("easy", "k-failure", "mu*", [5.0, 6.0])]
    page = leaderboard_page(
        cells, rows(cells), standings(cells), svg="<svg/>", picture="", provenance={}
    )
    told, _, apart = as_markdown(page).partition("### Made for a best mean of 1")
    assert "| patience | 2 |" in told
    assert "| k-failure | 1 |" in apart


def test_cells_are_escaped_and_coloured() -> None:
    table = Table(("a", "b"), (("<x>", "`y`"),), ((None, 0.5),))
    html = as_html([table], title="t")
    assert "<td>&lt;x&gt;</td>" in html
    assert re.search(r'<td style="background:hsl\([^"]*\)"><code>y</code></td>', html)


def test_the_table_is_csv_with_its_provenance() -> None:
    text = leaderboard_csv(rows(three_problems()), {"seed": 3})
    first, *lines = text.splitlines()
    assert first == "# seed: 3"
    read = list(csv.DictReader(lines))
    assert len(read) == 8
    found = next(r for r in read if (r["problem"], r["policy"]) == ("easy", "empmoss++"))
    assert (found["mean"], found["rank"], found["rank_equal_low"]) == ("100", "3", "2")


def test_the_figure_has_a_panel_for_each_kind_of_knowledge() -> None:
    cells = three_problems()
    figure = profiles(rows(cells), standings(cells))
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["told nothing of the means", "told the best mean"]
    assert named(figure.axes[0]) == ["empMOSS++", "greedy"]
    of_emp = figure.axes[0].lines[0]
    assert np.asarray(of_emp.get_xdata()).tolist() == [1.0, 2.0, 100.0]
    assert np.asarray(of_emp.get_ydata()).tolist() == pytest.approx([2 / 3, 1.0, 1.0])


def test_a_crowd_is_grey() -> None:
    cells = [cell("p", f"policy {k}", "none", [k + 1.0, k + 2.0]) for k in range(15)]
    axes = profiles(rows(cells), standings(cells)).axes[0]
    names = named(axes)
    assert len(names) == 10
    assert names[-1] == "6 others"
