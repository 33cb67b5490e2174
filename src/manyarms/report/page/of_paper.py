"""What the page shows of the paper's experiments, as `manyarms reproduce` leaves them."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from manyarms.report.page.parts import (
    count_of,
    looks,
    over_time,
    spread,
    swept,
    titles,
    versions,
)
from manyarms.report.page.rates import rates
from manyarms.report.page.settings import Setting, read_settings
from manyarms.report.style import HARDNESS
from manyarms.tables import ResultsError, need_pyarrow, sha256_of

__all__ = ["paper_page"]

_TITLES = {
    "fig2a": "Figure 2(a)",
    "fig2b": "Figure 2(b)",
    "fig3": "Figure 3",
    "larger_betas": "Claim 13",
    "oracle_sizes": "Claim 14",
    "quantile_as_moss": "Claim 15",
}
_SWEEPS = {
    "fig2a": ("Regret against hardness", "The rarer best arms are, the more every policy loses."),
    "larger_betas": (
        "Larger beta",
        "Beta decides how much is given up on easy problems to gain on hard ones.",
    ),
    "quantile_as_moss": (
        "Quantile, and MOSS on few arms",
        "Is Quantile roughly MOSS on a fixed number of random arms?",
    ),
    "oracle_sizes": (
        "Smaller sets for MOSS Oracle",
        "How many random arms MOSS Oracle should have kept on this contest.",
    ),
}
_OVER_TIME = {
    "fig2b": ("Regret over time", "What was lost so far, against always pulling a best arm."),
    "fig3": ("Regret over time on a caption contest", ""),
}
# Beside these, the lines of Figure 2(a) that they are to be compared with: same luck, same runs.
_BESIDE = {"larger_betas": ("moss++", "empmoss++"), "quantile_as_moss": ("quantile",)}


def paper_page(folder: Path, provenance: dict[str, Any]) -> Callable[[int], dict[str, Any]]:
    """Return what makes the page's data from a folder, given the checkpoints of a line."""
    paths = [folder / name for name in ("regret.parquet", "runs.parquet")]
    try:
        regret, runs = (need_pyarrow().parquet.read_table(path) for path in paths)
        settings = read_settings(regret, runs, ["experiment", "alpha"])
        labels = _labels(provenance)
        instances = [labels[_key(setting)] for setting in settings]
        groups = [_TITLES[setting.values["experiment"]] for setting in settings]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(
            f"`folder` must hold the tables of one `manyarms reproduce`, got '{folder}' ({error}). "
            f"Reproduce into it again."
        ) from error
    _name_the_size(settings, instances)
    _add_lines_of_figure_2a(settings)
    sums = [(path.name, sha256_of(path)) for path in paths]
    claims = _claims(folder, provenance)

    def make(most_times: int) -> dict[str, Any]:
        shown = [
            {
                "name": f"{group}, {HARDNESS} = {s.values['alpha']:.3g}",
                "group": group,
                "instance": instance["instance"],
                "specifications": instance["policies"],
                **s.summary(most_times),
            }
            for s, instance, group in zip(settings, instances, groups, strict=True)
        ]
        figures, extra = _figures(settings, instances)
        drawn, rates_figure, rate_looks = rates(len(shown) + len(extra))
        return {
            "title": "On Regret with Multiple Best Arms",
            "lead": _lead(provenance, claims),
            "facts": _facts(provenance, settings, instances),
            "policies": _looks(settings) | rate_looks,
            "settings": [*shown, *({"hidden": True, **s.summary(1)} for s in extra), drawn],
            "figures": [*figures, rates_figure],
            "claims": claims,
            "repeat": _repeat(provenance, settings),
            "sums": sums,
        }

    return make


def _key(setting: Setting) -> tuple[str, float]:
    return setting.values["experiment"], setting.values["alpha"]


def _labels(provenance: dict[str, Any]) -> dict[tuple[str, float], dict[str, Any]]:
    return {
        (experiment, one["alpha"]): one
        for experiment, several in provenance["settings"].items()
        for one in several
    }


def _looks(settings: list[Setting]) -> dict[str, Any]:
    """Return all looks; claim 15's policy is the first to get a free one, unlike Quantile's."""
    first = sorted(settings, key=lambda s: bool(s.values["experiment"] != "quantile_as_moss"))
    return looks([*(policy for setting in first for policy in setting.regret), "moss-oracle"])


def _name_the_size(settings: list[Setting], instances: list[dict[str, Any]]) -> None:
    """Call the policy of claim 15 by its size: it is another one than the Oracle elsewhere."""
    for setting, instance in zip(settings, instances, strict=True):
        size = re.search(r"size=\d+", instance["policies"][0])
        if setting.values["experiment"] == "quantile_as_moss" and size:
            name = f"moss-oracle({size[0]})"
            setting.regret[name] = setting.regret.pop("moss-oracle")
            setting.missed[name] = setting.missed.pop("moss-oracle")


def _add_lines_of_figure_2a(settings: list[Setting]) -> None:
    by_key = {_key(setting): setting for setting in settings}
    for experiment, policies in _BESIDE.items():
        for (name, alpha), setting in by_key.items():
            beside = by_key.get(("fig2a", alpha))
            if name == experiment and beside and beside.replications == setting.replications:
                for policy in policies:
                    setting.regret[policy] = beside.regret[policy]
                    setting.missed[policy] = beside.missed[policy]


def _figures(
    settings: list[Setting], instances: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[Setting]]:
    """Return the figures in the paper's order, and settings that only a figure shows."""
    figures: list[dict[str, Any] | None] = []
    extra: list[Setting] = []
    for experiment, number in _TITLES.items():
        places = [k for k, s in enumerate(settings) if s.values["experiment"] == experiment]
        if not places:
            continue
        chosen, first = [settings[k] for k in places], places[0]
        if experiment in _OVER_TIME:
            title, text = _OVER_TIME[experiment]
            text = text or f"Played on {instances[first]['instance']}."
            figures.append(over_time(f"{number}. {title}", text, places, [""]))
        elif experiment == "oracle_sizes":
            title, text = _SWEEPS[experiment]
            extra = _by_size(chosen[0])
            axes, name = ["size of the set"], f"{number}. {title}"
            if figure := swept(name, text, extra, axes, first=len(settings)):
                figures.append(figure | {"log": True})  # each size is half the one before
        else:
            title, text = _SWEEPS[experiment]
            figures.append(swept(f"{number}. {title}", text, chosen, ["alpha"], first=first))
    return [figure for figure in figures if figure], extra


def _by_size(setting: Setting) -> list[Setting]:
    """Turn policies that differ in `size` alone into settings of one policy."""
    return [
        dataclasses.replace(
            setting,
            values={"size of the set": int(size[1])},
            regret={"moss-oracle": regret},
            missed={"moss-oracle": setting.missed[policy]},
        )
        for policy, regret in setting.regret.items()
        if (size := re.search(r"size=(\d+)", policy))
    ]


def _claims(folder: Path, provenance: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the verdicts beside the tables, if they were made from these."""
    try:
        claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
        same = all(
            claim["replications"] == provenance["replications"]
            and claim.get("seed", provenance["seed"]) == provenance["seed"]
            for claim in claims
        )
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return list(claims) if same else []


def _lead(provenance: dict[str, Any], claims: list[dict[str, Any]]) -> str:
    runs = count_of(provenance["replications"], "run", "runs")
    said = f"The paper's experiments, played again: {runs} of each policy on each problem."
    if not claims:
        return said
    held = sum(claim["verdict"] == "holds" for claim in claims)
    failed = sum(claim["verdict"] == "does not hold" for claim in claims)
    return (
        f"{said} Of its {len(claims)} claims {held} hold, {failed} do not, "
        f"and {len(claims) - held - failed} cannot be told."
    )


def _facts(
    provenance: dict[str, Any], settings: list[Setting], instances: list[dict[str, Any]]
) -> list[tuple[str, str]]:
    contests = {
        one["instance"]
        for setting, one in zip(settings, instances, strict=True)
        if setting.values["experiment"] in ("fig3", "oracle_sizes")
    }
    figures = [s for s in settings if s.values["experiment"].startswith("fig")]
    return [
        ("Paper", "Zhu & Nowak, On Regret with Multiple Best Arms, NeurIPS 2020"),
        *([("Contest", ", ".join(sorted(contests)))] if contests else []),
        ("Policies", titles(figures or settings)),
        ("Pulls of a run", spread(int(setting.times[-1]) for setting in settings)),
        ("Runs of each policy", spread([provenance["replications"]])),
        ("Seed", str(provenance["seed"])),
        ("Computed by", versions(provenance)),
    ]


def _repeat(provenance: dict[str, Any], settings: list[Setting]) -> list[tuple[str, str]]:
    played = list(dict.fromkeys(setting.values["experiment"] for setting in settings))
    target = f"{played[0]} " if len(played) == 1 else ""
    options = f"--replications {provenance['replications']} --seed {provenance['seed']}"
    return [
        ("Play everything again", f"manyarms reproduce {target}{options} --out again"),
        ("More runs decide more", f"manyarms reproduce {target}--replications 2000 --out more"),
        ("Look at the numbers", _PANDAS),
    ]


_PANDAS = """\
import pandas as pd

runs = pd.read_parquet("again/runs.parquet")
print(runs.groupby(["experiment", "alpha", "policy"])["regret"].describe())"""
