"""The API pages have every public name, and the hooks work.

`make docs` builds the site, and fails on any warning.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import manyarms as ma

pytestmark = pytest.mark.compiled  # no kernels to cover, so once is enough

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
API = [page for folder in ("api", "policies") for page in (DOCS / folder).glob("*.md")]


@pytest.mark.parametrize("module", ["", ".instances", ".theory", ".report", ".kit"])
def test_the_api_has_every_public_name_once(module: str) -> None:
    package = importlib.import_module(f"manyarms{module}")
    text = "\n".join(page.read_text(encoding="utf-8") for page in API)
    shown = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    assert len(shown) == len(set(shown))
    shown_things = [_named(name) for name in shown]
    for name in package.__all__:
        thing = getattr(package, name)
        if isinstance(thing, ModuleType):  # it or its names have another page
            continue
        assert any(thing is other for other in shown_things), f"{package.__name__}.{name}"


def test_the_api_shows_functions_that_have_the_name_of_their_module() -> None:
    griffe = pytest.importorskip("griffe", reason='the site needs pip install ".[docs]"')
    package = griffe.load("manyarms", search_paths=[ROOT / "src"], resolve_aliases=True)
    for page in API:
        for name in re.findall(r"^::: manyarms\.(\S+)$", page.read_text(encoding="utf-8"), re.M):
            thing = package[name]
            assert not (thing.final_target if thing.is_alias else thing).is_module, name


def _named(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    if module in ("manyarms.Live", "manyarms.Result"):
        return getattr(_named(module), attribute)
    return getattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("shown", [ma.Live, ma.Result])
def test_the_api_shows_every_method(shown: type) -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in API)
    fields = getattr(shown, "__dataclass_fields__", {})  # the docstring lists them
    for name in dir(shown):
        if not name.startswith("_") and name not in fields:
            assert f"::: manyarms.{shown.__name__}.{name}\n" in text, name


@pytest.fixture
def hook() -> ModuleType:
    pytest.importorskip("mkdocs", reason='the site needs pip install ".[docs]"')
    return importlib.import_module("pages")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<script src="https://example.org/a.js"></script>', ["https://example.org/a.js"]),
        ("<img alt=x src=//example.org/a.png>", ["//example.org/a.png"]),
        ('<link rel="stylesheet" href="https://example.org/a.css">', ["https://example.org/a.css"]),
        ("body { src: url('https://example.org/f.woff') }", ["https://example.org/f.woff"]),
        ('@import "https://example.org/a.css";', ["https://example.org/a.css"]),
        ('<a href="https://example.org/">a link is no request</a><script src="a.js">', []),
    ],
)
def test_requests_of_a_page_are_found(hook: ModuleType, text: str, found: list[str]) -> None:
    assert list(hook.fetched(text)) == found


def test_docstrings_have_formulas_that_convert() -> None:
    pytest.importorskip("latex2mathml", reason='the site needs pip install ".[docs]"')
    formulas = importlib.import_module("formulas")
    source = Path(ma.__file__).parent
    found = [
        formula
        for path in source.rglob("*.py")
        for formula in re.findall(formulas.INLINE, path.read_text(encoding="utf-8"))
    ]
    assert len(found) > 30
    for formula in found:
        drawn = formulas.mathml(formula, display="inline")
        assert "\\" not in drawn, formula  # an unknown command
