"""Caption contests: means from votes on captions of cartoons, and a synthetic stand-in."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import operator
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from manyarms.core.checks import check_number
from manyarms.errors import ContestFileError, ContestNotFoundError
from manyarms.instances.contests import ContestName, find_contest, local_contests
from manyarms.instances.instance import Instance
from manyarms.instances.means import from_means
from manyarms.instances.rewards import AnyRewards, check_rewards, named_law
from manyarms.theory.hardness import good_mean

Counts: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

_COUNTS = ("votes", "not_funny", "somewhat_funny", "funny")
_DIGITS = 15
_WHOLE_NUMBER = re.compile(rf"\s*([0-9]{{1,{_DIGITS}}})(?:\.0*)?\s*")
_CUT = "The file may be truncated. Download it again."

# Approximate quantiles of the 9971 smaller means of contest 652, at these levels, in thousandths.
_LEVELS = (0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1)
_QUANTILES = (94, 188, 243, 274, 315, 348, 379, 410, 441, 476, 519, 581, 630, 715, 781, 796)


@dataclass(frozen=True, eq=False)
class Contest:
    """A contest's captions and their votes, as read by `read_contest`; arm k is `captions[k]`.

    Attributes
    ----------
    path, sha256
        The file, and its checksum.
    unrated
        The number of captions left out because they have no votes.
    captions
        The texts, without surrounding blanks. They may be empty, repeated, or have several lines.
    votes, not_funny, somewhat_funny, funny
        The counts, one for each caption.
    """

    path: Path
    sha256: str
    unrated: int
    captions: tuple[str, ...] = field(repr=False)
    votes: Counts = field(repr=False)
    not_funny: Counts = field(repr=False)
    somewhat_funny: Counts = field(repr=False)
    funny: Counts = field(repr=False)

    @property
    def shares(self) -> Floats:
        """The share p of votes that found a caption somewhat funny or funny, for each caption."""
        return np.asarray((self.somewhat_funny + self.funny) / self.votes, dtype=np.float64)

    def means(self, *, threshold: float | None = 0.8, scaled: bool = True) -> Floats:
        """Return the arms' means; the parameters are those of `captions`."""
        if not scaled:
            return self.shares
        limit = 1.0 if threshold is None else threshold
        limit = check_number("threshold", limit, above=0.0, at_most=1.0)
        shares = self.shares
        if not shares.any():
            rule = "a contest with a funny caption, to which all means are relative"
            raise _wrong(self.path, rule, "no vote for funny or somewhat funny")
        means: Floats = shares / shares.max()
        # 0.6 / 0.75 must reach 0.8 despite rounding; distinct ratios are further apart
        means[means >= good_mean(limit)] = 1.0
        return means

    def funniest(self, count: int = 10) -> list[int]:
        """Return the arms with the largest shares, best first."""
        return [int(arm) for arm in np.argsort(-self.shares, kind="stable")[:count]]

    def info(self) -> dict[str, Any]:
        """Return facts about the file, such as the number of votes and of defects."""
        best = self.funniest(1)[0]
        counted = self.not_funny + self.somewhat_funny + self.funny
        return {
            "contest": self.path.stem,
            "path": str(self.path),
            "sha256": self.sha256,
            "captions": len(self.captions),
            "votes": int(self.votes.sum()),
            "fewest_votes": int(self.votes.min()),
            "most_votes": int(self.votes.max()),
            "best_caption": self.captions[best],
            "best_share": float(self.shares[best]),
            "best_arms": int((self.means() == 1.0).sum()) if self.shares.any() else 0,
            "uneven": int((counted != self.votes).sum()),
            "unrated": self.unrated,
            "repeated": len(self.captions) - len(set(self.captions)),
            "empty": self.captions.count(""),
        }


def captions(
    contest: ContestName,
    *,
    threshold: float | None = 0.8,
    scaled: bool = True,
    rewards: AnyRewards = None,
    epsilon: float = 0.0,
) -> Instance:
    r"""Make an instance of a caption contest: each caption is an arm.

    The mean of a caption is its share p = (somewhat_funny + funny) / votes, divided by the largest
    p. Means of at least `threshold` become 1. Contest 652 is that of the paper's Figure 3.

    Published files have defects. The formula stays the same:

    - *Counts that do not add up to the votes* (201 captions in three of ten files, by 1 to 4): p is
      still divided by `votes`. So the missing votes count as not funny; the column `mean` shows
      that most of them were. No caption crosses 0.8, and no mean changes by more than 0.015. More
      funny votes than votes are an error, because all means are divided by the largest p.
    - *No votes*: the caption is left out, because nothing is known about its mean.
    - *Repeated captions* are separate arms: they were voted on separately, with other counts.
    - *Empty captions* are ordinary arms, and so are captions with quotes, commas or line breaks.

    Parameters
    ----------
    contest
        The path of a contest file, or a contest such as 652 or "652_lil-KLUCB": see
        `find_contest`, which can also download it.
    threshold
        Means of at least this, in (0, 1], become 1 (default: 0.8). None leaves them unchanged.
    scaled
        Whether to divide by the largest share (default: True). If False, means are the shares as
        voted, `threshold` is ignored, and the best mean is below 1.
    rewards, epsilon
        As for `grouped`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> text = "caption,votes,not_funny,somewhat_funny,funny\nHi!,9,3,4,2\nNo.,8,7,1,0\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "1.csv"
    ...     _ = path.write_text(text)
    ...     instance = captions(path)
    >>> instance.label, instance.mean(0), round(instance.mean(1), 4)
    ('captions(1, n=2, m=1)', 1.0, 0.1875)
    """
    found = read_contest(contest)
    means = found.means(threshold=threshold, scaled=scaled)
    slack = check_number("epsilon", epsilon, at_least=0.0)
    near = (means >= good_mean(float(means.max()), slack)).sum()
    law = named_law(check_rewards(rewards))
    label = f"captions({found.path.stem}, n={means.size}, m={near}{law})"
    return from_means(means, rewards=rewards, label=label, epsilon=epsilon)


def contest_652() -> Instance:
    """Return the paper's contest 652 if its file is on this machine, else a stand-in.

    The label says which of the two it is. Nothing is downloaded; see `find_contest`.

    >>> contest_652().n_arms
    10025
    """
    name = "652_lil-KLUCB"  # the paper's file, if there are several of contest 652
    try:
        return captions(name if name in local_contests() else 652)
    except ContestNotFoundError:
        return stand_in_652()


def stand_in_652() -> Instance:
    """Return a synthetic stand-in for contest 652: as many arms, with similar means.

    54 arms have mean 1; the means of the 9971 others follow a table of quantiles. Results on it are
    not results on contest 652, so its label says that it is a stand-in.

    >>> stand_in_652().label
    'stand-in for contest 652 (n=10025, m=54)'
    """
    lesser = np.interp((np.arange(9971) + 0.5) / 9971, _LEVELS, np.array(_QUANTILES) / 1000)
    made = from_means([*np.ones(54), *lesser], label="stand-in for contest 652 (n=10025, m=54)")
    return replace(made, is_stand_in=True)


def read_contest(contest: ContestName) -> Contest:
    """Read a contest file; `captions` describes how defects are handled.

    Parameters
    ----------
    contest
        A path, or a contest that `find_contest` finds. A leading column `rank` is optional.
    """
    path = find_contest(contest)
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8-sig")  # spreadsheets write a byte order mark
    except OSError as error:
        raise _wrong(path, "readable", error.strerror) from error
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text or not text.strip():
        raise _wrong(path, "CSV text in UTF-8", "binary data" if text.strip() else "an empty file")
    del text  # saves memory: only the bytes are needed from here on
    texts, counts = _read_table(path, raw)
    rated = counts[0] > 0
    if not rated.any():
        raise _wrong(path, "a file of captions with votes", f"{len(texts)} captions, no votes")
    counts = counts[:, rated]
    counts.flags.writeable = False
    unrated, checksum = int((~rated).sum()), hashlib.sha256(raw).hexdigest()
    return Contest(path, checksum, unrated, tuple(itertools.compress(texts, rated)), *counts)


def _read_table(path: Path, raw: bytes) -> tuple[list[str], Counts]:
    """Return the captions and their counts, which are in the order of `_COUNTS`."""
    lines = io.TextIOWrapper(io.BytesIO(raw), "utf-8-sig", newline="")
    rows = _rows(path, csv.reader(lines, strict=True))
    _, header = next(rows, (1, []))
    missing = [name for name in ("caption", *_COUNTS) if name not in header]
    if missing:
        rule = f"a contest file with the columns caption, {', '.join(_COUNTS)}"
        found = f"its columns are {', '.join(header)[:150]}"
        raise _wrong(path, rule, f"one without {', '.join(missing)}: {found}")
    places = {name: place for place, name in enumerate(header)}
    cells_of = operator.itemgetter(*(places[name] for name in _COUNTS))
    captions, counts = [], array("q")
    for line, row in rows:
        if len(row) != len(header):
            more = len(row) > len(header)
            got, fix = ("more", "Commas need quotes.") if more else ("fewer", _CUT)
            raise _wrong(f"line {line} of {path}", f"a caption with {len(header)} fields", got, fix)
        captions.append(row[places["caption"]].strip())
        votes, not_funny, somewhat, funny = _counts(cells_of(row), line, path)
        if somewhat + funny > votes:
            rule = f"at least somewhat_funny + funny = {somewhat + funny}"
            raise _wrong(f"`votes` on line {line} of {path}", rule, votes)
        counts.extend((votes, not_funny, somewhat, funny))
    return captions, np.array(counts, np.int64).reshape(-1, len(_COUNTS)).T


def _rows(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with the line it begins on: captions may have many lines."""
    line = 1
    try:
        for row in reader:
            if row:  # blank lines are skipped
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise _wrong(f"The row at line {line} of {path}", "valid CSV", error, _CUT) from error


def _counts(cells: tuple[str, ...], line: int, path: Path) -> list[int]:
    digits = "".join(cells)
    if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS and all(cells):
        return [int(cell) for cell in cells]  # fast, because a file may have millions of rows
    counts = []
    for name, cell in zip(_COUNTS, cells, strict=True):
        number = _WHOLE_NUMBER.fullmatch(cell)
        if number is None:
            raise _wrong(f"`{name}` on line {line} of {path}", "a whole number >= 0", repr(cell))
        counts.append(int(number[1]))
    return counts


def _wrong(what: object, rule: str, got: object, fix: str = "") -> ContestFileError:
    return ContestFileError(f"{what} must be {rule}, got {got}." + (f" {fix}" if fix else ""))
