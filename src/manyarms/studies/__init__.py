"""Studies: the paper's figures and claims, and what goes beyond them, each in a room of its own.

A study is `experiments` and a `report`; see `manyarms.studies.study`. To add one, write a module
with a `Study` and list it here.
"""

from __future__ import annotations

import importlib

from manyarms.errors import UnknownNameError
from manyarms.studies.study import Report, Results, Study, reproduce

__all__ = ["STUDIES", "Report", "Results", "Study", "reproduce", "study"]

# name -> where it is: loaded when it is asked for, because drawing takes long to import
STUDIES = {
    "best-mean": "best_mean:BEST_MEAN",
    "contests": "contests:CONTESTS",
    "leaderboard": "leaderboard.report:LEADERBOARD",
}


def study(name: str) -> Study:
    """Return a study by its name.

    >>> study("best-mean").replications
    400
    """
    if name not in STUDIES:
        raise UnknownNameError("study", name, STUDIES)
    module, _, attribute = STUDIES[name].partition(":")
    found: Study = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    return found
