"""`python -m paper` on small problems: its sweeps, files and messages."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from manyarms.instances import stand_in_652
from paper import __main__ as command
from paper import report, sweeps
from paper.verdicts import Claim, exactly

SMALL = sweeps.Size(n_arms=50, horizon=120, contest_horizon=200)


def test_the_sweeps_are_those_of_the_paper() -> None:
    played = {
        each.name: each
        for each in command.planned(["claims"], replications=100, seed=0, full=False)
    }
    assert {name: len(each.cells) for name, each in played.items()} == {
        "fig2a": 9,
        "fig2b": 1,
        "fig3": 1,
        "larger_betas": 3,
        "oracle_sizes": 1,
        "quantile_as_moss": 9,
    }
    assert played["fig2a"].pulls == 9 * 6 * 50_000 * 100
    assert {each.instance.n_arms for each in played["fig2a"].cells} == {20_000}
    assert [each.parameters["alpha"] for each in played["fig2a"].cells] == [
        k / 10 for k in range(1, 10)
    ]
    assert played["fig2b"].cells[0].parameters == {"alpha": 0.25}
    six = ["moss", "moss-oracle", "quantile", "parallel", "moss++", "empmoss++"]
    assert [player.policy.name for player in played["fig3"].cells[0].players] == six
    assert played["fig3"].cells[0].horizon == 100_000
    oracle = played["fig3"].cells[0].players[1]
    assert oracle.parameters["alpha"] == pytest.approx(0.3935, abs=1e-4)
    sizes = [player.parameters["size"] for player in played["oracle_sizes"].cells[0].players]
    assert sizes == [1069, 534, 267, 134, 67, 33]
    betas = [player.parameters["beta"] for player in played["larger_betas"].cells[0].players]
    assert betas == [0.6, 0.75, 0.9] * 2
    assert played["quantile_as_moss"].cells[0].players[0].parameters["size"] == 43


def test_the_full_plan_gives_close_comparisons_more_runs() -> None:
    plan = command.planned(["claims"], replications=500, seed=7, full=True)
    runs = {
        (one.name, each.parameters.get("alpha"), player.label): player.replications
        for one in plan
        for each in one.cells
        for player in each.players
    }
    assert runs["fig2a", 0.2, "empmoss++"] > 5 * runs["fig2a", 0.2, "moss"]
    assert min(runs.values()) == 500
    assert {one.seed for one in plan} == {7}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for group in ("FIGURES", "OF_CLAIMS"):
        made = {name: partial(make, size=SMALL) for name, make in getattr(sweeps, group).items()}
        monkeypatch.setattr(sweeps, group, made)
    monkeypatch.setattr(sweeps, "contest_652", stand_in_652)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.compiled
@pytest.mark.usefixtures("small")
def test_all_figures_and_claims(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--replications", "8", "--seed", "3", "--out", str(tmp_path)]
    assert command.main(words) == 0
    printed = capsys.readouterr().out
    figures = {f"{name}.{end}" for name in command.FIGURES for end in ("pdf", "svg", "png")}
    files = figures | {"claims.csv", "index.html", "results"}
    assert {path.name for path in tmp_path.iterdir()} == files
    assert all(str(tmp_path / f"{name}.svg") in printed for name in command.FIGURES)
    rows = list(csv.DictReader((tmp_path / "claims.csv").read_text().splitlines()))
    # a stand-in does not decide claim 10, which has no other parts
    assert {int(row["claim"]) for row in rows} == {*range(1, 16)} - {10}
    page = (tmp_path / "index.html").read_text()
    assert page.count("<img ") == 4
    assert "<script" not in page
    assert "11 were not checked" not in page
    assert "4 were not checked" in page
    assert printed.rstrip().endswith("make claims")
    assert report.DOWNLOAD in " ".join(printed.split())
    stored = {path: path.stat().st_mtime_ns for path in tmp_path.glob("results/*/*")}
    assert command.main(words) == 0  # finished runs are kept
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("results/*/*")} == stored


@pytest.mark.patient
def test_figure_1_needs_no_runs(tmp_path: Path) -> None:
    assert command.main(["fig1", "--out", str(tmp_path)]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"fig1.pdf", "fig1.svg", "fig1.png", "index.html"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fig9"], "NAME must be one of fig1, fig2a"),
        (["--full", "--replications", "3"], "leave out --replications"),
    ],
)
def test_wrong_arguments(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(words)
    assert said in capsys.readouterr().err


def test_zero_replications_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["fig2a", "--replications", "0", "--out", str(tmp_path)]) == 1
    assert "`replications` must be an integer >= 1" in capsys.readouterr().err


YES, NO = exactly("arms", 3, "= 3", True), exactly("arms", 3, "= 4", False)
CLAIMS = [
    Claim(1, "There are arms.", "", (YES,)),
    Claim(2, "There are 4 arms.", "", (YES, NO)),
    Claim(3, "Who knows.", "", ()),
]


def test_the_summary() -> None:
    assert report.last_lines(CLAIMS, 3.2) == [
        "Holds:",
        "   1  There are arms.",
        "Fails, in at least one of its parts:",
        "   2  There are 4 arms. (1 of 2 parts)",
        "Undecided, because a confidence interval contains the bound:",
        "   3  Who knows.",
        "",
        "Of 3 claims, 1 holds, 1 fails in part, 1 is undecided. Of the 3 inequalities that were "
        "checked, 2 hold, 1 fails, 0 are undecided.",
        "To decide more of them, with more runs for close comparisons (about 4 minutes):",
        "  make claims",
    ]
    assert "make claims" not in " ".join(report.last_lines(CLAIMS, None))
    apart = report.last_lines([replace(CLAIMS[0], stand_in=True)], 3.2)
    assert apart[0].startswith("Not checked")
    assert apart[-2:] == [report.STAND_IN, f"  {report.DOWNLOAD}"]
