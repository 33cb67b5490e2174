"""Live handles never compile: their fast tests run without the JIT only, where coverage counts."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder that need no compiler."""
    for item in items:
        elsewhere = any(map(item.get_closest_marker, ("compiled", "slow")))
        if HERE in item.path.parents and not elsewhere:
            item.add_marker("interpreted")
