"""Draw and save figures. Only this module imports matplotlib.

It does not use pyplot, so figures are plain objects without global state and need no display.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from manyarms.core.files import replace_file
from manyarms.core.optional import need
from manyarms.core.theme import LETTERS
from manyarms.report.style import FONT, SETTINGS

need("matplotlib", "to draw figures")  # before it is imported

from matplotlib import style as matplotlib_style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, MultipleLocator

__all__ = ["Axes", "Figure", "Line2D", "MaxNLocator", "MultipleLocator", "Patch"]
__all__ += ["drawing", "rendered", "save_figure", "settings"]

_NOTEBOOK = 96  # pixels per inch
# Dates are left out, so that the same results give the same file.
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
    "png": {},
}


def settings() -> AbstractContextManager[None]:
    """Return a context with the settings of our figures; the user's settings do not change."""
    return matplotlib_style.context(["default", SETTINGS])


class _ShownFigure(Figure):
    """A figure that notebooks show without pyplot or `%matplotlib`."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        width, height = self.get_size_inches()
        size = {"width": round(_NOTEBOOK * width), "height": round(_NOTEBOOK * height)}
        return rendered(self, "png"), size

    def __repr__(self) -> str:
        width, height = self.get_size_inches()
        return f"<figure of {width:g} x {height:g} inches>"


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """Yield a figure of this size (inches).

    At the end its layout is fixed, so that it is the same each time it is saved. After a change of
    texts, `figure.set_layout_engine("constrained")` computes the layout again.
    """
    with settings():
        figure = _ShownFigure(figsize=(width, height))
        yield figure
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def rendered(figure: Figure, ending: str) -> bytes:
    """Return a figure as a file with this ending: "pdf", "svg" or "png"."""
    memory = io.BytesIO()
    with settings():
        figure.savefig(memory, format=ending, metadata=_METADATA[ending])
    if ending != "svg":
        return memory.getvalue()
    # its text uses the fonts of the page that contains it
    return memory.getvalue().replace(f"'{FONT}'".encode(), LETTERS.replace('"', "'").encode())


def save_figure(figure: Figure, stem: str | os.PathLike[str]) -> list[Path]:
    """Write a figure as PDF, SVG and PNG (300 dots per inch).

    All three are drawn before the first is written. Each file is replaced atomically.

    Parameters
    ----------
    figure
        The figure to write.
    stem
        The path without the ending. Its folder is created if it does not exist.

    Returns
    -------
    list of Path
        The files written.

    Examples
    --------
    >>> import tempfile
    >>> from manyarms.report import figure_1
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in save_figure(figure_1(), f"{folder}/new/fig1")]
    ['fig1.pdf', 'fig1.svg', 'fig1.png']
    """
    stem = Path(stem)
    drawn = {stem.with_name(f"{stem.name}.{end}"): rendered(figure, end) for end in _METADATA}
    stem.parent.mkdir(parents=True, exist_ok=True)
    for path, content in drawn.items():
        replace_file(path, content)
    return list(drawn)
