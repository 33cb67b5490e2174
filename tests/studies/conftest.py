"""What several studies need."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyarms.instances import contests


@pytest.fixture
def contest_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the one folder in which contests are found, still empty."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("MANYARMS_DATA", str(folder))
    monkeypatch.setattr(contests, "cache_folder", lambda: tmp_path / "cache")
    return folder
