"""The command line: what it prints, what it refuses, how it ends."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import manyarms as ma
from manyarms.cli.main import main
from tests.helpers import run_python

SMALL = ["--n", "200", "--m", "5", "--horizon", "60", "--replications", "4"]


def run(*words: str) -> int:
    return main(list(words))


def test_simulate_prints_json_for_each_policy(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["--policy", "moss++", "--policy", "empmoss++:beta=0.6,rank=pulled"]
    assert run("simulate", *names, *SMALL, "--seed", "1", "--json", "-") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["policy"] for row in rows] == ["moss++", "empmoss++"]
    needed = {"policy", "mean", "se", "median", "q05", "q95", "replications", "seconds"}
    assert all(needed <= row.keys() for row in rows)
    instance = ma.instances.planted(n=200, m=5)
    expected = ma.simulate(ma.MOSSPlusPlus(), instance, horizon=60, replications=4, seed=1)
    assert rows[0]["mean"] == expected.summary().policies[0].mean


def test_simulate_reports_checkpoints(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    words = ["--policy", "moss", *SMALL, "--checkpoints", "20,40", "--json", str(path)]
    assert run("simulate", *words) == 0
    (row,) = json.loads(path.read_text())
    assert list(row["regret_at"]) == ["20", "40"]
    assert 0 <= row["regret_at"]["20"] <= row["regret_at"]["40"] <= row["mean"]
    assert capsys.readouterr().out == ""


def test_simulate_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--policy", "moss-oracle", "--policy", "moss", *SMALL]
    assert run("simulate", *words) == 0
    printed = capsys.readouterr().out
    assert "paired differences" in printed
    assert "regret on planted(n=200, m=5) after 60 pulls, 4 replications" in printed


def test_an_oracle_is_told_the_hardness(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--n", "200", "--alpha", "0.5", "--horizon", "50", "--replications", "2"]
    assert run("simulate", "--policy", "moss-oracle", *words, "--json", "-") == 0
    told = json.loads(capsys.readouterr().out)
    policy = "moss-oracle:alpha=0.5"
    assert run("simulate", "--policy", policy, *words, "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)[0]["mean"] == told[0]["mean"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "mosss", *SMALL], "Did you mean 'moss'?"),
        (["--policy", "moss:betta=1", *SMALL], "'betta'"),
        (["--policy", "moss:beta", *SMALL], "name:key=value"),
        (["--policy", "moss++:beta=0.1", *SMALL], "`beta` must be a number >= 0.5"),
        (["--policy", "moss", "--horizon", "9"], "`--n` is required"),
        (["--policy", "moss", *SMALL, "--instance", "magic"], "`--instance` must be planted"),
        (["--policy", "moss", *SMALL, "--checkpoints", "a,b"], "`--checkpoints` must be times"),
        (["--policy", "moss", *SMALL, "--checkpoints", "9,99"], "`checkpoints` must be"),
        (["--policy", "moss", *SMALL, "--seed", "-1"], "`seed` must be"),
        (["--policy", "moss", "--n", "9", "--alpha", "2", "--horizon", "9"], "`alpha` must be"),
        (["--policy", "moss", "--n", "x", "--horizon", "9"], "'x' is not a valid"),
        (["--policy", "moss"], "horizon"),
        (["--nonsense"], "nonsense"),
    ],
)
def test_bad_usage_is_one_sentence_and_exits_with_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("simulate", *words) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_debug_shows_the_traceback() -> None:
    with pytest.raises(ma.UnknownNameError):
        run("--debug", "simulate", "--policy", "mosss", *SMALL)


def test_policies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("policies") == 0
    printed = capsys.readouterr().out
    for name in ("moss++", "anytime-parallel", "quantile"):
        assert name in printed


@pytest.mark.compiled
def test_warm_compiles_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("warm") == 0
    assert "8 policies ready" in capsys.readouterr().out


@pytest.mark.compiled
def test_reproduce_plays_shows_and_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # the same problems, on a hundredth of the arms and pulls
    monkeypatch.setattr("manyarms.studies.best_mean.N_ARMS", 200)
    monkeypatch.setattr("manyarms.studies.best_mean.HORIZON", 500)
    words = ["reproduce", "best-mean", "--replications", "3", "--out", str(tmp_path)]
    assert run(*words) == 0
    printed = capsys.readouterr().out
    assert "best mean told" in printed
    assert f"files in {tmp_path}" in printed
    assert (tmp_path / "best_mean.svg").is_file()
    (results,) = (tmp_path / "results").iterdir()
    before = {path.name: path.stat().st_mtime_ns for path in results.iterdir()}
    assert run(*words) == 0  # what is finished is not played again
    assert {path.name: path.stat().st_mtime_ns for path in results.iterdir()} == before


def test_reproduce_refuses_bad_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("reproduce", "--replications", "0") == 2
    assert "`replications` must be an integer >= 1, got 0.\n" in capsys.readouterr().err
    assert run("reproduce", "fig9") == 2


def test_an_interrupt_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*words: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("manyarms.studies.study.reproduce", interrupt)
    assert run("reproduce") == 130
    assert capsys.readouterr().err.lstrip() == "manyarms: interrupted\n"


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["reproduce", "--help"]])
def test_help_needs_neither_numba_nor_matplotlib(words: list[str]) -> None:
    begun = time.perf_counter()
    done = run_python(
        "import sys\nfrom manyarms.cli.main import main\n"
        f"assert main({words!r}) == 0\n"
        "assert not {'numba', 'matplotlib', 'numpy', 'pyarrow'} & set(sys.modules)\n"
    )
    assert "manyarms" in done.stdout
    assert time.perf_counter() - begun < 30  # it answers at once; this catches a hang


def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    from manyarms.cli.app import app

    for name, command in app.commands.items():
        assert f"Example: manyarms {name}" in (command.help or "")
        assert run(name, "--help") == 0
    assert "Usage" in capsys.readouterr().out


def test_without_the_extra_the_command_line_says_what_to_install() -> None:
    done = run_python(
        "import sys\nsys.modules['click'] = None\nfrom manyarms.cli.main import main\n"
        "assert main(['--help']) == 1\n"
    )
    assert 'pip install "manyarms[lab]"' in done.stderr


def test_the_package_runs_as_a_module() -> None:
    done = run_python(
        "import runpy, sys; sys.argv[1:] = ['--version']\n"
        "try: runpy.run_module('manyarms', run_name='__main__')\n"
        "except SystemExit as end: assert end.code == 0"
    )
    assert done.stdout == f"manyarms {ma.__version__}\n"


CONTEST = """caption,mean,precision,votes,not_funny,somewhat_funny,funny
"One, two.",1.5,0.1,10,5,3,2
Three.,1.2,0.1,10,9,1,0
"""


@pytest.fixture
def contests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "contests"
    folder.mkdir()
    (folder / "777.csv").write_text(CONTEST)
    monkeypatch.setenv("MANYARMS_DATA", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def test_data_lists_and_describes_contests(
    contests: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("data", "list") == 0
    assert "777" in capsys.readouterr().out
    assert run("data", "info", "777") == 0
    printed = capsys.readouterr().out
    assert "captions       2" in printed
    assert "One, two." in printed
    assert run("data", "info", "778") == 1
    assert "778" in capsys.readouterr().err


def test_data_says_when_there_is_none(contests: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (contests / "777.csv").unlink()
    assert run("data", "list") == 0
    assert "manyarms data get 652" in capsys.readouterr().out


def test_data_get_says_why_it_failed(contests: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("data", "get", "777") == 0  # it is there already
    assert run("data", "get", "not a contest!") == 2
    assert "must be" in capsys.readouterr().err


def test_simulate_on_a_contest(contests: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--policy", "moss", "--horizon", "20", "--replications", "2"]
    for contest in ("777", str(contests / "777.csv")):
        assert run("simulate", *words, "--instance", f"captions:{contest}") == 0
        assert "captions(777, n=2" in capsys.readouterr().out


SPEC = """
[experiment]
name = "small"
horizon = 60
replications = 4
checkpoints = 6

[instance]
family = "planted"
n = 200
alpha = [0.2, 0.5]

[[policy]]
name = "moss++"
beta = [0.5, 0.75]

[[policy]]
name = "moss-oracle"
"""


def test_run_show_and_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, folder = tmp_path / "small.toml", tmp_path / "results"
    spec.write_text(SPEC)
    assert run("run", str(spec), "--out", str(folder)) == 0
    printed = capsys.readouterr().out
    assert "small: 2 settings, 24 games, 1.44e+03 pulls" in printed
    assert "moss++(beta=0.75)" in printed
    before = (folder / "regret.parquet").read_bytes()
    assert run("run", str(spec), "--out", str(folder)) == 0  # finished: nothing to do
    assert (folder / "regret.parquet").read_bytes() == before
    capsys.readouterr()
    assert run("show", str(folder), "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["alpha"], row["policy"]) for row in rows][:2] == [
        (0.2, "moss++(beta=0.5)"),
        (0.2, "moss++(beta=0.75)"),
    ]
    instance = ma.instances.planted(n=200, alpha=0.2, horizon=60)
    expected = ma.simulate(ma.MOSSPlusPlus(), instance, horizon=60, replications=4)
    assert rows[0]["mean"] == expected.summary().policies[0].mean
    assert run("plot", str(folder)) == 0
    drawn = {path.name for path in (folder / "figures").iterdir()}
    assert {"hardness.png", "over_time_1.pdf", "over_time_2.svg"} <= drawn


def test_run_and_show_refuse_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "bad.toml"
    spec.write_text(SPEC.replace("beta", "betta").replace("horizon = 60", "horizon = 0"))
    assert run("run", str(spec), "--out", str(tmp_path / "out")) == 2
    message = capsys.readouterr().err
    assert "Did you mean 'beta'?" in message
    assert "horizon" in message
    assert not (tmp_path / "out").exists()
    assert run("show", str(tmp_path)) == 1
    assert "must hold results of manyarms" in capsys.readouterr().err
