"""Policies compared over contests: ratios, wins, ranks and misses against numbers by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from manyarms.core.statistics import mean_interval
from manyarms.errors import ParameterError
from manyarms.report.contests import ContestResult, standings
from manyarms.report.contests_figure import contest_ranks
from manyarms.report.contests_tables import contests_as_data, contests_as_markdown
from manyarms.lab.results import Result

POLICIES = ("moss", "quantile", "moss++")


def _played(
    name: str, regrets: list[float], missed: int = 0, threshold: float | None = 0.8
) -> ContestResult:
    """Return two replications, one below and one above the mean; `missed` are those of MOSS."""
    count = len(regrets)
    regret = np.array([[[mean - 1.0], [mean + 1.0]] for mean in regrets])
    best_pulls = np.ones((count, 2), np.int64)
    best_pulls[0, :missed] = 0
    result = Result(
        policies=POLICIES[:count],
        specifications=POLICIES[:count],
        instance=name,
        n_arms=100,
        best_mean=1.0,
        horizon=1000,
        seed=4,
        first_replication=0,
        times=np.array([1000]),
        regret=regret,
        best_pulls=best_pulls,
        distinct_arms=best_pulls,
        recommended=best_pulls,
        arms=None,
        seconds={},
    )
    return ContestResult(name, threshold, 10, 0.33, result)


CONTESTS = [
    _played("1", [10.0, 40.0, 20.0], missed=2),
    _played("2", [30.0, 60.0, 20.0], missed=1),
    _played("3", [50.0, 80.0, 50.0]),  # a tie
]


def test_standings_by_hand() -> None:
    moss, quantile, mosspp = standings(CONTESTS)
    assert [row.policy for row in (moss, quantile, mosspp)] == list(POLICIES)
    assert moss.relative.estimate == pytest.approx((1 + 1.5 + 1) / 3)
    assert quantile.relative == mean_interval(np.array([4.0, 3.0, 1.6]))._replace(low=1.0)
    assert [row.wins for row in (moss, quantile, mosspp)] == [2, 0, 2]
    ranks = [row.rank.estimate for row in (moss, quantile, mosspp)]
    assert ranks == pytest.approx([(1 + 2 + 1.5) / 3, 3.0, (2 + 1 + 1.5) / 3])
    assert [row.miss_rate for row in (moss, quantile, mosspp)] == [0.5, 0.0, 0.0]
    assert (moss.rank.low, moss.rank.high) != (moss.rank.estimate, moss.rank.estimate)
    assert all(1 <= row.rank.low <= row.rank.high <= 3 for row in (moss, quantile, mosspp))


@pytest.mark.parametrize(
    "results",
    [
        [],
        [CONTESTS[0], _played("4", [1.0, 2.0])],
        [CONTESTS[0], _played("4", [1.0, 2.0, 3.0], threshold=None)],
        [CONTESTS[0], _played("4", [0.0, 2.0, 3.0])],
    ],
)
def test_what_cannot_be_compared_is_refused(results: list[ContestResult]) -> None:
    with pytest.raises(ParameterError, match="`results` must hold"):
        standings(results)


def test_markdown() -> None:
    plain = [_played("1", [10.0, 40.0, 20.0], threshold=None)]
    text = contests_as_markdown([CONTESTS, plain], ["5: broken."])
    lines = text.splitlines()
    assert lines[0] == "# 3 caption contests, 1000 pulls, 2 replications, seed 4"
    first = lines[lines.index("## Best: all within 0.8 of the funniest") + 4 :]
    # by relative regret: 3.5 / 3 for MOSS, 4 / 3 for MOSS++
    assert first[0].startswith("| MOSS | 1.17 [1.00, ")
    assert first[1].startswith("| MOSS++ | 1.33 [")
    assert first[2].startswith("| Quantile | 2.87 [1.00, ")
    assert "| 3 | 100 | 10 | 0.33 | **50** | 80 | **50** |" in lines
    assert "| MOSS | 1.00 | 1 | 1.00 | 0% |" in lines  # one contest: no intervals
    assert lines[-3:] == ["Left out:", "", "- 5: broken."]


def test_data_is_that_of_the_standings() -> None:
    content = contests_as_data([CONTESTS])
    (game,) = content["games"]
    moss = standings(CONTESTS)[0]
    assert game["policies"][0] == {
        "policy": "moss",
        "relative_regret": moss.relative._asdict(),
        "wins": 2,
        "rank": moss.rank._asdict(),
        "miss_rate": 0.5,
    }
    assert game["contests"][1]["regret"]["quantile"]["mean"] == 60.0
    assert game["contests"][0]["miss_rate"]["moss"] == 1.0
    single = contests_as_data([CONTESTS[:1]])["games"][0]["policies"][0]
    assert single["rank"] == {"estimate": 1.0, "low": None, "high": None}


def test_the_figure_shows_ranks_and_intervals() -> None:
    plain = [_played(str(k), [10.0, 40.0, 20.0 - 15.0 * k], threshold=None) for k in (0, 1)]
    left, right = contest_ranks([CONTESTS, plain]).axes
    assert left.get_xlabel() == "mean rank over 3 contests"
    assert right.get_title() == "best: the funniest alone"
    assert left.get_yticklabels()[2].get_text() == "Quantile"
    rows = {row.policy: row for row in standings(CONTESTS)}
    marks = [line for line in left.lines if line.get_markersize() > 3 and line.get_marker() != "."]
    places = [np.asarray(line.get_xdata()) for line in marks]
    drawn = [float(place[0]) for place in places if len(place) == 1]
    assert sorted(drawn) == pytest.approx(sorted(row.rank.estimate for row in rows.values()))
    bars = [np.asarray(line.get_xdata()) for line in left.lines if line.get_linestyle() == "-"]
    ends = sorted((row.rank.low, row.rank.high) for row in rows.values())
    assert sorted(tuple(bar) for bar in bars) == ends
    dots = [line for line in left.lines if line.get_marker() == "."]
    assert sum(len(np.asarray(line.get_xdata())) for line in dots) == 9
    # a single contest has dots and marks, and no bars
    (alone,) = contest_ranks([CONTESTS[:1]]).axes
    assert alone.get_xlabel() == "mean rank over 1 contest"
    assert math.isnan(standings(CONTESTS[:1])[0].rank.low)
    assert not [line for line in alone.lines if line.get_linestyle() == "-"]
