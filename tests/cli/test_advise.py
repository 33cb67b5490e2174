"""`manyarms advise`: what it prints, writes and refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import manyarms as ma
from manyarms.cli.main import main

SMALL = ["advise", "--n", "500", "--horizon", "60", "--replications", "2"]


def test_it_prints_the_advice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--m-at-least", "20", "--betas", "0.5,0.7", "--seed", "2"]) == 0
    printed = capsys.readouterr().out
    advice = ma.advise(n=500, horizon=60, m_at_least=20, betas=[0.5, 0.7], replications=2, seed=2)
    assert printed == f"{advice}\n"
    assert max(map(len, printed.splitlines())) < 120
    for word in ("Take", "because", "What would change it", "empmoss++ beta=0.7", "hardness"):
        assert word in printed


def test_it_writes_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = [*SMALL, "--alpha-at-most", "0.3", "--best-mean", "0.8", "--others", "0.2,0.7"]
    assert main([*words, "--json", "-"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert (whole["best_mean"], whole["others"]) == (0.8, [0.2, 0.7])
    needed = {"policy", "label", "beta", "alpha", "rate", "mean", "low", "high", "median",
              "miss_rate", "share", "excess", "ratio", "replications"}  # fmt: skip
    assert all(needed <= row.keys() for row in whole["rows"])
    path = tmp_path / "advice.json"
    assert main([*words, "--json", str(path)]) == 0
    assert json.loads(path.read_text()) == whole
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--m-at-least", "501"], "`m_at_least` must be an integer >= 1 and <= 500, got 501."),
        (["--m-at-least", "5", "--alpha-at-most", "0.1"], "Give the one that you know."),
        (["--alpha-at-most", "1.2"], "`alpha_at_most` must be a number >= 0 and <= 1, got 1.2."),
        (["--best-mean", "1.2"], "`best_mean` must be a number > 0 and <= 1, got 1.2."),
        (["--others", "a,b"], "`--others` must be numbers such as 0.1,0.3,0.5, got 'a,b'."),
        (["--betas", ""], "`--betas` must be numbers such as 0.5,0.6,0.75, got ''."),
        (["--others", "0.95"], "`others` must be a number >= 0 and < 0.9, got 0.95."),
        (["--replications", "0"], "`replications` must be an integer >= 1, got 0."),
        (["--seed", "-1"], "`seed` must be"),
        (["--workers", "0"], "`workers` must be an integer >= 1, got 0."),
        (["--json", "no/such/folder/a.json"], "`--json` must name a file in a folder that exists"),
        (["--n", "x"], "'x' is not a valid"),
        (["--n", "0"], "`n` must be an integer >= 1"),
        (["--horizon", "0"], "`horizon` must be an integer >= 1"),
    ],
)
def test_bad_usage_is_one_sentence_and_exits_with_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, *words]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_a_file_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, "--m-at-least", "500", "--json", str(tmp_path)]) == 1
    printed = capsys.readouterr().err
    assert "Is a directory" in printed
    assert "Traceback" not in printed


def test_what_must_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "--n", "5"]) == 2
    assert "--horizon" in capsys.readouterr().err


@pytest.mark.compiled
def test_the_docs_show_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "theory.md").read_text()
    (command,) = re.findall(r"^manyarms (advise .*)$", page, re.M)
    (shown,) = re.findall(r"^```text\n(.*?)\n```$", page, re.M | re.S)
    assert main(command.split()) == 0
    printed = capsys.readouterr().out
    for part in shown.split("\n…\n"):
        assert part in printed
