"""What every study gets from `reproduce`: each experiment once, one page, commands to repeat it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

import manyarms as ma
from manyarms.errors import ParameterError
from manyarms.report.html_report import write_page, write_report
from manyarms.simulation.experiment import Experiment, cell
from manyarms.studies import STUDIES, find
from manyarms.studies.study import Report, Results, Study, reproduce
from tests.report.test_page import data_in


def _experiments(replications: int, seed: int) -> list[Experiment]:
    coins = ma.instances.planted(n=30, m=3)
    cells = [
        cell(
            [ma.MOSS(), ma.MOSSPlusPlus()],
            coins,
            horizon=horizon,
            replications=replications,
            checkpoints=3,
            parameters={"horizon": horizon},
        )
        for horizon in (30, 60)
    ]
    return [Experiment(name, tuple(cells), seed) for name in ("first", "second")]


def _report(results: Results, out: Path) -> Report:
    return Report(shown=[", ".join(results)])


PLAIN = Study(
    4, _experiments, _report, fewest=2, name="plain", title="what plain results look like"
)


def test_a_study_that_says_nothing_of_a_page_has_one(tmp_path: Path) -> None:
    report = reproduce([PLAIN], tmp_path)
    assert report.shown == ["first, second", f"Look at {tmp_path / 'report.html'}"]
    data = data_in(tmp_path / "report.html")
    assert data["title"] == "What plain results look like"
    assert data["lead"].startswith("2 policies on 4 problems, 4 runs of each: 1,440 pulls in all.")
    assert [figure["title"] for figure in data["figures"]] == [
        "first. Final regret, problem by problem",
        "first. Regret over time",
        "second. Final regret, problem by problem",
        "second. Regret over time",
    ]
    assert [setting["name"] for setting in data["settings"]][:2] == [
        "first, horizon = 30",
        "first, horizon = 60",
    ]
    assert data["repeat"][0][1] == "manyarms reproduce plain --seed 0 --out again"
    assert data["repeat"][1][1] == "manyarms reproduce plain --replications 16 --out more"
    page = (tmp_path / "report.html").read_bytes()
    assert write_report(tmp_path).read_bytes() == page  # as `manyarms report` does


def test_results_that_are_too_many_for_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce([PLAIN], tmp_path)
    small = partial(write_page, most_bytes=100)
    monkeypatch.setattr("manyarms.studies.study.write_page", small)
    report = reproduce([PLAIN], tmp_path, seed=1)
    assert str(report.shown[-1]).startswith("No page was written: `folder` must hold results that")
    assert not (tmp_path / "report.html").exists()  # the old one showed other runs
    assert json.loads((tmp_path / "study.json").read_text())["options"]["seed"] == 1


def test_studies_share_what_they_play(tmp_path: Path) -> None:
    report = reproduce([PLAIN, PLAIN], tmp_path, replications=3)
    assert report.shown[:2] == ["first, second"] * 2
    assert len(list((tmp_path / "results").iterdir())) == 2
    assert data_in(tmp_path / "report.html")["title"] == "What plain results look like"


@pytest.mark.parametrize("name", STUDIES)
def test_too_few_replications_are_refused_before_anything_is_played(
    name: str, tmp_path: Path
) -> None:
    fewest = 2 if name in ("rates", "lower-bound", "leaderboard", "random") else 1
    refused = f"`replications` must be an integer >= {fewest}, got {fewest - 1}"
    with pytest.raises(ParameterError, match=refused):
        reproduce([find(name)], tmp_path, replications=fewest - 1)
    assert list(tmp_path.iterdir()) == []


def test_a_study_knows_its_name() -> None:
    assert find("fig2a").name == "fig2a"
    with pytest.raises(ma.ManyarmsError, match="Did you mean 'claims'"):
        find("claim")
