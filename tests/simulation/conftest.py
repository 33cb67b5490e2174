"""The sweep of `runs`, and the files of an undisturbed run."""

from __future__ import annotations

import pytest

from manyarms.simulation import Sweep, run
from tests.simulation.runs import final, small


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use chunks of two replications."""
    monkeypatch.setattr("manyarms.simulation.chunks.CHUNK_PULLS", 120)


@pytest.fixture(scope="module")
def sweep() -> Sweep:
    return small()


@pytest.fixture(scope="module")
def whole(sweep: Sweep, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files of an undisturbed run, in chunks of two replications."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manyarms.simulation.chunks.CHUNK_PULLS", 120)
        return final(run(sweep, tmp_path_factory.mktemp("whole"), progress=False).folder)
