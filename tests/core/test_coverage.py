"""95 % intervals cover in at least 93 % of samples, for several distributions and for live arms.

The situations are those of `benchmarks/interval_coverage.py`, with fewer runs per distribution. An
interval that covers with probability 0.95 falls below 93 % of 2000 samples with probability 4e-5,
so below 1e-3 for all situations together. Seeds are fixed.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma

pytestmark = [pytest.mark.compiled, pytest.mark.slow]

FILE = Path(__file__).parents[2] / "benchmarks" / "interval_coverage.py"
RUNS, SAMPLES = 1000, 2000


def _benchmark() -> Any:
    spec = importlib.util.spec_from_file_location("interval_coverage", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BENCHMARK = _benchmark()
SITUATIONS = list(BENCHMARK.situations())


def test_the_situations_include_every_kind() -> None:
    assert len(SITUATIONS) >= 12
    assert {len(each.policies) for each in SITUATIONS} == {1, 2}
    assert {each.ratio for each in SITUATIONS} == {True, False}
    assert {5, 25, 100, 1000} <= {each.runs for each in SITUATIONS}


@pytest.mark.long
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: f"{s.name}, {s.runs} runs")
def test_intervals_cover(situation: Any) -> None:
    found = BENCHMARK.measured(situation, runs=RUNS, samples=SAMPLES)
    assert found.ours >= 0.93
    # if every kind of run was seen often, Student's interval covers, and ours is not much wider
    often = 0.1 < _share_of_costly_runs(situation) < 0.9
    if often and len(situation.policies) == 1 and situation.runs >= 25:
        assert found.width < 1.5


def _share_of_costly_runs(situation: Any) -> float:
    regret = BENCHMARK._played(situation, situation.policies[0], RUNS)
    return float((regret > 0.2 * situation.horizon).mean())


@pytest.mark.parametrize(
    ("name", "runs", "at_most"),
    [
        ("MOSS Oracle, hardness 0.1", 100, 0.5),
        pytest.param("SS-Greedy, hardness 0.25", 25, 0.2, marks=pytest.mark.long),
        pytest.param("empMOSS++, hardness 0.4", 100, 0.92, marks=pytest.mark.long),
    ],
)
def test_student_intervals_do_not_cover(name: str, runs: int, at_most: float) -> None:
    (situation,) = (each for each in SITUATIONS if (each.name, each.runs) == (name, runs))
    assert BENCHMARK.measured(situation, runs=RUNS, samples=SAMPLES).student < at_most


@pytest.mark.parametrize("mean", [0.5, 0.03])
def test_the_recommended_arms_interval_holds_at_all_times(mean: float) -> None:
    """With 200 equal arms, at most 17 of 100 experiments ever have a wrong interval of any arm.

    With probability 0.05 each, more than 17 have one with probability 2e-6.
    """
    alone, chosen, any_arm = BENCHMARK.ever_wrong(mean, experiments=100)
    assert chosen <= any_arm <= 0.17
    if mean == 0.5:
        assert alone > 0.5  # uncorrected intervals of the best-looking arm are wrong


def test_intervals_of_a_live_handle_hold() -> None:
    """Of 30 experiments on 200 equal arms, at most 9 ever have a wrong interval.

    With probability 0.05 each, more than 9 do with probability 1e-6.
    """
    rng = np.random.default_rng(3)
    wrong = 0
    for seed in range(30):
        live = ma.EmpMOSSPlusPlus().live(n_arms=200, horizon=1000, seed=seed)
        ever = False
        for _ in range(20):
            live.tell_many([(pull, float(rng.random() < 0.5)) for pull in live.ask(50)])
            arms = [*live.arms(), live.recommend()]
            ever |= any(not arm.interval[0] <= 0.5 <= arm.interval[1] for arm in arms)
        wrong += ever
    assert wrong <= 9
