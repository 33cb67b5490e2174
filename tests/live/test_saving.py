"""Saved experiments continue unchanged; damaged files are refused and kept."""

from __future__ import annotations

import os
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.live.experiment import Experiment
from manyarms.live.snapshots import restored, snapshot
from tests.helpers import ALL_POLICIES, flipped, label
from tests.inference.random_events import counts, play, step
from tests.live.stores import copied, known

NAMES = [f"item {k}" for k in range(30)]


def _interrupted(live: ma.Live, control: ma.Live, events: int) -> None:
    """Save and load after every event, and compare with a handle that was not interrupted."""
    for event in range(events):
        step(live)
        step(control)
        live = copied(live)
        assert (counts(live), live.pending) == (counts(control), control.pending)
        if event % 50 == 0:
            assert known(live) == known(control)
    assert known(live) == known(control)
    assert repr(live.arms()) == repr(control.arms())
    assert live.progress() == control.progress() or live.progress().told == 0


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "policy", [ma.MOSS(), ma.EmpMOSSPlusPlus(beta=0.5, count_late=True)], ids=label
)
def test_saving_after_every_event_of_a_long_experiment(policy: ma.Policy) -> None:
    given: Any = {"arms": NAMES, "horizon": 2000, "seed": 5, "now": lambda: 1e9}
    live, control = (policy.live(**given) for _ in range(2))
    _interrupted(live, control, 2000)
    assert min(counts(control)) > 10  # every kind of event


@pytest.mark.slow
@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_saving_after_every_event(policy: ma.Policy) -> None:
    given: Any = {"n_arms": 40, "horizon": 2000, "seed": 6, "now": lambda: 1e9}
    live, control = (policy.live(**given) for _ in range(2))
    for handle in (live, control):
        play(handle, 200)
    _interrupted(live, control, 60)


def test_the_size_of_a_snapshot_depends_on_the_touched_arms(tmp_path: Path) -> None:
    live = ma.EmpMOSSPlusPlus().live(n_arms=10**9, horizon=10**9, seed=1)
    live.ask(500)
    assert len(known(live)) < 500 * 60
    named = ma.MOSS().live(arms=[f"long name {k}" for k in range(50_000)], horizon=99)
    assert len(known(named)) < 2000  # without names


def test_initial_settings_are_kept(tmp_path: Path) -> None:
    policy = ma.Doubling(ma.Parallel(best_mean=2.5, sigma=2.0, count_late=True))
    names = ["käse", " ", "7", "a\nb"]
    live = policy.live(arms=names, seed=2**64 - 1, reward_range=(-1.0, 3.0))
    live.tell(live.ask(), -0.5)
    live.save(tmp_path / "saved.db")
    with ma.load(str(tmp_path / "saved.db")) as loaded:
        assert (loaded.policy, loaded.seed, loaded.horizon) == (policy, 2**64 - 1, None)
        assert loaded.reward_range == (-1.0, 3.0)
        assert loaded._context.arms.names == names  # type: ignore[union-attr]
        assert loaded.recommend() == live.recommend()


@dataclass(frozen=True, kw_only=True)
class OwnMOSS(ma.MOSS):
    name = "own-moss"
    extra: Any = 1


def test_a_policy_that_is_not_registered_is_passed(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    policy = OwnMOSS(extra=2)
    with policy.live(n_arms=9, horizon=50, store=path) as live:
        live.ask(3)
    for given in (None, OwnMOSS()):
        with pytest.raises(ma.SavedFileError, match=r"needs the policy own-moss\(extra=2\)"):
            ma.load(path, policy=given)
    with ma.load(path, policy=policy) as live:
        assert live.policy == policy
        live.season(horizon=20)
    with policy.live(n_arms=9, horizon=50, store=path) as live:
        assert live.horizon == 23


def test_an_own_policy_is_found_by_its_name(tmp_path: Path) -> None:
    ma.register("own-moss-for-saving", OwnMOSS2)
    OwnMOSS2().live(n_arms=9, horizon=50).save(tmp_path / "saved.db")
    with ma.load(tmp_path / "saved.db") as live:
        assert live.policy == OwnMOSS2()
    with pytest.raises(ma.ParameterError, match=r"`extra` of .* must be a number, .* to be saved"):
        OwnMOSS2(extra=[1]).live(n_arms=9, horizon=50).save(tmp_path / "saved.db")


@dataclass(frozen=True, kw_only=True)
class OwnMOSS2(OwnMOSS):
    name = "own-moss-for-saving"


# Damage


def restore(live: ma.Live, data: bytes) -> Experiment:
    return restored(live._experiment.settings, data, "it")


def damaged(data: bytes, count: int) -> list[bytes]:
    """Return damaged snapshots."""
    chance = random.Random(1)
    files = {b"", b"\0" * len(data), data + b"\0", b"a,b\n1,2\n", data[:-1]}
    files |= {data[: chance.randrange(1, len(data))] for _ in range(60)}
    files |= {flipped(data, bit) for bit in range(16)}  # of the header
    while len(files) < count:
        files.add(flipped(data, chance.randrange(8 * len(data))))
    return sorted(files)


def test_damaged_snapshots_are_refused() -> None:
    live = ma.MOSSPlusPlus().live(arms=NAMES, horizon=2000, seed=5)
    play(live, 300)
    errors = []
    for data in damaged(known(live), 200):
        try:  # some bits of the last byte have no meaning
            assert snapshot(restore(live, data)) == known(live)
        except ma.SavedFileError as error:
            errors.append(str(error))
    assert len(errors) > 190
    assert all(re.fullmatch(r"it .{1,300}[.]", error) for error in errors)


# Files


@pytest.mark.parametrize("data", [b"", b"no database", b"\x89PNG\r\n\x1a\n" * 200])
def test_other_files_are_refused_and_kept(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(ma.StoreError, match="no store in it|not an SQLite file"):
        ma.load(path)
    if data:
        with pytest.raises(ma.StoreError, match="not an SQLite file"):
            ma.MOSS().live(n_arms=3, horizon=9, store=path)
    assert path.read_bytes() == data


class Crash(BaseException):
    """Simulates the end of the process."""


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), Crash()], ids=repr)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_crash_while_saving_leaves_the_old_or_the_new_file(
    call: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = ma.MOSS().live(n_arms=9, horizon=50)
    path = tmp_path / "saved.db"
    live.save(path)
    live.ask(5)

    def failing(*_: Any, **__: Any) -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        with pytest.raises((ma.PathError, Crash)):
            live.save(path)
    with ma.load(path) as old:
        assert old.pulls in (0, 5)
    live.save(path)
    with ma.load(path) as saved:
        assert saved.pulls == 5


def test_paths_of_the_wrong_kind(tmp_path: Path) -> None:
    live = ma.MOSS().live(n_arms=9, horizon=50)
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "x", tmp_path / ("x" * 300), tmp_path / "no" / "x"):
        with pytest.raises(ma.PathError, match=r"cannot be written: .*[.]$"):
            live.save(path)
        with pytest.raises((ma.StoreError, ma.PathError)):
            ma.load(path)
    nowhere: list[Any] = [5, None, b"x", "a\0b", ["x"]]
    for wrong in nowhere:
        with pytest.raises(ma.ParameterError, match="`path` must be a path, got"):
            live.save(wrong)
        with pytest.raises((ma.ParameterError, ma.PathError)):
            ma.load(wrong)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    missing = tmp_path / "missing.db"
    with pytest.raises(ma.PathNotFoundError) as caught:
        ma.load(missing)
    assert str(caught.value) == f"There is no store sqlite:///{missing}. Check the path."
