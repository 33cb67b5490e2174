"""docs/versions.md says which files open. This opens all of them, and counts."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import manyarms as ma
from manyarms.errors import ManyarmsError
from manyarms.live import journal_file, saving
from manyarms.live.databases import database
from manyarms.serve.game import Game, ReplayError
from manyarms.simulation import read_results, tables
from tests.museum.test_museum import _pieces, _unpack
from tests.serve.machines import opened

PAGE = Path(__file__).parents[2] / "docs" / "versions.md"


def _rows(title: str) -> list[list[str]]:
    """Return the cells of the table below a title, without its head."""
    part = PAGE.read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\|(.+)\|$", part, re.MULTILINE)
    return [[cell.strip() for cell in row.split("|")] for row in rows[2:]]


def test_the_formats_that_are_written() -> None:
    written = {row[0]: row[1] for row in _rows("Formats")}
    assert written == {
        "saved handle": str(saving.VERSION),
        "journal": str(journal_file._VERSION),
        "database": str(database.SCHEMA),
        "results": tables.FORMAT.rpartition(" ")[2],
    }


@pytest.mark.parametrize("ahead", [1, 7])
def test_formats_of_the_future_are_refused(ahead: int, tmp_path: Path) -> None:
    for known in (saving.VERSION, journal_file._VERSION):
        with pytest.raises(ma.SavedFileError, match="Install a newer manyarms"):
            saving.check_version(known + ahead, known, "it")
    url = f"sqlite:///{tmp_path}/x.db"
    with opened(url) as one:
        one.run("UPDATE schema_version SET version = :v", v=database.SCHEMA + ahead)
    with pytest.raises(ManyarmsError, match="has tables of version"), opened(url):
        pass


def _open_handle(path: Path) -> None:
    ma.Live.load(path)


def _open_recorded(path: Path) -> None:
    ma.recorded(path).close()


def _open_store(path: Path) -> None:
    ma.recorded(f"sqlite:///{path}?experiment=buttons").close()


def _open_results(path: Path) -> None:
    assert read_results(path).cells


OPENED: dict[str, Callable[[Path], None]] = {
    "handles": _open_handle,
    "journals": _open_recorded,
    "stores": _open_store,
    "results": _open_results,
}


def _found(kind: str, version: str, folder: Path) -> tuple[int, int]:
    """Return how many files of a version there are, and how many of them open."""
    names = [name for found, name in _pieces(kind) if found == version]
    count = 0
    for name in names:
        (folder / kind).mkdir(exist_ok=True)
        path, _ = _unpack(version, kind, name, folder / kind)
        with contextlib.suppress(ManyarmsError):
            OPENED[kind](path)
            count += 1
    return len(names), count


def _experiments(version: str, folder: Path) -> tuple[int, int]:
    """Return how many experiments the databases of services have, and how many of them load."""
    count = loaded = 0
    for found, name in _pieces("services"):
        if found == version and name.endswith(".db"):
            path, _ = _unpack(version, "services", name, folder)
            with opened(f"sqlite:///{path}") as one:
                for row in one.experiments():
                    count += 1
                    with contextlib.suppress(ReplayError):
                        Game.load(one, row)
                        loaded += 1
    return count, loaded


@pytest.mark.parametrize("row", _rows("Files of earlier versions"), ids=lambda row: str(row[0]))
def test_the_table_of_what_opens(row: list[str], tmp_path: Path) -> None:
    version = row[0]
    found = [_found(kind, version, tmp_path) for kind in OPENED] + [_experiments(version, tmp_path)]
    said = [f"{opens} of {count}" if count else "–" for count, opens in found]
    assert row[2:] == said


def test_every_version_of_the_museum_is_in_the_table() -> None:
    folders = sorted(path.parent.name for path in Path(__file__).parent.glob("*/handles.tar.xz"))
    assert [row[0] for row in _rows("Files of earlier versions")] == folders
