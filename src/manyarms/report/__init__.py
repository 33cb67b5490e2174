"""Results into figures: nothing here simulates, and nothing else imports a plotting package."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyarms.report.drawing import save_figure
    from manyarms.report.figures import figure_1, regret_against_hardness, regret_over_time
    from manyarms.report.html_report import write_report

__all__ = ["figure_1", "regret_against_hardness", "regret_over_time", "save_figure", "write_report"]


def __getattr__(name: str) -> Any:
    """Load on first use: matplotlib is an extra, and is slow to import."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = {"save_figure": "drawing", "write_report": "html_report"}.get(name, "figures")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
