"""Folders of results to make pages of: one of an experiment, one of the paper."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import manyarms as ma
from manyarms.simulation import Experiment, cell, run
from manyarms.studies import PAPER, claims, find, paper
from manyarms.studies.study import Report, Study, reproduce

SIX = ("moss", "moss-oracle", "quantile", "parallel", "moss++", "empmoss++")
HOSTILE = '</script><script>document.title = "taken"</script>'
REPLICATIONS = 8

_SMALL = paper.Size(n_arms=50, horizon=120, contest_horizon=200)
_EXPERIMENTS = {
    "fig2a": partial(paper.fig2a, size=_SMALL),
    "fig2b": partial(paper.fig2b, size=_SMALL),
    "fig3": partial(paper.fig3, size=_SMALL),
    "claims": partial(claims.experiments, size=_SMALL),
}


def run_folder(folder: Path, *, name: str = HOSTILE) -> Path:
    """Play a small experiment: two hardnesses, three policies."""
    cells = [
        cell(
            [ma.MOSSPlusPlus(beta=0.6), ma.MOSSPlusPlus(beta=0.75), ma.MOSSOracle(alpha=alpha)],
            ma.instances.planted(n=100, alpha=alpha, horizon=300),
            horizon=300,
            replications=8,
            checkpoints=30,
            parameters={"alpha": alpha},
        )
        for alpha in (0.2, 0.5)
    ]
    experiment = Experiment(name, tuple(cells))
    run(experiment, folder)
    return folder


def small_study(name: str) -> Study:
    """Return one of the paper's studies, on problems that take no time."""
    found = find(name)
    return replace(found, experiments=_EXPERIMENTS.get(name, found.experiments))


def reproduce_paper(folder: Path, *names: str, replications: int = REPLICATIONS) -> Report:
    """Reproduce the paper, or some of its studies, with the seed 3."""
    studies = [small_study(name) for name in names or PAPER]
    return reproduce(studies, folder, replications=replications, seed=3)
