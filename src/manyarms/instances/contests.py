"""Find contest files, and download one or all of them.

The files belong to the public repository `nextml/caption-contest-data`. This package has neither
the files nor a list of them, only the SHA-256 of the paper's contest. That of any other file is
recorded beside it when it is first downloaded. The list is downloaded once, at the pinned commit,
and has Git's checksum of each file.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import hashlib
import json
import numbers
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from manyarms.core.checks import refusal, shown
from manyarms.core.files import cache_root
from manyarms.core.optional import need
from manyarms.errors import (
    ContestFileError,
    ContestNotFoundError,
    DownloadError,
    ManyarmsError,
    ParameterError,
)

ContestName: TypeAlias = str | int | os.PathLike[str]

_COMMIT = "a7b79649e86308ef02f0af7e5d70039e31932d21"  # pinned, so that the files never change
_SOURCE = f"https://raw.githubusercontent.com/nextml/caption-contest-data/{_COMMIT}/summaries"
_LISTING = (
    f"https://api.github.com/repos/nextml/caption-contest-data/contents/summaries?ref={_COMMIT}"
)
_MOST_FAILURES = 3  # in a row; further downloads would fail, too
_KNOWN = {"652_lil-KLUCB": "c76e4e251fbb8e9fc0b5f384bdfcaa9b8db9bff584458df023c45e1e56c4f7bd"}
_MOST_CONTESTS = 10**9
_NOT_IT = "the download is not the contest file. Try again, or use another network."
_PUBLISHED = re.compile(r"[0-9]{1,9}(_[A-Za-z0-9_-]+)?")  # also makes URLs and paths safe


def find_contest(contest: ContestName, *, download: bool = False) -> Path:
    """Return the path of a contest file.

    The contest is looked up as a path, then in the folder that the environment variable
    `MANYARMS_DATA` names, then in the user's cache. If it is not found and `download` is set, it is
    downloaded into the cache.

    Parameters
    ----------
    contest
        A path, or a contest: 652 matches 652.csv or 652_*.csv, if only one such file exists;
        "652_lil-KLUCB" and "652_lil-KLUCB.csv" match that file only.
    download
        Whether to download a contest that is not found (default: False). This needs pooch, which
        the extra `sim` installs. The file must have the known checksum. If none is known, the
        checksum of the first download is kept beside the file. If a file in the cache has changed
        since, it is downloaded again, or refused without `download`.

    Examples
    --------
    >>> find_contest("no/such/contest.csv")
    Traceback (most recent call last):
    manyarms...ContestNotFoundError: `contest` must be a file that exists, got 'no/such/...
    """
    path = _explicit_path(contest)
    if path is not None:
        return path
    name = str(contest)
    path = _match(_data_folder(), name)
    if path is not None:
        return path  # files in the user's own folder are not verified
    path = _match(contest_cache(), name)
    if path is not None:
        wanted = _checksum(path)
        if wanted in {None, _sha256(path)}:
            return path
        if not download:
            raise ContestFileError(
                f"{path} must have the SHA-256 {wanted}, got {_sha256(path)}: it has changed since "
                f"it was downloaded. Delete it, or call find_contest({path.stem!r}, download=True)."
            )
        name = path.stem
    if not download:
        raise ContestNotFoundError(_not_found(contest))
    return _download(name.removesuffix(".csv"))


def local_contests() -> dict[str, Path]:
    """Return the contests in the folder `MANYARMS_DATA` and in the user's cache, by name.

    >>> all(path.suffix == ".csv" for path in local_contests().values())
    True
    """
    found = _files(contest_cache()) | _files(_data_folder())  # the user's own folder goes first
    return dict(sorted(found.items(), key=lambda item: (_number(item[0]), item[0])))


def contest_cache() -> Path:
    """Return the folder that downloads go to; it need not exist."""
    return (cache_root() or Path("manyarms-cache")) / "contests"  # if the user has no home


def _data_folder() -> Path | None:
    folder = os.environ.get("MANYARMS_DATA")
    return _expanded(folder) if folder else None


def _expanded(text: str) -> Path:
    """Return a path, with "~" expanded if the user has a home."""
    with contextlib.suppress(RuntimeError):
        return Path(text).expanduser()
    return Path(text)


def _explicit_path(contest: Any) -> Path | None:
    """Return the path if `contest` is one, None if it is a name; raise if it is neither."""
    whole = isinstance(contest, numbers.Integral) and not isinstance(contest, bool)
    if whole and 0 <= int(contest) < _MOST_CONTESTS:
        return None
    text = os.fspath(contest) if isinstance(contest, str | os.PathLike) else None
    if not isinstance(text, str) or not text.strip():
        raise refusal("contest", "a path, or a contest's number or name such as 652", contest)
    path = _expanded(text)
    with contextlib.suppress(OSError):  # the name is too long for a file
        if path.is_file():
            return path
    if isinstance(contest, str) and path.name == text:
        return None
    near = difflib.get_close_matches(path.name, [p.name for p in _files(path.parent).values()])
    hint = f" Nearest in that folder: {', '.join(near)}." if near else ""
    raise ContestNotFoundError(f"`contest` must be a file that exists, got {shown(text)}.{hint}")


def _files(folder: Path | None) -> dict[str, Path]:
    with contextlib.suppress(OSError):  # no folder, or one that cannot be read
        paths = sorted(folder.glob("*.csv")) if folder is not None else []
        return {path.stem: path for path in paths if path.is_file() and path.name[0] != "."}
    return {}


def _match(folder: Path | None, name: str) -> Path | None:
    """Return the file in `folder` that `name` matches; a number N matches N and N_*."""
    files = _files(folder)
    if not name.isdecimal():
        return files.get(name.removesuffix(".csv"))
    several = [stem for stem in files if stem == name or stem.startswith(f"{name}_")]
    if len(several) > 1:
        raise ParameterError(
            f"`contest` must name one file, got {name}, which in {folder} may be any of "
            f"{', '.join(f'{stem}.csv' for stem in several)}. Give one of these names."
        )
    return files[several[0]] if several else None


def _not_found(contest: ContestName) -> str:
    name = str(contest).removesuffix(".csv")
    data, known = _data_folder(), list(local_contests())
    place = f"MANYARMS_DATA ({data or 'not set'})"
    place += " (no such folder)" if data and not _is_folder(data) else ""
    if name.isdecimal():
        near = sorted(known, key=lambda stem: abs(_number(stem) - _number(name)))[:3]
    else:
        near = difflib.get_close_matches(name, known, cutoff=0.3)
    wanted = name if _PUBLISHED.fullmatch(name) else 652
    return (
        f"`contest` must be a file, or a contest in {place} or in the cache ({contest_cache()}), "
        f"got {shown(contest)}. Nearest there: {', '.join(near) or 'none'}. Download with "
        f"`manyarms data get {wanted}` or find_contest({wanted!r}, download=True)."
    )


def _is_folder(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.is_dir()
    return False


def _number(name: str) -> float:
    """Return the number that a name begins with, infinity if there is none."""
    digits = re.match("[0-9]{1,9}(?![0-9])", name)
    return int(digits[0]) if digits else float("inf")


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ContestFileError(f"{path} must be readable, got {error.strerror}.") from error


def _record_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")  # in the form that `sha256sum -c` reads


def _checksum(path: Path) -> str | None:
    """Return the checksum that a file in the cache must have; None if it is unknown."""
    digits = None
    with contextlib.suppress(OSError, UnicodeDecodeError):
        digits = re.match("[0-9a-f]{64}", _record_of(path).read_text(encoding="ascii"))
    return _KNOWN.get(path.stem, digits and digits[0])


def _download(name: str) -> Path:
    """Download a published contest into the cache: the whole file, verified, or nothing."""
    if not _PUBLISHED.fullmatch(name):
        raise ParameterError(f"`contest` must be a published one such as 652, got {shown(name)}.")
    if name.isdecimal() and 560 <= _number(name) < 660:  # published as 652_lil-KLUCB is
        name += "_lil-KLUCB"
    target, url = contest_cache() / f"{name}.csv", f"{_SOURCE}/{name}.csv"
    failure = f"{url} could not be downloaded"
    _retrieve(url, target, failure, _checksum(target))
    first_line = target.read_bytes().split(b"\n", 1)[0].strip().split(b",")
    if not {b"caption", b"votes"} <= set(first_line):  # such as a network's login page
        target.unlink()
        raise DownloadError(f"{failure}: {_NOT_IT}")
    _record_of(target).write_text(f"{_sha256(target)}  {target.name}\n", encoding="ascii")
    return target


def _retrieve(url: str, target: Path, failure: str, sha256: str | None = None) -> None:
    """Download a file, unless it exists with this checksum."""
    pooch = need("pooch", "to download contests")
    log = pooch.get_logger()
    level = log.level
    log.setLevel("WARNING")  # the caller reports what happens
    try:
        known_hash = f"sha256:{sha256}" if sha256 else None
        pooch.retrieve(url, known_hash=known_hash, fname=target.name, path=target.parent)
    except (OSError, ValueError) as error:
        raise DownloadError(f"{failure}: {_reason(error)}") from error
    finally:
        log.setLevel(level)


def _reason(error: Exception) -> str:
    """Return a short form of an error of pooch, requests or the file system."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status == 404:
        return "there is no such file. Contests before 660 have longer names, such as 559_Random."
    if status is not None:
        return f"the server answered with status {status}. Try again later."
    if not isinstance(error, OSError):  # pooch raises ValueError if checksums differ
        return _NOT_IT
    if error.filename or error.errno == errno.ENOSPC or isinstance(error, PermissionError):
        return f"{contest_cache()} cannot be written. Set MANYARMS_CACHE to another folder."
    return "the connection failed. Try again, or set MANYARMS_DATA to a folder that has the file."


class Outcome(NamedTuple):
    """The outcome for one contest."""

    name: str
    state: str  # "there", "downloaded", "other" (a file of the user's, not as published), "failed"
    why: str = ""  # the error message, if it failed


def published_contests() -> dict[str, str]:
    """Return the names of the published contests, with Git's checksums of their files.

    The list is downloaded once, then read from the cache.
    """
    stored = contest_cache() / f"published-{_COMMIT[:12]}.json"
    for _ in range(2):  # a list that is damaged, or of an earlier version, is replaced
        _retrieve(_LISTING, stored, f"The list of contests could not be downloaded from {_LISTING}")
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
            return _names(json.loads(stored.read_bytes()))
        stored.unlink()
    raise DownloadError(f"{_LISTING} must list contest files, got something else. Try again later.")


def get_every_contest(published: Mapping[str, str]) -> Iterator[Outcome]:
    """Download missing contests, verify the others, and yield the outcome of each.

    Stops early if several downloads in a row fail. The next call continues.

    Parameters
    ----------
    published
        From `published_contests`.
    """
    failures, here = 0, local_contests()
    for name, checksum in published.items():
        outcome = _get(name, checksum, here.get(name))
        yield outcome
        failures = failures + 1 if outcome.state == "failed" else 0
        if failures == _MOST_FAILURES:
            return


def _get(name: str, checksum: str, path: Path | None) -> Outcome:
    if path is not None and _git_checksum(path) == checksum:
        return Outcome(name, "there")
    if path is not None and path.parent != contest_cache():
        return Outcome(name, "other")  # files in the user's own folder are not replaced
    try:
        if path is not None:  # damaged; its recorded checksum may be wrong, too
            _remove(path)
        path = find_contest(name, download=True)
        if _git_checksum(path) != checksum:
            _remove(path)
            raise DownloadError(f"The download of {name} is not the published file. Try again.")
    except (ManyarmsError, OSError) as error:
        return Outcome(name, "failed", str(error))
    return Outcome(name, "downloaded")


def _remove(path: Path) -> None:
    path.unlink()
    _record_of(path).unlink(missing_ok=True)


def _git_checksum(path: Path) -> str:
    """Return Git's checksum of this content: https://git-scm.com/book, "Git Objects"."""
    content = path.read_bytes()
    head = f"blob {len(content)}\0".encode()
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()


def _names(listing: Any) -> dict[str, str]:
    """Return names and checksums of the contest files in a listing of GitHub."""
    found = {
        entry["name"].removesuffix(".csv"): str(entry["sha"])
        for entry in listing
        if entry["type"] == "file" and entry["name"].endswith(".csv")
    }
    if not found:
        raise ValueError("no contest files")
    ordered = sorted(found.items(), key=lambda item: (_number(item[0]), item[0]))
    return {name: sha for name, sha in ordered if _PUBLISHED.fullmatch(name)}
