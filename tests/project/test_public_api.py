"""Public names are listed and documented, and docstrings name their parameters."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma

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
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = ma.nonsense


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
