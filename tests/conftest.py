"""Use one compile cache for all tests, separate from the user's."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# kept between runs, so that only changed kernels are compiled
os.environ.setdefault("MANYARMS_CACHE", str(Path(tempfile.gettempdir()) / "manyarms-tests"))

settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("fixed")


@pytest.fixture
def contest_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which contests are found, empty."""
    folder = tmp_path / "contests"
    folder.mkdir()
    monkeypatch.setenv("MANYARMS_DATA", str(folder))
    monkeypatch.setattr("manyarms.instances.contests.contest_cache", lambda: tmp_path / "cache")
    return folder
