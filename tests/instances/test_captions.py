"""Contest files as instances: means, defective files, real files and the stand-in."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyarms.errors import ContestFileError, ManyarmsError, ParameterError
from manyarms.instances import Gaussian, Instance
from manyarms.instances.captions import captions, contest_652, read_contest, stand_in_652

DATA = os.environ.get("MANYARMS_DATA")  # read before a test hides it
COLUMNS = ("caption", "mean", "precision", "votes", "not_funny", "somewhat_funny", "funny")

Row = tuple[str, int, int, int, int]
ROWS: list[Row] = [
    ("A", 100, 50, 30, 20),  # p = 0.5, the largest
    ("B", 100, 60, 40, 0),  # 0.4: just at the threshold
    ("C", 50, 40, 5, 5),
    ("D", 10, 10, 0, 0),
]


@pytest.fixture(autouse=True)
def _without_contests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("MANYARMS_DATA", raising=False)


def table(rows: list[Row], *, rank: bool = False) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["rank"] * rank + list(COLUMNS))
    for number, (caption, *counts) in enumerate(rows):
        writer.writerow([number] * rank + [caption, 1.5, 0.1, *counts])
    return text.getvalue()


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def means_of(instance: Instance) -> list[float]:
    return [instance.mean(arm) for arm in range(instance.n_arms)]


def real(name: str) -> Path:
    if not DATA:
        pytest.skip("MANYARMS_DATA does not name a folder of contest files")
    path = Path(DATA) / f"{name}.csv"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return path


def test_means_are_scaled_shares_and_1_from_the_threshold_on(tmp_path: Path) -> None:
    path = write(tmp_path / "700.csv", table(ROWS))
    instance = captions(path)
    assert means_of(instance) == [1.0, 1.0, pytest.approx(0.4), 0.0]
    assert (instance.n_best, instance.best_mean) == (2, 1.0)
    assert instance.label == "captions(700, n=4, m=2)"
    assert means_of(captions(path, threshold=None)) == [1.0, 0.8, pytest.approx(0.4), 0.0]
    assert captions(path, threshold=0.4).n_best == 3
    assert captions(path, threshold=1).n_best == 1
    assert captions(path, rewards=Gaussian(sigma=0.1)).rewards == Gaussian(sigma=0.1)


def test_rounding_does_not_decide_at_the_threshold(tmp_path: Path) -> None:
    assert 0.6 / 0.75 < 0.8
    path = write(tmp_path / "a.csv", table([("A", 4, 1, 3, 0), ("B", 10, 4, 6, 0)]))
    assert captions(path).n_best == 2


@pytest.mark.parametrize("threshold", [0, -0.1, 1.01, float("nan"), "0.8", True])
def test_a_threshold_lies_in_0_to_1(tmp_path: Path, threshold: float) -> None:
    path = write(tmp_path / "a.csv", table(ROWS))
    with pytest.raises(ParameterError, match="`threshold` must be a number > 0 and <= 1, got"):
        captions(path, threshold=threshold)


def test_layouts_line_ends_and_number_formats_are_equivalent(tmp_path: Path) -> None:
    plain = table(ROWS)
    lines = [line.split(",") for line in plain.splitlines()]
    forms = {
        "rank": table(ROWS, rank=True),
        "windows": plain.replace("\n", "\r\n"),
        "mark": "\ufeff" + plain,
        "blank lines": plain.replace("\n", "\n\n"),
        "no last line end": plain.rstrip("\n"),
        "other order": "".join(",".join(reversed(line)) + "\n" for line in lines),
        "decimals": plain.replace(",100,", ",100.0,").replace(",50,", ", 50 ,"),
    }
    wanted = means_of(captions(write(tmp_path / "plain.csv", plain)))
    for name, text in forms.items():
        assert means_of(captions(write(tmp_path / "form.csv", text))) == wanted, name


def test_counts_that_do_not_add_up_are_divided_by_votes(tmp_path: Path) -> None:
    rows: list[Row] = [("A", 100, 50, 30, 20), ("B", 10, 6, 1, 2), ("C", 10, 9, 1, 1)]
    contest = read_contest(write(tmp_path / "a.csv", table(rows)))
    assert contest.shares.tolist() == [0.5, 0.3, 0.2]
    assert contest.info()["uneven"] == 2


def test_captions_without_votes_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", table([("nobody saw it", 0, 0, 0, 0), *ROWS]))
    contest = read_contest(path)
    assert contest.captions == ("A", "B", "C", "D")
    assert (contest.unrated, contest.info()["unrated"]) == (1, 1)
    assert captions(path).n_arms == 4


def test_repeated_and_empty_captions_are_separate_arms(tmp_path: Path) -> None:
    rows: list[Row] = [
        ("A", 10, 5, 5, 0),
        ("A", 10, 9, 1, 0),
        ("", 10, 8, 2, 0),
        ("A", 10, 9, 1, 0),
    ]
    path = write(tmp_path / "a.csv", table(rows))
    assert means_of(captions(path)) == pytest.approx([1.0, 0.2, 0.4, 0.2])
    info = read_contest(path).info()
    assert (info["captions"], info["repeated"], info["empty"]) == (4, 2, 1)


def test_quotes_commas_and_line_breaks_stay_within_captions(tmp_path: Path) -> None:
    texts = ['"Quote," he said.', "two\nlines", "ends in a line break\n", 'a "b"', "naïve 😉"]
    rows: list[Row] = [(text, 10, 5, 5, 0) for text in texts]
    contest = read_contest(write(tmp_path / "a.csv", table(rows)))
    assert contest.captions == tuple(text.strip() for text in texts)


def test_a_contest_describes_itself_and_cannot_be_changed(tmp_path: Path) -> None:
    path = write(tmp_path / "700_x.csv", table([ROWS[3], ROWS[2], ROWS[0], ROWS[1]]))
    contest = read_contest(str(path))
    assert [contest.captions[arm] for arm in contest.funniest(3)] == ["A", "B", "C"]
    info = contest.info()
    assert info["contest"] == "700_x"
    assert (info["captions"], info["votes"], info["best_caption"]) == (4, 260, "A")
    assert (info["best_share"], info["best_arms"]) == (0.5, 2)
    assert (info["fewest_votes"], info["most_votes"]) == (10, 100)
    assert len(info["sha256"]) == 64
    assert len(repr(contest)) < 400  # no texts, no arrays
    with pytest.raises(ValueError, match="read-only"):
        contest.votes[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        contest.unrated = 3  # type: ignore[misc]


HEADER = ",".join(COLUMNS) + "\n"
GOOD = "A,1.5,0.1,100,50,30,20\n"
BAD_FILES: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "must be CSV text in UTF-8, got an empty file"),
    "binary": (b"PAR1\x00\x01" + HEADER.encode(), "must be CSV text in UTF-8, got binary data"),
    "other table": (
        "name,votes,score\nx,1,2\n",
        "one without caption, not_funny, somewhat_funny, funny: its columns are name, votes, score",
    ),
    "no votes": (HEADER + "A,1,1,0,0,0,0\n", "captions with votes, got 1 captions, no votes"),
    "cut in a row": (
        HEADER + GOOD + "B,1.5,0.",
        "line 3 of .* with 7 fields, got fewer.*truncated",
    ),
    "cut in quotes": (
        HEADER + GOOD + '"B and',
        "The row at line 3 of .*must be valid CSV, got.*truncated",
    ),
    "words": (
        HEADER + '"two\nlines",1,1,9,9,0,0\n' + "B,1.5,0.1,many,1,0,0\n",
        "`votes` on line 4 of .* must be a whole number >= 0, got 'many'",
    ),
    "too funny": (HEADER + "A,1,1,9,0,5,5\n", "`votes` on line 2 .* at least .* funny = 10, got 9"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_errors_of_bad_files_are_one_sentence_with_the_file(tmp_path: Path, name: str) -> None:
    content, message = BAD_FILES[name]
    path = write(tmp_path / "bad.csv", content)
    with pytest.raises(ContestFileError, match=message) as caught:
        captions(path)
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, ManyarmsError)


def test_a_contest_without_a_funny_vote_has_no_means(tmp_path: Path) -> None:
    path = write(tmp_path / "sad.csv", table([("A", 9, 9, 0, 0)]))
    with pytest.raises(ContestFileError, match="no vote for funny or somewhat funny"):
        captions(path)
    assert read_contest(path).info()["best_arms"] == 0


def test_an_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    path = write(tmp_path / "a.csv", table(ROWS))
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ContestFileError, match=r"a.csv must be readable, got Permission denied\."):
        captions(path)


@given(cut=st.integers(0, 400), noise=st.binary(max_size=3))
def test_a_file_truncated_anywhere_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, cut: int, noise: bytes
) -> None:
    rows = [*ROWS, ('with "quotes",\nlines', 10, 5, 5, 0), *ROWS]
    path = tmp_path_factory.getbasetemp() / "cut.csv"
    write(path, table(rows, rank=True).encode()[:cut] + noise)
    with contextlib.suppress(ContestFileError):
        assert len(read_contest(path).captions) <= len(rows)


def test_contest_652_is_that_of_the_paper() -> None:
    instance = captions(real("652_lil-KLUCB"))
    means = np.array(means_of(instance))
    assert (instance.n_arms, instance.n_best) == (10_025, 54)
    others = means[means < 1.0]
    assert others.size == 9971
    assert others.min() >= 0.0
    assert others.max() < 0.8
    # not the 0.43 of the paper's text
    assert instance.problem(100_000).alpha == pytest.approx(0.394, abs=5e-4)


@pytest.mark.parametrize(
    ("name", "n", "m", "uneven", "repeated", "empty"),
    [
        ("510_LilUCB", 3905, 4, 0, 0, 0),
        ("590_lil-KLUCB", 6038, 41, 0, 110, 0),
        ("652_lil-KLUCB", 10_025, 54, 0, 0, 0),
        ("731", 7251, 13, 52, 0, 1),
        ("800", 7960, 36, 106, 0, 0),
    ],
)
def test_real_files(name: str, n: int, m: int, uneven: int, repeated: int, empty: int) -> None:
    contest = read_contest(real(name))
    info = contest.info()
    assert (info["captions"], info["best_arms"], info["unrated"]) == (n, m, 0)
    assert (info["uneven"], info["repeated"], info["empty"]) == (uneven, repeated, empty)
    # counting only the votes that the counts have would choose the same best arms
    counted = contest.not_funny + contest.somewhat_funny + contest.funny
    shares = (contest.somewhat_funny + contest.funny) / counted
    means = shares / shares.max()
    assert ((means >= 0.8) == (contest.means() == 1.0)).all()
    assert np.abs(means - contest.means(threshold=None)).max() < 0.015


def test_the_stand_in_follows_its_table_and_is_labelled() -> None:
    instance = stand_in_652()
    means = np.array(means_of(instance))
    assert (instance.n_arms, instance.n_best, instance.best_mean) == (10_025, 54, 1.0)
    assert "stand-in" in instance.label
    assert (means[:54] == 1.0).all()
    others = means[54:]
    assert (np.diff(others) >= 0).all()
    assert 0.094 < others[0] < 0.095
    assert 0.795 < others[-1] < 0.796
    # by hand: j = 4985 is at the level 1/2, and j = 1994 between the levels 0.2 and 0.3
    assert others[4985] == pytest.approx(0.410)
    level = 1994.5 / 9971
    assert others[1994] == pytest.approx(0.315 + (level - 0.2) / 0.1 * (0.348 - 0.315))
    assert instance.problem(100_000).alpha == pytest.approx(0.394, abs=5e-4)


def test_contest_652_is_real_if_its_file_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert contest_652().label == stand_in_652().label  # without the file
    monkeypatch.setenv("MANYARMS_DATA", str(tmp_path))
    write(tmp_path / "652.csv", table(ROWS))
    assert contest_652().label == "captions(652, n=4, m=2)"
    write(tmp_path / "652_lil-KLUCB.csv", table(ROWS[:3]))  # the paper's goes before others
    assert contest_652().label == "captions(652_lil-KLUCB, n=3, m=2)"
    write(tmp_path / "652_lil-KLUCB.csv", HEADER)  # a broken file is not passed over in silence
    with pytest.raises(ContestFileError, match="captions with votes"):
        contest_652()
