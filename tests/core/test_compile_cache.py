"""Compiled code on disk is found again, never stale, and never another user's; digests of code."""

from __future__ import annotations

import os
import shutil
import stat
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import manyarms as ma
from manyarms.core import compile_cache, jit, versions
from manyarms.core.compile_cache import folder_for
from manyarms.core.versions import environment
from manyarms.errors import CacheWarning
from tests.helpers import OWN_POLICY, run_python

SOURCE = Path(ma.__file__).resolve().parent
posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes")

PLAY = (
    "import sys; sys.path.insert(0, {folder!r}); sys.dont_write_bytecode = True\n"
    "import manyarms as ma, own\n"
    "from manyarms.core.jit import compiled\n"
    "from manyarms.instances.rewards import NoLaw\n"
    "from manyarms.simulation.play import InTurn, play\n"
    "instance = ma.instances.from_means([0.0] * 9 + [1.0])\n"
    "result = ma.simulate(own.Fixed(), instance, horizon=10, replications=1, workers=1)\n"
    "loop = compiled(play, own.FixedState, InTurn, NoLaw)\n"
    "print(result.regret[0, 0, -1], sum(loop.stats.cache_hits.values()))"
)
# the same, with a loop that compiles fast
ASK = (
    "import sys; sys.path.insert(0, {folder!r}); sys.dont_write_bytecode = True\n"
    "import own\n"
    "from manyarms.core.jit import compiled\n"
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
    """Use a new cache, without earlier warnings; return its folder."""
    monkeypatch.setenv("MANYARMS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_cache, "_warned", [])
    return tmp_path / "cache" / "manyarms"


def _played(tmp_path: Path, code: str = ASK) -> list[str]:
    environment = {"MANYARMS_CACHE": str(tmp_path / "cache")}
    return run_python(code.format(folder=str(tmp_path)), **environment).stdout.split()


@pytest.mark.slow
@pytest.mark.compiled
def test_the_next_process_uses_the_cache(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN_POLICY.format(arm=0))
    assert _played(tmp_path, PLAY) == ["10.0", "0"]
    assert _played(tmp_path, PLAY) == ["10.0", "1"]


@pytest.mark.slow
@pytest.mark.compiled
def test_edits_here_and_in_imported_files_invalidate_the_cache(tmp_path: Path) -> None:
    arm = "helpers.helper() + ARM + 0 * OTHER + TABLE[0]"
    imports = "import helpers\nfrom helpers import ARM, OTHER, TABLE\n"
    source = tmp_path / "own.py"
    source.write_text(imports + OWN_POLICY.format(arm=arm) + LOOP)
    helper = (
        "import numpy as np\nfrom manyarms.kit import kernel\n@kernel\ndef helper(): return {}\n"
    )
    constants = "ARM, OTHER = {}, {}\nTABLE = np.array([{}])\n"
    for of_helper, *numbers in ((1, 0, 4, 0), (1, 4, 0, 0), (2, 4, 0, 0), (2, 4, 0, 3)):
        text = helper.format(of_helper) + constants.format(*numbers)
        (tmp_path / "helpers.py").write_text(text)
        chosen = str(of_helper + numbers[0] + numbers[2])
        assert _played(tmp_path) == [chosen, "0"]
    assert _played(tmp_path) == ["9", "1"]
    source.write_text(source.read_text().replace("TABLE[0]", "TABLE[0] - 9"))
    assert _played(tmp_path) == ["0", "0"]


# one policy for each way to a value; ask returns it
WAYS = {
    "int64": "config.SCALAR",
    "float32": "int(config.FRACTION)",
    "module": "pk.config.K",
    "kernel": "pk.base.f()",
    "enum": "Colour.RED.value",
    "pair": "PAIR.left",
    "closure": None,
    "truth": "int(config.TRUTH)",
}
VALUES = """
import enum
from typing import NamedTuple
import numpy as np
class Colour(enum.IntEnum):
    RED = {k}
class Pair(NamedTuple):
    left: int
K = {k}
SCALAR, FRACTION, TRUTH, PAIR = np.int64(K), np.float32(K), np.bool_(K == 1), Pair(K)
"""
POLICY = """
class {state}State(NamedTuple):
    n_arms: int
def {state}_reset(state, key, horizon): pass
def {state}_tell(state, slot, reward): pass
def {state}_ask(state): return 0, {value}
"""
CLOSURE = """
class closureState(NamedTuple):
    n_arms: int
def closure_reset(state, key, horizon): pass
def closure_tell(state, slot, reward): pass
def closed(arm):
    def ask(state): return 0, arm
    return ask
closure_ask = closed(config.K)
"""
PLAY_ALL = """
import sys; sys.path.insert(0, {folder!r}); sys.dont_write_bytecode = True
import ways
from manyarms.core.jit import compiled
def play_all():
    for name in ways.NAMES:
        kind = getattr(ways, name + "State")
        loop = compiled(ways.loop, kind)
        print(name, loop(kind(10)), sum(loop.stats.cache_hits.values()))
play_all()
if sys.argv[-1] == "again":
    ways.pk.config.K = 9
    try:
        play_all()
    except TypeError as error:
        print(error)
"""


@pytest.mark.slow
@pytest.mark.compiled
def test_a_new_process_plays_new_values_by_whatever_way_they_are_reached(tmp_path: Path) -> None:
    folder = tmp_path / "pk"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "base.py").write_text(
        "from manyarms.kit import kernel\nfrom pk import config\n"
        "@kernel\ndef f(): return config.K\n"
    )
    source = "from typing import NamedTuple\nimport pk.base\nfrom pk import config\n"
    source += (
        "from pk.config import PAIR, Colour\nfrom manyarms.kit import plays\n" + LOOP + CLOSURE
    )
    source += "".join(POLICY.format(state=s, value=v) for s, v in WAYS.items() if v is not None)
    source += f"NAMES = {[*WAYS]}\nfor name in NAMES:\n    kind = globals()[name + 'State']\n"
    bodies = "reset", "ask", "tell"
    table = ", ".join(f"{body}=globals()[name + '_{body}']" for body in bodies)
    (tmp_path / "ways.py").write_text(f"{source}    plays(kind, {table})\n")
    for k, hits, last in ((1, 0, ""), (4, 0, ""), (4, 1, "again")):
        (folder / "config.py").write_text(VALUES.format(k=k))
        code = f"import sys; sys.argv.append({last!r})\n" + PLAY_ALL.format(folder=str(tmp_path))
        lines = run_python(code, MANYARMS_CACHE=str(tmp_path / "cache")).stdout.splitlines()
        chosen = {name: int(k == 1) if name == "truth" else k for name in WAYS}
        assert lines[: len(WAYS)] == [f"{name} {arm} {hits}" for name, arm in chosen.items()]
    # in the process that compiled it, Numba would not notice the change, and cache the wrong code
    assert [line.split()[0] for line in lines[len(WAYS) :]] == ["int64", "float32", "`ask`"]
    assert "`ask` of moduleState, or a function or value that it uses, has changed" in lines[-1]


class _FirstState(NamedTuple):
    n_arms: int


class _SecondState(NamedTuple):
    n_arms: int


def _loop(number: int) -> int:
    return number + 1


def test_two_policies_have_two_folders(root: Path) -> None:
    first, second = (jit.cache_folder(_loop, [kind]) for kind in (_FirstState, _SecondState))
    assert None not in (first, second)
    assert first != second
    assert jit.cache_folder(_loop, [_FirstState]) == first


def _call() -> tuple[int, int]:
    """Compile the loop as in a new process; return its result and the cache hits."""
    jit._compiled.cache_clear()
    loop: Any = jit.compiled(_loop)
    jit.compile_now("a loop", loop, lambda: loop(1))
    return loop(1), sum(loop.stats.cache_hits.values())


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("kept", [0, 100])
def test_damaged_files_are_compiled_again_and_replaced(root: Path, kind: str, kept: int) -> None:
    assert not jit.is_cached(_loop)
    assert [_call(), _call()] == [(2, 0), (2, 1)]
    assert jit.is_cached(_loop)
    (path,) = root.rglob(f"*.{kind}")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.warns(CacheWarning, match="Compiled code cannot be cached, so every process comp"):
        assert _call() == (2, 0)
    assert _call() == (2, 1)


@pytest.mark.compiled
def test_numba_never_chooses_the_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    config: Any = numba.config
    before = config.CACHE_DIR
    assert _call() == (2, 0)
    assert before == config.CACHE_DIR
    for classes in ("InTreeCacheLocator", "ZipCacheLocator"):  # another folder; none at all
        monkeypatch.setattr(config, "CACHE_LOCATOR_CLASSES", classes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CacheWarning)
            assert _call() == (2, 0)
        assert before == config.CACHE_DIR


def test_the_default_cache_is_in_the_users_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: Path
) -> None:
    monkeypatch.delenv("MANYARMS_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert folder_for("d") == tmp_path / ".cache" / "manyarms" / "compiled" / "d"
    assert not (tmp_path / ".cache" / "manyarms" / "compiled" / "e").exists()
    assert folder_for("e", make=False) == tmp_path / ".cache" / "manyarms" / "compiled" / "e"


def _refused(match: str) -> None:
    """Check that there is no cache, and one warning."""
    with pytest.warns(CacheWarning, match=match) as seen:
        assert folder_for("d") is None
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert folder_for("d") is None


@posix
def test_only_the_user_can_write_to_new_folders(root: Path) -> None:
    before = os.umask(0)
    try:
        made = folder_for("d")
    finally:
        os.umask(before)
    assert made is not None
    for folder in (root, root / "compiled", made):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@posix
def test_a_cache_of_another_user_is_not_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder_for("d") is not None
    monkeypatch.setattr("os.geteuid", lambda: 54321)
    _refused("belongs to another user .* Set MANYARMS_CACHE to a folder that only you can write to")


@posix
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o1777])
@pytest.mark.parametrize("level", ["", "compiled", "compiled/d"])
def test_folders_that_others_can_write_to_are_not_used(root: Path, mode: int, level: str) -> None:
    assert folder_for("d") is not None
    (root / level).chmod(mode)
    _refused(f"other users can write to '.*/{(root / level).name}'")


@posix
def test_a_cache_that_others_can_replace_is_not_used(root: Path) -> None:
    """In a folder like /tmp, they cannot: its mode has the sticky bit."""
    for mode in (0o755, 0o775, 0o1777):
        root.parent.mkdir(exist_ok=True)
        root.parent.chmod(mode)
        assert folder_for("d") is not None
    root.parent.chmod(0o777)
    _refused(f"all users can rename files in '.*/{root.parent.name}' .mode 777")


@posix
@pytest.mark.parametrize("level", ["", "compiled", "compiled/d"])
def test_links_are_not_followed_below_the_caches_root(root: Path, level: str) -> None:
    assert folder_for("d") is not None
    place = root / level
    place.rename(root.parent / "moved")
    place.symlink_to(root.parent / "moved")
    _refused("must be a folder, not a link")


def test_there_is_no_cache_if_folders_cannot_be_created(root: Path) -> None:
    root.parent.write_text("a file where a folder should be")
    _refused("exists|Not a directory")


def test_all_kernels_are_in_packages_that_the_digest_covers() -> None:
    modules = {function.__module__ for function, _, _ in jit._collected}
    modules |= {body.__module__ for one in jit._generics for body in one.bodies.values()}
    packages = {name.split(".")[1] for name in modules if name.startswith("manyarms.")}
    assert {"core", "policies", "simulation"} <= packages <= set(versions._HASHED)


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the digest read a copy of the package, which the test may change."""
    folder = tmp_path / "manyarms"
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(versions, "_FOLDER", folder)
    monkeypatch.setattr(versions, "_own_digest", versions._own_digest.__wrapped__)
    return folder


@pytest.mark.patient
def test_an_edit_changes_the_digest(copy: Path) -> None:
    seen = {environment()}
    for name in ("protocol/keys.py", "simulation/runner.py", "core/rng.py", "policies/new.py"):
        with (copy / name).open("a") as file:
            file.write("# edited\n")
        seen.add(environment())
        assert environment() in seen
    assert len(seen) == 5
    path = copy / "core" / "rng.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    (copy / "report" / "style.py").write_text("")
    assert environment() in seen, "neither line endings nor reports change results"
