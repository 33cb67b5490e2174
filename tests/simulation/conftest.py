"""The experiment of `runs`, and what it leaves where nothing disturbs it."""

from __future__ import annotations

import pytest

from manyarms.simulation import Experiment, run
from tests.simulation.runs import final, small


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make chunks of two replications of the experiment."""
    monkeypatch.setattr("manyarms.simulation.chunks.CHUNK_PULLS", 120)


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return small()


@pytest.fixture(scope="module")
def whole(experiment: Experiment, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files of a run that nothing disturbed, in chunks of two replications."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manyarms.simulation.chunks.CHUNK_PULLS", 120)
        return final(run(experiment, tmp_path_factory.mktemp("whole"), progress=False).folder)
