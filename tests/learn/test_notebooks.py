"""The notebooks of docs/learn run and give the stored outputs."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import pytest

from tests.learn.notebooks import LEARN, NOTEBOOKS, outputs, read, stored

by_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) == 3


@by_notebook
def test_they_are_small_and_their_links_exist(path: Path) -> None:
    assert path.stat().st_size < 20_000
    notebook = read(path)
    assert notebook["nbformat"] == 4
    assert notebook["cells"][0]["source"][0].startswith("# ")
    text = "".join(line for cell in notebook["cells"] for line in cell["source"])
    for link in re.findall(r"\]\(([^)\s:#]+)\)", text):
        assert (LEARN / link).is_file(), link


@pytest.mark.slow
@pytest.mark.compiled
@by_notebook
def test_they_run_with_the_stored_outputs(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib", reason='figures need pip install ".[sim]"')
    monkeypatch.chdir(LEARN)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for cell, printed, value in outputs(read(path)):
        assert (printed, value) == stored(cell), "".join(cell["source"])
