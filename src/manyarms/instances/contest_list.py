"""All published contests: their names and checksums, and how to get every one.

The package holds no list. It asks the repository for the folder of the pinned commit, once; the
answer names each file with the checksum that Git gave it, and stays in the user's cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from manyarms.core.files import replace_file
from manyarms.core.optional import need
from manyarms.errors import DownloadError, ManyarmsError
from manyarms.instances import contests
from manyarms.instances.contests import cache_folder, find_contest, local_contests

__all__ = ["Got", "get_every_contest", "published_contests"]

_LISTING = (
    f"https://api.github.com/repos/nextml/caption-contest-data/contents/summaries"
    f"?ref={contests._COMMIT}"
)
_MOST_FAILURES = 3  # in a row: the network is gone, and the others would fail too


class Got(NamedTuple):
    """What became of one contest."""

    name: str
    state: str  # "there", "downloaded", "other" (a file of the user's, not as published), "failed"
    why: str = ""  # it failed


def published_contests() -> dict[str, str]:
    """Return the published contests: names, and Git's checksums of their files.

    Asked for once, then read from the cache.
    """
    stored = cache_folder() / f"published-{contests._COMMIT[:12]}.json"
    with contextlib.suppress(OSError, ValueError, TypeError):  # not there, or damaged: ask anew
        return dict(json.loads(stored.read_text(encoding="utf-8")))
    try:
        stored.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=stored.parent) as room:
            found = _names(_ask(Path(room)))
        replace_file(stored, json.dumps(found, indent=0).encode())
    except DownloadError:
        raise
    except OSError as error:
        raise DownloadError(
            f"The list of contests could not be kept: {contests._reason(error)}"
        ) from error
    return found


def get_every_contest(published: Mapping[str, str]) -> Iterator[Got]:
    """Download what is not there, and verify what is; yield what became of each.

    Ends early when several downloads in a row fail. Called again, it goes on where it ended.

    Parameters
    ----------
    published
        From `published_contests`.
    """
    failures, here = 0, local_contests()
    for name, checksum in published.items():
        got = _get(name, checksum, here.get(name))
        yield got
        failures = failures + 1 if got.state == "failed" else 0
        if failures == _MOST_FAILURES:
            return


def _get(name: str, checksum: str, path: Path | None) -> Got:
    if path is not None and _git_checksum(path) == checksum:
        return Got(name, "there")
    if path is not None and path.parent != cache_folder():
        return Got(name, "other")  # the user's own folder: its files may be anything
    try:
        if path is not None:  # damaged: its record, too, may be of something else
            path.unlink()
            contests._record_of(path).unlink(missing_ok=True)
        path = find_contest(name, download=True)
        if _git_checksum(path) != checksum:
            path.unlink()
            contests._record_of(path).unlink(missing_ok=True)
            raise DownloadError(f"What came for {name} is not the published file. Try again.")
    except (ManyarmsError, OSError) as error:
        return Got(name, "failed", str(error))
    return Got(name, "downloaded")


def _git_checksum(path: Path) -> str:
    """Return what Git calls this content: https://git-scm.com/book, "Git Objects"."""
    content = path.read_bytes()
    head = f"blob {len(content)}\0".encode()
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()


def _ask(room: Path) -> Any:
    pooch = need("pooch", "to download contests")
    log = pooch.get_logger()
    level = log.level
    log.setLevel("WARNING")
    try:
        path = pooch.retrieve(_LISTING, known_hash=None, fname="listing.json", path=str(room))
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DownloadError(
            f"The list of contests could not be downloaded from {_LISTING}: "
            f"{contests._reason(error)}"
        ) from error
    finally:
        log.setLevel(level)


def _names(answer: Any) -> dict[str, str]:
    """Return names and checksums of the contest files in a listing."""
    try:
        found = {
            entry["name"].removesuffix(".csv"): str(entry["sha"])
            for entry in answer
            if entry["type"] == "file" and entry["name"].endswith(".csv")
        }
    except (TypeError, KeyError, AttributeError):
        found = {}
    if not found:
        raise DownloadError(
            f"{_LISTING} must list contest files, got something else. Try again later."
        )
    ordered = sorted(found.items(), key=lambda item: (contests._number(item[0]), item[0]))
    return {name: sha for name, sha in ordered if contests._PUBLISHED.fullmatch(name)}
