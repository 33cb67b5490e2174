"""Tables of a run, turned back into the results that figures are drawn from."""

from __future__ import annotations

import tomllib
from typing import Any

import numpy as np

from manyarms.results import Result
from manyarms.tables import Results

__all__ = ["cells_as_results"]


def cells_as_results(results: Results) -> list[tuple[dict[str, Any], Result]]:
    """Return (swept parameters, result) for each setting of an experiment.

    Swept parameters of policies are part of the policies' labels, so settings are told apart by
    those of the instance and by the horizon.
    """
    table = results.regret.to_pydict()
    instance = tomllib.loads(results.spec)["instance"]
    names = [name for name in results.parameters if name in instance or name == "horizon"]
    cells: dict[tuple[Any, ...], dict[str, list[tuple[int, int, float]]]] = {}
    columns = [table[name] for name in names]
    for row, policy in enumerate(table["policy"]):
        cell = cells.setdefault(tuple(column[row] for column in columns), {})
        numbers = (table["replication"][row], table["time"][row], table["regret"][row])
        cell.setdefault(policy, []).append(numbers)
    return [
        (dict(zip(names, values, strict=True)), _result(cell, results))
        for values, cell in cells.items()
    ]


def _result(cell: dict[str, list[tuple[int, int, float]]], results: Results) -> Result:
    times = np.array(sorted({time for _, time, _ in next(iter(cell.values()))}), np.int64)
    regret = np.array([[value for _, _, value in sorted(rows)] for rows in cell.values()])
    regret = regret.reshape(len(cell), -1, len(times))
    unknown = np.zeros(regret.shape[:2], np.int64)
    return Result(
        policies=tuple(cell),
        specifications=tuple(cell),
        instance=str(results.provenance.get("name", results.folder.name)),
        n_arms=0,
        best_mean=float("nan"),
        horizon=int(times[-1]),
        seed=int(results.provenance.get("seed", 0)),
        first_replication=0,
        times=times,
        regret=regret,
        best_pulls=unknown,
        distinct_arms=unknown,
        recommended=unknown,
    )
