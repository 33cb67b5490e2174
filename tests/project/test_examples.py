"""The examples run, and their output is reproducible."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma

Run = Callable[[str], str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(name: str) -> str:
        importlib.import_module(name).main()
        return capsys.readouterr().out

    return run


def _row(output: str, name: str) -> list[float]:
    """Return the numbers of the table's row that begins with a name."""
    (row,) = [line for line in output.splitlines() if line.startswith(name)]
    return [float(cell) for cell in row.removeprefix(name).split()]


@pytest.mark.slow
def test_prompts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("prompts"), "RUNS", 6)
    output = run("prompts")
    assert "Hardness 0.46" in output
    tried, right, found = _row(output, "empmoss++ ")
    assert tried < 600
    assert found > 0.8
    assert right > 1.5 * _row(output, "random search ")[1]
    assert _row(output, "scout ")[2] > 0.8
    assert _row(output, "moss ")[0] == 5000
    assert _row(output, "moss ")[2] < found


@pytest.mark.slow
def test_captions_from_the_stand_in(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MANYARMS_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    output = run("captions_live")
    assert output.startswith("stand-in for contest 652")
    assert "not on the real captions" in output
    in_turn, late = _row(output, "votes at once"), _row(output, "votes 200 readers late")
    assert 0.8 < late[0] < _row(output, "… and count_late=True")[0] < in_turn[0] < 1.0
    assert late[2] == in_turn[2] == 1


@pytest.mark.slow
def test_a_plain_policy(run: Run) -> None:
    output = run("plain_policy")
    mean = dict(re.findall(r"^(\S+) +([\d.]+) ", output, re.MULTILINE))
    assert float(mean["prospector"]) < float(mean["epsilon-greedy"]) < float(mean["empmoss++"])
    assert "epsilon-greedy(arms=10) - prospector" in output


def _is_the_shop(output: str) -> bool:
    shop, past = (
        "from_means(n=1000, Baskets(least=5.0, most=15.0))",
        "best in the past: coat, 20.00",
    )
    return shop in output and past in output


@pytest.mark.interpreted
def test_own_rewards_with_a_short_horizon(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    simulate = ma.simulate

    def shorter(*given: Any, **options: Any) -> ma.Result:
        return simulate(*given, **options | {"horizon": 600, "replications": 2})

    monkeypatch.setattr(ma, "simulate", shorter)
    output = run("own_rewards")
    assert _is_the_shop(output)
    assert "\nprospector " in output


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.compiled
def test_own_rewards_as_written(run: Run) -> None:
    output = run("own_rewards")
    assert _is_the_shop(output)
    assert "after 20000 pulls, 20 replications" in output
    assert "\nprospector " in output


def test_new_arms(run: Run) -> None:
    output = run("new_arms")
    days = [line for line in output.splitlines() if line.startswith("day ")]
    assert [line.split(",")[0] for line in days] == [
        "day 1: 3 headlines",
        "day 2: 13 headlines",
        "day 3: 12 headlines",
        "day 4: 12 headlines",
    ]
    assert "6000 of 6000 pulls (100 %)\n5980 rewards told, 20 pending" in output
    assert "\narm 'idea 8': 55" in output
    assert "withdrawn: arm 'idea 3': 60" in output
    assert run("new_arms") == output


def test_seasons(run: Run) -> None:
    output = run("seasons")
    assert "Stop and deploy arm" in output
    assert "of the 20000 arms (95 % confidence)." in output
    shares = re.findall(r"(\S+) % are better", output)
    assert len(shares) == 2
    assert max(map(float, shares)) < 5.0


@pytest.mark.slow
def test_served_captions(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MANYARMS_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    example = importlib.import_module("served_captions")
    monkeypatch.setattr(example, "SERVERS", 2)
    monkeypatch.setattr(example, "VISITORS", 150)
    monkeypatch.setattr(example, "WINDOW", 0.3)
    output = run("served_captions")
    assert "2 processes with 150 visitors each" in output
    assert "300 of 300 pulls (100 %)" in output
    assert "300 rewards told, 0 pending, 0 abandoned" in output, "all windows have ended"
    assert "\narm 'caption " in output


@pytest.mark.slow
def test_prompt_farm(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    example = importlib.import_module("prompt_farm")
    monkeypatch.setattr(example, "EVALUATIONS", 150)
    monkeypatch.setattr(example, "WORKERS", 2)
    monkeypatch.setattr(example, "CRASHES", 0.04)
    monkeypatch.setattr(example, "WINDOW", 600.0)
    output = run("prompt_farm")
    crashes = int(output.split("\n")[1].split()[0])
    assert crashes > 0
    assert f"told: {150 - crashes}\n" in output
    assert f"{150 - crashes} rewards told, {crashes} pending, 0 abandoned" in output
