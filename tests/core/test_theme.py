"""Figures, reports, dashboard and site take colours, fonts and the mark from one theme."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from manyarms.core import theme
from manyarms.protocol.colours import OTHERS, POLICY_COLOURS, page_css
from manyarms.report import write_page
from manyarms.report.style import policy_styles
from tests.helpers import run_python

pytestmark = pytest.mark.compiled  # no kernels to cover, so once is enough

ROOT = Path(__file__).parents[2]


def test_every_policy_of_the_package_has_a_unique_colour() -> None:
    # in a new process, because other tests register policies
    code = "from manyarms.protocol.registry import policy_names; print(*policy_names())"
    names = run_python(code).stdout.split()
    assert set(names) == {*POLICY_COLOURS, *OTHERS}
    together = policy_styles(names)
    assert len(set(together.values())) == len(names)
    for name in names:
        assert policy_styles(["mine", name])[name] == together[name]
        rule = f'[data-policy="{name}"] {{ --light: {together[name].colour};'
        assert rule in page_css()


def test_pages_and_the_site_use_the_theme(tmp_path: Path) -> None:
    page = write_page(tmp_path / "a.html", title="A page", lead=[], sections=[]).read_text()
    assert theme.css() in page
    assert theme.MARK in page
    pytest.importorskip("mkdocs", reason='the site needs pip install ".[docs]"')
    made = importlib.import_module("theme").made()
    assert made["icon.svg"] == theme.ICON
    slate = '[data-md-color-scheme="slate"]'
    assert made["theme.css"] == page_css(slate)
    assert f"{slate} {{ --paper: {theme.DARK['paper']};" in made["theme.css"]
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert all(f" {name}" in config for name in made)


def test_the_dashboard_uses_the_theme() -> None:
    pytest.importorskip("msgspec", reason='the service needs pip install ".[serve]"')
    from manyarms.serve.dashboard import panels
    from manyarms.serve.dashboard.pages import page_files

    files = {name: body.decode() for name, (body, _) in page_files().items()}
    assert files["page.css"].startswith(page_css())
    assert files["icon.svg"] == theme.ICON
    shown = {"root": "", "caller": None, "version": ""}
    assert theme.MARK in panels.template("base", **shown)
