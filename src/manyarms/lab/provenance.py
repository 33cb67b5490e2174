"""Where results come from: the spec, the software, the machine, and when."""

from __future__ import annotations

import datetime
import os
import platform
import sys
from typing import Any

from manyarms.core.code_digest import version_of
from manyarms.lab.experiment import Experiment

__all__ = ["now", "provenance_of", "software_and_machine"]


def now() -> str:
    """Return the time, in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def provenance_of(experiment: Experiment, *, started: str, sessions: int) -> dict[str, Any]:
    """Return what is known of a run when it begins, or goes on."""
    return {
        "name": experiment.name,
        "spec_hash": experiment.hash,
        "seed": experiment.seed,
        "objective": experiment.objective,
        "replications": experiment.replications,
        "pulls": experiment.pulls,
        "started": started,
        "sessions": sessions,
        **software_and_machine(),
        "cells": [
            {
                "parameters": dict(cell.parameters),
                "horizon": cell.horizon,
                "delay": cell.delay,
                "batch": cell.batch,
                "first_replication": cell.first_replication,
                "instance": cell.instance.label,
                "is_stand_in": cell.instance.is_stand_in,
                "n_arms": cell.instance.n_arms,
                "n_best": cell.instance.n_best,
                "best_mean": cell.instance.best_mean,
                "largest_gap": cell.instance.largest_gap,
                "good_mean": cell.instance.world(cell.horizon).good_mean,
                "policies": {player.label: repr(player.policy) for player in cell.players},
            }
            for cell in experiment.cells
        ],
    }


def software_and_machine() -> dict[str, Any]:
    """Return the versions of what computes, and where it does."""
    return {
        "versions": {
            "python": platform.python_version(),
            "manyarms": sys.modules["manyarms"].__version__,  # an import would go up
            **{name: version_of(name) for name in ("numpy", "numba", "pyarrow")},
        },
        "machine": {
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "processors": os.cpu_count(),
        },
    }
