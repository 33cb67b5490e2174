"""Speed measurements: what counts as worse, and the table of the page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import speed


def run_of(machine: str = "a", **ratios: float) -> dict[str, Any]:
    return {"machine": {"processor": machine}, "ratios": ratios}


@pytest.mark.parametrize(
    ("new", "worse"),
    [
        ([12.0], []),  # one run decides nothing
        ([12.0, 12.0], ["moss"]),
        ([12.0, 11.4], []),  # the second run says otherwise
        ([11.5, 11.5], []),  # 15 % and no more
        ([11.6, 11.6], ["moss"]),
        ([12.0, 12.0, 11.0], []),
        ([5.0, 5.0], []),
    ],
)
def test_worse_means_worse_in_all_of_two_runs(new: list[float], worse: list[str]) -> None:
    lines, found = speed.compare(run_of(moss=10.0), [run_of(moss=ratio) for ratio in new])
    assert found == worse
    assert ("WORSE" in lines[0]) == bool(worse)


def test_different_machines_are_not_compared() -> None:
    with pytest.raises(ValueError, match="different machines"):
        speed.compare(run_of(moss=1.0), [run_of("b", moss=1.0)])


def test_the_command_fails_if_something_is_worse(tmp_path: Path) -> None:
    files = [tmp_path / f"{k}.json" for k in range(3)]
    for file, ratio in zip(files, (10.0, 12.0, 12.0), strict=True):
        file.write_text(json.dumps(run_of(moss=ratio)))

    def compare(*paths: Path) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, speed.__file__, "compare", *map(str, paths)]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    failed = compare(*files)
    assert failed.returncode == 1
    assert "15 % slower than before in all of 2 runs: moss." in failed.stderr
    assert compare(*files[:2]).returncode == 0


def test_the_page_shows_the_history() -> None:
    page = speed.PAGE.read_text(encoding="utf-8")
    kept = speed.history()
    assert kept
    assert speed.renewed(page, kept) == page, "run `python benchmarks/speed.py page`"
    for one in kept:
        assert one["commit"][:9] in page
