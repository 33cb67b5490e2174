"""Saved handles go on as if nothing had happened; damaged files are refused, and left alone."""

from __future__ import annotations

import hashlib
import os
import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.live.saving import NEWEST, pack, unpack
from tests.helpers import ALL_POLICIES, flipped, label, run_python
from tests.live.games import counts, play, step

NAMES = [f"item {k}" for k in range(30)]


def _interrupted(live: ma.Live, control: ma.Live, events: int) -> None:
    """Save and load after every event, and compare with the game that was not interrupted."""
    for event in range(events):
        step(live)
        step(control)
        live = ma.Live.from_bytes(live.to_bytes())
        assert (counts(live), live.pending) == (counts(control), control.pending)
        if event % 50 == 0:
            assert live.to_bytes() == control.to_bytes()
    assert live.to_bytes() == control.to_bytes()
    assert repr(live.arms()) == repr(control.arms())
    assert live.progress() == control.progress() or live.progress().told == 0


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "policy", [ma.MOSS(), ma.EmpMOSSPlusPlus(beta=0.5, count_late=True)], ids=label
)
def test_saved_and_loaded_at_every_event_of_a_long_game(policy: ma.Policy) -> None:
    live, control = (policy.live(arms=NAMES, horizon=2000, seed=5) for _ in range(2))
    _interrupted(live, control, 2000)
    assert min(counts(control)) > 10  # of everything that can happen


@pytest.mark.slow
@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_saved_and_loaded_at_every_event(policy: ma.Policy) -> None:
    live, control = (policy.live(n_arms=40, horizon=2000, seed=6) for _ in range(2))
    for game in (live, control):
        play(game, 200)
    _interrupted(live, control, 60)


def test_a_file_is_as_large_as_what_was_touched(tmp_path: Path) -> None:
    live = ma.EmpMOSSPlusPlus().live(n_arms=10**9, horizon=10**9, seed=1)
    live.ask(500)
    live.save(tmp_path / "game")
    assert (tmp_path / "game").stat().st_size < 500 * 60
    assert [pull.id for pull in ma.Live.load(tmp_path / "game").pending] == list(range(500))


def test_what_was_decided_at_the_beginning_is_kept(tmp_path: Path) -> None:
    policy = ma.Doubling(ma.Parallel(best_mean=2.5, sigma=2.0, count_late=True))
    names: list[str | int] = ["käse", "", 7, -(1 << 62), "7"]
    live = policy.live(arms=names, seed=2**64 - 1, reward_range=(-1.0, 3.0))
    live.tell(live.ask(), -0.5)
    live.save(tmp_path / "game")
    loaded = ma.Live.load(str(tmp_path / "game"))
    assert (loaded.policy, loaded.seed, loaded.horizon) == (policy, 2**64 - 1, None)
    assert loaded.reward_range == (-1.0, 3.0)
    assert loaded._game.arms.names == names  # type: ignore[union-attr]
    assert loaded.recommend() == live.recommend()
    assert ma.MOSS().live(n_arms=3, horizon=np.int64(5), seed=np.int32(4)).to_bytes()  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class OwnMOSS(ma.MOSS):
    name = "own-moss"
    extra: Any = 1


def test_a_policy_that_is_not_registered_is_passed() -> None:
    live = OwnMOSS(extra=2).live(n_arms=9, horizon=50)
    live.ask(3)
    data = live.to_bytes()
    with pytest.raises(ma.SavedFileError, match=r"needs the policy own-moss\(extra=2\).*`policy`"):
        ma.Live.from_bytes(data)
    with pytest.raises(ma.SavedFileError, match=r"with the policy own-moss\(extra=2\), not with"):
        ma.Live.from_bytes(data, policy=OwnMOSS())
    assert ma.Live.from_bytes(data, policy=OwnMOSS(extra=2)).ask() == live.ask()
    with pytest.raises(ma.SavedFileError, match="with the policy moss, not with moss-oracle"):
        ma.Live.from_bytes(
            ma.MOSS().live(n_arms=9, horizon=5).to_bytes(), policy=ma.MOSSOracle(m=1)
        )


def test_a_policy_of_ones_own_is_found_by_its_name() -> None:
    ma.register("own-moss-for-saving", OwnMOSS2)
    live = OwnMOSS2().live(n_arms=9, horizon=50)
    assert ma.Live.from_bytes(live.to_bytes()).policy == OwnMOSS2()
    with pytest.raises(ma.ParameterError, match=r"`extra` of .* must be a number, .* to be saved"):
        OwnMOSS2(extra=[1]).live(n_arms=9, horizon=50).to_bytes()


@dataclass(frozen=True, kw_only=True)
class OwnMOSS2(OwnMOSS):
    name = "own-moss-for-saving"


@pytest.mark.patient
def test_the_example_of_an_own_policy_is_saved() -> None:
    run_python(
        "import sys; sys.path.insert(0, 'examples')\n"
        "import manyarms as ma\n"
        "from own_policy import OwnUCB\n"
        "ma.register(OwnUCB.name, OwnUCB)\n"
        "games = [OwnUCB().live(n_arms=9, horizon=99, seed=s) for s in (1, 1)]\n"
        "for k in range(40):\n"
        "    pulls = [game.ask() for game in games]\n"
        "    assert pulls[0] == pulls[1]\n"
        "    for game in games: game.tell(pulls[0], float(k % 3 == 0))\n"
        "    games[0] = ma.Live.from_bytes(games[0].to_bytes())\n"
        "assert 'numba' not in sys.modules\n"
    )


# Damage


def _picture() -> bytes:
    """A PNG of one pixel."""
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"\0\0")),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )


def damaged_files(data: bytes, count: int) -> list[bytes]:
    """Files that are no good, each in its own way."""
    chance = random.Random(1)
    newer = data[:8] + struct.pack("<I", NEWEST + 1) + data[12:]
    files = {b"", _picture(), b"\0" * len(data), newer, data + b"\0", b"a,b\n1,2\n", data[:-1]}
    files |= {data[: chance.randrange(1, len(data))] for _ in range(60)}
    files |= {flipped(data, 8 * byte + byte % 8) for byte in range(52)}  # of the header
    while len(files) < count:
        files.add(flipped(data, chance.randrange(8 * len(data))))
    return sorted(files)


def test_200_damaged_files_are_refused_and_left_as_they_are(tmp_path: Path) -> None:
    live = ma.MOSSPlusPlus().live(arms=NAMES, horizon=2000, seed=5)
    play(live, 300)
    files = damaged_files(live.to_bytes(), 200)
    path = tmp_path / "game"
    for data in files:
        path.write_bytes(data)
        with pytest.raises(ma.SavedFileError, match=r"game .*[.]$") as caught:
            ma.Live.load(path)
        assert len(str(caught.value)) < 300
        assert path.read_bytes() == data
    assert [file.name for file in tmp_path.iterdir()] == ["game"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda about, columns: about.pop("seed"), "does not fit this manyarms"),
        (lambda about, columns: about.update(horizon=-3), "does not fit this manyarms"),
        (lambda about, columns: about["policy"].update(name="nonsense"), "needs the policy moss"),
        (lambda about, columns: about["policy"]["parameters"].update(x=1), "needs the policy moss"),
        (lambda about, columns: about.update(policy=3), "does not fit this manyarms"),
        (lambda about, columns: columns.pop("tally told"), "does not fit this manyarms"),
        (lambda about, columns: columns.update(more=np.arange(3)), "does not fit this manyarms"),
    ],
)
def test_files_that_make_no_sense_are_refused(
    change: Callable[[dict[str, Any], dict[str, Any]], object], message: str
) -> None:
    live = ma.MOSS().live(n_arms=9, horizon=50)
    live.tell(live.ask(), 1.0)
    about, columns = unpack(live.to_bytes(), "it")
    change(about, columns)
    with pytest.raises(ma.SavedFileError, match=message):
        ma.Live.from_bytes(pack(about, columns))


def test_a_body_that_is_not_ours_is_refused() -> None:
    data = ma.MOSS().live(n_arms=9, horizon=50).to_bytes()
    rest = struct.pack("<Q", 10**6) + b"nonsense"
    checksum = hashlib.blake2b(rest, digest_size=32).digest()
    with pytest.raises(ma.SavedFileError, match="was not written by manyarms"):
        ma.Live.from_bytes(data[:12] + checksum + rest)


def test_newer_files_ask_for_a_newer_manyarms() -> None:
    data = ma.MOSS().live(n_arms=9, horizon=50).to_bytes()
    with pytest.raises(
        ma.SavedFileError, match=r"format 7, .* reads formats up to 3. Install a newer"
    ):
        ma.Live.from_bytes(data[:8] + struct.pack("<I", 7) + data[12:])


# Crashes


class Crash(BaseException):
    """The end of the process, as far as the code under test can see."""


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), Crash()], ids=repr)
@pytest.mark.parametrize("call", ["open", "write", "fsync", "close", "replace"])
def test_a_crash_while_saving_leaves_the_old_or_the_new_file(
    call: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = ma.MOSS().live(n_arms=9, horizon=50)
    path = tmp_path / "game"
    live.save(path)
    old = path.read_bytes()
    live.ask(5)
    real = getattr(os, call)
    for crash_at in range(3):
        calls = iter(range(99))

        def failing(*arguments: Any, nth: int = crash_at, calls: Any = calls, **named: Any) -> Any:
            if next(calls) == nth:
                raise error
            return real(*arguments, **named)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing)
            try:
                live.save(path)
            except type(error):
                assert next(calls) > crash_at
            else:
                assert next(calls) <= crash_at  # it was not called so often
        assert path.read_bytes() in (old, live.to_bytes())
        assert ma.Live.load(path).pulls in (0, 5)
    live.save(path)
    assert ma.Live.load(path).pulls == 5


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="cannot be read: No such file.* save.. wrote"):
        ma.Live.load(tmp_path / "game")
    with pytest.raises(FileNotFoundError, match="cannot be written: No such file.* Make its fol"):
        ma.MOSS().live(n_arms=9, horizon=50).save(tmp_path / "folder" / "game")


def test_paths_of_the_wrong_kind(tmp_path: Path) -> None:
    live = ma.MOSS().live(n_arms=9, horizon=50)
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "game", tmp_path / ("x" * 300), "", "."):
        with pytest.raises(ma.PathError, match=r"cannot be written: .*[.]$"):
            live.save(path)
        with pytest.raises(ma.PathError, match=r"cannot be read: .*save.. wrote, and that this"):
            ma.Live.load(path)
    nowhere: list[Any] = [5, None, b"game", "a\0b", ["game"]]
    for wrong in nowhere:
        with pytest.raises(ma.ParameterError, match="`path` must be a path, got"):
            live.save(wrong)
        with pytest.raises(ma.ParameterError, match="`path` must be a path, got"):
            ma.Live.load(wrong)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@dataclass(frozen=True, kw_only=True)
class _Nameless(ma.MOSS):
    name = "nameless"
    fast: bool = False


def test_policies_without_a_name_are_known_by_earlier_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for policy in (_Nameless(fast=True), ma.Doubling(_Nameless(fast=True))):
        live = policy.live(n_arms=9, horizon=20, seed=1, reward_range=(0.0, 3.0))
        now = live.to_bytes()
        with monkeypatch.context() as earlier:
            earlier.setattr(_Nameless, "label", _Nameless.stored_label)
            before = live.to_bytes()
        assert before != now
        for data in (now, before):
            assert ma.Live.from_bytes(data, policy=policy).ask() == live.ask()
            live = ma.Live.from_bytes(data, policy=policy)
        with pytest.raises(ma.SavedFileError, match="was saved with the policy"):
            ma.Live.from_bytes(now, policy=_Nameless())
