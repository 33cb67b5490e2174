"""The paper's figures and claims, on small problems."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from manyarms.instances import local_contests, stand_in_652
from manyarms.report.text import Table
from manyarms.simulation.tables import read_results
from manyarms.studies import PAPER, claims, find, paper
from manyarms.studies.study import Report, reproduce
from tests.report.page_samples import SIX, reproduce_paper, small_study


def test_what_is_played_is_what_the_paper_plays() -> None:
    played = {each.name: each for each in find("claims").experiments(100, 0)}
    assert {name: len(each.cells) for name, each in played.items()} == {
        "fig2a": 9,
        "fig2b": 1,
        "fig3": 1,
        "quantile_as_moss": 9,
        "larger_betas": 3,
        "oracle_sizes": 1,
    }
    assert played["fig2a"].pulls == 9 * 6 * 50_000 * 100
    assert {each.instance.n_arms for each in played["fig2a"].cells} == {20_000}
    assert [each.parameters["alpha"] for each in played["fig2a"].cells] == [
        k / 10 for k in range(1, 10)
    ]
    assert played["fig2b"].cells[0].parameters == {"alpha": 0.25}
    assert [player.policy.name for player in played["fig3"].cells[0].players] == list(SIX)
    assert played["fig3"].cells[0].horizon == 100_000
    oracle = played["fig3"].cells[0].players[1]
    assert oracle.parameters["alpha"] == pytest.approx(0.3935, abs=1e-4)
    sizes = [player.parameters["size"] for player in played["oracle_sizes"].cells[0].players]
    assert sizes == [1069, 534, 267, 134, 67, 33]
    betas = [player.parameters["beta"] for player in played["larger_betas"].cells[0].players]
    assert betas == [0.6, 0.75, 0.9] * 2
    assert played["quantile_as_moss"].cells[0].players[0].parameters["size"] == 43
    for name in ("fig2a", "fig2b", "fig3"):  # each is played once, whoever asks for it
        assert find(name).experiments(100, 0) == [played[name]]


@pytest.mark.compiled
def test_everything_in_one_folder(small_paper: tuple[Path, Report]) -> None:
    folder, report = small_paper
    endings = ("pdf", "svg", "png")
    figures = {f"{figure}.{ending}" for figure in PAPER[:-1] for ending in endings}
    files = figures | {"claims.md", "claims.json", "report.html", "study.json"}
    assert {path.name for path in report.files} == files
    assert {path.name for path in folder.iterdir()} == files | {"results"}
    results = [read_results(path) for path in (folder / "results").iterdir()]
    assert sum(each.runs.num_rows for each in results) == 8 * (9 * 6 + 6 + 6 + 3 * 6 + 9 + 6)
    decided = json.loads((folder / "claims.json").read_text())
    assert [claim["number"] for claim in decided] == list(range(1, 16))
    assert {claim["seed"] for claim in decided} == {3}
    study = json.loads((folder / "study.json").read_text())
    assert study["studies"] == list(PAPER)
    assert study["options"] == {"replications": 8, "seed": 3}
    tables = [shown for shown in report.shown if isinstance(shown, Table)]
    first, second, *apart = [table.title.split(",")[0].split(":")[0] for table in tables]
    assert (first, second) == ("Figure 2(a)", "The paper's claims")
    there = any(name.startswith("652_") for name in local_contests())
    assert apart == ([] if there else ["Claims about data that are not on this machine"])
    assert tables[0].head == ["hardness", *SIX]
    assert report.shown[-1] == f"Look at {folder / 'report.html'}"


@pytest.mark.patient
def test_figure_1_needs_no_results_and_has_no_page(tmp_path: Path) -> None:
    reproduce([find("fig1")], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"fig1.pdf", "fig1.svg", "fig1.png"}


@pytest.mark.slow
def test_many_replications_are_compared_with_the_papers(tmp_path: Path) -> None:
    study = replace(small_study("claims"), report=partial(claims.report, few=2))
    report = reproduce([study], tmp_path, replications=12)
    notes = [shown for shown in report.shown if isinstance(shown, str)]
    assert any(note.startswith("Claim ") and "2 replications said" in note for note in notes)
    first, *others = notes[:-1]
    text = (tmp_path / "claims.md").read_text()
    assert first in text  # the counts
    assert all(f"- {note}" in text for note in others if note.startswith("Claim "))
    plain = reproduce([small_study("claims")], tmp_path, replications=12)
    assert not any(str(shown).startswith("Claim ") for shown in plain.shown)


@pytest.mark.patient
def test_a_stand_in_is_called_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "contest_652", stand_in_652)
    report = reproduce_paper(tmp_path, "fig3", replications=2)
    label = stand_in_652().label
    assert str(report.shown[0]).startswith(f"Figure 3 shows a {label}, not the contest. Get")
    assert "on a stand-in for the caption contest" in (tmp_path / "report.html").read_text()
    assert label in (tmp_path / "fig3.svg").read_text()
    assert f'["Stand-in, not real data","{label}"]' in (tmp_path / "report.html").read_text()
