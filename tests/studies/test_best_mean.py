"""A wrong best mean: what is played, and what is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from manyarms.studies import find
from manyarms.studies.best_mean import TOLD, experiments, regret_against_best_mean
from manyarms.studies.study import reproduce


def test_the_truth_is_among_what_is_told() -> None:
    (experiment,) = experiments(10, 0)
    assert list(TOLD) == sorted(TOLD)
    for cell in experiment.cells:
        assert cell.instance.best_mean in TOLD
        assert [player.parameters["best_mean"] for player in cell.players] == list(TOLD)


@pytest.mark.slow
def test_reproduce(tmp_path: Path) -> None:
    report = reproduce([find("best-mean")], tmp_path, replications=2)
    own = {f"best_mean.{ending}" for ending in ("md", "pdf", "svg", "png")}
    assert {path.name for path in report.files} == own | {"report.html", "study.json"}
    rows = (tmp_path / "best_mean.md").read_text().splitlines()
    assert rows[2] == "| best mean given | hardness 0.1 | hardness 0.25 | hardness 0.4 |"
    assert [row.split(" | ")[0] for row in rows[4:]] == [f"| {told:g}" for told in TOLD]


def test_regret_against_the_best_mean_told() -> None:
    told = [ma.Parallel(best_mean=0.8), ma.Parallel(best_mean=0.9)]
    results = {
        alpha: ma.simulate(
            told, ma.instances.planted(n=50, m=m), horizon=200, replications=3, workers=1
        )
        for alpha, m in ((0.4, 2), (0.1, 20))
    }
    (axes,) = regret_against_best_mean(results).axes
    low, high, truth = axes.lines
    assert [str(line.get_label())[-5:] for line in (low, high)] == ["= 0.1", "= 0.4"]
    for line, alpha in ((low, 0.1), (high, 0.4)):
        assert np.asarray(line.get_xdata()).tolist() == [0.8, 0.9]
        assert np.asarray(line.get_ydata()).tolist() == [
            results[alpha].regret[k, :, -1].mean() for k in (0, 1)
        ]
    assert truth.get_xdata() == [0.9, 0.9]
