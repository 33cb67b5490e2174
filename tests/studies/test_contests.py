"""Every contest that is found: played, compared against numbers by hand, written."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import ContestNotFoundError
from manyarms.simulation import Cell, Experiment, Result, cell
from manyarms.studies.contests import (
    CONTESTS,
    NO_THRESHOLD,
    THRESHOLDS,
    _data,
    _markdown,
    contest_cell,
    contest_ranks,
    contest_standings,
)
from manyarms.studies.study import Report, reproduce
from tests.report.made import made_result
from tests.report.page_samples import SIX

HEAD = "caption,votes,not_funny,somewhat_funny,funny\n"
POLICIES = ("moss", "quantile", "moss++")


def _contest(shares: list[int]) -> str:
    """Return a contest file whose captions were found funny by so many of 100."""
    rows = (f"C{k},100,{100 - share},0,{share}\n" for k, share in enumerate(shares))
    return HEAD + "".join(rows)


FILES = {
    "7.csv": _contest([50, 45, 20, 10] * 10),
    "8_Random.csv": _contest([80, 60, 50, 5, 5] * 10),
    "9.csv": _contest([40] + [10, 20, 30] * 10),
    "10.csv": HEAD + "A,9,9,0,0\n",  # nobody laughed
    "11.csv": _contest([50, 50]),  # nothing to lose
    "notes.csv": "this,is\nno,contest\n",
}


def _short(played: Cell) -> Cell:
    policies = [ma.MOSS(), ma.EmpMOSSPlusPlus()]
    about: dict[str, Any] = {"checkpoints": 1, "parameters": played.parameters}
    return cell(policies, played.instance, horizon=80, replications=6, **about)


def _reproduce(out: Path) -> Report:
    def short(replications: int, seed: int) -> list[Experiment]:
        (whole,) = CONTESTS.experiments(replications, seed)
        return [replace(whole, cells=tuple(_short(each) for each in whole.cells))]

    return reproduce([replace(CONTESTS, experiments=short)], out, seed=3, workers=2)


def test_cells_are_the_papers(tmp_path: Path) -> None:
    path = tmp_path / "7.csv"
    path.write_text(FILES["7.csv"])
    papers, plain = (contest_cell(path, t, 20) for t in THRESHOLDS)
    assert papers.horizon == plain.horizon == 100_000
    assert [player.label for player in plain.players] == list(SIX)
    assert (papers.instance.n_best, plain.instance.n_best) == (20, 10)
    assert plain.instance.mean(1) == pytest.approx(0.9)
    assert papers.instance.label == "captions(7, n=40, m=20)"
    alpha = papers.instance.problem(100_000).alpha
    assert papers.parameters == {"contest": "7", "threshold": 0.8, "alpha": alpha}
    assert plain.parameters["threshold"] == "none"


@pytest.mark.patient
def test_contests_are_played_compared_and_written(contest_folder: Path, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (contest_folder / name).write_text(text)
    out = tmp_path / "out"
    report = _reproduce(out)
    tables = [part for part in report.shown if not isinstance(part, str)]
    assert [table.title for table in tables] == [
        "3 contests; best: all within 0.8 of the funniest",
        "3 contests; best: the funniest alone",
    ]
    lines = [part for part in report.shown if isinstance(part, str) and "left out" in part]
    assert lines[-1] == "left out: 11: a policy lost nothing on it, so there is no ratio."
    assert {path.name for path in report.files} >= {
        f"contests.{ending}" for ending in ("md", "json", "pdf", "svg", "png")
    }
    content = json.loads((out / "contests.json").read_text())
    assert [game["threshold"] for game in content["games"]] == [0.8, None]
    assert [f"left out: {line}" for line in content["left_out"]] == lines
    for game, threshold in zip(content["games"], THRESHOLDS, strict=True):
        assert [row["contest"] for row in game["contests"]] == ["7", "8_Random", "9"]
        for row in game["contests"]:
            path = contest_folder / f"{row['contest']}.csv"
            played = _short(contest_cell(path, threshold, 6))
            assert row["best"] == played.instance.n_best
            policies = [player.policy for player in played.players]
            result = ma.simulate(policies, played.instance, horizon=80, replications=6, seed=3)
            for summary in result.summary().policies:
                assert row["regret"][summary.policy]["mean"] == summary.mean
                assert row["miss_rate"][summary.policy] == summary.miss_rate
    text = (out / "contests.md").read_text()
    assert text.startswith("# 3 caption contests, 80 pulls, 6 replications, seed 3\n")
    assert "## Best: the funniest alone" in text
    assert "| 8_Random | 50 | 10 | " in text


def test_one_contest_says_little(contest_folder: Path, tmp_path: Path) -> None:
    (contest_folder / "7.csv").write_text(FILES["7.csv"])
    _reproduce(tmp_path / "out")
    content = json.loads((tmp_path / "out" / "contests.json").read_text())
    first = content["games"][0]["policies"][0]
    assert first["relative_regret"]["low"] is None
    assert first["rank"]["high"] - first["rank"]["low"] > 0.95
    assert (tmp_path / "out" / "contests.md").read_text().startswith("# 1 caption contest, ")


@pytest.mark.parametrize("names", [[], ["10.csv", "notes.csv"], ["11.csv"]])
def test_without_contests_the_way_to_get_them_is_told(
    names: list[str], contest_folder: Path, tmp_path: Path
) -> None:
    for name in names:
        (contest_folder / name).write_text(FILES[name])
    with pytest.raises(ContestNotFoundError, match="got none that can be played") as caught:
        _reproduce(tmp_path / "out")
    assert "`manyarms data get --all`" in str(caught.value)
    assert all(Path(name).stem in str(caught.value) for name in names)  # why each is left out
    assert not (tmp_path / "out" / "contests.md").exists()


def _played(
    name: str, regrets: list[float], missed: int = 0, threshold: float | str = 0.8
) -> Result:
    """Return two replications, one below and one above the mean; `missed` are those of MOSS."""
    return made_result(
        {p: [mean - 1.0, mean + 1.0] for p, mean in zip(POLICIES, regrets, strict=True)},
        missed={"moss": missed},
        parameters={"contest": name, "threshold": threshold, "alpha": 0.33},
    )


PLAYED = [
    _played("1", [10.0, 40.0, 20.0], missed=2),
    _played("2", [30.0, 60.0, 20.0], missed=1),
    _played("3", [50.0, 80.0, 50.0]),  # a tie
]


def test_standings_by_hand() -> None:
    moss, quantile, _ = rows = contest_standings(PLAYED)
    assert [row.policy for row in rows] == list(POLICIES)
    assert moss.relative_regret.estimate == 1.0
    assert quantile.relative_regret.estimate == 3.0
    assert math.isnan(quantile.relative_regret.low)  # three contests are too few
    many = contest_standings([_played(str(k), [10.0, 10.0 * k, 10.0]) for k in range(1, 21)])
    assert many[1].relative_regret == (10.5, 6.0, 15.0)  # by printed tables of the sign test
    assert [row.wins for row in rows] == [2, 0, 2]
    ranks = [row.rank.estimate for row in rows]
    assert ranks == pytest.approx([(1 + 2 + 1.5) / 3, 3.0, (2 + 1 + 1.5) / 3])
    assert [row.miss_rate for row in rows] == [0.5, 0.0, 0.0]
    assert (moss.rank.low, moss.rank.high) != (moss.rank.estimate, moss.rank.estimate)
    assert all(1 <= row.rank.low <= row.rank.high <= 3 for row in rows)


def test_markdown() -> None:
    plain = [_played("1", [10.0, 40.0, 20.0], threshold=NO_THRESHOLD)]
    lines = _markdown({0.8: PLAYED, NO_THRESHOLD: plain}, ["5: broken."]).splitlines()
    assert lines[0] == "# 3 caption contests, 1000 pulls, 2 replications, seed 4"
    first = lines[lines.index("## Best: all within 0.8 of the funniest") + 4 :]
    assert first[0].startswith("| MOSS | 1.00 | 2 | 1.50 [")
    assert first[1].startswith("| MOSS++ | 1.00 | 2 | 1.50 [")
    assert first[2].startswith("| Quantile | 3.00 | 0 | 3.00 [")
    assert "| 3 | 100 | 10 | 0.33 | **50** | 80 | **50** |" in lines
    assert "| MOSS | 1.00 | 1 | 1.00 [1.00, 2.95] | 0% |" in lines  # one contest tells nothing
    assert lines[-3:] == ["Left out:", "", "- 5: broken."]


def test_data_is_that_of_the_standings() -> None:
    (game,) = _data({0.8: PLAYED}, [])["games"]
    moss = contest_standings(PLAYED)[0]
    assert game["policies"][0] == {
        "policy": "moss",
        "relative_regret": {"estimate": 1.0, "low": None, "high": None},
        "wins": 2,
        "rank": moss.rank._asdict(),
        "miss_rate": 0.5,
    }
    assert game["contests"][1]["regret"]["quantile"]["mean"] == 60.0
    assert game["contests"][0]["miss_rate"]["moss"] == 1.0


def test_the_figure_shows_ranks_and_intervals() -> None:
    plain = [_played(str(k), [10.0, 40.0, 20.0 - 15.0 * k], threshold=NO_THRESHOLD) for k in (0, 1)]
    left, right = contest_ranks({0.8: PLAYED, NO_THRESHOLD: plain}).axes
    assert left.get_xlabel() == "mean rank over 3 contests"
    assert right.get_title() == "best: the funniest alone"
    assert left.get_yticklabels()[2].get_text() == "Quantile"
    rows = contest_standings(PLAYED)
    marks = [line for line in left.lines if line.get_markersize() > 3 and line.get_marker() != "."]
    places = [np.asarray(line.get_xdata()) for line in marks]
    drawn = [float(place[0]) for place in places if len(place) == 1]
    assert sorted(drawn) == pytest.approx(sorted(row.rank.estimate for row in rows))
    bars = [np.asarray(line.get_xdata()) for line in left.lines if line.get_linestyle() == "-"]
    assert sorted(tuple(bar) for bar in bars) == sorted((r.rank.low, r.rank.high) for r in rows)
    dots = [line for line in left.lines if line.get_marker() == "."]
    assert sum(len(np.asarray(line.get_xdata())) for line in dots) == 9
    (alone,) = contest_ranks({0.8: PLAYED[:1]}).axes
    assert alone.get_xlabel() == "mean rank over 1 contest"
