"""Results into figures: nothing here simulates, and nothing else imports a plotting package."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Loaded on first use: matplotlib is an extra, and is slow to import.
_HOME = {
    "figure_1": "figures",
    "regret_against_hardness": "figures",
    "regret_over_time": "figures",
    "save_figure": "saving",
    "write_report": "html_report",
}

__all__ = [
    "figure_1",
    "regret_against_hardness",
    "regret_over_time",
    "save_figure",
    "write_report",
]

if TYPE_CHECKING:
    from manyarms.report.figures import figure_1, regret_against_hardness, regret_over_time
    from manyarms.report.html_report import write_report
    from manyarms.report.saving import save_figure


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
