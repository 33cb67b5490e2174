"""`simulate`: shapes, reproducibility, checkpoints, progress and errors."""

from __future__ import annotations

import itertools
import math
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.core.statistics import mean_interval
from manyarms.simulation import Player, Sweep, cell, run_in_memory
from manyarms.simulation.results import Result
from manyarms.simulation.summary import Which
from tests.report.made import made_result

INSTANCE = ma.instances.planted(n=300, m=10)
POLICIES = [ma.MOSS(), ma.MOSSPlusPlus(), ma.EmpMOSSPlusPlus(), ma.Parallel()]


class _Plain:
    def ask(self) -> int:
        return 0

    def tell(self, arm: int, reward: float) -> None:
        pass


def _simulate(**changes: object) -> Result:
    arguments: dict[str, object] = {"horizon": 200, "replications": 7, "seed": 3, "workers": 1}
    arguments |= changes
    return ma.simulate(POLICIES, INSTANCE, **arguments)  # type: ignore[arg-type]


def test_the_contents_of_a_result() -> None:
    result = _simulate(record_arms=True)
    assert result.policies == ("moss", "moss++", "empmoss++", "parallel")
    assert result.specifications[1] == repr(ma.MOSSPlusPlus())
    assert result.regret.shape == (4, 7, 100)
    assert (result.best_mean, result.horizon, result.seed, result.n_arms) == (0.9, 200, 3, 300)
    assert result.arms is not None
    assert result.arms.shape == (4, 7, 200)
    for k in range(4):
        for r in range(7):
            arms = result.arms[k, r]
            means = np.array([INSTANCE.mean(int(arm)) for arm in arms])
            regrets = np.cumsum(0.9 - means)[result.times - 1]
            np.testing.assert_allclose(result.regret[k, r], regrets, atol=1e-9)
            best = np.flatnonzero(means == 0.9)
            assert result.best_pulls[k, r] == len(best)
            assert result.first_best[k, r] == (best[0] + 1 if len(best) else 0)
            assert result.distinct_arms[k, r] == len(set(arms))
            kept = result.recommended[k, r]
            assert kept in arms
            assert result.recommended_mean[k, r] == INSTANCE.mean(int(kept))
            assert result.simple_regret[k, r] == 0.9 - INSTANCE.mean(int(kept))


@pytest.mark.compiled
def test_the_same_bits_alone_or_together() -> None:
    together = _simulate()
    for r in (0, 3, 6):
        alone = _simulate(first_replication=r, replications=1)
        np.testing.assert_array_equal(alone.regret[:, 0], together.regret[:, r])
    for k, policy in enumerate(POLICIES):
        alone = ma.simulate(policy, INSTANCE, horizon=200, replications=7, seed=3)
        np.testing.assert_array_equal(alone.regret[0], together.regret[k])


def test_seeds_and_replications_differ() -> None:
    result = _simulate()
    assert len({float(x) for x in result.regret[1, :, -1]}) > 1
    assert not np.array_equal(result.regret, _simulate(seed=4).regret)


def test_all_policies_get_the_same_rewards() -> None:
    # rewards depend on the arm and its count, not on the policy or the time, so policies that pull
    # every arm once, in any order, get the same total
    instance = ma.instances.from_means([0.5] * 64)
    policies = [ma.MOSS(), ma.MOSSOracle(size=64), ma.MOSSPlusPlus(beta=1.0)]
    result = ma.simulate(policies, instance, horizon=64, replications=3, record_arms=True)
    assert result.arms is not None
    assert (np.sort(result.arms, axis=2) == np.arange(64)).all()


def test_the_objective_find_changes_summaries_and_not_regret() -> None:
    result = _simulate()
    found = result.by("find")
    assert (found.objective, found.by("earn").objective) == ("find", "earn")
    np.testing.assert_array_equal(found.regret, result.regret)
    np.testing.assert_array_equal(found.simple_regret, result.simple_regret)
    np.testing.assert_array_equal(found.of("moss"), result.of("moss"))
    np.testing.assert_array_equal(found.largest_regret, result.largest_regret)
    np.testing.assert_array_equal(found.best_share("moss"), result.best_pulls[0] / 200)
    row, rate = result.summary(objective="find")["moss"], (result.simple_regret[0] == 0).mean()
    assert row == found.summary()["moss"]
    assert found.summary(objective="earn")["moss"] == result.summary()["moss"]
    assert row.mean == pytest.approx(result.simple_regret[0].mean())
    assert row.miss_rate == pytest.approx(1.0 - rate)
    interval = found.interval("moss")
    assert interval.estimate == row.mean
    assert 0.0 <= interval.low <= row.mean <= interval.high <= INSTANCE.largest_gap
    gaps = result.simple_regret[0] - result.simple_regret[1]
    assert found.difference("moss", "moss++").estimate == pytest.approx(gaps.mean())
    summary = found.summary()
    assert str(summary).startswith(f"simple regret on {INSTANCE.label} after 200 pulls")
    assert summary.table().head[-1] == "best"
    with pytest.raises(ma.ParameterError, match="a checkpoint, got 100. The nearest one is 200"):
        found.summary(time=100)
    with pytest.raises(ma.ParameterError, match="`objective` must be one of 'earn', 'find'"):
        result.summary(objective="keep")  # type: ignore[arg-type]


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("checkpoints", "times"),
    [
        (1, [200]),
        (4, [50, 100, 150, 200]),
        ([7, 3, 7], [3, 7, 200]),
        (np.array([200]), [200]),
        (None, list(range(2, 201, 2))),
    ],
)
def test_checkpoints(checkpoints: object, times: list[int]) -> None:
    result = _simulate(checkpoints=checkpoints)
    assert result.times.tolist() == times
    every = _simulate(checkpoints=200)
    np.testing.assert_array_equal(result.regret, every.regret[:, :, np.array(times) - 1])


def test_summary_numbers() -> None:
    result = _simulate()
    summary = result.summary(time=100)
    regret = result.of("moss++")[:, 49]
    row = summary["moss++"]
    assert row.mean == pytest.approx(regret.mean())
    assert row.se == pytest.approx(regret.std(ddof=1) / math.sqrt(7))
    assert (row.median, row.worst) == (np.median(regret), regret.max())
    assert (row.q05, row.q95, row.q99) == tuple(np.quantile(regret, [0.05, 0.95, 0.99]))
    first = result.first_best[0]
    assert summary["moss"].miss_rate == ((first == 0) | (first > 100)).mean()
    assert (row.replications, row.low, row.high) == (7, None, None)
    pair = next(p for p in summary.pairs if (p.first, p.second) == ("moss", "empmoss++"))
    gaps = result.of("moss")[:, 49] - result.of("empmoss++")[:, 49]
    assert pair.mean == pytest.approx(gaps.mean())
    assert pair.se == pytest.approx(gaps.std(ddof=1) / math.sqrt(7))
    assert (pair.median, pair.above, pair.below) == (
        np.median(gaps),
        (gaps > 0).sum(),
        (gaps < 0).sum(),
    )
    assert (pair.replications, pair.low, pair.high) == (7, None, None)
    ratio = result.ratio("moss", "empmoss++", time=100)
    assert ratio.low < ratio.estimate == summary["moss"].mean / summary["empmoss++"].mean


def test_shares_of_misses_are_those_at_the_time() -> None:
    few = ma.instances.planted(n=100, m=2)
    result = ma.simulate(POLICIES, few, horizon=200, replications=20, seed=3, record_arms=True)
    assert result.arms is not None
    shares = []
    for time in result.times.tolist():
        rows = result.summary(time=time)
        text = rows.table(columns=["missed", "best"]).rows
        for k, label in enumerate(result.policies):
            missed = (result.arms[k, :, :time] >= 2).all(axis=1).mean()  # arms 0 and 1 are best
            assert rows[label].miss_rate == missed
            assert text[k][1:] == [f"{missed:.1%}", f"{1 - missed:.1%}"]
            shares.append(missed)
    assert 0.9 < shares[0] <= 1.0  # after two pulls
    assert min(shares) == 0.0
    long = result.summary(objective="find")  # counts the arms recommended in the end
    assert long["moss"].miss_rate == (result.recommended[0] >= 2).mean()


def test_equal_losses_are_ties() -> None:
    means = [0.3] * 4 + [0.2] * 6 + [0.1] * 10
    policies = [ma.MOSSOracle(size=8), ma.MOSSOracle(size=9), ma.MOSSOracle(size=7)]
    instance = ma.instances.from_means(means)
    result = ma.simulate(policies, instance, horizon=40, replications=100, record_arms=True)
    assert result.arms is not None
    for objective in ("earn", "find"):
        gaps = np.array([3 - round(10 * mean) for mean in means])  # in tenths, exactly
        exact = gaps[result.arms].sum(axis=2) if objective == "earn" else gaps[result.recommended]
        places = itertools.combinations(range(3), 2)
        ties = 0
        summary = result.by(objective).summary()
        for pair, (k, other) in zip(summary.pairs, places, strict=True):
            differences = exact[k] - exact[other]
            assert pair.above == (differences > 0).sum()
            assert pair.below == (differences < 0).sum()
            assert pair.mean == pytest.approx(differences.mean() / 10)
            ties += (differences == 0).sum()
        assert ties > 20


def test_gaffkes_intervals_are_shown_on_request() -> None:
    result = _simulate()
    summary = result.summary(time=100, interval="gaffke", confidence=0.9)
    row, gaps = summary["moss++"], result.of("moss")[:, 49] - result.of("moss++")[:, 49]
    pair = next(p for p in summary.pairs if (p.first, p.second) == ("moss", "moss++"))
    # means from 0.1 to 0.9: 100 pulls lose at most 80, and a difference is at most 80
    regret = result.of("moss++")[:, 49]
    assert (row.low, row.high) == mean_interval(regret, bounds=(0.0, 80.0), confidence=0.9)[1:]
    assert (pair.low, pair.high) == mean_interval(gaps, bounds=(-80, 80), confidence=0.9)[1:]
    assert result.interval("moss++", time=100, confidence=0.9) == (row.mean, row.low, row.high)
    found = result.difference("moss", "moss++", time=100, confidence=0.9)
    assert found == (pair.mean, pair.low, pair.high)
    low, high = result.intervals("moss++", confidence=0.9)
    assert (low[49], high[49]) == pytest.approx((row.low, row.high))
    assert str(summary).count("90 % interval") == 2
    frame = summary.to_dataframe(library="pandas")
    assert frame["low"].tolist() == [one.low for one in summary.policies]
    assert "low" not in result.summary().to_dataframe(library="pandas")
    with pytest.raises(ma.ParameterError, match="`interval` must be 'gaffke'|one of 'gaffke'"):
        result.summary(interval="student")  # type: ignore[arg-type]


def test_a_summary_becomes_markdown_and_latex() -> None:
    result = made_result({"moss++": [7.0, 9.0], "my_own|one": [2.0, 4.0]}, [100])
    summary = result.summary()
    marked = summary.to_markdown().splitlines()
    assert marked[0] == "| policy | mean ± standard error | median | 99 % | worst run |"
    assert [line.split(" | ")[0] for line in marked[2:]] == ["| moss++", "| my_own\\|one"]
    assert "| moss++ - my_own\\|one | 5.0 ± 0.0 | 5.0 | 2 of 2 |" in summary.to_markdown("pairs")
    latex = summary.to_latex().splitlines()
    assert latex[1] == r"\begin{tabular}{@{}lrrrr@{}}"
    assert latex[3] == r"policy & mean $\pm$ SE & median & 99 \% & worst run \\"
    assert latex[5] == r"moss++ & 8.0 $\pm$ 1.0 & 8.0 & 9.0 & 9.0 \\"
    assert latex[6].startswith(r"my\_own|one & 3.0 $\pm$ 1.0 &")
    assert r"moss++ $-$ my\_own|one & 5.0 $\pm$ 0.0 &" in summary.to_latex("pairs")
    chosen = summary.to_latex(columns=["median", "missed", "runs"]).splitlines()
    assert chosen[3] == r"policy & median & missed & runs \\"
    assert chosen[5] == r"moss++ & 8.0 & 0.0\% & 2 \\"
    with pytest.raises(ma.ParameterError, match="`which` must be"):
        summary.to_latex("runs")  # type: ignore[arg-type]
    with pytest.raises(ma.ParameterError, match="`columns` must be one of 'mean', .* got 'meen'"):
        summary.table(columns=["meen"])
    with pytest.raises(ma.ParameterError, match="has none. Use result.summary\\(interval="):
        summary.table(columns=["interval"])


def test_summaries_refuse_unknown_checkpoints_and_policies() -> None:
    result = _simulate()
    with pytest.raises(ma.ParameterError, match="a checkpoint, got 99. The nearest one is"):
        result.summary(time=99)
    with pytest.raises(ma.ParameterError, match="`confidence` must be a number > 0 and < 1, got 1"):
        result.summary(interval="gaffke", confidence=1.0)
    with pytest.raises(ma.ParameterError, match="`time` must be an integer"):
        result.summary(time="x")  # type: ignore[arg-type]
    assert "99.9 % interval" in str(result.summary(interval="gaffke", confidence=0.999))
    with pytest.raises(ma.UnknownNameError, match="Did you mean 'moss"):
        result.of("mosss")
    with pytest.raises(ma.UnknownNameError, match="Did you mean 'quantile'|Known: "):
        result.summary()["quantil"]


def test_progress_is_reported() -> None:
    seen: list[tuple[int, int, str]] = []
    _simulate(progress=lambda done, total, note: seen.append((done, total, note)))
    assert seen[0][:2] == (0, 4 * 7 * 200)
    assert seen[-1][:2] == (5600, 5600)
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)


def test_the_progress_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _simulate()  # compile first
    monkeypatch.setattr("manyarms.simulation.progress._QUIET_SECONDS", 600.0)
    _simulate(progress=True)
    assert capsys.readouterr().err == ""  # short runs show no progress
    monkeypatch.setattr("manyarms.simulation.progress._QUIET_SECONDS", 0.0)
    _simulate(progress=True)
    assert "compiling" not in capsys.readouterr().err
    monkeypatch.setattr("manyarms.simulation.runner.CpuRunner.is_compiled", False)
    _simulate(progress=True)
    shown = capsys.readouterr().err
    assert "compiling empmoss++" in shown
    assert shown.rstrip(" ").endswith("\n")
    assert "100%" in shown


def test_an_error_in_a_worker_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("in a worker")

    monkeypatch.setattr("manyarms.simulation.runner.CpuRunner.play", fail)
    with pytest.raises(ZeroDivisionError, match="in a worker"):
        _simulate(workers=2)


def test_bad_input_is_refused_before_anything_compiles() -> None:
    seen: list[Any] = []
    policies = [ma.MOSS(), ma.MOSSOracle(m=301)]
    with pytest.raises(ma.ParameterError, match="`m` must be .* <= 300, got 301"):
        ma.simulate(policies, INSTANCE, horizon=10, progress=lambda *shown: seen.append(shown))
    assert seen == []


def test_threads_end_with_the_simulation() -> None:
    _simulate(workers=8)
    assert not [t for t in threading.enumerate() if t.name.startswith("manyarms")]


@pytest.mark.patient
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_stops_all_threads() -> None:
    code = (
        "import manyarms as ma, signal, sys, threading\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell may ignore it
        "instance = ma.instances.planted(n=1000, m=10)\n"
        "def note(done, total, text):\n"
        "    if done: print('playing', flush=True)\n"
        "try:\n"
        "    ma.simulate(ma.MOSSPlusPlus(), instance, horizon=10**9, workers=2, progress=note)\n"
        "except KeyboardInterrupt:\n"
        "    alive = [t for t in threading.enumerate() if t.name.startswith('manyarms')]\n"
        "    sys.exit(42 if not alive else 1)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "playing\n"
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=300) == 42  # all pulls would take minutes
    child.stdout.close()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "`horizon` must be an integer >= 1"),
        ({"workers": 0}, "`workers` must be an integer >= 1, got 0"),
        ({"checkpoints": [5, 201]}, "`checkpoints` must be .* got 201"),
        ({"checkpoints": "12"}, "`checkpoints` must be .* got '1'"),
        ({"progress": 3}, "`progress` must be True, False"),
    ],
)
def test_bad_arguments(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ma.ParameterError, match=message):
        _simulate(**changes)


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ([], "at least one policy, got none"),
        ("moss", r"got 'moss'. For a name use policy\('moss'\)"),
        ([ma.MOSS], "Call the class: MOSS"),
        ([dict], r"To be simulated, a class needs `ask\(\)` and `tell\(arm, reward\)`"),
        ([_Plain()], "Pass the class, _Plain: each replication creates its own instance"),
        ([ma.MOSS(), ma.MOSS()], "got moss twice"),
    ],
)
def test_bad_policies(policies: list[ma.Policy], message: str) -> None:
    with pytest.raises(ma.ParameterError, match=message):
        ma.simulate(policies, INSTANCE, horizon=10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"replications": 10**9}, "small enough for 1e\\+09 numbers .*got 1.03e\\+11. Use fewer"),
        ({"replications": 10**5, "record_arms": True}, "every pull, got 1e\\+14"),
    ],
)
def test_results_larger_than_memory_are_refused(options: dict[str, Any], words: str) -> None:
    instance = ma.instances.planted(n=10, m=1)
    with pytest.raises(ma.ParameterError, match=f"^`replications` must .*{words}"):
        ma.simulate(ma.MOSS(), instance, horizon=10**9, **options)


def test_recorded_arms_need_equal_numbers_of_replications() -> None:
    instance = ma.instances.planted(n=10, m=1)
    players = [Player(ma.MOSS(), "few", 2), Player(ma.Quantile(), "many", 3)]
    uneven = cell(players, instance, horizon=9, parameters={"cell": 1})
    even = cell(players[:1], instance, horizon=9, parameters={"cell": 2})
    played: list[int] = []
    message = "`record_arms` must be False if .*, got {'few': 2, 'many': 3}. Give them the same"
    with pytest.raises(ma.ParameterError, match=message):
        run_in_memory(
            Sweep("both", (even, uneven)),
            record_arms=True,
            progress=lambda done, total, note: played.append(done),
        )
    assert not played
    sweep = Sweep("other cells", (even, cell(players[1:], instance, horizon=9)))
    recorded = run_in_memory(sweep, record_arms=True).cells
    assert [one.arms.shape for one in recorded if one.arms is not None] == [(1, 2, 9), (1, 3, 9)]


def test_the_first_replications_have_no_computing_time_of_all() -> None:
    instance = ma.instances.planted(n=10, m=1)
    players = [Player(ma.MOSS(), "few", 2), Player(ma.Quantile(), "many", 3)]
    result = run_in_memory(Sweep("both", (cell(players, instance, horizon=9),))).cells[0]
    assert result.first(1).seconds == {}
    assert result.first(2).seconds == {"few": result.seconds["few"]}
    assert result.first(3).seconds == result.first(9).seconds == result.seconds
    assert result.first(2).first(2).seconds == {"few": result.seconds["few"]}


@pytest.mark.parametrize("checkpoints", [10**9, itertools.count(1), range(1, 10**9)])
def test_too_many_checkpoints_are_refused(checkpoints: Any) -> None:
    instance = ma.instances.planted(n=10, m=1)
    with pytest.raises(ma.ParameterError, match="`checkpoints` must be .*1000000"):
        ma.simulate(ma.MOSS(), instance, horizon=10**9, checkpoints=checkpoints)


@pytest.mark.parametrize("which", ["policies", "pairs"])
def test_latex_fits_one_column_of_a_two_column_paper(which: Which) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    names = ["moss", "moss-oracle", "quantile", "parallel", "moss++(beta=0.6)", "empmoss++"]
    regrets = {name: [15_772.4 + k, 25_772.4, 15_000.0] for k, name in enumerate(names)}
    latex = made_result(regrets, [50_000]).summary().to_latex(which)
    # \footnotesize in a document of 10 points is Computer Modern at 8 points
    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "cmr10.ttf"
    font = FontProperties(fname=path)
    rows = [line[:-3].split(" & ") for line in latex.splitlines() if line.endswith(r"\\")]
    plain = [[_plain_latex(cell) for cell in row] for row in rows]

    def width(text: str) -> float:
        return float(TextPath((0, 0), text, size=8, prop=font).get_extents().width)

    points = sum(max(map(width, column)) for column in zip(*plain, strict=True))
    assert points + 2 * 3 * (len(rows[0]) - 1) <= 72.27 * 3.4


def _plain_latex(cell: str) -> str:
    """Return the characters of a cell; a plus replaces a sign of the same width."""
    return cell.replace(r"$\pm$", "+").replace("$-$", "+").replace("\\", "")
