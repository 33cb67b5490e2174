"""Compare how well policies find a good arm: the table of docs/earn_or_find.md (minutes).

    python benchmarks/finding.py              200 runs of each policy on each problem
    python benchmarks/finding.py --figure docs/figures/find.svg     also draws the first problem

The numbers are mean simple regret: the best mean minus the mean of the arm that a policy recommends
at the end. If means are drawn, the best mean is their supremum. Contests are played if they are on
this machine. `benchmarks/finders.py` plays finders on problems drawn at random.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import manyarms as ma
from manyarms.core.tabular import markdown_table
from manyarms.instances import BetaMeans, Instance, UniformMeans, planted, reservoir
from manyarms.report.drawing import Figure, drawing, rendered
from manyarms.report.style import WIDE, policy_styles, policy_title, thousands

POLICIES = {
    "Scout": ma.policy("scout"),
    "Sequential halving": ma.policy("sequential-halving"),
    "Sequential halving (4096)": ma.policy("sequential-halving", size=4096),
    "Prospector": ma.policy("prospector"),
    "empMOSS++": ma.policy("empmoss++"),
    "MOSS++": ma.policy("moss++"),
}


class FindProblem(NamedTuple):
    """An instance, the number of pulls, and the size of batches."""

    name: str
    instance: Instance
    horizon: int
    batch: int = 1


def problems() -> Iterator[FindProblem]:
    """Yield problems with few and many pulls, with rare and frequent good arms, and contests."""
    prompts = reservoir(BetaMeans(2.0, 5.0))  # 200,000 prompts are as good as infinitely many
    yield FindProblem("prompts", prompts, 10_000)
    yield FindProblem("prompts, 256 pending", prompts, 10_000, 256)
    yield FindProblem("prompts, T = 1 000", prompts, 1_000)
    yield FindProblem("Beta(1, 3) means", reservoir(BetaMeans(1.0, 3.0)), 10_000)
    yield FindProblem("uniform means", reservoir(UniformMeans(0.0, 1.0)), 5_000)
    yield FindProblem("Beta(10, 30) means", reservoir(BetaMeans(10.0, 30.0)), 10_000)
    for alpha in (0.2, 0.5, 0.8):
        coins = planted(n=20_000, alpha=alpha, horizon=20_000)
        yield FindProblem(f"planted, alpha {alpha}", coins, 20_000)
    few = ma.instances.from_means(np.linspace(0.3, 0.7, 50))
    yield FindProblem("50 arms, T = 20 000", few, 20_000)
    found = {stem.partition("_")[0]: path for stem, path in ma.instances.local_contests().items()}
    for number in ("652", "540"):
        if number in found:
            contest = ma.instances.captions(found[number])
            voted = ma.instances.captions(found[number], scaled=False)
            yield FindProblem(f"contest {number}", contest, 20_000)
            yield FindProblem(f"contest {number}, as voted, T = 1 000", voted, 1_000)


def draw(result: ma.Result) -> Figure:
    """Draw each policy's mean regret per pull against the simple regret of its recommended arm."""
    with drawing(*WIDE) as figure:
        axes, found = figure.add_subplot(), result.by("find")
        for label, style in policy_styles(result.policies).items():
            x = float(result.of(label)[:, -1].mean()) / result.horizon
            y, low, high = found.interval(label)
            options = style.options(linestyle="none", label=policy_title(label), linewidth=0.8)
            axes.errorbar([x], [y], yerr=[[y - low], [high - y]], capsize=2, **options)
        axes.set(
            xlabel="mean regret of a pull", ylabel="mean simple regret of\nthe recommended arm"
        )
        axes.set_title(f"means drawn from Beta(2, 5), {thousands(result.horizon)} pulls")
        axes.set_xlim(left=0.0)
        axes.set_ylim(bottom=0.0)
        axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), handlelength=1.0)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--figure", type=Path, help="an SVG file")
    options = parser.parse_args()
    rows: list[list[str]] = []
    for problem in problems():
        result = ma.simulate(
            list(POLICIES.values()), problem.instance, horizon=problem.horizon,
            replications=options.runs, checkpoints=1, batch=problem.batch,
        )  # fmt: skip
        errors = result.simple_regret.std(axis=1, ddof=1) / np.sqrt(options.runs)
        means = zip(result.simple_regret.mean(axis=1), errors, strict=True)
        if options.figure and not rows:
            options.figure.write_bytes(rendered(draw(result), "svg"))
        rows.append([problem.name, *(f"{mean:.3f} ± {error:.3f}" for mean, error in means)])
    print(markdown_table(["problem", *POLICIES], rows))


if __name__ == "__main__":
    main()
