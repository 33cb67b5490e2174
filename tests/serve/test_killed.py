"""A process is killed during a snapshot or an import, and the next process continues."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

import manyarms as ma
from tests.serve.chaos import different
from tests.serve.machines import Node, call, node, opened, path_of

pytestmark = [
    pytest.mark.long,
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists(),
        reason="the processes of snapshots are found in /proc",
    ),
]
SHOP = path_of("shop")
SPEC = {"policy": "moss++", "n_arms": 50_000, "horizon": 10_000_000, "seed": 1}


def play(one: Node, count: int = 1000) -> None:
    """Ask and tell `count` pulls."""
    status, answer = call(one.port, "POST", f"{SHOP}/asks", {"k": count})
    assert status == 200, answer
    tells = [{"pull": pull["pull"], "reward": pull["pull"] % 3 / 2} for pull in answer["pulls"]]
    assert call(one.port, "POST", f"{SHOP}/tells", {"tells": tells})[0] == 200


def copies(one: Node) -> list[int]:
    """Return the processes that a node has started."""
    assert one.process is not None
    number = one.process.pid
    children = Path(f"/proc/{number}/task/{number}/children").read_text()
    return [int(child) for child in children.split()]


def continues(one: Node, pulls: int) -> None:
    """Check that nothing is lost and that asks are answered."""
    facts = call(one.port, "GET", SHOP)[1]
    assert (facts["pulls"], facts["told"]) == (pulls, pulls)
    play(one, 10)


def check_log(store: str) -> None:
    """Check that the last snapshot with later events gives the same state as the whole log."""
    with opened(store) as one:
        assert list(different(one, "shop")) == []


@pytest.mark.parametrize("both", [False, True], ids=["the leader", "both processes"])
def test_a_kill_during_a_snapshot(tmp_path: Path, both: bool) -> None:
    store = f"sqlite:///{tmp_path}/serve.db"
    pulls = caught = 0
    with node(store) as one:
        assert call(one.port, "PUT", SHOP, SPEC)[0] == 201
        for _ in range(3):
            found: list[int] = []
            while not found:
                play(one)
                pulls += 1000
                assert pulls < 200_000
                end = time.monotonic() + 0.3
                while not (found := copies(one)) and time.monotonic() < end:
                    pass
            one.kill()
            for copy in found if both else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(copy, signal.SIGKILL)
            caught += 1
            one.start()
            continues(one, pulls)
            pulls += 10
        one.stop()
    assert caught == 3
    check_log(store)


def test_a_kill_during_an_import(tmp_path: Path) -> None:
    """All arms of a request are added, or none."""
    store = f"sqlite:///{tmp_path}/serve.db"
    some = b"".join(b'"item %d"\n' % k for k in range(100_000))
    kind = {"Content_Type": "application/x-ndjson"}
    with node(store) as one:
        assert call(one.port, "PUT", SHOP, SPEC | {"n_arms": None})[0] == 201
        assert call(one.port, "POST", f"{SHOP}/arms", {"names": ["a", "b", "c"]})[0] == 200
        play(one, 10)
        for turn in range(4):

            def add() -> None:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    call(one.port, "POST", f"{SHOP}/arms", some, timeout=60, **kind)

            adding = threading.Thread(target=add)
            adding.start()
            time.sleep(0.05 + 0.1 * turn)  # at different times during the import
            one.kill()
            adding.join()
            one.start()
            assert call(one.port, "GET", SHOP)[1]["n_arms"] in (3, 100_003)
            continues(one, 10 * (turn + 1))
        status, answer = call(one.port, "POST", f"{SHOP}/arms", some, timeout=120, **kind)
        assert (status, answer["n_arms"]) == (200, 100_003)
        play(one, 100)
        one.stop()
    check_log(store)


def test_a_restart_with_other_code(tmp_path: Path) -> None:
    """The code and the version of NumPy may differ, because arms are compared."""
    store = f"sqlite:///{tmp_path}/serve.db"
    with node(store) as one:
        assert call(one.port, "PUT", SHOP, SPEC)[0] == 201
        play(one, 3000)
        one.kill()
        other = tmp_path / "other"
        shutil.copytree(Path(ma.__file__).parent, other / "manyarms")
        for file in (other / "manyarms").rglob("*.py"):
            file.write_text(file.read_text(encoding="utf-8") + "\n# of another day\n", "utf-8")
        (other / "sitecustomize.py").write_text("import numpy\nnumpy.__version__ = '99.1'\n")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(other))
            one.start()
            continues(one, 3000)
            play(one, 20_000 // 2)
            one.kill()
        one.start()
        continues(one, 13_010)
        one.stop()
    check_log(store)
