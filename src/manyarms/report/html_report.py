"""`report.html`: a folder of results as one page to look at, without a network."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from manyarms.core.files import replace_file
from manyarms.report.page.assemble import as_json, page
from manyarms.report.page.of_paper import paper_page
from manyarms.report.page.of_run import run_page
from manyarms.tables import PROVENANCE, ResultsError, read_results

__all__ = ["REPORT", "write_report"]

REPORT = "report.html"

_MOST = 4_000_000  # bytes of data in a page, which stays below 6 MB
_TIMES = (200, 100, 50, 20, 5, 1)  # checkpoints of a line, at most: as many as fit


def write_report(folder: str | os.PathLike[str]) -> Path:
    """Write `report.html` into a folder of results, and return its path.

    The page holds all it needs, and the same tables give the same page on every machine.

    Parameters
    ----------
    folder
        One that `manyarms run` or `manyarms reproduce` wrote.

    Examples
    --------
    >>> write_report("no such folder")
    Traceback (most recent call last):
    manyarms...ResultsError: `folder` must hold results of manyarms, got 'no such folder'...
    """
    where = Path(folder)
    title, data = _fitting(_reader(where))
    path = where / REPORT
    replace_file(path, page(title, data).encode())
    return path


def _reader(folder: Path) -> Callable[[int], dict[str, Any]]:
    """Return what makes the page's data, given how many checkpoints a line may have."""
    try:
        provenance = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        provenance = None
    if isinstance(provenance, dict) and "settings" in provenance:
        return paper_page(folder, provenance)
    return run_page(read_results(folder))  # which says what is wrong, if anything is


def _fitting(make: Callable[[int], dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    for most_times in _TIMES:
        data = make(most_times)
        if len(as_json(data)) <= _MOST:
            return str(data["title"]), data
    raise ResultsError(
        f"`folder` must hold results that fit into a page of {_MOST // 1_000_000} MB, got "
        f"{len(data['settings'])} settings. Sweep fewer values, or draw them with `manyarms plot`."
    )
