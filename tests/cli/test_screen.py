"""The screen: names, paths and captions are data, whatever stands in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("rich", reason='pip install "manyarms[lab]"')

import click

import manyarms as ma
from manyarms.cli import screen
from manyarms.cli.main import main
from manyarms.cli.screen import counting, show, watching, write_json
from manyarms.errors import FolderError
from manyarms.protocol import registry
from manyarms.report.text import Table

NASTY = "[bold]x[/] [/] :smile: [link=x]y $\\frac{ \x1b[2J\x1b]0;t\x07 \x9b1m \r \b"
SHOWN = NASTY
for code in ("\x1b", "\x07", "\x9b", "\r", "\b"):
    SHOWN = SHOWN.replace(code, f"\\x{ord(code):02x}")


def test_texts_and_tables_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    show(NASTY, Table([NASTY], [[NASTY]], title=NASTY))
    assert capsys.readouterr().out.count(SHOWN) == 4


def test_notes_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    with watching() as watch:
        watch.begin(NASTY)(1, 2, NASTY)
    with counting(3) as advance:
        advance(NASTY)
    assert capsys.readouterr().err == f"manyarms: {SHOWN}: 50%, {SHOWN}\n"


def test_a_log_hears_of_progress_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with watching() as watch:
        begun = watch.begin("a run")
        assert capsys.readouterr().err == ""  # it may be refused yet
        begun(1, 8, "compiling moss")
        begun(2, 8, "compiling moss++")
        begun(3, 8, "")
        monkeypatch.setattr(screen, "_LINE_EVERY", 0.0)
        monkeypatch.setattr(screen, "_SELDOMER", 0.0)
        begun(4, 8, "")
    said = ["a run: 12%, compiling moss", "a run: 50%"]
    assert capsys.readouterr().err == "".join(f"manyarms: {line}\n" for line in said)


def test_a_policys_own_name_is_shown_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ma.policy_names()  # loads ours, so that they are not part of the change
    monkeypatch.setattr(registry, "_makers", dict(registry._makers))
    ma.register("[red]mine[/]", ma.MOSS)
    assert main(["policies"]) == 0
    assert "[red]mine[/]" in capsys.readouterr().out


def test_errors_are_shown_as_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = click.Command("fails", callback=lambda: (_ for _ in ()).throw(FolderError(NASTY)))
    monkeypatch.setattr("manyarms.cli.app.app", app)
    assert main([]) == 1
    assert SHOWN in capsys.readouterr().err


@pytest.mark.parametrize("width", [48, 60, 80, 200])
def test_tables_fit_and_nothing_is_cut(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["moss++(beta=0.75)", "empmoss++(kl)"]
    row = ["17700.4", "[15000.1, 20000.9]", "nothing is proven of it", "123456"]
    head = ["policy", "mean", "95 % interval", "guarantee", "runs"]
    monkeypatch.setattr(screen.out, "width", width)
    show(Table(head, [[name, *row] for name in names], optional=["runs"]))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for word in (*names, *row[:2]):
        assert word in text
    assert set(" ".join(row[2:3]).split()) <= set(text.split())
    assert ("With COLUMNS=200 there is more: runs" in text) == (width < 80)


def test_a_very_long_name_is_folded_and_numbers_are_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen.out, "width", 60)
    show(Table(["policy", "mean", "interval"], [["x" * 150, "17700.4", "[15000.1, 20000.9]"]]))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[1].split()[1:] == ["17700.4", "[15000.1,", "20000.9]"]
    assert "".join(line.split()[0] for line in lines[1:]) == "x" * 150


def test_sentences_and_errors_break_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen.out, "width", 40)
    show("a sentence that goes on " * 9 + f"\n  {'x' * 60}")
    *lines, code = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert code == f"  {'x' * 60}"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "50")
    assert main(["data", "info", "nowhere"]) == 1
    assert max(map(len, capsys.readouterr().err.splitlines())) <= 50


def test_an_interrupt_says_how_to_go_on(
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


def test_json_is_what_was_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_json({NASTY: NASTY}, "-")
    assert json.loads(capsys.readouterr().out) == {NASTY: NASTY}
    write_json([NASTY], str(tmp_path / "a.json"))
    assert json.loads((tmp_path / "a.json").read_text()) == [NASTY]


@pytest.mark.parametrize("path", ["", "x" * 300])
def test_a_file_that_cannot_be_written_is_told(tmp_path: Path, path: str) -> None:
    with pytest.raises(FolderError, match="`--json` must name a file .*, or choose another"):
        write_json(1, str(tmp_path / path))
