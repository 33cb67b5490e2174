"""Which tests run with the JIT, and which without it; and no test depends on luck."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
# Fast tests and examples of these rooms say the same with the JIT as without it, so they run once:
# without it, where nothing waits for the compiler, a wrong index raises, and coverage counts.
ONCE = {"advice", "attack", "cli", "live", "project", "protocol", "client", "report", "serve"}
ONCE |= {"advice.py", "benchmarks", "inference", "learn", "paper", "store"}
ONCE |= {"core", "field", "parts", "theory"}
# Files of other rooms for which this holds, too: they play handles, or are about files and words.
ONCE |= {"test_catalogue.py", "test_parameters.py", "test_prospector.py", "test_trials.py"}
ONCE |= {"test_players.py", "test_run_folders.py", "test_sweep.py", "test_tables.py"}

# Slipcover has a copy of a process write its lines to a file when it ends. The service's copies
# close all files: their end would fail, and they would go on with the tests.
for name in ("fork", "_exit"):
    if hasattr(os, name):
        setattr(os, name, getattr(getattr(os, name), "__wrapped__", getattr(os, name)))


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests and examples by their room, unless they say otherwise."""
    for item in items:
        if any(map(item.get_closest_marker, ("compiled", "slow"))):
            if item.get_closest_marker("interpreted"):
                raise pytest.UsageError(
                    f"{item.nodeid} would never run: see CONTRIBUTING.md, Tests"
                )
            continue
        place, *rooms = item.path.relative_to(ROOT).parts
        if place == "paper" or (place in ("src", "tests") and ONCE.intersection(rooms)):
            item.add_marker("interpreted")


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of all later searches for garbage."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _seeds_that_are_not_given() -> None:
    """Let a seed that is not given be 0."""
    from manyarms.live import handle

    handle._any_seed = lambda: 0
