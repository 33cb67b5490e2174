"""Results with numbers chosen by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from manyarms.lab.results import Result
from manyarms.lab.workbench import row_type


def made_result(
    regrets: Mapping[str, Any],
    *,
    missed: Mapping[str, int] | None = None,
    parameters: Mapping[str, Any] | None = None,
    told: Mapping[str, Mapping[str, Any]] | None = None,
    horizon: int = 1000,
) -> Result:
    """Return what policies lost, run by run; the first `missed` runs never pulled a best arm."""
    rows = []
    for policy, regret in regrets.items():
        block = np.zeros(len(regret), row_type(1))
        block["regret"][:, 0] = regret
        block["best_pulls"] = np.arange(len(regret)) >= (missed or {}).get(policy, 0)
        rows.append(block)
    return Result(
        policies=tuple(regrets),
        specifications=tuple(regrets),
        instance="by hand",
        n_arms=100,
        best_mean=1.0,
        horizon=horizon,
        seed=4,
        first_replication=0,
        times=np.array([horizon]),
        rows=tuple(rows),
        parameters=parameters or {},
        policy_parameters=tuple((told or {}).get(policy, {}) for policy in regrets),
        n_best=10,
    )
