"""The tables of `manyarms reproduce`: every regret of every run, tidy, with where it comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np

from manyarms.core.files import replace_file, replacing
from manyarms.results import Result
from manyarms.specs.provenance import now, software_and_machine
from manyarms.tables import TidyWriter

__all__ = ["write_tables"]

_SETTING = {"experiment": "string", "alpha": "double", "policy": "string", "replication": "int64"}
_OVER_TIME = {**_SETTING, "time": "int64", "regret": "double"}
_RUNS = {
    **_SETTING,
    "regret": "double",
    "best_pulls": "int64",
    "distinct_arms": "int64",
    "recommended": "int64",
}


def write_tables(
    results: Mapping[str, Mapping[float, Result]], folder: Path, *, seed: int, started: str
) -> list[Path]:
    """Write regret.parquet, runs.parquet and provenance.json, each as a whole."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "regret.parquet", folder / "runs.parquet", folder / "provenance.json"]
    with ExitStack() as stack:
        parts = [stack.enter_context(replacing(path)) for path in paths[:2]]
        regret = stack.enter_context(closing(TidyWriter(parts[0], _OVER_TIME, spec_hash="paper")))
        runs = stack.enter_context(closing(TidyWriter(parts[1], _RUNS, spec_hash="paper")))
        for experiment, by_alpha in results.items():
            for alpha, result in by_alpha.items():
                _add(regret, runs, {"experiment": experiment, "alpha": alpha}, result)
    played = [r for by_alpha in results.values() for r in by_alpha.values()]
    provenance = {
        "seed": seed,
        "replications": played[0].replications,
        "started": started,
        "ended": now(),
        **software_and_machine(),
        "settings": {
            experiment: [
                {"alpha": alpha, "instance": r.instance, "policies": list(r.specifications)}
                for alpha, r in by_alpha.items()
            ]
            for experiment, by_alpha in results.items()
        },
    }
    replace_file(paths[2], (json.dumps(provenance, indent=1) + "\n").encode())
    return paths


def _add(regret: TidyWriter, runs: TidyWriter, setting: dict[str, object], result: Result) -> None:
    replications, times = np.arange(result.replications), result.times
    for k, policy in enumerate(result.policies):
        row = setting | {"policy": policy}
        over_time = {
            "replication": np.repeat(replications, len(times)),
            "time": np.tile(times, len(replications)),
            "regret": result.regret[k].ravel(),
        }
        regret.write(result.regret[k].size, row | over_time)
        final = {
            "replication": replications,
            "regret": np.ascontiguousarray(result.regret[k, :, -1]),
            "best_pulls": result.best_pulls[k],
            "distinct_arms": result.distinct_arms[k],
            "recommended": result.recommended[k],
        }
        runs.write(len(replications), row | final)
