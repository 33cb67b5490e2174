"""`manyarms policies` and the page "The policies" show the catalogue."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import manyarms as ma
from manyarms.cli.listing import with_table
from manyarms.cli.main import main
from manyarms.protocol import registry

PAGE = Path(__file__).parents[2] / "docs" / "policies" / "index.md"
MAKE = "Run `python -m manyarms.cli.listing docs/policies/index.md`."


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text) == text, MAKE


def test_own_policies_are_also_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def make() -> ma.Policy:
        """As MOSS."""
        return ma.MOSS()

    monkeypatch.setitem(registry._makers, "listed-by-a-test", make)
    assert main(["policies"]) == 0
    assert "As MOSS." in capsys.readouterr().out
    assert main(["policies", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["listed-by-a-test"]["parameters"] == {}
    assert rows["moss++"]["needs"] == "horizon"
    assert rows["moss++"]["parameters"]["beta"] == "0.5"
