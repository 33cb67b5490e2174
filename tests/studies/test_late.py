"""Late rewards: what is played, what is drawn, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

import manyarms as ma
from manyarms.errors import ParameterError
from manyarms.report.text import Table
from manyarms.simulation.results import Result
from manyarms.studies import find
from manyarms.studies.late import COUNTING, experiments, regret_against_lateness
from manyarms.studies.study import reproduce

PAIR = {"moss": "moss(count_late)"}


def test_each_policy_plays_with_and_without_late_pulls_counted() -> None:
    for experiment, horizon in zip(experiments(10, 0), (50_000, 5000), strict=True):
        assert len(experiment.cells) == 7
        for cell in experiment.cells:
            assert cell.horizon == horizon
            assert cell.parameters == {"delay": cell.delay, "batch": cell.batch}
            assert [player.label for player in cell.players] == [*COUNTING, *COUNTING.values()]
            for player in cell.players:
                counted: bool = getattr(player.policy, "count_late")  # noqa: B009
                assert counted == player.parameters["count_late"]
                assert counted == (player.label in COUNTING.values())


@pytest.mark.patient
def test_reproduce(tmp_path: Path) -> None:
    games = {"late": (40, 120), "late_short": (30, 40)}
    small = replace(find("late"), experiments=partial(experiments, games=games))
    report = reproduce([small], tmp_path, replications=2, workers=1)
    names = {f"{stem}.{e}" for stem in games for e in ("md", "pdf", "svg", "png")}
    assert {path.name for path in report.files} == names | {"report.html", "study.json"}
    assert all(path.is_file() for path in report.files)
    text = (tmp_path / "late.md").read_text()
    assert "| observed rewards only | in turn | delay 10 | delay 100 | delay 1000 | " in text
    assert text.count("| MOSS | ") == text.count("| MOSS Oracle | ") == 2
    assert [table.title for table in report.shown if isinstance(table, Table)] == [
        *["late: 40 arms, 120 pulls"] * 2,
        *["late_short: 30 arms, 40 pulls"] * 2,
    ]
    # told in turn, no pull is late, and it does not matter who counts
    rows = [row.split(" | ") for row in text.splitlines() if row.startswith("| MOSS | ")]
    assert rows[0][1] == rows[1][1]
    assert rows[0][2] != rows[1][2]


@cache
def played() -> dict[str, dict[int, Result]]:
    policies = [ma.MOSS(), ma.MOSS(count_late=True), ma.MOSSPlusPlus()]
    instance = ma.instances.planted(n=50, m=5)
    play = partial(ma.simulate, policies, instance, horizon=200, replications=3, workers=1)
    return {
        "delay": {k: play(delay=k) for k in (10, 0)},
        "batch": {k: play(batch=k) for k in (1, 10, 50)},
    }


def heights(axes: Axes) -> list[list[float]]:
    return [np.asarray(line.get_ydata()).tolist() for line in axes.lines]


def test_means_by_delay_and_by_batch() -> None:
    results = played()
    delay, batch = regret_against_lateness(results, counting=PAIR).axes
    assert [tick.get_text() for tick in delay.get_xticklabels()] == ["0", "10"]
    assert [tick.get_text() for tick in batch.get_xticklabels()] == ["1", "10", "50"]
    for axes, late in ((delay, "delay"), (batch, "batch")):
        assert heights(axes) == [
            [results[late][k].of(label)[:, -1].mean() for k in sorted(results[late])]
            for label in ("moss", "moss++", PAIR["moss"])
        ]


def test_counted_late_pulls_have_hollow_markers() -> None:
    figure = regret_against_lateness(played(), counting=PAIR)
    filled, _, hollow = figure.axes[0].lines
    assert hollow.get_markerfacecolor() == "white" != filled.get_markerfacecolor()
    assert hollow.get_color() == filled.get_color()
    words = [text.get_text().replace("\n", " ") for text in figure.legends[0].get_texts()]
    assert words == [
        "MOSS",
        "MOSS++",
        "hollow: late pulls count in the bonus (count_late)",
        "bars: 95 % intervals of the mean, 3 replications",
    ]


def test_one_replication_has_long_bars() -> None:
    results = {late: {k: r.first(1) for k, r in own.items()} for late, own in played().items()}
    figure = regret_against_lateness(results)
    bars = figure.axes[0].collections[0].get_segments()  # type: ignore[attr-defined]
    assert all(high[1] - low[1] > 100 for low, high in bars)  # of 160 that 200 pulls can lose
    assert len(figure.axes[0].lines) == 3  # nobody is said to count: all are filled


@pytest.mark.parametrize("results", [{}, {"delay": {}}, {"delay": {}, "batch": {}}])
def test_lateness_without_results(results: dict[str, dict[int, Result]]) -> None:
    with pytest.raises(ParameterError, match='under "delay" and under "batch"'):
        regret_against_lateness(results)
