"""Finding and downloading contest files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyarms.errors import (
    ContestFileError,
    ContestNotFoundError,
    ManyarmsError,
    MissingExtraError,
    ParameterError,
)
from manyarms.instances.contests import (
    contest_cache,
    find_contest,
    local_contests,
)

TEXT = b"caption,mean,precision,votes,not_funny,somewhat_funny,funny\nA,1.5,0.1,10,5,3,2\n"
OTHER = TEXT + b"B,1.5,0.1,10,5,3,2\n"


@pytest.fixture(autouse=True)
def _empty_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("MANYARMS_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("MANYARMS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path / "here")


def put(folder: Path, name: str, content: bytes = TEXT) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    return path


def data(tmp_path: Path, name: str) -> Path:
    return put(tmp_path / "data", name)


# Looking things up


def test_a_path_is_tried_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data(tmp_path, "652.csv")
    mine = put(tmp_path / "here", "652.csv")
    assert find_contest(mine) == mine
    assert find_contest(str(mine)) == mine
    assert find_contest("652.csv").resolve() == mine  # relative to the working directory
    monkeypatch.setenv("HOME", str(tmp_path / "here"))
    assert find_contest("~/652.csv") == mine
    assert find_contest(652) == tmp_path / "data" / "652.csv"


def test_a_number_matches_any_ending(tmp_path: Path) -> None:
    path = data(tmp_path, "559_Random.csv")
    data(tmp_path, "55.csv")
    data(tmp_path, "5590.csv")
    for contest in (559, "559", "559_Random", "559_Random.csv"):
        assert find_contest(contest) == path
    numpys: Any = np.int64(559)
    assert find_contest(numpys) == path


def test_a_number_that_fits_several_files_lists_them(tmp_path: Path) -> None:
    exact = data(tmp_path, "559.csv")
    data(tmp_path, "559_Random.csv")
    for contest in (559, "559"):
        with pytest.raises(ParameterError, match=r"any of 559.csv, 559_Random.csv. Give one"):
            find_contest(contest)
    assert find_contest("559.csv") == exact


def test_the_users_folder_comes_before_the_cache(tmp_path: Path) -> None:
    cached = put(contest_cache(), "700.csv")
    put(contest_cache(), "800_b.csv")
    assert find_contest(700) == cached
    path = data(tmp_path, "700.csv")
    data(tmp_path, "90_a.csv")
    data(tmp_path, ".hidden.csv")
    data(tmp_path, "notes.txt")
    data(tmp_path, "mine.csv")
    (tmp_path / "data" / "folder.csv").mkdir()
    assert find_contest(700) == path
    assert list(local_contests()) == ["90_a", "700", "800_b", "mine"]
    assert local_contests()["700"] == path


NO_NAMES = ["9" * 4000, 10**5000, -652, "a\0b", "x/" * 3000, True, 6.52, None, "  ", b"652"]


@pytest.mark.parametrize("contest", NO_NAMES, ids=range(len(NO_NAMES)))
def test_impossible_names_of_contests_are_refused(contest: Any) -> None:
    with pytest.raises(ManyarmsError, match="`contest` must be "):
        find_contest(contest)


def test_the_default_cache_is_below_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert contest_cache() == tmp_path / ".cache" / "manyarms" / "contests"
    assert local_contests() == {}


def test_errors_for_unknown_contests_name_the_nearest_and_the_download(tmp_path: Path) -> None:
    for name in ("510_LilUCB.csv", "652_lil-KLUCB.csv", "660.csv", "800.csv", "886.csv"):
        data(tmp_path, name)
    with pytest.raises(ContestNotFoundError) as caught:
        find_contest(653)
    message = str(caught.value)
    assert "got 653. Nearest there: 652_lil-KLUCB, 660, 510_LilUCB." in message
    assert "`manyarms data get 653` or find_contest('653', download=True)" in message
    assert str(tmp_path / "data") in message
    assert str(contest_cache()) in message
    with pytest.raises(ContestNotFoundError, match="Nearest there: 652_lil-KLUCB"):
        find_contest("652_lilklucb")
    with pytest.raises(ContestNotFoundError, match="none. Download with `manyarms data get 652`"):
        find_contest("my favourite")
    with pytest.raises(ContestNotFoundError, match="Nearest there: none"):
        find_contest("x" * 5000)


def test_the_error_for_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    data(tmp_path, "652_lil-KLUCB.csv")
    with pytest.raises(ContestNotFoundError, match="Nearest in that folder: 652_lil-KLUCB.csv"):
        find_contest(tmp_path / "data" / "652_lilKLUCB.csv")
    for missing in (tmp_path / "data", "nowhere/652.csv", Path("652.csv")):
        with pytest.raises(ContestNotFoundError, match="`contest` must be a file that exists, got"):
            find_contest(missing, download=True)  # a path is never downloaded


# Checksums in the cache


def test_the_papers_file_must_have_its_known_checksum() -> None:
    put(contest_cache(), "652_lil-KLUCB.csv")
    with pytest.raises(ContestFileError, match="must have the SHA-256 c76e4e251fbb"):
        find_contest(652)


def test_an_invalid_checksum_record_is_ignored() -> None:
    path = put(contest_cache(), "700.csv")
    for record in (b"", b"what?", b"\xff\xfe"):
        put(contest_cache(), "700.csv.sha256", record)
        assert find_contest(700) == path


def test_without_pooch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r'pip install "manyarms\[sim\]"'):
        find_contest(652, download=True)
