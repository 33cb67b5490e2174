"""Numbers as text, and files of text."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from manyarms.core.files import replace_file
from manyarms.core.statistics import Interval
from manyarms.report.style import thousands


def count_of(number: int, one: str, many: str = "") -> str:
    """Return a count with its noun, in the singular or the plural.

    >>> count_of(1, "policy", "policies"), count_of(12000, "pull")
    ('1 policy', '12,000 pulls')
    """
    return f"{thousands(number)} {one if number == 1 else many or f'{one}s'}"


def interval_text(interval: Interval, digits: int) -> str:
    """Return an estimate with its interval, if there is one, as text.

    >>> interval_text(Interval(1, 0.75, 1.25), 2), interval_text(Interval(8, math.nan, math.nan), 0)
    ('1.00 [0.75, 1.25]', '8')
    """
    estimate, low, high = (f"{end:.{digits}f}" for end in interval)
    return estimate if math.isnan(interval.low) else f"{estimate} [{low}, {high}]"


def for_json(value: Any) -> Any:
    """Return data for JSON: tuples become lists, and floats that are not finite become None.

    >>> for_json({"interval": (1.25, math.nan)})
    {'interval': [1.25, None]}
    """
    if isinstance(value, dict):
        return {str(key): for_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [for_json(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_text(path: Path, text: str) -> Path:
    """Write text to a file atomically, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, (text.rstrip("\n") + "\n").encode())
    return path
