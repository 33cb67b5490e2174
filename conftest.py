"""Choose which tests run with the JIT and which without it, and fix default seeds."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
# Fast tests and doctests in these folders do not depend on the JIT, so they run once: without it,
# where nothing is compiled, a wrong index raises, and coverage is measured.
ONCE = {"advice", "attack", "cli", "live", "project", "protocol", "client", "report", "serve"}
ONCE |= {"advice.py", "benchmarks", "inference", "learn", "paper", "store"}
ONCE |= {"core", "field", "parts", "theory"}
# Files in other folders for which this also holds: they test handles, files or names.
ONCE |= {"test_catalogue.py", "test_parameters.py", "test_prospector.py", "test_trials.py"}
ONCE |= {"test_players.py", "test_run_folders.py", "test_sweep.py", "test_tables.py"}

# Slipcover patches fork and _exit so that a forked process writes its coverage to a file when it
# ends. The service's forks close all files, so this would fail, and they would continue the tests.
for name in ("fork", "_exit"):
    if hasattr(os, name):
        setattr(os, name, getattr(getattr(os, name), "__wrapped__", getattr(os, name)))


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests and doctests by their folder, unless they have a mark."""
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker("slow")
        if any(map(item.get_closest_marker, ("compiled", "slow"))):
            if item.get_closest_marker("interpreted"):
                raise pytest.UsageError(
                    f"{item.nodeid} would never run: see CONTRIBUTING.md, Tests"
                )
            continue
        top, *below = item.path.relative_to(ROOT).parts
        if top == "paper" or (top in ("src", "tests") and ONCE.intersection(below)):
            item.add_marker("interpreted")


def pytest_collection_finish() -> None:
    """Exclude imported modules and collected tests from garbage collection."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _default_seed() -> None:
    """Use the seed 0 if none is given."""
    from manyarms.live import handle

    handle._any_seed = lambda: 0
