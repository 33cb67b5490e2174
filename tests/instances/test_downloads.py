"""Downloading one or all contests from a server on this machine."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from manyarms.cli.main import main
from manyarms.errors import ContestFileError, DownloadError, ParameterError
from manyarms.instances import contests
from manyarms.instances.contests import (
    contest_cache,
    find_contest,
    published_contests,
)

pytest.importorskip("pooch", reason='it downloads: pip install "manyarms[sim]"')


def _contest(shares: list[int]) -> str:
    """Return a contest file, given for each caption how many of 100 found it funny."""
    rows = (f"C{k},100,{100 - share},0,{share}\n" for k, share in enumerate(shares))
    return "caption,votes,not_funny,somewhat_funny,funny\n" + "".join(rows)


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("MANYARMS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("MANYARMS_CACHE", str(tmp_path / "cache"))


def _git(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Server(http.server.HTTPServer):
    """Serves `files`, and `listing` as the list of files.

    Other files give a server error, 404.csv is not found, and 40.csv is truncated.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {f"{k}.csv": _contest([k, 1]).encode() for k in range(20, 26)}
        self.listing: Any = [
            {"name": name, "type": "file", "sha": _git(content)}
            for name, content in self.files.items()
        ]
        self.listing += [
            {"name": "README.md", "type": "file", "sha": "0"},
            {"name": "old.csv", "type": "dir", "sha": "0"},
            {"name": "not published.csv", "type": "file", "sha": "0"},
        ]
        self.asked: list[str] = []


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        self.server.asked.append(name)
        content = self.server.files.get(name)
        if name == "list":
            content = json.dumps(self.server.listing).encode()
        missing = 404 if name == "404.csv" else 503
        self.send_response(200 if content is not None else missing)
        self.send_header("Content-Length", str(len(content or b"") + 9 * (name == "40.csv")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(contests, "_SOURCE", f"{address}/summaries")
        monkeypatch.setattr(contests, "_LISTING", f"{address}/list")
        yield server
        server.shutdown()
        thread.join()


def test_pooch_downloads_the_whole_file_or_nothing(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.files |= dict.fromkeys(("40.csv", "652_lil-KLUCB.csv"), server.files["20.csv"])
    for contest, message in (
        (404, "there is no such file"),
        (40, "the connection failed"),
        (652, "the download is not the contest file"),  # the known checksum is another
    ):
        with pytest.raises(DownloadError, match=message):
            find_contest(contest, download=True)
    assert list(contest_cache().iterdir()) == []
    path = find_contest(20, download=True)
    assert path.read_bytes() == server.files["20.csv"]
    path.write_text("changed")
    assert find_contest(20, download=True).read_bytes() == server.files["20.csv"]
    assert capsys.readouterr() == ("", "")


def test_a_download_is_recorded_and_must_not_change(server: Server) -> None:
    path, content = find_contest(20, download=True), server.files["20.csv"]
    record = contest_cache() / "20.csv.sha256"
    assert record.read_text() == f"{hashlib.sha256(content).hexdigest()}  20.csv\n"
    assert find_contest(20, download=True) == path
    assert server.asked == ["20.csv"]
    path.write_text("changed")
    with pytest.raises(
        ContestFileError, match=r"must have the SHA-256 .* Delete it, or call find_"
    ):
        find_contest(20)
    server.files["20.csv"] = server.files["21.csv"]  # the published file has also changed
    with pytest.raises(DownloadError, match="not the contest file"):
        find_contest(20, download=True)
    path.unlink()
    with pytest.raises(DownloadError, match="not the contest file"):
        find_contest(20, download=True)
    assert list(contest_cache().iterdir()) == [record]


@pytest.mark.parametrize(
    ("contest", "file"),
    [(559, "559"), (560, "560_lil-KLUCB"), (659, "659_lil-KLUCB"), (660, "660")],
)
def test_numbers_match_published_names(server: Server, contest: int, file: str) -> None:
    server.files[f"{file}.csv"] = server.files["20.csv"]
    assert find_contest(contest, download=True).stem == file


def test_only_published_names_are_requested(server: Server) -> None:
    for name in ("mine", "..", "652?x", "652 a", "6%2F"):
        with pytest.raises(ParameterError, match="must be a published one such as 652, got"):
            find_contest(name, download=True)
    assert server.asked == []


def test_all_are_downloaded_once(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data" / "20.csv").write_bytes(server.files["20.csv"])
    (tmp_path / "data" / "21.csv").write_text(_contest([99]))  # the user's file, kept
    assert main(["data", "get", "--all"]) == 0
    printed = capsys.readouterr().out
    assert "21: the file in MANYARMS_DATA is not the published one, and was kept" in printed
    assert "6 published: 1 already here, 4 downloaded, 1 of your own, 0 failed, 0 not" in printed
    assert server.asked == ["list", "22.csv", "23.csv", "24.csv", "25.csv"]
    for name in ("22.csv", "25.csv"):
        assert (contest_cache() / name).read_bytes() == server.files[name]
    # again: nothing is requested, but a changed file is downloaded again, with its record
    (contest_cache() / "23.csv").write_text("changed")
    (contest_cache() / "23.csv.sha256").write_text("0" * 64)
    assert main(["data", "get", "--all"]) == 0
    assert "4 already here, 1 downloaded" in capsys.readouterr().out
    assert server.asked[5:] == ["23.csv"]
    assert (contest_cache() / "23.csv").read_bytes() == server.files["23.csv"]
    assert not [path for path in contest_cache().iterdir() if path.is_dir()]


def test_after_a_network_failure_the_rest_is_downloaded_later(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = dict(server.files)
    for name in ("21.csv", "22.csv", "23.csv"):
        del server.files[name]
    assert main(["data", "get", "--all"]) == 1
    printed = capsys.readouterr()
    assert "22: http://127.0.0.1" in printed.out
    assert "0 already here, 1 downloaded, 0 of your own, 3 failed, 2 not tried" in printed.out
    assert "Run the same command again" in printed.err
    server.files = whole
    assert main(["data", "get", "--all"]) == 0
    assert "1 already here, 5 downloaded" in capsys.readouterr().out
    assert server.asked.count("20.csv") == 1


@pytest.mark.parametrize("listing", [{"message": "rate limit"}, [], [{"name": 3}], "?"])
def test_an_answer_that_is_not_a_list_is_not_stored(server: Server, listing: Any) -> None:
    right, server.listing = server.listing, listing
    with pytest.raises(DownloadError, match="must list contest files, got something else"):
        published_contests()
    server.listing = right
    assert list(published_contests()) == ["20", "21", "22", "23", "24", "25"]
    (stored,) = contest_cache().glob("published-*.json")
    asked = len(server.asked)
    for damage in ("", "{", "[1]", "3", '{"20": "of an earlier version"}'):
        stored.write_text(damage)
        assert len(published_contests()) == len(published_contests()) == 6
    assert len(server.asked) == asked + 5
