"""One source, two machines: registration, dispatch, and the compile cache."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from manyarms.core import compile_cache, jit
from manyarms.core.rng import draw
from manyarms.errors import DuplicateNameError, ParameterError
from manyarms.protocol.policy import ask
from tests.helpers import run_python

PLAY = (
    "import sys; sys.path.insert(0, {folder!r})\n"
    "import manyarms as ma, own\n"
    "from manyarms.core.jit import compiled\n"
    "from manyarms.lab.play import play\n"
    "instance = ma.instances.from_means([0.0] * 9 + [1.0])\n"
    "result = ma.simulate(own.Fixed(), instance, horizon=10, replications=1, workers=1)\n"
    "print(result.regret[0, 0, -1], sum(compiled(play, own.FixedState).stats.cache_hits.values()))"
)
OWN_POLICY = """
from dataclasses import dataclass
from typing import ClassVar, NamedTuple
import manyarms as ma
from manyarms.kit import ask, reset, tell

class FixedState(NamedTuple):
    n_arms: int

@reset.register(FixedState)
def fixed_reset(state, key, horizon): pass

@ask.register(FixedState)
def fixed_ask(state): return 0, {arm}

@tell.register(FixedState)
def fixed_tell(state, slot, reward): pass

@dataclass(frozen=True, kw_only=True)
class Fixed(ma.Policy):
    name: ClassVar[str] = "fixed"
    def new_state(self, memory, *, n_arms, pulls): return FixedState(n_arms)
"""


@pytest.mark.compiled
def test_the_cache_serves_the_next_process_and_notices_edits(tmp_path: Path) -> None:
    source = tmp_path / "own.py"
    environment = {"MANYARMS_CACHE": str(tmp_path / "cache")}
    code = PLAY.format(folder=str(tmp_path))
    source.write_text(OWN_POLICY.format(arm=0))
    assert run_python(code, **environment).stdout.split() == ["10.0", "0"]
    assert run_python(code, **environment).stdout.split() == ["10.0", "1"]
    source.write_text(OWN_POLICY.format(arm=9))  # same length, another arm
    assert run_python(code, **environment).stdout.split() == ["0.0", "0"]


@pytest.mark.compiled
def test_the_cache_notices_changed_constants(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from numbers_of_mine import ARM\n" + OWN_POLICY.format(arm="ARM")
    )
    for arm, regret in ((0, "10.0"), (9, "0.0")):
        (tmp_path / "numbers_of_mine.py").write_text(f"ARM = {arm}\n")
        code = "import sys; sys.dont_write_bytecode = True\n" + PLAY.format(folder=str(tmp_path))
        assert run_python(code, MANYARMS_CACHE=str(tmp_path / "cache")).stdout.split()[0] == regret


@pytest.mark.parametrize("arm", [-1, 10, 10**9])
def test_an_arm_that_does_not_exist_is_reported(arm: int, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN_POLICY.format(arm=arm))
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import manyarms as ma, own\n"
        "instance = ma.instances.from_means([0.5] * 10)\n"
        "for play in (lambda: ma.simulate(own.Fixed(), instance, horizon=5, replications=1),\n"
        "             lambda: own.Fixed().live(n_arms=10, horizon=5).ask()):\n"
        "    try: play()\n"
        "    except ma.ParameterError as error: print(error)\n"
    )
    lines = run_python(code).stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"fixed chose arm {arm}, and there are 10") for line in lines)


def test_a_cache_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MANYARMS_CACHE", str(tmp_path))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert compile_cache.cache_directory("d") is not None
    monkeypatch.setattr("os.getuid", lambda: 54321)
    assert compile_cache.cache_directory("d") is None


def test_without_a_home_the_cache_is_temporary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("MANYARMS_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert (compile_cache.cache_directory("d") or "").startswith(str(tmp_path))


@pytest.mark.compiled
def test_kernels_cannot_allocate() -> None:
    import numpy as np

    def loop(count: int) -> float:
        return float(np.zeros(count).sum())

    with pytest.raises(Exception, match="NRT|Only accept"):
        jit.compiled(loop)(3)


@pytest.mark.compiled
@pytest.mark.skipif(os.name != "posix", reason="takes write permission away")
def test_without_a_writable_cache_everything_still_works(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN_POLICY.format(arm=9))
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a directory should be")
    environment = {"MANYARMS_CACHE": str(blocked), "TMPDIR": str(blocked)}
    code = f"import tempfile; tempfile.tempdir = {str(blocked)!r}\n"
    done = run_python(code + PLAY.format(folder=str(tmp_path)), **environment)
    assert done.stdout.split() == ["0.0", "0"]


def test_cache_directories_fall_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANYARMS_CACHE", str(tmp_path / "a"))
    first = compile_cache.cache_directory("d")
    assert first is not None
    assert first.startswith(str(tmp_path / "a"))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MANYARMS_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "b"))
    second = compile_cache.cache_directory("d")
    assert second is not None
    assert second.startswith(str(tmp_path / "b"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "file"))
    assert compile_cache.cache_directory("d") is None


def test_the_cache_is_the_users_unless_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("MANYARMS_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    directory = Path(compile_cache.cache_directory("d") or "")
    assert directory == tmp_path / ".cache" / "manyarms" / "compiled" / "d"
    assert stat.S_ISDIR(directory.stat().st_mode)


@pytest.mark.compiled
def test_numbas_own_cache_setting_is_left_alone() -> None:
    import numba

    def loop(number: int) -> int:
        return number + 1

    config = numba.config
    before = config.CACHE_DIR  # type: ignore[attr-defined]
    assert jit.compiled(loop)(1) == 2
    assert before == config.CACHE_DIR  # type: ignore[attr-defined]


def test_two_states_of_one_name_are_refused() -> None:
    class MossState(NamedTuple):
        n_arms: int

    with pytest.raises(DuplicateNameError, match=r"'MossState' exists already, in manyarms\.polic"):
        ask.register(MossState)


def test_a_cell_may_be_run_again_until_code_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def define() -> type:
        class CellState(NamedTuple):
            n_arms: int

        return CellState

    monkeypatch.setattr(jit, "_state_classes", {})
    monkeypatch.setattr(jit, "_numba_met", [])
    first, second, third = define(), define(), define()
    ask.register(first)
    ask.register(second)
    monkeypatch.setattr(jit, "_numba_met", [True])
    with pytest.raises(DuplicateNameError, match="'CellState' exists already"):
        ask.register(third)
    with pytest.raises(ParameterError, match="CellState was defined a second time"):
        ask(third(1))


def test_a_state_without_bodies_says_what_to_write() -> None:
    class Bodiless(NamedTuple):
        n_arms: int

    with pytest.raises(ParameterError, match=r"Bodiless has no `ask`.*@ask\.register\(Bodiless\)"):
        ask(Bodiless(1))


def test_without_the_jit_a_loop_is_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def loop() -> int:
        return 3

    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert jit.compiled(loop) is loop


def test_code_typed_into_a_console_has_a_digest() -> None:
    namespace: dict[str, Any] = {"__name__": "console"}
    exec("def body(): return 1\ndef other(): return 2", namespace)
    body, other = namespace["body"], namespace["other"]
    assert compile_cache.digest((), [body]) != compile_cache.digest((), [other])
    assert compile_cache.digest((), [body]) == compile_cache.digest((), [body])


def test_the_digest_follows_calls_into_other_files() -> None:
    namespace: dict[str, Any] = {"__name__": "caller"}
    exec("def helper(): return 1\ndef body(): return helper() + draw(1, 2)", namespace)
    namespace["draw"] = draw
    users = compile_cache.users_functions([namespace["body"]])
    assert {function.__name__ for function in users} == {"body", "helper"}  # `draw` is ours


def test_functions_of_a_script_are_not_cached() -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec("def body(): return 1", namespace)
    assert not compile_cache.can_be_cached([namespace["body"]])
    assert compile_cache.can_be_cached([test_functions_of_a_script_are_not_cached])


@pytest.mark.compiled
def test_a_policy_compiles_once_for_all_instances() -> None:
    run_python(
        "import manyarms as ma\n"
        "from manyarms.core.jit import compiled\n"
        "from manyarms.lab.play import play\n"
        "from manyarms.policies.moss import MossState\n"
        "i = ma.instances\n"
        "worlds = [i.planted(n=9, m=1), i.from_means([0.1, 0.2]),\n"
        "          i.planted(n=10**9, m=5, rewards=i.Gaussian()),\n"
        "          i.reservoir(i.BetaMeans(1, 1), rewards=i.BetaRewards(2.0))]\n"
        "for world in worlds:\n"
        "    for arms in (False, True):\n"
        "        ma.simulate(ma.MOSS(), world, horizon=30, replications=3, record_arms=arms)\n"
        "assert len(compiled(play, MossState).signatures) == 1\n"
    )


MISTAKES = {
    "z = np.zeros(3); return 0, int(z[0])": "",
    "return 0, helper(0)": "Untyped global name 'helper'",
    "return 0, state.nope": "Unknown attribute 'nope'",
    "return 0": "failed to unpack",
    "state.n_arms = 3; return 0, 0": "",
}


@pytest.mark.compiled
@pytest.mark.parametrize("body", MISTAKES)
def test_what_numba_refuses_is_said_in_one_sentence(body: str, tmp_path: Path) -> None:
    source = OWN_POLICY.format(arm=0).replace("return 0, 0", body)
    source += "\nimport numpy as np\ndef helper(x): return x\n"
    (tmp_path / "own.py").write_text(source)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import manyarms as ma, own\n"
        "try: ma.simulate(own.Fixed(), ma.instances.planted(n=9, m=1), horizon=5, replications=1)\n"
        "except ma.CompilationError as error: print(error)\n"
    )
    message = run_python(code).stdout
    assert message.startswith("Numba cannot compile fixed: ")
    assert MISTAKES[body] in message
    assert message.count("\n") == 1


def test_a_policy_without_a_tell_is_refused_before_it_plays(tmp_path: Path) -> None:
    source = OWN_POLICY.format(arm=0).replace("@tell.register(FixedState)", "")
    (tmp_path / "own.py").write_text(source)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import manyarms as ma, own\n"
        "instance = ma.instances.planted(n=9, m=1)\n"
        "for play in (lambda: ma.simulate(own.Fixed(), instance, horizon=5),\n"
        "             lambda: own.Fixed().live(n_arms=9, horizon=5)):\n"
        "    try: play()\n"
        "    except ma.ParameterError as error: print(error)\n"
    )
    expected = (
        "FixedState has no `tell`. Write one and decorate it with @tell.register(FixedState)."
    )
    assert run_python(code).stdout.splitlines() == [expected, expected]
