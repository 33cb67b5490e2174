"""Results with given numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from manyarms.simulation.results import Result
from manyarms.simulation.runner import row_type


def made_result(
    regrets: Mapping[str, Any],
    times: Sequence[int] = (1000,),
    *,
    missed: Mapping[str, int] | None = None,
    told: Mapping[str, Mapping[str, Any]] | None = None,
    **others: Any,
) -> Result:
    """Return a result with regrets by policy, run and time; `missed` runs met no best arm.

    The other runs pulled only best arms.
    """
    rows = []
    for policy, regret in regrets.items():
        block = np.zeros(len(regret), row_type(len(times)))
        block["regret"] = np.reshape(regret, (len(regret), len(times)))
        block["first_best"] = np.arange(len(regret)) >= (missed or {}).get(policy, 0)
        block["best_pulls"] = times[-1] * block["first_best"]
        rows.append(block)
    about: dict[str, Any] = {"instance": "made up", "n_arms": 100, "n_best": 10, "seed": 4}
    about["largest_gap"] = 1.0
    return Result(
        policies=tuple(regrets),
        specifications=tuple(regrets),
        best_mean=1.0,
        good_mean=1.0,
        horizon=times[-1],
        first_replication=0,
        times=np.array(times),
        rows=tuple(rows),
        policy_parameters=tuple((told or {}).get(policy, {}) for policy in regrets),
        **about | others,
    )
