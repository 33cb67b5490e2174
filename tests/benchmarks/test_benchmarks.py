"""The scripts of benchmarks/ that compare policies: problems, tables and a short run."""

from __future__ import annotations

import csv
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def leaderboard() -> Any:
    return importlib.import_module("leaderboard")


def test_the_page_lists_the_suite(leaderboard: Any) -> None:
    rows = leaderboard.read(ROOT / "docs" / "leaderboard.csv")
    assert tuple(rows[0]) == leaderboard.COLUMNS
    assert {row["policy"] for row in rows} == set(leaderboard.ENTRANTS)
    played = {(p.family, p.name, str(p.horizon)) for p in leaderboard.suite()}
    told = {(row["family"], row["problem"], row["horizon"]) for row in rows}
    assert {each for each in told if each[0] != "contests"} == {
        each for each in played if each[0] != "contests"
    }


def test_the_page_has_the_table_of_the_file(leaderboard: Any) -> None:
    page = (ROOT / "docs" / "leaderboard.md").read_text(encoding="utf-8")
    shown = {}
    for line in page.split("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 9 and cells[0] in leaderboard.ENTRANTS:
            shown[cells[0]] = cells[1:8]
    made = leaderboard.table(leaderboard.read(ROOT / "docs" / "leaderboard.csv"))
    for line in made.splitlines()[2:]:
        policy, knows, *numbers = [cell.strip() for cell in line.strip("|").split("|")]
        if policy not in shown:
            continue
        assert shown[policy][0] == knows
        for told, number in zip(shown[policy][1:], numbers[:-1], strict=True):
            assert told == number or float(told) == float(number), policy
    assert {"prospector", "ss-greedy", "empirical-cbt", "moss++", "patience"} <= set(shown)


def test_policies_get_what_they_know(leaderboard: Any) -> None:
    by_name = {problem.name: problem for problem in leaderboard.suite()}
    easy, drawn = by_name["Fig. 2(a), alpha 0.2"], by_name["Beta(1, 3) means"]
    normal = by_name["Gaussian, alpha 0.2"]
    known = {label: leaderboard.policy_for(e, easy) for label, e in leaderboard.ENTRANTS.items()}
    assert known["moss-oracle"].alpha == pytest.approx(0.2, abs=1e-3)
    assert known["cbt"] is None  # the best mean is 0.9
    assert leaderboard.policy_for(leaderboard.ENTRANTS["cbt"], drawn).b == 3.0
    assert leaderboard.policy_for(leaderboard.ENTRANTS["prospector"], normal) is None


def test_random_problems_are_always_the_same(leaderboard: Any) -> None:
    first, second, *_ = leaderboard.random_problems("held-out")
    again = next(leaderboard.random_problems("held-out"))
    assert (first.name, first.horizon) == (again.name, again.horizon)
    assert first.name.startswith("1: ")
    assert second.name.startswith("2: ")
    assert next(leaderboard.random_problems("tuned")).name == "1: Beta(1.61, 5.83), T = 94988"


@pytest.mark.compiled
@pytest.mark.slow
def test_a_leaderboard_is_played_written_and_read(
    leaderboard: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    few = {name: leaderboard.ENTRANTS[name] for name in ("moss", "moss++", "moss-oracle")}
    small = leaderboard.Problem("small", "a problem", ma.instances.planted(n=50, m=5), 300)
    monkeypatch.setattr(leaderboard, "ENTRANTS", few)
    monkeypatch.setattr(leaderboard, "suite", lambda: [small])
    file = tmp_path / "board.csv"
    monkeypatch.setattr(sys, "argv", ["leaderboard.py", str(file), "--runs", "3"])
    leaderboard.main()
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [row["policy"] for row in rows] == list(few)
    assert "| policy | knows | small | all |" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["leaderboard.py", str(file), "--table"])
    leaderboard.main()
    assert "| moss-oracle | m |" in capsys.readouterr().out
