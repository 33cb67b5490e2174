"""`report.html`: a folder of results as one page to look at, without a network."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from manyarms.core.files import replace_file
from manyarms.errors import ResultsError
from manyarms.lab.tables import PROVENANCE, ResultsFolder, damage, read_results
from manyarms.report.page.assemble import as_json, page
from manyarms.report.page.contents import contents, of_a_run
from manyarms.report.page.presentation import Presentation

__all__ = ["REPORT", "STUDY", "write_report", "write_study"]

REPORT, STUDY = "report.html", "study.json"

_FORMAT = "manyarms study 1"
_TIMES = (200, 100, 50, 20, 5, 1)  # checkpoints of a line, at most: as many as fit


def write_report(folder: str | os.PathLike[str], *, most_bytes: int = 4_000_000) -> Path:
    """Write `report.html` into a folder of results, and return its path.

    The page holds all it needs, and the same tables give the same page on every machine.

    Parameters
    ----------
    folder
        One that `manyarms run` or `manyarms reproduce` wrote.
    most_bytes
        The size of the data in the page, at most (default: 4 MB); lines lose checkpoints for it.

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
        _refuse_earlier_study(where)
        results = read_results(where)
        with damage(where / PROVENANCE):
            shown, folders = of_a_run(results), {"": results}
    for most_times in _TIMES:
        with damage(where):
            data = contents(folders, shown, most_times)
        if len(as_json(data)) <= most_bytes:
            break
    else:
        raise ResultsError(
            f"`folder` must hold results that fit into a page of {most_bytes / 1e6:g} MB, got "
            f"{len(data['settings'])} settings. Sweep fewer values, or draw them with "
            f"`manyarms plot`."
        )
    replace_file(where / REPORT, page(data).encode())
    return where / REPORT


def write_study(
    folder: Path,
    studies: Sequence[str],
    options: Mapping[str, int | None],
    results: Sequence[ResultsFolder],
    shown: Presentation,
) -> Path:
    """Write `study.json`, which says that a folder is a study's, and what its page shows.

    Parameters
    ----------
    folder, studies, options
        Where it is, and what was reproduced, with which options.
    results
        Its results, within the folder.
    shown
        What the page shows beside them.
    """
    content = {
        "format": _FORMAT,
        "studies": list(studies),
        "options": dict(options),
        "results": [each.folder.relative_to(folder).as_posix() for each in results],
        "page": asdict(shown),
    }
    text = json.dumps(content, indent=1, allow_nan=False)
    replace_file(folder / STUDY, f"{text}\n".encode())
    return folder / STUDY


def _read_study(folder: Path) -> tuple[Presentation, dict[str, ResultsFolder]]:
    with damage(folder / STUDY, fix="Reproduce the study into its folder again."):
        content = json.loads((folder / STUDY).read_text(encoding="utf-8"))
        if content["format"] != _FORMAT:
            raise ValueError(f"it is of another format: {content['format']!r}")
        shown, places = Presentation.from_plain(content["page"]), list(content["results"])
        for place in map(Path, places):
            if place.is_absolute() or ".." in place.parts:
                raise ValueError(f"'{place}' is outside of the folder")
    return shown, {place: read_results(folder / place) for place in places}


def _refuse_earlier_study(folder: Path) -> None:
    """Say what to do with a folder that `reproduce` wrote before studies had result folders."""
    try:
        content = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return  # its reader says what is wrong
    if isinstance(content, dict) and "settings" in content and "spec_hash" not in content:
        raise ResultsError(
            f"`folder` must hold results of this version, got '{folder}', which an earlier one "
            f"reproduced. Its tables can be read as before; for a page, run `manyarms reproduce` "
            f"into another folder."
        )
