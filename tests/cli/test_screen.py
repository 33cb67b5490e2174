"""Printed text: names are escaped, lines fit into 80 characters, nothing is truncated."""

from __future__ import annotations

import click
import pytest

import manyarms as ma
from manyarms.cli.main import main
from manyarms.cli.screen import show, show_table
from manyarms.errors import FolderError
from manyarms.protocol import registry

NASTY = "[bold]x[/] [/] :smile: $\\frac{ \x1b[2J\x1b]0;t\x07 \x9b1m \r \b"
SHOWN = NASTY
for code in ("\x1b", "\x07", "\x9b", "\r", "\b"):
    SHOWN = SHOWN.replace(code, f"\\x{ord(code):02x}")


def test_control_characters_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    show(NASTY)
    show_table([NASTY], [[NASTY]])
    assert capsys.readouterr().out.count(SHOWN) == 3


def test_the_name_of_an_own_policy_is_escaped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ma.policy_names()  # loads the package's policies, so that they are not part of the change
    monkeypatch.setattr(registry, "_makers", dict(registry._makers))
    ma.register("[red]mine[/]", ma.MOSS)
    assert main(["policies"]) == 0
    assert "[red]mine[/]" in capsys.readouterr().out


def test_errors_are_escaped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = click.Command("fails", callback=lambda: (_ for _ in ()).throw(FolderError(NASTY)))
    monkeypatch.setattr("manyarms.cli.app.app", app)
    assert main([]) == 1
    assert SHOWN in capsys.readouterr().err


def test_a_wide_table_has_names_on_separate_lines(capsys: pytest.CaptureFixture[str]) -> None:
    name = "guarded-empmoss++(beta=0.75, rank='pulled', size=12345)"
    show_table(["policy", "mean", "95 % interval"], [[name, "17700.4", "[15000.1, 20000.9]"]])
    assert capsys.readouterr().out.splitlines() == [
        "policy",
        "     mean       95 % interval",
        name,
        "  17700.4  [15000.1, 20000.9]",
    ]


def test_sentences_and_errors_break_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show("a sentence that goes on " * 9 + f"\n  {'x' * 90}")
    *lines, code = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert code == f"  {'x' * 90}"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("MANYARMS_DATA", "data")
    monkeypatch.setenv("MANYARMS_CACHE", "cache")
    assert main(["data", "info", "nowhere"]) == 1
    assert max(map(len, capsys.readouterr().err.splitlines())) <= 50


def test_an_interrupt_prints_how_to_resume(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*words: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("manyarms.cli.app.app.main", stop)
    words = ["data", "get", "652"]
    assert main(words) == 130
    said = capsys.readouterr().err
    assert said.startswith("manyarms: interrupted. ")
    assert f"run:\n  manyarms {' '.join(words)}\n" in said


def test_names_of_policies_are_completed() -> None:
    from manyarms.cli.app import app

    context = click.Context(app.commands["advise"])
    (option,) = (one for one in app.commands["advise"].params if one.name == "policies")
    found = [item.value for item in option.shell_complete(context, "ucb,moss-")]
    assert found == ["ucb,moss-oracle"]
