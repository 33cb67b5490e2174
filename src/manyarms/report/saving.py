"""Figures into files: whole or not at all, and the same bytes each time."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from manyarms.core.files import replace_file
from manyarms.report._matplotlib import Figure, look

__all__ = ["save_figure"]

# Dates are left out: a figure drawn again from the same results is the same file.
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
    "png": {},
}


def save_figure(figure: Figure, stem: str | os.PathLike[str]) -> list[Path]:
    """Write a figure as PDF, SVG and PNG (300 dots per inch).

    All three are drawn before the first is written, and each takes its place at once: a file of
    that name is the old one or the new one, never a part.

    Parameters
    ----------
    figure
        What to write.
    stem
        The path without the ending; its folder is made if need be.

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
    drawn = {stem.with_name(f"{stem.name}.{ending}"): _draw(figure, ending) for ending in _METADATA}
    stem.parent.mkdir(parents=True, exist_ok=True)
    for path, content in drawn.items():
        replace_file(path, content)
    return list(drawn)


def _draw(figure: Figure, ending: str) -> bytes:
    memory = io.BytesIO()
    with look():
        figure.savefig(memory, format=ending, metadata=_METADATA[ending])
    return memory.getvalue()
