"""Figures of names that look like formulas."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason='pip install "manyarms[lab]"')

import manyarms as ma
from manyarms.lab import Player, cell
from manyarms.lab.experiment import Experiment
from manyarms.lab.simulate import run_in_memory
from manyarms.report.drawing import save_figure
from manyarms.report.figures import regret_over_time

NAME = r"$\frac{ and $ \nonsense"


def test_names_that_look_like_formulas_are_drawn_as_they_are(tmp_path: Path) -> None:
    player = Player(ma.MOSS(), NAME, 3)
    game = cell([player], ma.instances.planted(n=50, m=5), horizon=40, replications=3)
    (result,) = run_in_memory(Experiment("x", (game,)))
    figure = regret_over_time(result, title=NAME, note=NAME)
    assert save_figure(figure, tmp_path / "a")
    assert figure.axes[0].get_title() == NAME
    assert figure.legends[0].get_texts()[0].get_text() == NAME
