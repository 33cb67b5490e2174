"""Who finds a good arm: what is played, and what is drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import manyarms as ma
from manyarms.studies.finding import _table, _tails, earn_and_find, experiments


def test_the_prompts_are_played_with_and_without_evaluations_in_flight() -> None:
    (experiment,) = experiments(3, seed=1)
    assert experiment.objective == "find"
    cells = {each.parameters["problem"]: each for each in experiment.cells}
    assert cells["prompts"].batch == 1
    assert cells["prompts, 256 in flight"].batch == 256


def test_what_is_drawn_and_listed() -> None:
    instance = ma.instances.planted(n=50, m=5)
    result = ma.simulate(
        [ma.MOSS(), ma.policy("sequential-halving")], instance, horizon=200, replications=3
    )
    (axes,) = earn_and_find(result).axes
    points = [line.get_xydata() for line in axes.lines[::3]]
    x, y = np.asarray(points)[:, 0].T
    assert x == pytest.approx(result.regret[:, :, -1].mean(axis=1) / 200)
    assert y == pytest.approx(result.simple_regret.mean(axis=1))
    named = replace(result, parameters={"problem": "coins"})
    (row,) = _table([named.by("find")], intervals=False).rows
    assert row == ["coins", *(f"{mean:.3f}" for mean in result.simple_regret.mean(axis=1))]
    (row,) = _tails([named.by("find")]).rows
    tails = [(np.quantile(runs, 0.99), runs.max()) for runs in result.simple_regret]
    assert row == ["coins", *(f"{q99:.3f}, {worst:.3f}" for q99, worst in tails)]
