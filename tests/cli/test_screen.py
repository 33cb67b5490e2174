"""The screen: names, paths and captions are data, whatever stands in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("rich", reason='pip install "manyarms[lab]"')

import manyarms as ma
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
    assert capsys.readouterr().err == f"manyarms: {SHOWN}\n"


def test_a_policys_own_name_is_shown_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_makers", dict(registry._makers))
    ma.register("[red]mine[/]", ma.MOSS)
    assert main(["policies"]) == 0
    assert "[red]mine[/]" in capsys.readouterr().out


def test_errors_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", f"no/{NASTY}"]) == 1
    assert SHOWN in capsys.readouterr().err


def test_json_is_what_was_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_json({NASTY: NASTY}, "-")
    assert json.loads(capsys.readouterr().out) == {NASTY: NASTY}
    write_json([NASTY], str(tmp_path / "a.json"))
    assert json.loads((tmp_path / "a.json").read_text()) == [NASTY]


@pytest.mark.parametrize("path", ["", "x" * 300])
def test_a_file_that_cannot_be_written_is_told(tmp_path: Path, path: str) -> None:
    with pytest.raises(FolderError, match="`--json` must name a file .*, or choose another"):
        write_json(1, str(tmp_path / path))


def test_the_bar_counts_each_run_once() -> None:
    total = 0
    with watching() as watch:
        for _ in range(3):
            begun = watch.begin("a run")
            for done in (0, 2000, 4000, 4000):  # the end may be told twice
                begun(done, 4000, "")
            total += 4000
            assert watch._before + watch._now == total
