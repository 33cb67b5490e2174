"""The command line, as far as it goes."""

from __future__ import annotations

import pytest

from manyarms.cli.main import main
from manyarms.experiments import fig2a
from tests.helpers import run_python


def test_figure_2a_is_the_papers() -> None:
    settings = fig2a()
    assert [setting.alpha for setting in settings] == [k / 10 for k in range(1, 10)]
    for setting in settings:
        assert setting.horizon == 50_000
        assert setting.instance.n_arms == 20_000
        assert [policy.name for policy in setting.policies] == [
            "moss",
            "moss-oracle",
            "quantile",
            "parallel",
            "moss++",
            "empmoss++",
        ]


@pytest.mark.compiled
def test_reproduce_prints_a_row_for_each_hardness(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "fig2a", "--replications", "2"]) == 0
    printed = capsys.readouterr()
    rows = [line for line in printed.out.splitlines() if line.startswith("  0.")]
    assert len(rows) == 9
    assert all(len(row.split("±")) == 7 for row in rows)
    assert "9 of 9" in printed.err


def test_bad_values_are_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--replications", "0"]) == 1
    message = capsys.readouterr().err.splitlines()[-1]
    assert message == "manyarms: `replications` must be an integer >= 1, got 0."


def test_bad_usage_exits_with_2() -> None:
    with pytest.raises(SystemExit) as caught:
        main(["reproduce", "fig9"])
    assert caught.value.code == 2


def test_an_interrupt_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(**options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("manyarms.cli.reproduce.reproduce_fig2a", interrupt)
    assert main(["reproduce"]) == 130
    assert capsys.readouterr().err == "\nmanyarms: interrupted\n"


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_need_neither_numba_nor_numpy(option: str) -> None:
    done = run_python(
        "import sys, manyarms.cli.main as cli\n"
        f"try: cli.main([{option!r}])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert not {'numba', 'numpy'} & set(sys.modules)\n"
    )
    assert "manyarms" in done.stdout


def test_the_package_runs_as_a_module() -> None:
    run_python(
        "import runpy, sys; sys.argv[1:] = ['reproduce', '--help']\n"
        "try: runpy.run_module('manyarms', run_name='__main__')\n"
        "except SystemExit as end: assert end.code == 0"
    )
