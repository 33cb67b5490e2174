"""`manyarms policies`, and the page "The policies": both show the catalogue."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

import manyarms as ma
from manyarms.cli.listing import BEGIN, END, policies_as_markdown, with_table
from manyarms.cli.main import main
from manyarms.policies import CATALOGUE
from manyarms.protocol import registry

PAGE = Path(__file__).parents[2] / "docs" / "policies" / "index.md"
MAKE = "Run `python -m manyarms.cli.listing docs/policies/index.md`."


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text) == text, MAKE


def test_every_policy_is_in_the_table() -> None:
    table = policies_as_markdown()
    for name in CATALOGUE:
        assert f"| [`{name}`](" in table


def test_the_table_is_made_between_the_marks() -> None:
    made = with_table(f"before\n{BEGIN}\nwhat was here\n{END}\nafter\n")
    assert made.startswith(f"before\n{BEGIN}\n\n## The paper's")
    assert made.endswith(f"\n\n{END}\nafter\n")
    assert "what was here" not in made
    with pytest.raises(ma.ParameterError, match="must contain the two lines"):
        with_table("nothing")


@pytest.mark.filterwarnings("ignore:.*found in sys.modules.*:RuntimeWarning")
def test_the_module_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"{BEGIN}{END}")
    monkeypatch.setattr(sys, "argv", ["listing", str(path)])
    runpy.run_module("manyarms.cli.listing", run_name="__main__")
    assert "| [`moss++`](moss_plus_plus.md) |" in path.read_text(encoding="utf-8")


def test_the_list_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert {*CATALOGUE} <= {*lines}


def test_policies_of_users_are_listed_too(
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
