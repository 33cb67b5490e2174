"""`report.html`: a folder of results as one page to look at, without a network."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from manyarms.core.files import replace_file
from manyarms.core.theme import MARK
from manyarms.errors import ResultsError
from manyarms.protocol.colours import page_css
from manyarms.report.page.contents import contents, of_a_run
from manyarms.report.page.presentation import Presentation
from manyarms.report.text import for_json, part_of_page, write_json
from manyarms.simulation.tables import PROVENANCE, ResultsFolder, damage, read_results

REPORT, STUDY = "report.html", "study.json"
MOST_BYTES = 4_000_000  # of the data in a page

_FORMAT = "manyarms study 1"
_TIMES = (200, 100, 50, 20, 5, 1)  # checkpoints of a line, at most: as many as fit
_DIGITS = 5  # of numbers in the page: more than a screen can show
# In the order in which they stand in the file; together they are one script.
_SCRIPTS = ("data", "elements", "plot", "bar", "figure", "comparisons", "sections")


def write_report(folder: str | os.PathLike[str], *, most_bytes: int = MOST_BYTES) -> Path:
    """Write `report.html` into a folder of results, and return its path.

    The page contains all that it needs. The same tables give the same page on every machine.

    Parameters
    ----------
    folder
        One that `manyarms run` or `manyarms reproduce` wrote.
    most_bytes
        The largest size of the data in the page (default: 4 MB). If there is more, lines are drawn
        with fewer checkpoints.

    Examples
    --------
    >>> write_report("no such folder")
    Traceback (most recent call last):
    manyarms...ResultsError: `folder` must hold results of manyarms, got 'no such folder'...
    """
    where = Path(folder)
    if (where / STUDY).is_file():
        shown, folders = _read_study(where)
    else:
        results = read_results(where)
        with damage(where / PROVENANCE):
            shown, folders = of_a_run(results), {"": results}
    return write_page(where, folders, shown, most_bytes=most_bytes)


def write_page(
    folder: Path,
    results: Mapping[str, ResultsFolder],
    shown: Presentation,
    *,
    most_bytes: int = MOST_BYTES,
) -> Path:
    """Write `report.html` about results that are already read, by their path from the page."""
    for most_times in _TIMES:
        with damage(folder):
            data = contents(results, shown, most_times)
        if len(text := as_json(data)) <= most_bytes:
            break
    else:
        raise ResultsError(
            f"`folder` must hold results that fit into a page of {most_bytes / 1e6:g} MB, got "
            f"{len(data['settings'])} problems. Sweep fewer values, or draw them with "
            f"`manyarms plot`."
        )
    replace_file(folder / REPORT, _page(data["title"], text).encode())
    return folder / REPORT


def _page(title: str, data: str) -> str:
    """Return data, styles and scripts as one file of HTML that needs nothing else."""
    parts = {
        "title": html.escape(title),
        "styles": page_css() + part_of_page("page.css"),
        "mark": MARK,
        "data": data,
        "script": "\n".join(part_of_page(f"{name}.js") for name in _SCRIPTS),
    }
    return re.sub(r"{{(\w+)}}", lambda found: parts[found[1]], part_of_page("template.html"))


def as_json(data: Any) -> str:
    r"""Return compact JSON that may stand within a script element.

    >>> as_json({"a": [1.0, 0.1234567, float("nan")], "b": "</script>"})
    '{"a":[1,0.12346,null],"b":"\\u003c/script>"}'
    """
    short = for_json(data, _DIGITS)
    text = json.dumps(short, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def write_study(
    folder: Path, results: Mapping[str, ResultsFolder], shown: Presentation, **about: Any
) -> Path:
    """Write `study.json`: where a study's results are, what its page shows, and how it was made."""
    content = {"format": _FORMAT, **about, "results": list(results), "page": asdict(shown)}
    return write_json(folder / STUDY, content)


def _read_study(folder: Path) -> tuple[Presentation, dict[str, ResultsFolder]]:
    with damage(folder / STUDY, fix="Reproduce the study into its folder again."):
        content = json.loads((folder / STUDY).read_text(encoding="utf-8"))
        if content["format"] != _FORMAT:
            raise ValueError(f"it is of another format: {content['format']!r}")
        shown, places = Presentation.from_dict(content["page"]), list(content["results"])
        for place in map(Path, places):
            if place.is_absolute() or ".." in place.parts:
                raise ValueError(f"'{place}' is outside of the folder")
    return shown, {place: read_results(folder / place) for place in places}
