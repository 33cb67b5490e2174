"""Figure 1 with further rates in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from manyarms.errors import ParameterError
from manyarms.report import figure_1


def mine(alpha: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.8 + 0.2 * alpha


def test_further_rates_have_lines_of_their_own() -> None:
    points = np.array([0.0, 0.4, 0.9]), np.array([0.3, 0.7, 0.95])
    figure = figure_1(betas=(0.5, 0.7), others={"mine": mine, "measured": points})
    axes = figure.axes[0]
    names = [str(line.get_label()) for line in axes.lines]
    assert names[-2:] == ["mine", "measured"]
    assert np.array_equal(axes.lines[-1].get_xydata(), np.transpose(points))
    drawn = np.asarray(axes.lines[-2].get_xydata())
    assert np.array_equal(drawn[:, 1], mine(drawn[:, 0]))
    legend = figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()][-2:] == ["mine", "measured"]
    styles = {(line.get_color(), str(line.get_marker())) for line in axes.lines}
    assert len(styles) == len(axes.lines)
    assert axes.get_ylim()[0] == pytest.approx(0.25)  # room for a rate of 0.3


def test_the_legend_is_beside_the_plot() -> None:
    figure = figure_1(others={"mine": mine, "a rate with quite a long name": mine})
    plot = figure.axes[0].get_window_extent()
    assert figure.legends[0].get_window_extent().x0 >= plot.x1
    assert plot.width > 200  # of 500: it is not squeezed


def test_without_them_the_figure_is_the_papers() -> None:
    plain, empty = figure_1(), figure_1(others={})
    for figure in (plain, empty):
        assert len(figure.axes[0].lines) == 9
        assert figure.axes[0].get_ylim()[0] == 0.45
        assert not figure.legends


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        (([0.0, 1.0], [0.5, 2.0]), r"`rate` must hold numbers >= 0 and <= 1, got 2.0"),
        (([0.5, 1.0], [0.5, 1.0]), r"`alphas` must increase from 0"),
    ],
)
def test_bad_input(rate: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        figure_1(others={"wrong": rate})
