"""`manyarms reproduce leaderboard`: plays once, resumes, writes a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.cli import reproduce_leaderboard as command
from manyarms.cli.main import main
from manyarms.experiments.leaderboard_players import Match, Player
from manyarms.instances import captions, local_contests

WORDS = ["reproduce", "leaderboard", "--replications", "3", "--seed", "1", "--workers", "1"]


def small_suite(*, most_runs: int, horizon: int = 60) -> list[Match]:
    players = (
        Player(ma.EmpMOSSPlusPlus(), "empmoss++", "none", most_runs),
        Player(ma.Patience(), "patience", "mu*", 2),
        Player(ma.MOSSOracle(alpha=0.3), "moss-oracle", "m", most_runs),
    )
    return [
        Match(name, "coins", ma.instances.planted(n=200, m=m), horizon, 200 / m, players)
        for name, m in (("few good arms", 5), ("many good arms", 50))
    ]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the suite be small; return the names of the policies that are played, as they are."""
    played: list[str] = []
    real = ma.simulate

    def counted(policy: ma.Policy, *args: Any, **options: Any) -> ma.Result:
        played.append(policy.name)
        return real(policy, *args, **options)

    monkeypatch.setattr(command, "leaderboard", small_suite)
    monkeypatch.setattr(command, "contests", dict)
    monkeypatch.setattr(command, "simulate", counted)
    return played


def test_it_writes_a_page_and_goes_on_where_it_stopped(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*WORDS, "--out", str(tmp_path)]) == 0
    assert len(small) == 6
    assert "empmoss++" in capsys.readouterr().out
    page = (tmp_path / "leaderboard.md").read_text()
    assert "![Performance profiles" in page
    assert (tmp_path / "figures" / "leaderboard.svg").exists()
    assert "<svg" in (tmp_path / "leaderboard.html").read_text()
    table = (tmp_path / "leaderboard.csv").read_text()
    assert "# seed: 1" in table
    assert "# command: manyarms reproduce leaderboard --replications 3 --seed 1" in table
    assert "few good arms,coins,patience,mu*,2," in table

    (tmp_path / "leaderboard_runs" / "many-good-arms.npz").unlink()
    assert main([*WORDS, "--out", str(tmp_path)]) == 0
    assert len(small) == 9  # only the problem that was missing
    assert (tmp_path / "leaderboard.csv").read_text() == table
    assert (tmp_path / "leaderboard.md").read_text() == page


def test_other_seeds_are_other_runs(small: list[str], tmp_path: Path) -> None:
    assert main([*WORDS, "--out", str(tmp_path)]) == 0
    assert main([*WORDS[:-4], "--seed", "2", "--out", str(tmp_path)]) == 0
    assert len(small) == 12


def test_the_numbers_are_those_of_simulate(small: list[str], tmp_path: Path) -> None:
    assert main([*WORDS, "--out", str(tmp_path)]) == 0
    table = (tmp_path / "leaderboard.csv").read_text()
    (line,) = (k for k in table.splitlines() if k.startswith("few good arms,coins,empmoss++"))
    instance = ma.instances.planted(n=200, m=5)
    result = ma.simulate(ma.EmpMOSSPlusPlus(), instance, horizon=60, replications=3, seed=1)
    assert float(line.split(",")[5]) == pytest.approx(np.mean(result.regret[0, :, -1]), rel=1e-4)


def test_one_run_is_not_enough(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["reproduce", "leaderboard", "--replications", "1", "--out", str(tmp_path)]) == 2
    assert "`replications` must be an integer >= 2" in capsys.readouterr().err


def test_contests_come_as_the_paper_has_them_and_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = "caption,votes,not_funny,somewhat_funny,funny\nA,10,5,5,0\nB,10,6,4,0\nC,10,9,1,0\n"
    for name in ("652_lil-KLUCB", "652_other", "7"):
        (tmp_path / f"{name}.csv").write_text(text)
    monkeypatch.setenv("MANYARMS_DATA", str(tmp_path))
    assert len(local_contests()) >= 3
    found = command.contests()
    assert {"contest 7", "contest 652", "contest 652_other"} <= set(found)
    assert found["contest 652"].n_best == 2  # 0.4 / 0.5 reaches 0.8
    assert found["contest 652, no threshold"].n_best == 1
    assert found["contest 652, shares as voted"].best_mean == 0.5
    means = [captions(tmp_path / "7.csv", scaled=False).mean(arm) for arm in range(3)]
    assert means == [0.5, 0.4, 0.1]


def test_without_files_there_is_a_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "local_contests", dict)
    assert list(command.contests()) == ["contest 652 (stand-in)"]
