"""How long pages of the dashboard take with a million arms, while asks go on.

Run it: `python benchmarks/dashboard.py`; it takes minutes. `--tried` says how many arms are tried.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from manyarms.serve import messages as m
from manyarms.serve import tables
from manyarms.serve.stores import SQLiteStore
from tests.serve.gallery import play
from tests.serve.machines import call, node

ARMS = 1_000_000
ROUNDS = 10
PAGES = {
    "the list": "/",
    "an experiment": "/experiments/many",
    "arms by pulls": "/experiments/many/arms?sort=pulls",
    "arms by name, found": "/experiments/many/arms?sort=arm&search=item%2099",
    "arms by limit, found": "/experiments/many/arms?search=item%2099",
}


def fill(path: Path, tried: int) -> str:
    """Make an experiment that has tried this many arms; return the store's address."""
    url = f"sqlite:///{path}"
    asyncio.run(_fill(url, tried))
    return url


async def _fill(url: str, tried: int) -> None:
    tables.opened(url).close()
    store = SQLiteStore(url, "benchmark")
    await store.lead(lambda leader: None)
    await play(
        store,
        "many",
        m.Spec(policy="moss", horizon=10 * ARMS),  # which tries a new arm with every pull
        keys=(f"item {k * 7919 % ARMS:06d}" for k in range(ARMS)),
        pulls=tried,
        mean=lambda arm: 0.3 if arm % 5 else 0.5,
        every=0.1,
    )
    await store.leave()
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tried", type=int, default=300_000)
    tried = parser.parse_args().tried
    with tempfile.TemporaryDirectory() as folder, node(fill(Path(folder) / "x.db", tried)) as one:
        print(f"{ARMS} arms, {tried} of them tried; an ask before every page")
        print(f"{'':22} {'median ms':>10} {'most ms':>8} {'kB':>6}")
        for name, path in PAGES.items():
            call(one.port, "GET", path, Accept="text/html")
            seconds, size = [], 0
            for _ in range(ROUNDS):
                call(one.port, "POST", "/v1/experiments/many/asks", {})
                time.sleep(1.1)  # what was drawn before is not good for us any more
                begun = time.perf_counter()
                status, page = call(one.port, "GET", path, Accept="text/html")
                seconds.append(1000 * (time.perf_counter() - begun))
                assert status == 200, page
                size = len(page)
            median, most = statistics.median(seconds), max(seconds)
            print(f"{name:22} {median:10.0f} {most:8.0f} {size / 1000:6.0f}")


if __name__ == "__main__":
    main()
