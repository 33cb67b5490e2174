"""A caption contest with `manyarms serve`: several web servers, and votes that come late.

Each process stands for a web server. It asks the service which caption to show, and tells a reward
when the visitor clicks, some time later; most visitors never click. The experiment has a reward
window: when it ends, the reward counts as 1 if there was a click and as 0 otherwise. Without
`hold`, clicks would count at once and missing clicks later, and recently shown captions would look
better than they are. Run it: `python examples/served_captions.py`.
"""

from __future__ import annotations

import contextlib
import heapq
import multiprocessing
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from captions_live import shares

import manyarms as ma

SERVERS = 3  # processes that serve visitors
VISITORS = 2_000  # of each
PACE = 400  # visitors a second, of each
DELAY = 0.2  # seconds until a click, on average
WINDOW = 1.0  # seconds that a click may take
TOKEN = "a token for this example only"


@contextlib.contextmanager
def service() -> Iterator[str]:
    """Start a service in a temporary folder, and yield its address."""
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{Path(folder) / 'captions.db'}"
        command = [sys.executable, "-m", "manyarms", "serve", "--store", store, "--port", "0"]
        process = subprocess.Popen(
            [*command, "--quiet"],
            env=os.environ | {"MANYARMS_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
            found = re.search(r"http://\S+", said)
            assert found is not None, said
            yield found[0]
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


def serve_visitors(url: str, number: int, visitors: int, favour: dict[str, float]) -> None:
    """Show captions to visitors as they come, and tell each click."""
    dice = random.Random(number)
    clicks: list[tuple[float, int]] = []  # (when, pull), earliest first
    with ma.Remote(url, "captions", token=TOKEN) as contest:
        for _ in range(visitors):
            time.sleep(dice.expovariate(PACE))
            pull = contest.ask()
            if dice.random() < favour[pull.arm]:
                heapq.heappush(clicks, (time.monotonic() + dice.expovariate(1 / DELAY), pull.id))
            while clicks and clicks[0][0] <= time.monotonic():
                contest.tell(heapq.heappop(clicks)[1], 1.0, again="ignore")
        for when, shown in sorted(clicks):  # clicks after the window are ignored
            time.sleep(max(0.0, when - time.monotonic()))
            contest.tell(shown, 1.0, again="ignore")


def main() -> None:
    name, means, _ = shares()
    favour = {f"caption {k}": float(mean) for k, mean in enumerate(means)}
    print(f"{name}: {len(favour)} captions, {SERVERS} processes with {VISITORS} visitors each")
    spec: dict[str, Any] = {
        "horizon": SERVERS * VISITORS,
        "window": WINDOW,
        "missing": 0.0,
        "hold": True,
    }
    with service() as url:
        contest = ma.Remote.create(
            url, "captions", ma.Prospector(), arms=favour, token=TOKEN, **spec
        )
        context = multiprocessing.get_context("spawn")
        servers = [
            context.Process(target=serve_visitors, args=(url, k, VISITORS, favour))
            for k in range(SERVERS)
        ]
        for server in servers:
            server.start()
        for server in servers:
            server.join()
        while contest.progress().pending:
            time.sleep(0.1)  # until the last windows end
        progress, best = contest.progress(), contest.recommend()
        contest.close()
    rank = 1 + sum(value > favour[best.arm] for value in favour.values())
    print(f"\n{progress}\n\n{best}")
    print(f"It truly pleases {favour[best.arm]:.2f}: rank {rank} of {len(favour)}.")


if __name__ == "__main__":
    main()
