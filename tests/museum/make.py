"""Write the museum's files of the present version: `python -m tests.museum.make FOLDER POSTGRES`.

FOLDER is a new one, and POSTGRES the address of a database beside which others may be made. The
programs of PostgreSQL must be on the PATH. The code of an earlier version runs this script, too, if
PYTHONPATH names its `src`, and then this tree. README.md has more.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import manyarms as ma
from tests.museum.games import known, play, regrets
from tests.museum.service import Service, fill, load_and_kill, look

NEEDED: dict[str, dict[str, Any]] = {
    "best": {"arm": 3},
    "moss-oracle": {"size": 9},
    "anytime-parallel": {"best_mean": 0.9},
    "parallel": {"best_mean": 0.9},
    "patience": {"best_mean": 0.9},
}
NAMES = [f"item {k}" for k in range(20)]
SPEC = """
[experiment]
name = "museum"
horizon = [40, 60]
replications = 6
seed = 1
checkpoints = 4

[instance]
family = "planted"
n = 50
alpha = [0.2, 0.5]

[[policy]]
name = "moss"

[[policy]]
name = "empmoss++"
beta = [0.5, 0.75]
"""
LOAD = """
import sys
import manyarms as ma
from tests.museum.games import reward_of
store = sys.argv[1]
live = ma.MOSS().live(n_arms=30, horizon=2**30, seed=9)
with ma.recorded(store if "://" in store else ma.Journal(store, sync="never"), live):
    print("ready", flush=True)
    while True:
        pull = live.ask()
        live.tell(pull, reward_of(pull.id, pull.arm))
"""


def write_handles(folder: Path) -> dict[str, Any]:
    """Save a handle of every policy, and of some with other parameters, arms and rewards."""
    games = {
        name: ma.policy(name, **NEEDED.get(name, {})).live(n_arms=25, horizon=300, seed=k)
        for k, name in enumerate(ma.policy_names())
    }
    games |= {
        "named": ma.MOSSOracle(size=9).live(arms=NAMES, horizon=400, seed=2),
        "many": ma.MOSSPlusPlus(beta=0.6).live(n_arms=10**9, horizon=900, seed=4),
        "count-late": ma.MOSS(count_late=True).live(n_arms=25, horizon=400, seed=1),
        "ranked": ma.EmpMOSSPlusPlus(rank="pulled").live(arms=NAMES, horizon=400, seed=5),
        "scaled": ma.MOSS().live(n_arms=30, horizon=400, seed=7, reward_range=(-1.0, 2.0)),
        "doubled": ma.Doubling(ma.Parallel(best_mean=0.9)).live(n_arms=30, seed=8),
        "changed": ma.MOSS().live(n_arms=12, horizon=400, seed=3),
    }
    if hasattr(ma, "Guarded"):
        games["kl"] = ma.MOSSPlusPlus(index="kl").live(n_arms=30, horizon=400, seed=6)
        games["guarded"] = ma.Guarded(ma.MOSS()).live(n_arms=30, horizon=400, seed=6)
    expected = {}
    for name, live in games.items():
        play(live, 80, seed=0)
        if name == "changed":
            _change(live)
        path = folder / f"{name}.manyarms"
        live.save(path)
        expected[path.name] = known(live)
    return expected


def _change(live: ma.Live) -> None:
    """Let arms come, go and come back, and observe rewards, as far as this version can."""
    named = isinstance(live.recommend().arm, str)
    live.add_arms(["late 0", "late 1"] if named else 2)
    first = "item 4" if named else 4
    live.retire(first)
    live.retire("item 5" if named else 5)
    if hasattr(live, "observe"):
        live.observe("item 6" if named else 6, [0.0, 1.0, 1.0])
        live.restore(first)
    play(live, 40, seed=2)


def write_journals(folder: Path) -> dict[str, Any]:
    """Write journals: compacted, changed, cut off in the middle of a record, and killed."""
    make: dict[str, Callable[[Path], None]] = {
        "compacted.journal": _compacted,
        "changed.journal": _changed,
        "cut.journal": _cut,
        "killed.journal": lambda path: kill_in_mid_load(str(path)),
    }
    if hasattr(ma, "GameHistory"):
        make["history.journal"] = _with_history
    for name, write in make.items():
        write(folder / name)
    return {name: _going_on(folder / name) for name in make}


def _compacted(path: Path) -> None:
    live = ma.MOSSPlusPlus().live(n_arms=30, horizon=900, seed=8)
    with ma.recorded(ma.Journal(path, compact_every=150), live):
        play(live, 330, seed=0)


def _changed(path: Path) -> None:
    live = ma.MOSS().live(arms=NAMES, horizon=900, seed=9)
    with ma.recorded(ma.Journal(path), live):
        play(live, 60, seed=0)
        _change(live)


def _cut(path: Path) -> None:
    live = ma.EmpMOSSPlusPlus().live(n_arms=30, horizon=900, seed=10)
    with ma.recorded(ma.Journal(path), live):
        play(live, 80, seed=0)
    path.write_bytes(path.read_bytes()[:-11])


def _with_history(path: Path) -> None:
    live = ma.policy("prospector").live(n_arms=30, seed=11)
    with ma.recorded(ma.Journal(path, history=True, compact_every=100), live):
        play(live, 150, seed=0)
        live.observe(3, [0.0, 1.0])
        live.ask(3)


def kill_in_mid_load(store: str) -> None:
    """Kill a process that plays as fast as it can."""
    words = [sys.executable, "-c", LOAD, store]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as player:
        assert player.stdout is not None
        assert player.stdout.readline()
        time.sleep(0.01)
        player.send_signal(signal.SIGKILL)


def _going_on(path: Path) -> dict[str, Any]:
    """Return what this version reads from a copy of a store, and how it goes on."""
    with tempfile.TemporaryDirectory() as place:
        for part in path.parent.glob(f"{path.name}*"):
            shutil.copy(part, place)
        url = f"sqlite:///{place}/{path.name}?experiment=buttons"
        with ma.recorded(url if path.suffix == ".db" else Path(place) / path.name) as live:
            return known(live)


def write_stores(folder: Path) -> dict[str, Any]:
    """Write games of handles in SQLite: closed, and killed."""
    live = ma.MOSS().live(arms=NAMES, horizon=900, seed=12)
    with ma.recorded(f"sqlite:///{folder}/closed.db?experiment=buttons", live):
        play(live, 60, seed=0)
        _change(live)
    kill_in_mid_load(f"sqlite:///{folder}/killed.db?experiment=buttons")
    return {path.name: _going_on(path) for path in sorted(folder.glob("*.db"))}


def write_services(folder: Path, postgres: str) -> dict[str, Any]:
    """Write databases of the service: ended as it should be, and killed under load."""
    expected: dict[str, Any] = {}
    for name, make in (("ended", fill), ("killed", load_and_kill)):
        path = folder / f"{name}.db"
        expected[path.name] = {"heard": _serve(f"sqlite:///{path}", make)}
        with tempfile.TemporaryDirectory() as place:
            for part in folder.glob(f"{path.name}*"):
                shutil.copy(part, place)
            with Service(f"sqlite:///{place}/{path.name}") as service:
                expected[path.name] |= look(service)
        base = f"museum_{uuid.uuid4().hex[:8]}"
        subprocess.run(["createdb", "--maintenance-db", postgres, base], check=True)
        url = f"{postgres.rpartition('/')[0]}/{base}"
        path = folder / f"{name}.sql"
        expected[path.name] = {"heard": _serve(url, make)}
        dump = ["pg_dump", "--inserts", "--no-owner", "--no-privileges", "--file", str(path), url]
        subprocess.run(dump, check=True)
        with Service(url) as service:
            expected[path.name] |= look(service)
    return expected


def _serve(store: str, make: Callable[[Service], dict[str, Any]]) -> dict[str, Any]:
    with Service(store) as service:
        return make(service)


def write_results(folder: Path) -> dict[str, Any]:
    """Play a small experiment, without the compiler."""
    spec = folder.parent / "spec.toml"
    spec.write_text(SPEC)
    words = [sys.executable, "-m", "manyarms", "run", str(spec), "--out", str(folder / "run")]
    subprocess.run(words, check=True, env=os.environ | {"NUMBA_DISABLE_JIT": "1"})
    (folder / "run" / "report.html").unlink()  # a picture of the tables, and large
    return {"run": regrets(folder / "run")}


def main(folder: Path, postgres: str) -> None:
    folder.mkdir()
    rooms: dict[str, Callable[[Path], dict[str, Any]]] = {
        "handles": write_handles,
        "journals": write_journals,
        "results": write_results,
    }
    if hasattr(ma, "Remote"):
        rooms["stores"] = write_stores
        rooms["services"] = lambda place: write_services(place, postgres)
    for room, write in rooms.items():
        with tempfile.TemporaryDirectory() as place:
            files = Path(place) / room
            files.mkdir()
            expected = write(files)
            for left in [*files.glob("*.lock"), *files.glob("*-shm")]:  # made anew when needed
                left.unlink()
            (files / "expected.json").write_text(json.dumps(expected))
            shutil.make_archive(str(folder / room), "xztar", files)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
