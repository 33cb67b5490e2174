"""Measure the costs of each policy, for the pages of docs/policies.

    python benchmarks/costs.py measure          measure all, and update the tables (minutes)
    python benchmarks/costs.py measure moss++   measure one policy
    python benchmarks/costs.py pages            update the tables from benchmarks/costs.json

Live time depends on the machine. Memory and random words are counted; they follow from the code,
and a test counts some of them again. The time of a simulated pull is in the policy's `about`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import manyarms as ma
from manyarms.core import rng
from manyarms.core.memory import ARRAYS
from manyarms.core.tabular import markdown_table
from manyarms.policies import CATALOGUE
from run import ALPHA, HORIZON, KNOWN, N_ARMS, best_of, live_seconds

ROOT = Path(__file__).parents[1]
COSTS = ROOT / "benchmarks" / "costs.json"
PAGES = ROOT / "docs" / "policies"
BEGIN, END = "<!-- made by benchmarks/costs.py -->", "<!-- end of what is made -->"
LIVE_ARMS, LIVE_PULLS = 10**6, 20_000
FEW_ARMS = 100  # for policies that scan all tried arms
_HEAD = ["policy", "cost grows with", "µs a live pull", "memory", "random words"]


def policies() -> dict[str, ma.Policy]:
    """Return every listed policy, with the knowledge that it needs."""
    return {name: ma.policy(name, **KNOWN.get(name, {})) for name in CATALOGUE}


def memory(policy: ma.Policy) -> int:
    """Return the bytes that a simulation of the standard size reserves for the policy's state."""
    return _bytes(
        policy.with_reward_range((0.0, 1.0)).new_state(ARRAYS, n_arms=N_ARMS, pulls=HORIZON)
    )


def _bytes(state: Any) -> int:
    if isinstance(state, np.ndarray):
        return int(state.nbytes)
    return sum(map(_bytes, state)) if isinstance(state, tuple) else 0


def words(policy: ma.Policy, n_arms: int, *, experiments: int = 5, pulls: int = 2_000) -> float:
    """Return the mean number of random words that the policy reads per pull, in its first pulls.

    Words that draw rewards are not counted.
    """
    instance = ma.instances.planted(n=n_arms, alpha=ALPHA, horizon=HORIZON)
    means = [instance.mean(arm) for arm in range(n_arms)]
    luck = np.random.default_rng(1)
    with _counting() as count:
        for seed in range(experiments):
            with policy.live(n_arms=n_arms, horizon=HORIZON, seed=seed) as live:
                for _ in range(pulls):
                    pull = live.ask()
                    live.tell(pull, float(luck.random() < means[pull.arm]))
    return count[0] / (experiments * pulls)


@contextmanager
def _counting() -> Iterator[list[int]]:
    """Count the words that CPython draws within this context."""
    usual, count = rng.draw, [0]

    def draw(key: int, counter: int) -> int:
        count[0] += 1
        return usual(key, counter)

    users = [m for m in list(sys.modules.values()) if getattr(m, "draw", None) is usual]
    for module in users:
        module.draw = draw  # type: ignore[attr-defined]
    try:
        yield count
    finally:
        for module in users:
            module.draw = usual  # type: ignore[attr-defined]


def measure(names: list[str]) -> None:
    """Measure these policies, or all, and write the file."""
    found = json.loads(COSTS.read_text(encoding="utf-8")) if names else {}
    for name, policy in policies().items():
        if names and name not in names:
            continue
        begun = time.perf_counter()
        scans = CATALOGUE[name].scaling == "arms tried"
        live_arms, n_arms = (FEW_ARMS, FEW_ARMS) if scans else (LIVE_ARMS, N_ARMS)
        (seconds,) = best_of(3, partial(live_seconds, policy, live_arms, LIVE_PULLS))
        found[name] = {
            "live": round(seconds * 1e6, 1),
            "memory": memory(policy),
            "words": round(words(policy, n_arms), 2),
        }
        print(f"{name:<22}{found[name]}  {time.perf_counter() - begun:.0f} s", flush=True)
    kept = {name: found[name] for name in CATALOGUE}
    COSTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def table(page: str) -> str:
    """Return the table of a page, with a row for each of its policies."""
    measured = json.loads(COSTS.read_text(encoding="utf-8"))
    rows = []
    for name, about in CATALOGUE.items():
        if about.page == page:
            own = measured[name]
            cells = [about.scaling, f"{own['live']:.0f}"]
            words = float(f"{own['words']:.2g}")
            rows.append([f"`{name}`", *cells, _size(own["memory"]), f"{words:g}"])
    return markdown_table(_HEAD, rows)


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def with_table(text: str, page: str) -> str:
    """Return a page's text with a new table between the two marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page} must contain the two lines {BEGIN!r} and {END!r}.")
    return f"{before}{BEGIN}\n\n{table(page)}\n\n{END}{after}"


def main() -> None:
    """Measure, or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["measure", "pages"])
    parser.add_argument("names", nargs="*", help="policies to measure (default: all)")
    options = parser.parse_args()
    if options.what == "measure":
        measure(options.names)
    for name in sorted({about.page for about in CATALOGUE.values()}):
        path = ROOT / name
        path.write_text(with_table(path.read_text(encoding="utf-8"), name), encoding="utf-8")


if __name__ == "__main__":
    main()
