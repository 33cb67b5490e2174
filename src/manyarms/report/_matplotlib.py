"""The one place that imports matplotlib, so that its absence is told in one sentence.

No pyplot: figures are plain objects, nothing is global, and no screen is needed.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from manyarms.errors import MissingExtraError
from manyarms.report.style import LOOK

try:
    from matplotlib import style as matplotlib_style
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator
except ImportError as missing:
    raise MissingExtraError("matplotlib", "to draw figures") from missing

__all__ = [
    "Axes",
    "Figure",
    "FuncFormatter",
    "Line2D",
    "MaxNLocator",
    "MultipleLocator",
    "Patch",
    "look",
    "settle",
]


def look() -> AbstractContextManager[None]:
    """Draw and save within this: our look, whatever the user's settings, which it leaves alone."""
    return matplotlib_style.context(["default", LOOK])


def settle(figure: Figure) -> None:
    """Lay the figure out once and for all, so that it is the same however often it is saved.

    After a change of texts, `figure.set_layout_engine("constrained")` lays it out again.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
