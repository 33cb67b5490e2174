"""Measure the cost of late rewards: the tables and figures of docs/late_rewards.md (minutes).

python benchmarks/late.py                   prints the tables
python benchmarks/late.py docs/figures      also draws late.svg and late_short.svg there
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import manyarms as ma
from manyarms.core.tabular import markdown_table
from manyarms.report.drawing import Figure, Patch, drawing, rendered
from manyarms.report.style import policy_styles, policy_title, thousands

ALPHA = 0.25  # as in Figure 2(b); "late" is its problem
SIZES = {"late": (20_000, 50_000), "late_short": (2000, 5000)}  # arms, horizon
LATENESS = (10, 100, 1000)  # delays, and sizes of batches
COLUMNS: dict[str, dict[str, Any]] = {
    "in turn": {},
    **{f"delay {k}": {"delay": k} for k in LATENESS},
    **{f"batch {k}": {"batch": k} for k in LATENESS},
}
POLICIES: list[Any] = [
    ma.MOSS(),
    ma.MOSSOracle(alpha=ALPHA),
    ma.Quantile(),
    ma.Parallel(),
    ma.MOSSPlusPlus(),
    ma.EmpMOSSPlusPlus(),
]

Played = dict[str, ma.Result]  # by column


def play(n_arms: int, horizon: int, runs: int, *, count_late: bool) -> Played:
    instance = ma.instances.planted(n=n_arms, alpha=ALPHA, horizon=horizon)
    policies = [replace(policy, count_late=count_late) for policy in POLICIES]
    return {
        name: ma.simulate(
            policies, instance, horizon=horizon, replications=runs, checkpoints=1, **late
        )
        for name, late in COLUMNS.items()
    }


def table(corner: str, played: Played) -> str:
    rows = [
        [policy_title(policy.name), *(f"{r.of(policy.name).mean():.0f}" for r in played.values())]
        for policy in POLICIES
    ]
    return markdown_table([corner, *played], rows)


def draw(default: Played, counting: Played, horizon: int) -> Figure:
    """Draw mean final regret with 95 % intervals against delay, and against batch size."""
    with drawing(6.6, 3.0) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        styles = policy_styles(policy.name for policy in POLICIES)
        for axes, kind in zip(panels, ("delay", "batch"), strict=True):
            names = ["in turn", *(f"{kind} {k}" for k in LATENESS)]
            lines = []
            for played, thin in ((default, {}), (counting, {"markerfacecolor": "white"})):
                for name, style in styles.items():
                    intervals = [played[column].interval(name) for column in names]
                    means, low, high = zip(*intervals, strict=True)
                    options = style.options(label=policy_title(name), **thin)
                    lines += axes.plot(range(len(names)), means, **options)
                    axes.vlines(range(len(names)), low, high, colors=style.colour, linewidth=0.8)
            axes.set_xticks(
                range(len(names)), ["0" if kind == "delay" else "1", *map(str, LATENESS)]
            )
            axes.set_xlabel("delay (pulls)" if kind == "delay" else "batch size (pulls)")
        panels[0].set_yscale("log")
        panels[0].yaxis.set_major_formatter(thousands)
        panels[0].set_ylabel(f"mean pseudo-regret after {thousands(horizon)} pulls")
        note = Patch(alpha=0.0, label="hollow: count_late=True")
        figure.legend(handles=[*lines[: len(POLICIES)], note], loc="outside right upper")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=400)
    options = parser.parse_args()
    for name, (n_arms, horizon) in SIZES.items():
        default = play(n_arms, horizon, options.runs, count_late=False)
        counting = play(n_arms, horizon, options.runs, count_late=True)
        print(f"{n_arms} arms, {horizon} pulls, {options.runs} runs")
        print(table("told rewards only (default)", default))
        print(table("`count_late=True`", counting), "\n")
        if options.folder:
            picture = rendered(draw(default, counting, horizon), "svg")
            (options.folder / f"{name}.svg").write_bytes(picture)


if __name__ == "__main__":
    main()
