"""Compiled code on disk: found again, never another user's, never damaged."""

from __future__ import annotations

import os
import pickle
import stat
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from manyarms.core import compile_cache, jit
from manyarms.core.compile_cache import cache_directory
from manyarms.core.files import read_private
from manyarms.errors import CacheWarning
from tests.helpers import OWN_POLICY, flipped, run_python

posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes")

PLAY = (
    "import sys; sys.path.insert(0, {folder!r})\n"
    "import manyarms as ma, own\n"
    "from manyarms.core.jit import compiled\n"
    "from manyarms.simulation.play import play\n"
    "instance = ma.instances.from_means([0.0] * 9 + [1.0])\n"
    "result = ma.simulate(own.Fixed(), instance, horizon=10, replications=1, workers=1)\n"
    "print(result.regret[0, 0, -1], sum(compiled(play, own.FixedState).stats.cache_hits.values()))"
)


# the same, with a loop that compiles in a moment
ASK = (
    "import sys; sys.path.insert(0, {folder!r})\n"
    "import own\n"
    "from manyarms.core.jit import compiled\n"
    "from manyarms.kit import ask\n"
    "loop = compiled(own.loop, own.FixedState)\n"
    "print(loop(own.FixedState(10)), sum(loop.stats.cache_hits.values()))"
)
LOOP = """
from manyarms.kit import ask

def loop(state):
    slot, arm = ask(state)
    return arm
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of an own cache; nobody was warned yet."""
    monkeypatch.setenv("MANYARMS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_cache, "_warned", [])
    return tmp_path / "cache" / "manyarms"


def _played(tmp_path: Path, code: str = PLAY) -> list[str]:
    environment = {"MANYARMS_CACHE": str(tmp_path / "cache")}
    return run_python(code.format(folder=str(tmp_path)), **environment).stdout.split()


@pytest.mark.slow
@pytest.mark.compiled
def test_the_cache_serves_the_next_process_and_notices_edits(tmp_path: Path) -> None:
    source = tmp_path / "own.py"
    source.write_text(OWN_POLICY.format(arm=0) + LOOP)
    assert _played(tmp_path) == ["10.0", "0"]
    assert _played(tmp_path) == ["10.0", "1"]
    assert _played(tmp_path, ASK) == ["0", "0"]
    source.write_text(OWN_POLICY.format(arm=9) + LOOP)  # same length, another arm
    assert _played(tmp_path, ASK) == ["9", "0"]


@pytest.mark.slow
@pytest.mark.compiled
def test_the_cache_notices_changed_constants(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from numbers_of_mine import ARM, OTHER\n" + OWN_POLICY.format(arm="ARM + 0 * OTHER") + LOOP
    )
    code = "import sys; sys.dont_write_bytecode = True\n" + ASK
    for arm, other in ((0, 9), (9, 0)):  # the same values, exchanged
        (tmp_path / "numbers_of_mine.py").write_text(f"ARM, OTHER = {arm}, {other}\n")
        assert _played(tmp_path, code) == [str(arm), "0"]
    assert _played(tmp_path, code) == ["9", "1"]


def _flip(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(flipped(data, 4 * len(data)))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _other_signature(path: Path) -> None:
    path.write_bytes(compile_cache._sealed(pickle.dumps(("another", ()))))


def _nonsense(path: Path) -> None:
    path.write_bytes(compile_cache._sealed(b"no pickle"))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.compiled
@pytest.mark.parametrize("damage", [_flip, _cut, _empty, _other_signature, _nonsense, _folder])
def test_what_is_damaged_is_compiled_anew_and_replaced(
    tmp_path: Path, root: Path, damage: Callable[[Path], None]
) -> None:
    def loop(number: int) -> int:
        return number + 1

    assert not jit.is_cached(loop)

    def play_again() -> int:
        jit._compiled.cache_clear()
        again = jit.compiled(loop)
        assert again(1) == 2
        assert jit.is_cached(loop)
        return sum(again.stats.cache_hits.values())  # type: ignore[attr-defined]

    assert [play_again(), play_again()] == [0, 1]
    (kept,) = root.rglob("*.code")
    damage(kept)
    if damage is _folder:  # it cannot be replaced: said once
        with pytest.warns(CacheWarning, match="Compiled code is not kept"):
            assert play_again() == 0
        return
    assert [play_again(), play_again()] == [0, 1]


@pytest.mark.compiled
def test_no_flipped_bit_is_believed() -> None:
    data = compile_cache._sealed(bytes(range(256)))
    for bit in range(8 * len(data)):
        with pytest.raises(ValueError, match="damaged"):
            compile_cache._opened(flipped(data, bit))
    assert compile_cache._opened(data) == bytes(range(256))


def test_the_cache_is_the_users_unless_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: Path
) -> None:
    monkeypatch.delenv("MANYARMS_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    directory = cache_directory("d")
    assert directory == tmp_path / ".cache" / "manyarms" / "compiled" / "d"
    assert stat.S_ISDIR(directory.stat().st_mode)


def _refused(match: str) -> None:
    """Check that there is no cache, and that it is said once."""
    with pytest.warns(CacheWarning, match=match) as seen:
        assert cache_directory("d") is None
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache_directory("d") is None


@posix
def test_what_we_make_is_ours_alone(root: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = cache_directory("d")
    finally:
        os.umask(before)
    assert made is not None
    for folder in (root.parent, root, root / "compiled", made):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@posix
def test_a_cache_of_somebody_else_is_not_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_directory("d") is not None
    monkeypatch.setattr("os.geteuid", lambda: 54321)
    _refused("belongs to another user .*Or set MANYARMS_CACHE to a folder of your own")


@posix
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
@pytest.mark.parametrize("level", ["", "compiled", "compiled/d"])
def test_folders_that_others_can_write_to_are_not_used(root: Path, mode: int, level: str) -> None:
    assert cache_directory("d") is not None
    (root / level).chmod(mode)
    _refused(f"/{(root / level).name}' can be written to by other users .*Remove it, with all")


@posix
def test_nor_folders_below_one_that_others_can_write_to(root: Path, tmp_path: Path) -> None:
    assert cache_directory("d") is not None
    tmp_path.chmod(0o777)
    _refused(f"'{tmp_path}' can be written to .*chmod go-w '{tmp_path}'")
    tmp_path.chmod(0o1777)  # as /tmp: what is ours there stays ours
    assert cache_directory("d") is not None


@posix
@pytest.mark.parametrize("level", ["", "compiled", "compiled/d"])
def test_links_are_not_followed_from_the_caches_root_on(root: Path, level: str) -> None:
    assert cache_directory("d") is not None
    place = root / level
    place.rename(root.parent / "moved")
    place.symlink_to(root.parent / "moved")
    _refused("must be a folder, not a link. Remove it")


@posix
def test_a_link_above_is_followed_to_a_safe_place_only(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "real")
    assert cache_directory("d") == tmp_path / "real" / "manyarms" / "compiled" / "d"
    (tmp_path / "real").chmod(0o777)
    _refused("'/.*/real' can be written to")


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="gives a link away")
def test_a_link_of_somebody_else_is_not_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "real")
    os.chown(tmp_path / "cache", 54321, 54321, follow_symlinks=False)
    _refused("is a link of another user")


@posix
def test_files_that_others_can_write_to_are_not_read(root: Path) -> None:
    folder = cache_directory("d")
    assert folder is not None
    path = folder / "f"
    path.write_bytes(b"planted")
    path.chmod(0o666)
    with pytest.raises(PermissionError, match="can be written to by other users"):
        read_private(path)
    path.chmod(0o600)
    assert read_private(path) == b"planted"
    (folder / "link").symlink_to(path)
    with pytest.raises(OSError, match="symbolic"):
        read_private(folder / "link")


def test_there_is_no_cache_where_there_is_no_room(root: Path) -> None:
    root.parent.write_text("a file where a folder should be")
    _refused(f"'{root.parent}' must be a folder")


def test_there_is_no_cache_where_there_is_no_home(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("MANYARMS_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # no folder that others can prepare
    _refused("there is no home folder. Set MANYARMS_CACHE to a folder of your own")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.compiled
def test_without_a_cache_everything_still_works(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN_POLICY.format(arm=9) + LOOP)
    (tmp_path / "cache").write_text("a file where a folder should be")
    quiet = "import warnings; warnings.simplefilter('ignore')\n"
    assert _played(tmp_path, quiet + ASK) == ["9", "0"]


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["_reduce", "_rebuild"])
def test_a_numba_that_cannot_keep_code_still_compiles(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from numba.core.compiler import CompileResult

    def loop(number: int) -> int:
        return number + 1

    monkeypatch.delattr(CompileResult, name)
    for _ in "compiled", "again":
        jit._compiled.cache_clear()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert jit.compiled(loop)(1) == 2
        if name == "_reduce":
            assert not list(root.rglob("*.code"))
    assert not said, "it is said once"
    assert bool(compile_cache._warned) == (name == "_reduce")


@pytest.mark.compiled
def test_numbas_own_cache_is_left_alone(root: Path) -> None:
    import numba

    def loop(number: int) -> int:
        return number + 2

    config = numba.config
    before = config.CACHE_DIR  # type: ignore[attr-defined]
    assert jit.compiled(loop)(1) == 3
    assert before == config.CACHE_DIR  # type: ignore[attr-defined]
