"""Registration and dispatch of functions on states, in CPython and compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

import manyarms as ma
from manyarms.core import jit, loop_compiler
from manyarms.errors import DuplicateNameError, ParameterError
from manyarms.policies import SubSampled
from manyarms.protocol.policy import ask, plays
from tests.fixed import Fixed
from tests.helpers import OWN_POLICY, run_python


@pytest.mark.slow
@pytest.mark.parametrize(("n", "arm"), [(10, -1), (12, 10**9)])
def test_an_arm_that_does_not_exist_is_reported(n: int, arm: int) -> None:
    policy, words = Fixed(arm=arm), f"chose arm {arm}, but there are {n}"
    with pytest.raises(ParameterError, match=words):
        ma.simulate(policy, ma.instances.from_means([0.5] * n), horizon=5, replications=1)
    with pytest.raises(ParameterError, match=words):
        policy.live(n_arms=n, horizon=5).ask()


def _on_three(policy: ma.Policy, arms: ma.instances.Instance, horizon: int) -> None:
    ma.simulate(SubSampled(policy, size=3), arms, horizon=horizon, replications=1)


WRONG = {10: "but there are 10 arms", -2: "but there are 10 arms", 7: "which it never pulled"}


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [1, 5])  # with a horizon of 1, the tape is full after a pull
@pytest.mark.parametrize("kept", [*WRONG, 10**15, -(1 << 61)])
def test_a_wrong_recommendation_is_reported(kept: int, horizon: int) -> None:
    arms = ma.instances.from_means([0.5] * 10)
    words = f"recommended arm {kept}, {WRONG.get(kept, 'but there are 10')}.*Its `recommend` must"
    with pytest.raises(ParameterError, match=words):
        ma.simulate(Fixed(arm=3, kept=kept), arms, horizon=horizon, replications=2)
    with pytest.raises(ParameterError, match="recommended arm -"):  # of the subset, so no number
        _on_three(Fixed(arm=0, kept=kept), arms, horizon)
    with pytest.raises(ParameterError, match="chose arm -2"):
        _on_three(Fixed(arm=4), arms, horizon)  # the subset has no such arm
    kept_right = ma.simulate(Fixed(arm=3, kept=3), arms, horizon=horizon, replications=2)
    assert (kept_right.recommended == 3).all()
    live = Fixed(arm=3, kept=kept).live(n_arms=10, horizon=horizon)
    live.tell(live.ask(), 1.0)
    if kept == 7:  # a handle lets the common rule decide, as for an arm that was retired
        assert live.recommend().arm == 3
    else:
        with pytest.raises(ParameterError, match="but there are 10 arms"):
            live.recommend()


@pytest.mark.compiled
def test_kernels_cannot_allocate() -> None:
    import numpy as np

    def loop(count: int) -> float:
        return float(np.zeros(count).sum())

    with pytest.raises(Exception, match="NRT|Only accept"):
        jit.compiled(loop)(3)


def test_an_unknown_numba_compiles_in_the_usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def usual() -> bool:
        parts = [loop_compiler.part_options(options) for options in (jit.CALLED, jit.INLINE)]
        whole = loop_compiler.whole_options(jit.LOOP_OPTIONS)
        return parts == [jit.CALLED, jit.INLINE] and whole == jit.LOOP_OPTIONS

    monkeypatch.setattr(loop_compiler, "_STEPS", ())
    monkeypatch.setattr(loop_compiler, "_VERSIONS", ((0, 0), (99, 0)))
    assert not usual()
    monkeypatch.setattr(loop_compiler, "_STEPS", ("_a_step_of_another_version",))
    assert usual()
    monkeypatch.setattr(loop_compiler, "_STEPS", ())
    monkeypatch.setattr(loop_compiler, "_VERSIONS", ((99, 1), (99, 2)))
    assert usual()
    monkeypatch.setattr(loop_compiler, "_has_option", lambda name: name != "_nrt")
    assert loop_compiler.whole_options(jit.LOOP_OPTIONS) == {"nogil": True, **jit.CALLED}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.compiled
def test_numba_without_its_private_names_gives_the_same_results(tmp_path: Path) -> None:
    """As docs/design.md says, compiling takes longer and nothing else changes."""
    play = (
        "import manyarms as ma\n"
        "arms = ma.instances.planted(n=300, m=10)\n"
        "result = ma.simulate(ma.MOSS(), arms, horizon=500, replications=2, record_arms=True)\n"
        "print(result.arms.tolist())\n"
    )
    without = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from numba.core.options import DefaultOptions\n"
        "del DefaultOptions._nrt, DefaultOptions.no_cfunc_wrapper\n"
        "from manyarms.core import loop_compiler\n"
        "loop_compiler._STEPS = ('_a_step_of_another_version',)\n"
    )
    expected = run_python(play).stdout
    cache = str(tmp_path / "cache")
    assert run_python(without + play, MANYARMS_CACHE=cache).stdout == expected


def test_two_states_with_the_same_name_are_refused() -> None:
    class MossState(NamedTuple):
        n_arms: int

    with pytest.raises(DuplicateNameError, match=r"'MossState' exists already, in manyarms\.polic"):
        ask.register(MossState)


def test_a_notebook_cell_may_run_again_until_its_code_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def define() -> type:
        class CellState(NamedTuple):
            n_arms: int

        return CellState

    monkeypatch.setattr(jit, "_state_classes", {})
    monkeypatch.setattr(jit, "_registered", {})
    first, second, third = define(), define(), define()
    ask.register(first)
    ask.register(second)
    monkeypatch.setattr(jit, "_registered", {"a machine": 1})
    with pytest.raises(DuplicateNameError, match="'CellState' exists already"):
        ask.register(third)
    with pytest.raises(ParameterError, match="CellState was defined a second time"):
        ask(third(1))


def test_a_state_without_functions_raises_an_error() -> None:
    class Bodiless(NamedTuple):
        n_arms: int

    with pytest.raises(ParameterError, match="Bodiless has no `ask`. Write one, and register"):
        ask(Bodiless(1))


def test_a_table_with_a_missing_function_is_refused() -> None:
    class HalfState(NamedTuple):
        n_arms: int

    functions: Any = {"reset": lambda *_: None, "ask": lambda state: (0, 0)}
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'tell'"):
        plays(HalfState, **functions)
    with pytest.raises(ParameterError, match="`tell` must be a function on HalfState, got None"):
        plays(HalfState, **functions | {"tell": None})
    with pytest.raises(ParameterError, match="`retire` must be a function on HalfState, got 3"):
        plays(HalfState, **functions | {"tell": print, "retire": 3})


def test_without_the_jit_a_loop_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def loop() -> int:
        return 3

    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert jit.compiled(loop) is loop


@pytest.mark.slow
@pytest.mark.compiled
def test_a_policy_compiles_once_for_all_instances() -> None:
    run_python(
        "import manyarms as ma\n"
        "from manyarms.core.jit import compiled\n"
        "from manyarms.core.memory import ARRAYS\n"
        "from manyarms.instances.rewards import NoLaw\n"
        "from manyarms.protocol.state_dump import classes_in\n"
        "from manyarms.simulation.play import InTurn, play\n"
        "i = ma.instances\n"
        "problems = [i.planted(n=9, m=1), i.from_means([0.1, 0.2]),\n"
        "          i.planted(n=10**9, m=5, rewards=i.Gaussian()),\n"
        "          i.reservoir(i.BetaMeans(1, 1), rewards=i.BetaRewards(2.0))]\n"
        "for problem in problems:\n"
        "    for arms in (False, True):\n"
        "        ma.simulate(ma.MOSS(), problem, horizon=30, replications=3, record_arms=arms)\n"
        "classes = classes_in(ma.MOSS(sigma=0.5).new_state(ARRAYS, n_arms=9, pulls=30))\n"
        "assert len(compiled(play, *classes, InTurn, NoLaw).signatures) == 1\n"
    )


MISTAKES = {
    "z = np.zeros(3); return 0, int(z[0])": "allocated in `fixed_ask` (own0.py, line 12: ",
    "return 0, len([state.n_arms])": "allocated in `fixed_ask` (own1.py, line 12: ",
    "return 0, helper(0)": "in `fixed_ask` (own2.py, line 12: ",
    "return 0, -helper(0)": "Untyped global name 'helper'",
    "return 0, state.nope": "Unknown attribute 'nope'",
    "return 0": "failed to unpack",
    "state.n_arms = 3; return 0, 0": "",
}


@pytest.mark.slow
@pytest.mark.compiled
def test_errors_of_numba_are_one_sentence(tmp_path: Path) -> None:
    for number, body in enumerate(MISTAKES):
        source = OWN_POLICY.format(arm=0).replace("return 0, 0", body)
        source = source.replace("FixedState", f"FixedState{number}").replace('"fixed"', '"own"')
        source += "\nimport numpy as np\ndef helper(x): return x\n"
        (tmp_path / f"own{number}.py").write_text(source)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import importlib, manyarms as ma\n"
        f"for number in range({len(MISTAKES)}):\n"
        "    own, arms = importlib.import_module(f'own{number}'), ma.instances.planted(n=9, m=1)\n"
        "    try: ma.simulate(own.Fixed(), arms, horizon=5, replications=1)\n"
        "    except ma.CompilationError as error: print(error)\n"
    )
    messages = run_python(code).stdout.splitlines()
    assert len(messages) == len(MISTAKES)
    for message, words in zip(messages, MISTAKES.values(), strict=True):
        assert message.startswith("Numba cannot compile own on Bernoulli() rewards: ")
        assert words in message


@pytest.mark.compiled
def test_without_numba_everything_but_the_simulator_works() -> None:
    done = run_python(
        "import sys, pickle; sys.modules['numba'] = None\n"
        "import manyarms as ma\n"
        "live = ma.Prospector().live(n_arms=99, seed=1)\n"
        "live.tell(live.ask(), 1.0)\n"
        "class First:\n"
        "    def ask(self): return 0\n"
        "    def tell(self, arm, reward): pass\n"
        "coins = ma.instances.planted(n=9, m=3)\n"
        "ma.simulate(First, coins, horizon=5, replications=2)\n"
        "try: ma.simulate(ma.MOSS(), coins, horizon=5)\n"
        "except ma.MissingExtraError as error: print(pickle.loads(pickle.dumps(error)).msg)\n"
    )
    assert done.stdout.startswith("numba must be installed to simulate, but it is not. Install ")
    assert 'pip install "manyarms[sim]", or in a checkout pip install ".[sim]".' in done.stdout
