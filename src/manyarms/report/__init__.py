"""Figures and pages of results. Only this package imports matplotlib."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyarms.report.drawing import save_figure
    from manyarms.report.figures import figure_1, regret_against_hardness, regret_over_time
    from manyarms.report.page import Section, write_page, write_report

_MODULES = {
    "Section": "page",
    "figure_1": "figures",
    "regret_against_hardness": "figures",
    "regret_over_time": "figures",
    "save_figure": "drawing",
    "write_page": "page",
    "write_report": "page",
}
__all__ = [
    "Section",
    "figure_1",
    "regret_against_hardness",
    "regret_over_time",
    "save_figure",
    "write_page",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Import on first use, because matplotlib is optional and slow to import."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
