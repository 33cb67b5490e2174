"""`manyarms backup` and `manyarms check`."""

import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from manyarms.cli.app import app
from tests.serve.machines import InThread, call, in_thread

pytestmark = pytest.mark.interpreted
PATH = "/v1/experiments/x"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[InThread]:
    with in_thread(f"sqlite:///{tmp_path}/x.db") as one:
        assert (
            call(one.port, "PUT", PATH, {"policy": "moss", "n_arms": 50, "horizon": 10_000})[0]
            == 201
        )
        yield one


def play(port: int, times: int) -> None:
    for _ in range(times):
        pulls = call(port, "POST", f"{PATH}/asks", {"k": 5})[1]["pulls"]
        tells = [{"pull": p["pull"], "reward": 1.0} for p in pulls]
        assert call(port, "POST", f"{PATH}/tells", {"tells": tells})[0] == 200


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, f"{result.output}{result.exception or ''}"  # `main` prints errors


def test_a_backup_under_load_ends_and_can_be_replayed(served: InThread, tmp_path: Path) -> None:
    play(served.port, 5)
    target, enough = tmp_path / "copy.db", threading.Event()

    def load() -> None:
        while not enough.is_set():
            play(served.port, 1)

    writer = threading.Thread(target=load)
    writer.start()
    try:
        code, said = run("backup", f"sqlite:///{tmp_path}/x.db", str(target))
    finally:
        enough.set()
        writer.join()
    assert code == 0, said
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    link = sqlite3.connect(target)
    try:
        assert link.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert link.execute("SELECT count(*) FROM events").fetchone()[0] >= 50
    finally:
        link.close()
    code, said = run("check", f"sqlite:///{target}")
    assert code == 0
    assert "replays as recorded" in said
