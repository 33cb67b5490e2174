"""The command line: output, files, errors and exit status."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import manyarms as ma
from manyarms.cli.main import _plain_warnings, main
from tests.helpers import run_python

SMALL = ["--n", "200", "--m", "5", "--horizon", "60", "--replications", "4"]
SIMULATE = ["simulate", "--policy", "moss", *SMALL]
ADVISE = ["advise", "--n", "500", "--horizon", "60", "--replications", "2"]
ADVISE += ["--policies", "moss,ss-greedy"]

Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command and returns its output or its error message."""

    def run(*words: str, code: int = 0) -> str:
        capsys.readouterr()
        assert main(list(words)) == code
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        assert code == 0 or words[0] == "data" or printed.out == ""
        return printed.err if code else printed.out

    return run


def test_simulate_prints_json_for_each_policy(run: Run) -> None:
    names = ["--policy", "moss++", "--policy", "empmoss++:beta=0.6,rank=pulled"]
    rows = json.loads(run("simulate", *names, *SMALL, "--seed", "1", "--json", "-"))
    assert [row["policy"] for row in rows] == [
        "moss++",
        "empmoss++(beta=0.6, rank='pulled')",
    ]
    needed = {"policy", "mean", "se", "median", "q05", "q95", "replications", "seconds"}
    assert all(needed <= row.keys() for row in rows)
    instance = ma.instances.planted(n=200, m=5)
    expected = ma.simulate(ma.MOSSPlusPlus(), instance, horizon=60, replications=4, seed=1)
    assert rows[0]["mean"] == expected.summary().policies[0].mean


def test_simulate_reports_checkpoints(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    assert run(*SIMULATE, "--checkpoints", "20,40", "--json", str(path)) == ""
    (row,) = json.loads(path.read_text())
    assert list(row["regret_at"]) == ["20", "40"]
    assert 0 <= row["regret_at"]["20"] <= row["regret_at"]["40"] <= row["mean"]


@pytest.mark.parametrize("objective", ["earn", "find"])
def test_simulate_prints_checkpoints(objective: str, run: Run) -> None:
    words = [*SIMULATE, "--policy", "quantile", "--checkpoints", "20,40", "--objective", objective]
    printed = run(*words).splitlines()
    rows = json.loads(run(*words, "--json", "-"))
    place = printed.index("mean regret at the checkpoints") + 1
    assert printed[place].split() == ["policy", "20", "40"]
    for line, row in zip(printed[place + 1 :], rows, strict=True):
        assert line.split() == [row["policy"], *(f"{x:.1f}" for x in row["regret_at"].values())]


@pytest.mark.parametrize("option", ["--n", "--m", "--alpha"])
def test_options_for_planted_arms_are_refused_beside_an_instance(
    option: str, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_text("arm,reward\n007,1\n7,0\n7,1\n")
    words = ["simulate", "--policy", "moss-oracle", "--horizon", "9", "--replications", "2"]
    words += ["--instance", f"rewards:{tmp_path / 'log.csv'}"]
    assert "log.csv(n=2, 3 rewards)" in run(*words)
    assert f"`{option}` must be left out with --instance, got 1" in run(*words, option, "1", code=2)


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("moss-oracle:m=2.0", "cannot be 'moss-oracle:m=2.0': 'm' must be an integer >= 1"),
        ("moss-oracle:m=1_0", "cannot be 'moss-oracle:m=1_0': 'm' must be an integer >= 1"),
        ("moss-oracle:m=999", "'m' must be an integer >= 1 and <= 200, got 999"),
        ("moss++:beta=0.6,beta=0.7", "`--policy` must have 'beta' once"),
        ("moss++(beta=0.6):beta=0.7", "'beta' must be given once"),
    ],
)
def test_errors_about_parameters_of_a_policy_name_no_option(
    policy: str, reason: str, run: Run
) -> None:
    assert reason in run(*SIMULATE, "--policy", policy, code=2)


def test_a_policy_is_made_for_the_given_horizon_alone(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
import math
from dataclasses import dataclass
import manyarms as ma

@dataclass(frozen=True, kw_only=True)
class ByLogarithm(ma.MOSS):
    name = "by-logarithm"

    def new_state(self, memory, *, n_arms, pulls):
        math.sqrt(1.0 / math.log(pulls))  # needs two pulls
        return super().new_state(memory, n_arms=n_arms, pulls=pulls)
"""
    (tmp_path / "by_logarithm.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    planted = ["--n", "20", "--m", "2", "--horizon", "40", "--replications", "2"]
    output = run("simulate", "--policy", "by_logarithm:ByLogarithm", *planted)
    assert "by-logarithm" in output


def test_simulate_prints_a_table(run: Run) -> None:
    printed = run(*SIMULATE, "--policy", "moss-oracle")
    assert printed.count("paired difference") == 1
    assert "regret on planted(n=200, m=5) after 60 pulls, 4 replications" in printed


def test_simulate_with_objective_find(run: Run) -> None:
    printed = run(*SIMULATE, "--objective", "find")
    assert "simple regret on planted(n=200, m=5) after 60 pulls, 4 replications" in printed
    (row,) = json.loads(run(*SIMULATE, "--objective", "find", "--json", "-"))
    assert 0.0 <= row["mean"] <= 0.8


def test_advise_simulates_own_data(run: Run, tmp_path: Path) -> None:
    (tmp_path / "arms.csv").write_text("name,mean,rate\na,0.1,0.3\nb,0.2,0.9\nc,0.7,0.9\n")
    words = ["advise", "--horizon", "40", "--policies", "moss", "--replications", "2"]
    for column in ("", ":rate"):
        data = f"means:{tmp_path / 'arms.csv'}{column}"
        found = json.loads(run(*words, "--instance", data, "--json", "-"))
        assert found["n_arms"] == 3
        assert len(found["problems"]) == 1


def test_advise_reads_names_of_recorded_rewards_as_text(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("item,paid\n007,0\n7,1\n1e3,0\n1000,1\n1e3,0.5\n")
    words = ["advise", "--horizon", "40", "--policies", "moss", "--replications", "2"]
    words += ["--instance", f"rewards:{path}:item,paid"]
    assert json.loads(run(*words, "--json", "-"))["n_arms"] == 4
    path.write_text("item,paid\n007,0\nNA,1\n")
    assert "`table` must have the name of an arm in each row" in run(*words, code=2)


def test_advise_writes_json(run: Run, tmp_path: Path) -> None:
    words = [*ADVISE, "--best-mean", "0.8", "--objective", "find"]
    whole = json.loads(run(*words, "--json", "-"))
    assert whole["objective"] == "find"
    assert {row["policy"] for row in whole["rows"]} == {"moss", "ss-greedy"}
    path = tmp_path / "advice.json"
    assert run(*words, "--json", str(path)) == ""
    assert json.loads(path.read_text()) == whole


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.compiled
def test_the_docs_show_the_output_of_advise(run: Run) -> None:
    page = (Path(__file__).parents[2] / "docs" / "choosing.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page, re.M | re.S)
    (command,) = re.findall(r"^manyarms (advise .*)$", page, re.M)
    assert run(*command.split()) == shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["simulate", "--policy", "mosss", *SMALL], "Did you mean 'moss'?"),
        (
            ["simulate", "--policy", "no:Mine", *SMALL],
            "`--policy` must be a class that",
        ),
        (["simulate", "--policy", "moss", "--horizon", "9"], "`--n` is required"),
        ([*SIMULATE, "--instance", "magic"], "`--instance` must be captions"),
        (["simulate", "--nonsense"], "nonsense"),
        ([*ADVISE, "--m-at-least", "501"], "`--m-at-least` must be an integer >= 1 and <= 499"),
        ([*ADVISE, "--best-mean", "a,b"], "must be numbers such as 0.9 or 0.01,0.05, got 'a,b'."),
        (["advise", "--horizon", "9"], "one of `--n` and `--instance` must be given, got none"),
        ([*ADVISE, "--json", "no/such/a.json"], "must name a file in a folder that exists"),
    ],
)
def test_bad_usage_prints_one_sentence_and_exits_with_2(
    words: list[str], message: str, run: Run
) -> None:
    assert message in run(*words, code=2)


def test_a_file_that_cannot_be_written_prints_one_sentence(run: Run, tmp_path: Path) -> None:
    assert "Is a directory" in run(*ADVISE, "--json", str(tmp_path), code=1)


def test_debug_shows_the_traceback() -> None:
    with pytest.raises(ma.UnknownNameError):
        main(["--debug", "simulate", "--policy", "mosss", *SMALL])


@pytest.mark.slow
@pytest.mark.compiled
def test_warm_compiles_everything(run: Run) -> None:
    assert "8 policies compiled" in run("warm")


def test_help_needs_neither_numba_nor_matplotlib() -> None:
    done = run_python(
        "import sys\nfrom manyarms.cli.main import main\n"
        "for words in (['--version'], ['--help'], ['simulate', '--help']):\n"
        "    assert main(words) == 0\n"
        "assert not {'numba', 'matplotlib', 'numpy', 'pyarrow'} & set(sys.modules)\n"
    )
    assert done.stdout.count("Usage: manyarms") == 2


def test_without_the_extra_the_command_line_says_what_to_install() -> None:
    done = run_python(
        "import sys\nsys.modules['click'] = None\nfrom manyarms.cli.main import main\n"
        "assert main(['--help']) == 1\n"
    )
    assert 'pip install "manyarms[sim]"' in done.stderr


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
def contest(contest_folder: Path) -> Path:
    path = contest_folder / "777.csv"
    path.write_text(CONTEST)
    return path


def test_data_lists_and_describes_contests(contest: Path, run: Run) -> None:
    assert "777" in run("data", "list")
    printed = run("data", "info", "777")
    assert "captions       2" in printed
    assert "One, two." in printed
    assert "778" in run("data", "info", "778", code=1)
    contest.unlink()
    assert "manyarms data get 652" in run("data", "list")  # there is none


def test_simulate_on_a_contest(contest: Path, run: Run) -> None:
    words = ["--policy", "moss", "--horizon", "20", "--replications", "2"]
    for name in ("777", str(contest)):
        printed = run("simulate", *words, "--instance", f"captions:{name}")
        assert "captions(777, n=2" in printed


def test_a_warning_prints_one_sentence_without_code() -> None:
    usual = warnings.formatwarning
    with _plain_warnings():
        ours = warnings.formatwarning("Too wide.", ma.errors.CacheWarning, "a.py", 7, "play()")
        other = warnings.formatwarning("Old.", DeprecationWarning, "a.py", 7, "play()")
    assert ours == "manyarms: Too wide.\n"
    assert other == usual("Old.", DeprecationWarning, "a.py", 7, "play()")
    assert warnings.formatwarning is usual
