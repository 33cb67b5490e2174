"""What the page shows of an experiment that `manyarms run` played."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

from manyarms.protocol.policy import MOST_ARMS
from manyarms.report.page.parts import (
    count_of,
    looks,
    over_time,
    plainly,
    spread,
    swept,
    titles,
    versions,
)
from manyarms.report.page.settings import Setting, read_settings
from manyarms.tables import Results

__all__ = ["run_page"]


def run_page(results: Results) -> Callable[[int], dict[str, Any]]:
    """Return what makes the page's data from a folder, given the checkpoints of a line."""
    instance = tomllib.loads(results.spec)["instance"]
    # as in `cells_as_results`: swept parameters of policies are part of the policies' labels
    names = [name for name in results.parameters if name in instance or name == "horizon"]
    settings = read_settings(results.regret, results.runs, names)
    cells = results.provenance["cells"]

    def make(most_times: int) -> dict[str, Any]:
        return {
            "title": str(results.provenance["name"]),
            "lead": _lead(results.provenance, settings),
            "facts": _facts(results.provenance, settings),
            "policies": looks(policy for s in settings for policy in s.regret),
            "settings": [
                {
                    "name": _name(setting),
                    "group": "",
                    "instance": cell["instance"],
                    "specifications": list(cell["policies"].values()),
                    **setting.summary(most_times),
                }
                for setting, cell in zip(settings, cells, strict=True)
            ],
            "figures": _figures(settings, names),
            "claims": [],
            "repeat": _repeat(results),
            "sums": sorted(results.provenance["sha256"].items()),
        }

    return make


def _name(setting: Setting) -> str:
    return ", ".join(f"{name} = {plainly(value)}" for name, value in setting.values.items())


def _lead(provenance: dict[str, Any], settings: list[Setting]) -> str:
    policies = {policy for setting in settings for policy in setting.regret}
    return (
        f"{count_of(len(policies), 'policy', 'policies')} on "
        f"{count_of(len(settings), 'problem', 'problems')}, "
        f"{count_of(provenance['replications'], 'run', 'runs')} of each: "
        f"{count_of(provenance['pulls'], 'pull', 'pulls')} in all. Every policy met the same luck."
    )


def _facts(provenance: dict[str, Any], settings: list[Setting]) -> list[tuple[str, str]]:
    cells = provenance["cells"]
    best = [cell["n_best"] for cell in cells if cell["n_best"] is not None]
    arms = ["infinitely many" if cell["n_arms"] == MOST_ARMS else cell["n_arms"] for cell in cells]
    return [
        ("Arms", spread(arms)),
        *([("Best arms", spread(best))] if best else []),
        ("Policies", titles(settings)),
        ("Pulls of a run", spread(int(setting.times[-1]) for setting in settings)),
        ("Runs of each policy", spread([provenance["replications"]])),
        ("Seed", str(provenance["seed"])),
        ("Computed by", versions(provenance)),
        ("Spec", f"SHA-256 {provenance['spec_hash']}"),
    ]


def _figures(settings: list[Setting], names: list[str]) -> list[dict[str, Any]]:
    figures = []
    against = swept(
        "Final regret, problem by problem",
        "What each policy had lost at the end of the run.",
        settings,
        names,
    )
    if against:
        figures.append(against)
    curves = [place for place, setting in enumerate(settings) if len(setting.times) > 1]
    if curves:
        titles = [_name(settings[place]) for place in curves]
        text = "What was lost so far, against always pulling a best arm."
        figures.append(over_time("Regret over time", text, curves, titles))
    return figures


def _repeat(results: Results) -> list[tuple[str, str]]:
    return [
        ("The experiment, as spec.toml", results.spec.strip()),
        ("Run it; stop it whenever you like, the same command goes on", _RUN),
        ("Look at the numbers", _PANDAS),
    ]


_RUN = "manyarms run spec.toml --out again\nmanyarms report again"
_PANDAS = """\
import pandas as pd

runs = pd.read_parquet("again/runs.parquet")
print(runs.groupby("policy")["regret"].describe())"""
