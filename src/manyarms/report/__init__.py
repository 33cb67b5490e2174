"""Results into figures: nothing here simulates, and nothing else imports a plotting package."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Loaded on first use: matplotlib is an extra, and is slow to import.
_HOME = {
    "exponent_fits": "exponents_figure",
    "figure_1": "figures",
    "fit_exponent": "exponents",
    "measured_rates": "exponents_figure",
    "regret_against_hardness": "figures",
    "regret_over_time": "figures",
    "save_figure": "saving",
    "trade_off_figure": "lower_bound_figure",
    "write_report": "html_report",
}

__all__ = [
    "exponent_fits",
    "figure_1",
    "fit_exponent",
    "measured_rates",
    "regret_against_hardness",
    "regret_over_time",
    "save_figure",
    "trade_off_figure",
    "write_report",
]

if TYPE_CHECKING:
    from manyarms.report.exponents import fit_exponent
    from manyarms.report.exponents_figure import exponent_fits, measured_rates
    from manyarms.report.figures import figure_1, regret_against_hardness, regret_over_time
    from manyarms.report.html_report import write_report
    from manyarms.report.lower_bound_figure import trade_off_figure
    from manyarms.report.saving import save_figure


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
