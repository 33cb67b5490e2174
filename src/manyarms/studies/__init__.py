"""Studies: the paper's figures and claims, and what goes beyond them, one module for each.

A study has `experiments` and a `report`; see `manyarms.studies.study`. To add one, write a module
with a `Study` and list it here.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING

from manyarms.errors import UnknownNameError

if TYPE_CHECKING:
    from manyarms.studies.study import Study

__all__ = ["PAPER", "STUDIES", "find"]

# name -> where it is, and what it shows: loaded when it is asked for, because drawing takes long
STUDIES = {
    "fig1": ("paper:FIG1", "the rates of Figure 1"),
    "fig2a": ("paper:FIG2A", "regret against hardness"),
    "fig2b": ("paper:FIG2B", "regret over time"),
    "fig3": ("paper:FIG3", "regret over time on a caption contest"),
    "claims": ("claims:CLAIMS", "a verdict on each claim of the paper's text"),
    "rates": ("rates:RATES", "the exponents of Figure 1, measured"),
    "lower-bound": ("lower_bound:LOWER_BOUND", "the lower bound's problems, and the trade-off"),
    "late": ("late:LATE", "what late rewards cost"),
    "best-mean": ("best_mean:BEST_MEAN", "what a wrong best mean costs Parallel"),
    "contests": ("contests:CONTESTS", "the policies on every caption contest that is found"),
    "leaderboard": ("leaderboard.report:LEADERBOARD", "every policy on a suite of problems"),
    "find": ("finding:FIND", "who finds a good arm"),
    "random": (
        "leaderboard.random_board:RANDOM",
        "policies that know nothing, on random problems",
    ),
}
PAPER = ("fig1", "fig2a", "fig2b", "fig3", "claims")  # what `manyarms reproduce` does


def find(name: str) -> Study:
    """Return a study by its name.

    >>> find("best-mean").replications
    400
    """
    if name not in STUDIES:
        raise UnknownNameError("study", name, STUDIES)
    place, title = STUDIES[name]
    module, _, attribute = place.partition(":")
    found: Study = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    return replace(found, name=name, title=title)
