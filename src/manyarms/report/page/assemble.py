"""Data, styles and scripts into one file of HTML that needs nothing else."""

from __future__ import annotations

import html
import json
import math
from importlib import resources
from typing import Any

import numpy as np

__all__ = ["as_json", "page"]

# In the order in which they stand in the file; together they are one script.
_SCRIPTS = (
    *("data.js", "elements.js", "scale.js", "plot.js", "lines.js", "pointer.js", "figure.js"),
    *("differences.js", "sections.js", "main.js"),
)
_DIGITS = 5  # of numbers in the page: more than a screen can show


def page(data: dict[str, Any]) -> str:
    """Return the whole page, which shows what `contents` returned."""
    script = "\n".join(_read(name) for name in _SCRIPTS)
    parts = {
        "title": html.escape(data["title"]),
        "styles": _read("page.css"),
        "script": script,
        "data": as_json(data),
    }
    first, *rest = _read("template.html").split("{{")
    pieces = [first]
    for piece in rest:
        name, _, text = piece.partition("}}")
        pieces += [parts[name], text]
    return "".join(pieces)


def as_json(data: Any) -> str:
    r"""Return compact JSON that may stand within a script element.

    >>> as_json({"a": np.array([1.0, 0.1234567, np.nan]), "b": "</script>"})
    '{"a":[1,0.12346,null],"b":"\\u003c/script>"}'
    """
    text = json.dumps(_plain(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _plain(value: Any) -> Any:
    """Return arrays as lists, floats in few digits, and None for what is not finite."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value.tolist()]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        short = float(f"{value:.{_DIGITS}g}")
        return int(short) if short.is_integer() and abs(short) < 1e15 else short
    return value


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
