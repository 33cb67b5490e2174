"""Studies: the paper's figures and claims, and what goes beyond them, each in a room of its own.

A study is `experiments` and a `report`; see `manyarms.studies.study`. To add one, write a module
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

# name -> where it is: loaded when it is asked for, because drawing takes long to import
STUDIES = {
    "fig1": "paper:FIG1",
    "fig2a": "paper:FIG2A",
    "fig2b": "paper:FIG2B",
    "fig3": "paper:FIG3",
    "claims": "claims:CLAIMS",
    "rates": "rates:RATES",
    "lower-bound": "lower_bound:LOWER_BOUND",
    "late": "late:LATE",
    "best-mean": "best_mean:BEST_MEAN",
    "contests": "contests:CONTESTS",
    "leaderboard": "leaderboard.report:LEADERBOARD",
}
PAPER = ("fig1", "fig2a", "fig2b", "fig3", "claims")  # what `manyarms reproduce` does


def find(name: str) -> Study:
    """Return a study by its name.

    >>> find("best-mean").replications
    400
    """
    if name not in STUDIES:
        raise UnknownNameError("study", name, STUDIES)
    module, _, attribute = STUDIES[name].partition(":")
    found: Study = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    return replace(found, name=name)
