"""Measure microseconds per commit of an event store.

    python benchmarks/store.py                                    SQLite, in a temporary folder
    python benchmarks/store.py --folder DIR --postgres ADDRESS    and PostgreSQL, in an empty schema

Commits have one event, or 100 as in the service under load. The best of 5 rounds is shown, because
other processes can only add time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from manyarms.store import Append, Event, EventStore, open_store

_ROUNDS = 5


def per_commit(store: EventStore, size: int, commits: int) -> float:
    """Return the microseconds that a commit of `size` events takes."""
    experiment = store.create(f"{size} events", {}).id
    seq, best = 0, float("inf")
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        for _ in range(commits):
            events = [Event(seq + 1 + k, begun, "asked", seq + k, k) for k in range(size)]
            store.commit([Append(experiment, seq, events)])
            seq += size
        best = min(best, time.perf_counter() - begun)
    return 1e6 * best / commits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the SQLite files are made")
    parser.add_argument("--postgres", help="the address of an empty database or schema")
    options = parser.parse_args()
    print(f"{'store':24} {'1 event':>12} {'100 events':>12}")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        stores = {
            "SQLite, process": open_store(Path(folder) / "process.db"),
            "SQLite, power": open_store(Path(folder) / "power.db", durable="power"),
        }
        if options.postgres:
            stores["PostgreSQL"] = open_store(options.postgres)
        for name, store in stores.items():
            commits = 2000 if name == "SQLite, process" else 100
            one, many = (per_commit(store, size, commits) for size in (1, 100))
            print(f"{name:24} {one:9.1f} µs {many:9.1f} µs")
            store.close()


if __name__ == "__main__":
    main()
