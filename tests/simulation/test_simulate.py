"""The simulator's front: shapes, bits, checkpoints, progress, errors."""

from __future__ import annotations

import itertools
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.core.statistics import mean_interval
from manyarms.simulation.results import Result
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


def test_what_a_result_holds() -> None:
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
            assert result.best_pulls[k, r] == (means == 0.9).sum()
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


def test_all_policies_face_the_same_luck() -> None:
    # what a policy is paid depends on the arm and its count, not on who pulls, or when: policies
    # that pull every arm once, in whatever order, collect the same
    instance = ma.instances.from_means([0.5] * 64)
    policies = [ma.MOSS(), ma.MOSSOracle(size=64), ma.MOSSPlusPlus(beta=1.0)]
    result = ma.simulate(policies, instance, horizon=64, replications=3, record_arms=True)
    assert result.arms is not None
    assert (np.sort(result.arms, axis=2) == np.arange(64)).all()


def test_a_result_by_the_objective_find_has_simple_regrets_in_all_its_tables() -> None:
    result = _simulate()
    found = result.by("find")
    assert found.by("find") is found
    assert result.by("earn") is result
    np.testing.assert_array_equal(found.regret[:, :, 0], result.simple_regret)
    row, rate = result.summary(objective="find")["moss"], (result.simple_regret[0] == 0).mean()
    assert row.mean == pytest.approx(result.simple_regret[0].mean())
    assert row.miss_rate == pytest.approx(1.0 - rate)
    assert 0.0 <= row.low <= row.mean <= row.high <= INSTANCE.largest_gap
    assert str(found.summary()).startswith(f"simple regret on {INSTANCE.label} after 200 pulls")
    with pytest.raises(ma.ParameterError, match="is about simple regret"):
        found.by("earn")
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
    summary = result.summary(time=100, confidence=0.9)
    regret = result.of("moss++")[:, 49]
    row = summary["moss++"]
    assert row.mean == pytest.approx(regret.mean())
    assert row.q95 == np.quantile(regret, 0.95)
    assert (row.q99, row.worst) == (np.quantile(regret, 0.99), regret.max())
    best_pulls = result.best_pulls[result.policies.index("moss++")]
    assert row.mostly_missed == (best_pulls < result.horizon / 10).mean()
    assert summary["moss"].miss_rate == (result.best_pulls[0] == 0).mean()
    assert row.se == pytest.approx(regret.std(ddof=1) / math.sqrt(7))
    assert (row.median, row.q05) == (np.median(regret), np.quantile(regret, 0.05))
    assert row.replications == 7
    pair = next(p for p in summary.pairs if (p.first, p.second) == ("moss", "empmoss++"))
    gaps = result.of("moss")[:, 49] - result.of("empmoss++")[:, 49]
    # means from 0.1 to 0.9: a run of 100 pulls loses 80 at most, and a difference is within 80
    assert (row.low, row.high) == mean_interval(regret, bounds=(0.0, 80.0), confidence=0.9)[1:]
    assert (pair.low, pair.high) == mean_interval(gaps, bounds=(-80, 80), confidence=0.9)[1:]
    assert result.interval("moss++", time=100, confidence=0.9) == (row.mean, row.low, row.high)
    ratio = result.ratio("moss", "empmoss++", time=100)
    assert ratio.low < ratio.estimate == summary["moss"].mean / summary["empmoss++"].mean
    low, high = result.limits("moss++", confidence=0.9)
    assert (low[49], high[49]) == pytest.approx((row.low, row.high))
    assert "regret on planted(n=300, m=10) after 100 pulls, 7 replications" in str(summary)
    assert "moss++" in str(summary)


def test_a_summary_says_what_usually_happens_and_what_does_on_average() -> None:
    luck = np.random.default_rng(1)
    base = 1000.0 + 20.0 * luck.standard_normal(50)
    regrets = {"moss++": base + 749.0 + luck.standard_normal(50), "empmoss++": base}
    result = made_result(regrets, [50_000])
    summary = result.summary()
    (pair,) = summary.pairs
    assert (pair.usually, pair.on_average) == (1, 0)
    assert (pair.above, pair.below, pair.runs) == (50, 0, 50)
    assert 748 < pair.median_low < pair.median < pair.median_high < 750
    assert result.paired("moss++", "empmoss++")[:3] == pair[5:8]
    back = result.paired("empmoss++", "moss++")
    assert (back.low, back.above, back.below) == (-pair.median_high, 0, 50)
    assert pair.runs_to_decide > 50
    (turned,) = summary.pairs_with("moss++")
    assert turned == pair.turned()
    assert turned[:2] == ("empmoss++", "moss++")
    assert (turned.median, turned.median_low, turned.above) == (-pair.median, -pair.median_high, 0)
    assert (turned.low, turned.high, turned.usually) == (-pair.high, -pair.low, -1)
    assert summary.pairs_with("empmoss++") == [pair]
    for shown in (str(summary), summary._repr_html_(), result._repr_html_()):
        assert "50 of 50" in shown
        assert "what usually happens; mean: what happens on average, rare misses" in shown
        assert re.search(r"undecided on average, with an\s+estimate: .*about \d+\s+more", shown)
    frame = summary.to_dataframe("pairs", library="pandas")
    assert frame.loc[0, ["median_low", "above", "runs"]].tolist() == [pair.median_low, 50, 50]
    assert list(summary.to_dataframe(library="pandas")["policy"]) == list(regrets)


def test_a_summary_becomes_markdown_and_latex() -> None:
    result = made_result({"moss++": [7.0, 9.0], "my_own|one": [2.0, 4.0]}, [100])
    summary = result.summary()
    marked = summary.to_markdown().splitlines()
    spread = "| median | 5 % | 95 % | 99 % | worst |"
    assert marked[0] == f"| policy | mean | 95 % interval {spread} missed | mostly missed |"
    assert [line.split(" | ")[0] for line in marked[2:]] == ["| moss++", "| my_own\\|one"]
    assert "| moss++ - my_own\\|one | 5.0 | " in summary.to_markdown("pairs")
    latex = summary.to_latex().splitlines()
    assert latex[0] == r"\begin{tabular}{lrrrrrrrrr}"
    assert latex[2].startswith(r"policy & mean & 95 \% interval &")
    assert latex[4].startswith("moss++ & 8.0 & [")
    assert latex[5].startswith(r"my\_own|one & 3.0 &")
    assert all(line.endswith(r"\\") for line in (latex[2], *latex[4:6]))
    assert r"moss++ $-$ my\_own|one & 5.0 &" in summary.to_latex("pairs")
    with pytest.raises(ma.ParameterError, match="`table` must be"):
        summary.to_latex("runs")  # type: ignore[arg-type]


@pytest.mark.compiled
def test_the_summary_says_what_was_not_seen() -> None:
    # one run that did not miss: the chance of a miss is below m with (1 - m) = 0.025
    text = str(_simulate(replications=1).summary())
    assert "nan" not in text
    assert "moss, moss++, empmoss++, parallel: no miss in 1 run: at most 98 % of runs miss" in text
    # (1 - m)^100 = 0.025; the two others missed at times, and nothing is said of them
    text = str(_simulate(replications=100).summary())
    assert "\nmoss, parallel: no miss in 100 runs: at most 3.6 % of runs miss\n" in text


def test_summaries_refuse_what_they_do_not_have() -> None:
    result = _simulate()
    with pytest.raises(ma.ParameterError, match="a checkpoint, got 99. The nearest one is"):
        result.summary(time=99)
    with pytest.raises(ma.ParameterError, match="`confidence` must be a number > 0 and < 1, got 1"):
        result.summary(confidence=1.0)
    with pytest.raises(ma.ParameterError, match="`time` must be an integer"):
        result.summary(time="x")  # type: ignore[arg-type]
    assert "99.9 % confidence" in str(result.summary(confidence=0.999))
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
    _simulate()  # compiles, if nothing did before
    monkeypatch.setattr("manyarms.simulation.progress._PATIENCE", 600.0)
    _simulate(progress=True)
    assert capsys.readouterr().err == ""  # quick work is silent
    monkeypatch.setattr("manyarms.simulation.progress._PATIENCE", 0.0)
    _simulate(progress=True)
    assert "compiling" not in capsys.readouterr().err
    monkeypatch.setattr("manyarms.simulation.workbench.Workbench.is_compiled", False)
    _simulate(progress=True)
    shown = capsys.readouterr().err
    assert "compiling empmoss++" in shown
    assert shown.rstrip(" ").endswith("\n")
    assert "100%" in shown


def test_an_error_in_a_worker_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("in a worker")

    monkeypatch.setattr("manyarms.simulation.workbench.Workbench.play", fail)
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
def test_ctrl_c_returns_promptly() -> None:
    code = (
        "import manyarms as ma, sys, threading\n"
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
    begun = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == 42
    child.stdout.close()
    assert time.monotonic() - begun < 20  # pieces take some 30 ms; the rest is patience


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "`horizon` must be an integer >= 1"),
        ({"horizon": 2.5}, "`horizon` must be .* got 2.5"),
        ({"replications": 0}, "`replications` must be an integer >= 1 .* got 0"),
        ({"workers": 0}, "`workers` must be an integer >= 1, got 0"),
        ({"seed": -1}, "`seed` must be"),
        ({"first_replication": -1}, "`first_replication` must be"),
        ({"checkpoints": np.array(2)}, r"`checkpoints` must be an integer .* got array\(2\)"),
        ({"checkpoints": 0}, "`checkpoints` must be an integer >= 1 and <= 200, got 0"),
        ({"checkpoints": 201}, "`checkpoints` must be"),
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
        (["moss"], r"got 'moss'. For a name use policy\('moss'\)"),
        ("moss", r"got 'moss'. For a name use policy\('moss'\)"),
        ([ma.MOSS], "Call the class: MOSS"),
        ([dict], r"A class that plays needs `ask\(\)` and `tell\(arm, reward\)`"),
        ([_Plain()], "Pass the class, _Plain: each game makes a player of it"),
        (None, "got None"),
        ([ma.MOSS(), ma.MOSS()], "got moss twice"),
    ],
)
def test_bad_policies(policies: list[ma.Policy], message: str) -> None:
    with pytest.raises(ma.ParameterError, match=message):
        ma.simulate(policies, INSTANCE, horizon=10)


def test_results_are_short_in_a_console() -> None:
    result = _simulate(replications=1)
    assert repr(result).startswith("<Result: moss, moss++, empmoss++, parallel on planted(")
    assert "1 replication, seed 3" in repr(result.summary())
    assert result != _simulate(replications=1)  # compared by identity: arrays have no truth


def test_bad_instance() -> None:
    with pytest.raises(ma.ParameterError, match=r"`instance` must be an Instance"):
        ma.simulate(ma.MOSS(), [0.5, 0.6], horizon=10)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"replications": 10**9}, "leave at most 1e\\+09 numbers .*got 1.03e\\+11. Take fewer"),
        ({"replications": 10**9, "checkpoints": 1}, "one for each policy, .*, got 4e\\+09"),
        ({"replications": 10**5, "record_arms": True}, "every pull, got 1e\\+14"),
    ],
)
def test_what_memory_cannot_hold_is_refused_at_once(options: dict[str, Any], words: str) -> None:
    instance = ma.instances.planted(n=10, m=1)
    begun = time.process_time()
    with pytest.raises(ma.ParameterError, match=f"^`replications` must .*{words}"):
        ma.simulate(ma.MOSS(), instance, horizon=10**9, **options)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("checkpoints", [10**9, itertools.count(1), range(1, 10**9)])
def test_more_checkpoints_than_anyone_reads_are_refused_at_once(checkpoints: Any) -> None:
    instance = ma.instances.planted(n=10, m=1)
    begun = time.process_time()
    with pytest.raises(ma.ParameterError, match="`checkpoints` must be .*1000000"):
        ma.simulate(ma.MOSS(), instance, horizon=10**9, checkpoints=checkpoints)
    assert time.process_time() - begun < 5
