"""The site: the API pages have every public name, and the hooks do what they say.

`make docs` builds it, and fails on any warning.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import manyarms as ma

pytestmark = pytest.mark.compiled  # no kernels to cover: once is enough

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
API = [page for room in ("api", "policies") for page in (DOCS / room).glob("*.md")]


@pytest.mark.parametrize("module", ["", ".instances", ".theory", ".report", ".kit"])
def test_the_api_has_every_public_name_once(module: str) -> None:
    package = importlib.import_module(f"manyarms{module}")
    text = "\n".join(page.read_text(encoding="utf-8") for page in API)
    shown = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    assert len(shown) == len(set(shown))
    shown_things = [_named(name) for name in shown]
    for name in package.__all__:
        thing = getattr(package, name)
        if isinstance(thing, ModuleType):  # has a page of its own, or its names have
            continue
        assert any(thing is other for other in shown_things), f"{package.__name__}.{name}"


def test_the_api_shows_no_module_for_a_function_of_its_name() -> None:
    griffe = pytest.importorskip("griffe", reason='the site needs pip install ".[docs]"')
    package = griffe.load("manyarms", search_paths=[ROOT / "src"], resolve_aliases=True)
    for page in API:
        for name in re.findall(r"^::: manyarms\.(\S+)$", page.read_text(encoding="utf-8"), re.M):
            thing = package[name]
            assert not (thing.final_target if thing.is_alias else thing).is_module, name


def test_docstrings_are_rewritten_for_the_site() -> None:
    pytest.importorskip("griffe", reason='the site needs pip install ".[docs]"')
    text = (
        "Do it.\n\n>>> 1 + 1\n2\n\nParameters\n----------\nn, m\n    Arms.\nk\n    Pulls.\n\n"
        "Examples\n--------\n>>> 2 + 2\n4"
    )
    assert importlib.import_module("docstrings").rewritten(text) == (
        "Do it.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nParameters\n----------\n"
        "n\n    Arms.\nm\n    Arms.\nk\n    Pulls.\n\nExamples\n--------\n>>> 2 + 2\n4"
    )


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


def test_links_are_led_home(hook: ModuleType) -> None:
    def led(link: str, page: str) -> str:
        return str(hook.led_home(f"see [it]({link}).", page))

    assert led("../examples/prompts.py", "live.md") == "see [it](examples/prompts.md)."
    assert led("../CONTRIBUTING.md#house-rules", "x.md") == "see [it](contributing.md#house-rules)."
    assert led("docs/theory.md", "changelog.md") == "see [it](theory.md)."
    assert led("../guarantees.md", "policies/moss.md") == "see [it](../guarantees.md)."
    assert led("nowhere.md", "live.md") == "see [it](nowhere.md)."
    assert led("https://example.org/x.md", "live.md") == "see [it](https://example.org/x.md)."


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
def test_what_a_page_would_fetch_is_found(hook: ModuleType, text: str, found: list[str]) -> None:
    assert list(hook.fetched(text)) == found


def test_formulas_become_mathml() -> None:
    markdown = pytest.importorskip("markdown", reason='the site needs pip install ".[docs]"')
    formulas = importlib.import_module("formulas")
    html = markdown.markdown(
        "At most :math:`\\log\nT`, `x`, or\n\n.. math:: a^2 +\n    b\n\nand more.\n\n"
        "```math\nc <\nd\n```",
        extensions=["pymdownx.superfences", formulas.Formulas()],
    )
    assert html.count("<math ") == 3
    assert html.count('<div class="formula"><math') == 2
    assert "```" not in html
    assert html.count("<code>x</code>") == 1
    assert '<div class="formula"><math' in html
    assert "<mi>log</mi><mspace" in html
    assert ":math:" not in html
    assert ".. math::" not in html
    assert "<p>and more.</p>" in html


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
        assert "\\" not in drawn, formula  # a command that was not understood
