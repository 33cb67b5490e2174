"""The digest of the code that results follow from: complete, stable, and made of no list."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import manyarms as ma
from manyarms.core import code_digest
from manyarms.core.code_digest import can_be_cached, digest, reached
from manyarms.core.jit import bodies_of
from manyarms.core.memory import BOUNDED
from manyarms.core.rng import draw
from manyarms.protocol.state_dump import classes_in
from manyarms.simulation.play import play
from manyarms.simulation.workbench import Workbench
from tests.helpers import EVERY_POLICY, label

SOURCE = Path(ma.__file__).resolve().parent


def _files(*roots: Any) -> set[str]:
    paths = frozenset(code_digest._file_of(root) for root in roots)
    return {name for name, _ in code_digest._digest_of_files(paths)}


@pytest.mark.patient
def test_imports_are_found_as_python_finds_them() -> None:
    for path in SOURCE.rglob("*.py"):
        modules = []
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import):
                modules += [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: imports name their package"
                assert node.module is not None
                modules += [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
        ours = [name for name in modules if name.split(".")[0] == "manyarms"]
        expected = {found for name in ours if (found := code_digest._path_of(name)).is_file()}
        assert set(code_digest._read_source(path)[1]) == expected, path


@pytest.mark.parametrize("policy", EVERY_POLICY, ids=label)
def test_all_that_is_compiled_is_in_the_digest(policy: ma.Policy) -> None:
    state = policy.with_best_mean(1.0).new_state(BOUNDED, n_arms=10, pulls=10)
    roots = [play, *bodies_of(*classes_in(state))]
    known = _files(*roots)
    seen: set[int] = set()
    waiting: list[Any] = list(roots)
    while waiting:  # every function of ours that these can call
        function = waiting.pop()
        if id(function) not in seen and code_digest._is_ours(function):
            seen.add(id(function))
            path = code_digest._file_of(function).relative_to(SOURCE)
            assert path.as_posix() in known, function
            called = code_digest._globals_of(function).values()
            waiting += [value for value in called if isinstance(value, FunctionType)]
    assert len(seen) > 10


def test_what_decides_results_is_in_the_digest_and_what_shows_them_is_not() -> None:
    known = _files(
        Workbench, *bodies_of(*classes_in(ma.MOSS().new_state(BOUNDED, n_arms=9, pulls=9)))
    )
    for name in (
        "protocol/keys.py",
        "simulation/workbench.py",
        "simulation/play.py",
        "instances/tape.py",
        "theory/schedules.py",
        "core/rng.py",
        "policies/moss.py",
    ):
        assert name in known
    assert not [name for name in known if name.split("/")[0] in ("cli", "report")]


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let the digest read a copy of the package, which may be changed."""
    folder = tmp_path / "manyarms"
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code_digest, "_PACKAGE", folder)
    monkeypatch.setattr(
        code_digest, "_resolved", lambda name: folder / Path(name).relative_to(SOURCE)
    )
    yield folder
    _forget()


def _forget() -> None:
    code_digest._digest_of_files.cache_clear()
    code_digest._read_source.cache_clear()
    code_digest._path_of.cache_clear()


def _now() -> str:
    _forget()
    return digest((), [Workbench])


@pytest.mark.parametrize("name", ["protocol/keys.py", "simulation/workbench.py", "core/rng.py"])
def test_an_edit_changes_the_digest(copy: Path, name: str) -> None:
    before = _now()
    assert _now() == before
    with (copy / name).open("a") as file:
        file.write("# edited\n")
    assert _now() != before


def test_a_new_file_is_found_without_a_list(copy: Path) -> None:
    (copy / "simulation" / "brand_new.py").write_text("A = 1\n")
    without = _now()
    with (copy / "simulation" / "play.py").open("a") as file:
        file.write("from manyarms.simulation import (\n    brand_new,\n)\n")
    first = _now()
    (copy / "simulation" / "brand_new.py").write_text("A = 2\n")
    assert len({without, first, _now()}) == 3


def test_the_digest_does_not_depend_on_the_ends_of_lines_nor_on_what_shows_results(
    copy: Path,
) -> None:
    before = _now()
    path = copy / "core" / "rng.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    (copy / "report" / "style.py").write_text("")
    assert _now() == before


@pytest.mark.parametrize("package", ["numpy", "numba"])
def test_other_versions_of_numpy_and_numba_change_the_digest(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digest((), [play])
    real = code_digest.version_of
    monkeypatch.setattr(
        code_digest, "version_of", lambda name: "0.0" if name == package else real(name)
    )
    assert digest((), [play]) != before


def test_code_typed_into_a_console_has_a_digest() -> None:
    namespace: dict[str, Any] = {"__name__": "console"}
    exec("def body(): return 1\ndef other(): return 2", namespace)
    body, other = namespace["body"], namespace["other"]
    assert digest((), [body]) != digest((), [other])
    assert digest((), [body]) == digest((), [body])


def test_the_digest_follows_calls_into_other_files() -> None:
    namespace: dict[str, Any] = {"__name__": "caller"}
    exec(
        "def helper(): return 1\ndef body(): return [helper() + draw(1, 2) for _ in '']", namespace
    )
    namespace["draw"] = draw
    functions = reached([namespace["body"]])
    assert {function.__name__ for function in functions} == {"body", "helper", "draw"}


def test_functions_of_a_script_are_not_cached() -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec("def body(): return 1", namespace)
    assert not can_be_cached([namespace["body"]])
    assert can_be_cached([test_functions_of_a_script_are_not_cached])


def test_nor_are_functions_that_hold_values_without_a_name() -> None:
    def make(arm: int) -> Any:
        return lambda: arm

    assert not can_be_cached([make(1)])
