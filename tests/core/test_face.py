"""One face: figures, reports, dashboard and site take colours, letters and mark from one file."""

from __future__ import annotations

import asyncio
import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from manyarms.core import face
from manyarms.protocol.registry import policy_names
from manyarms.report.style import policy_styles
from manyarms.report.text import as_html

pytestmark = pytest.mark.compiled  # no kernels to cover: once is enough

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "manyarms"


def test_every_policy_of_the_package_has_a_colour_of_its_own_in_every_figure() -> None:
    names = policy_names()
    assert set(names) == {*face.POLICY_COLOURS, *face.OTHERS}
    together = policy_styles(names)
    assert len(set(together.values())) == len(names)
    for name in names:
        assert policy_styles(["mine", name])[name] == together[name]
        rule = f'[data-policy="{name}"] {{ --light: {together[name].colour};'
        assert rule in face.css()


def test_no_other_file_has_colours() -> None:
    drawing = [*PACKAGE.glob("studies/**/*.py"), *PACKAGE.glob("report/*.py")]
    sheets = [*PACKAGE.rglob("*.css"), *ROOT.glob("docs/*.css"), *ROOT.glob("docs/figures/*.py")]
    for path in [*drawing, *sheets]:
        if path.name != "style.py":  # its doctests show colours
            found = re.findall(r"#[0-9a-fA-F]{6}\b", path.read_text(encoding="utf-8"))
            assert not found, path


def test_pages_and_the_site_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    page = as_html(["# A page"], title="A page")
    assert face.css() in page
    assert face.MARK in page
    pytest.importorskip("mkdocs", reason='the site needs pip install ".[docs]"')
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "hooks"))
    made = importlib.import_module("face").made()
    assert made["icon.svg"] == face.ICON
    slate = '[data-md-color-scheme="slate"]'
    assert made["face.css"] == face.css(slate)
    assert f"{slate} {{ --paper: {face.DARK['paper']};" in made["face.css"]
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert all(f" {name}" in config for name in made)


def test_the_dashboard_has_it() -> None:
    pytest.importorskip("starlette", reason='the service needs pip install ".[serve]"')
    from manyarms.serve.dashboard import panels
    from manyarms.serve.dashboard.pages import Pages

    pages: Any = Pages(None)  # type: ignore[arg-type]
    styles, icon = asyncio.run(pages.shared_styles(None)), asyncio.run(pages.icon(None))
    assert styles.body.decode().startswith(face.css())
    assert icon.body.decode() == face.ICON
    shown = {"root": "", "caller": None, "may_administer": False, "version": ""}
    assert face.MARK in panels.template("base", **shown)
