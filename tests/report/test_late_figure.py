"""Figures of late rewards and of wrong best means: what is drawn, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from manyarms.errors import ParameterError

pytest.importorskip("matplotlib", reason="the extra `lab` is not installed")

from matplotlib.axes import Axes

from manyarms.report import regret_against_best_mean, regret_against_lateness
from manyarms.lab.results import Result
from tests.report.test_figures import made_up, words


def family(factor: float) -> dict[str, dict[int, Result]]:
    """Two policies with mean regrets 10 and 20, times the delay or batch size, times `factor`."""
    return {
        late: {
            k: made_up(
                ("moss", "moss++"),
                factor * max(1, k) * np.array([[[8.0], [12.0]], [[19.0], [21.0]]]),
                (1000,),
            )
            for k in sizes
        }
        for late, sizes in {"delay": (0, 10), "batch": (1, 10, 100)}.items()
    }


def heights(axes: Axes) -> list[list[float]]:
    return [np.asarray(line.get_ydata()).tolist() for line in axes.lines]


def test_means_by_delay_and_by_batch() -> None:
    delay, batch = regret_against_lateness(family(1.0)).axes
    assert [tick.get_text() for tick in delay.get_xticklabels()] == ["0", "10"]
    assert [tick.get_text() for tick in batch.get_xticklabels()] == ["1", "10", "100"]
    assert heights(delay) == [[10, 100], [20, 200]]
    assert heights(batch) == [[10, 100, 1000], [20, 200, 2000]]


def test_counted_late_pulls_have_hollow_markers() -> None:
    figure = regret_against_lateness(family(1.0), family(0.5), title="a title")
    filled, _, hollow, _ = figure.axes[0].lines
    assert heights(figure.axes[0])[2] == [5, 50]
    assert hollow.get_markerfacecolor() == "white" != filled.get_markerfacecolor()
    assert hollow.get_color() == filled.get_color()
    assert words(figure)[:2] == ["MOSS", "MOSS++"]
    assert words(figure)[2:] == [
        "hollow: late pulls count in the bonus (count_late)",
        "bars: 95 % intervals of the mean, 2 replications",
    ]


def test_one_replication_has_no_bars() -> None:
    results = {late: {k: r.first(1) for k, r in f.items()} for late, f in family(1.0).items()}
    assert len(regret_against_lateness(results).axes[0].collections) == 0


@pytest.mark.parametrize("results", [{}, {"delay": {}}, {"delay": {}, "batch": {}}])
def test_lateness_without_results(results: dict[str, dict[int, Result]]) -> None:
    with pytest.raises(ParameterError, match='under "delay" and under "batch"'):
        regret_against_lateness(results)


def test_regret_against_the_best_mean_told() -> None:
    regret = [[[8.0], [12.0]], [[19.0], [21.0]]]
    results = {a: made_up(("low", "high"), a * np.array(regret), (1000,)) for a in (0.4, 0.1)}
    (axes,) = regret_against_best_mean(results, (0.8, 0.9)).axes
    assert heights(axes)[:2] == [[1.0, 2.0], [4.0, 8.0]]
    assert str(axes.lines[0].get_label()).endswith("= 0.1")
    assert axes.lines[2].get_xdata() == [0.9, 0.9]  # the truth
    with pytest.raises(ParameterError, match="a policy for each of `told`, got 2 results and 3"):
        regret_against_best_mean(results, (0.8, 0.9, 1.0))
