"""Public names are listed and documented, and docstrings name their parameters."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from tests.helpers import run_python

SOURCE = Path(ma.__file__).parent
CALLABLES = [
    (f"{module.__name__}.{name}", getattr(module, name))
    for module in (ma, ma.instances, ma.theory)
    for name in module.__all__
    if callable(getattr(module, name))
]


def test_all_lists_the_public_names() -> None:
    assert set(ma._MODULES) < set(ma.__all__)
    for name in ma.__all__:
        assert getattr(ma, name) is not None
        assert name in dir(ma)
    public = {name for name in dir(ma) if not name.startswith("__")}
    assert public == set(ma.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'$"):
        _ = ma.nonsense
    with pytest.raises(AttributeError, match='Use ma.policy."thompson". or ma.policies.Tho'):
        _ = ma.Thompson
    with pytest.raises(AttributeError, match=r"'SubSampled'. Use ma.policies.SubSampled$"):
        _ = ma.SubSampled


@pytest.mark.patient
def test_modules_are_loaded_on_first_use() -> None:
    code = "import sys, manyarms as ma; assert not [m for m in sys.modules if 'manyarms.' in m]"
    run_python(f"{code}; ma.errors.ParameterError; ma.simulation.Sweep; ma.AsyncRemote; ma.theory")


MODULES = ("policies", "instances", "theory", "kit", "errors", "simulation", "client", "report")


def _public_callables() -> Iterator[tuple[str, Any]]:
    """Yield all public functions and classes, with the public methods of classes."""
    for module in (ma, *(importlib.import_module(f"manyarms.{name}") for name in MODULES)):
        for name in getattr(module, "__all__", vars(module)):
            thing = getattr(module, name)
            if not inspect.isclass(thing) and not inspect.isfunction(thing):
                continue
            if not thing.__module__.startswith("manyarms."):
                continue
            yield f"{module.__name__}.{name}", thing
            for key, method in inspect.getmembers(thing, inspect.isroutine):
                if (key == "__init__" or not key.startswith("_")) and hasattr(method, "__code__"):
                    yield f"{module.__name__}.{name}.{key}", method


def test_hints_of_all_public_callables_can_be_evaluated() -> None:
    """Tools such as pydantic and typer evaluate them."""
    count = 0
    for name, thing in _public_callables():
        count += 1
        try:
            typing.get_type_hints(thing)
            inspect.signature(thing, eval_str=True)
        except (NameError, AttributeError, TypeError) as error:
            pytest.fail(f"{name}: {error}")
        except ValueError:
            assert inspect.isclass(thing), name  # an exception has no signature of its own
    assert count > 300
    assert typing.get_type_hints(ma.MOSS.__init__)["sigma"] == float | None


class Subclass(ma.MOSSPlusPlus):
    """A policy of a user, in a module that has not imported the types of its parameters."""


def test_hints_of_a_users_subclass_can_be_evaluated() -> None:
    made = dataclass(frozen=True, kw_only=True)(Subclass)
    assert typing.get_type_hints(made.__init__)["mixture_sigma"] == float | None


@pytest.mark.parametrize(("name", "thing"), CALLABLES, ids=[name for name, _ in CALLABLES])
def test_docstrings_name_all_parameters(name: str, thing: Any) -> None:
    text = inspect.getdoc(thing) or ""
    assert text, f"{name} has no docstring"
    assert text.split("\n")[0].endswith((".", ":")), f"{name}: the first line is no sentence"
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-{3}|\Z)", text, re.M | re.S)
    if section is None:
        return
    heads = re.findall(r"^(\w[\w, ]*)$", section[1], re.M)
    documented = {word.strip() for head in heads for word in head.split(",")}
    real = {p for p in inspect.signature(thing).parameters if p != "self" and not p.startswith("_")}
    assert documented == real, name


def test_public_functions_have_examples() -> None:
    no_example_needed = {"Policy", "RewardModel", "Summary", "Result", "Pull"}
    for name, thing in CALLABLES:
        short = name.rsplit(".", 1)[-1]
        if short.endswith("Error") or short in no_example_needed:
            continue
        doc = inspect.getdoc(thing) or ""
        if name.startswith("manyarms.instances.") and short[0].isupper():
            continue  # shown with the functions that take them
        if short in {"read_contest", "find_contest", "local_contests", "captions"}:
            continue  # they need files that we may not ship
        assert ">>>" in doc, f"{name} has no example"


def test_files_stay_small() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        lines = len(text.splitlines()) - sum(map(_docstring_lines, ast.walk(ast.parse(text))))
        assert lines <= 400, f"{path.name} has {lines} lines besides docstrings: split it by idea"


def _docstring_lines(node: ast.AST) -> int:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return 0
    return len((ast.get_docstring(node, clean=False) or "").splitlines())


def test_no_class_name_is_used_twice() -> None:
    found: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        public = set(re.findall(r'"(\w+)"', (re.search(r"__all__[^=]*= (\[.*?\]|\(.*?\))",
            path.read_text(), re.S) or [""])[0]))  # fmt: skip
        for name in re.findall(r"^class ([A-Z]\w+)", path.read_text(), re.M):
            if name in public:
                found.setdefault(name, []).append(str(path.relative_to(SOURCE)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_errors_have_a_common_base_and_a_builtin_base() -> None:
    for error, builtin in (
        (ma.ParameterError, ValueError),
        (ma.UnknownNameError, KeyError),
        (ma.DuplicateNameError, ValueError),
        (ma.TurnError, RuntimeError),
    ):
        assert issubclass(error, ma.ManyarmsError)
        assert issubclass(error, builtin)
