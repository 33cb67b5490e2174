"""One compile cache for the whole run, and none of the user's; the paper, small, played once."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

# Kept between runs, so that only changed kernels compile.
os.environ.setdefault("MANYARMS_CACHE", str(Path(tempfile.gettempdir()) / "manyarms-tests"))

settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("fixed")

if TYPE_CHECKING:
    from manyarms.studies.study import Report


@pytest.fixture
def contest_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the one folder in which contests are found, still empty."""
    folder = tmp_path / "contests"
    folder.mkdir()
    monkeypatch.setenv("MANYARMS_DATA", str(folder))
    monkeypatch.setattr("manyarms.instances.contests.cache_folder", lambda: tmp_path / "cache")
    return folder


@pytest.fixture(scope="session")
def small_paper(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    """Return the folder of the whole paper on small problems, not to be changed, and its report."""
    from tests.report.page_samples import reproduce_paper  # which draws, and so loads much

    folder = tmp_path_factory.mktemp("paper")
    return folder, reproduce_paper(folder)
