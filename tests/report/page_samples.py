"""Folders of results to make pages of: one of an experiment, one of the paper."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from manyarms.cli.paper_tables import write_tables
from manyarms.lab import run
from manyarms.report.claims import paper_claims
from manyarms.report.paper_results import PaperResults
from manyarms.lab.results import Result
from manyarms.lab import experiment_from

SIX = ("moss", "moss-oracle", "quantile", "parallel", "moss++", "empmoss++")
HOSTILE = '</script><script>document.title = "taken"</script>'
REPLICATIONS = 20


def run_folder(folder: Path, *, name: str = HOSTILE) -> Path:
    """Play a small experiment: two hardnesses, three policies."""
    experiment = experiment_from(
        {
            "experiment": {"name": name, "horizon": 300, "replications": 8, "checkpoints": 30},
            "instance": {"family": "planted", "n": 100, "alpha": [0.2, 0.5]},
            "policy": [{"name": "moss++", "beta": [0.5, 0.75]}, {"name": "moss-oracle"}],
        }
    )
    run(experiment, folder)
    return folder


def paper_folder(folder: Path, *, seed: int = 3) -> Path:
    """Write made-up results of all the paper's experiments, and verdicts on them."""
    alphas = [k / 10 for k in range(1, 10)]
    betas = [f"{policy}(beta={beta})" for policy in SIX[4:] for beta in (0.6, 0.75, 0.9)]
    sizes = [f"moss-oracle(size={size})" for size in (1069, 534, 267, 134)]
    results = {
        "fig2a": {alpha: _result(SIX, alpha) for alpha in alphas},
        "fig2b": {0.25: _result(SIX, 0.25, curve=40)},
        "fig3": {0.39: _result(SIX, 0.39, curve=40, instance="a contest")},
        "larger_betas": {alpha: _result(betas, alpha) for alpha in (0.1, 0.6, 0.8)},
        "oracle_sizes": {0.39: _result(sizes, 0.39, instance="a contest")},
        "quantile_as_moss": {alpha: _result(["moss-oracle"], alpha, size=43) for alpha in alphas},
    }
    write_tables(results, folder, seed=seed, started="2000-01-01T00:00:00+00:00")
    claims = paper_claims(
        PaperResults(
            fig2a=results["fig2a"],
            fig2b=results["fig2b"][0.25],
            fig3=results["fig3"][0.39],
            larger_betas=results["larger_betas"],
            oracle_sizes=results["oracle_sizes"][0.39],
            quantile_as_moss=results["quantile_as_moss"],
            contest_facts=(),
        )
    )
    decided = [claim.as_dict() | {"seed": seed} for claim in claims]
    (folder / "claims.json").write_text(json.dumps(decided))
    return folder


def _result(
    policies: Sequence[str],
    alpha: float,
    *,
    curve: int = 1,
    instance: str = "made up",
    size: int | None = None,
) -> Result:
    """Regrets that grow as powers of time, by luck; each policy loses less than the one before."""
    rng = np.random.default_rng(round(100 * alpha))
    times = 1000 * np.arange(1, curve + 1) // curve
    finals = 100 * alpha * np.arange(len(policies), 0, -1)[:, None, None]
    luck = rng.uniform(0.5, 1.5, (len(policies), REPLICATIONS, 1))
    counts = np.ones((len(policies), REPLICATIONS), np.int64)
    return Result(
        policies=tuple(policies),
        specifications=tuple(f"MOSSOracle(size={size})" if size else p for p in policies),
        instance=instance,
        n_arms=2000,
        best_mean=0.9,
        horizon=1000,
        seed=3,
        first_replication=0,
        times=times,
        regret=finals * luck * (times / 1000) ** luck**2,
        best_pulls=counts,
        distinct_arms=counts,
        recommended=counts,
    )
