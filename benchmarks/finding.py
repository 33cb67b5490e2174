"""Who finds a good arm: the table of docs/earn_or_find.md (minutes).

    python benchmarks/finding.py              200 runs of each policy on each problem
    python benchmarks/finding.py --runs 50

A number is the mean simple regret: the best mean minus the mean of the arm that a policy recommends
in the end. Where means are drawn, the best mean is their supremum. Contests are played if they are
on this machine. `benchmarks/finders.py` plays finders on problems drawn at random.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import manyarms as ma
from manyarms.core.tabular import markdown_table
from manyarms.instances import BetaMeans, Instance, UniformMeans, planted, reservoir

POLICIES = {
    "Scout": ma.policy("scout"),
    "Sequential halving": ma.policy("sequential-halving"),
    "Sequential halving (4096)": ma.policy("sequential-halving", size=4096),
    "Prospector": ma.policy("prospector"),
    "empMOSS++": ma.policy("empmoss++"),
    "MOSS++": ma.policy("moss++"),
}


class FindProblem(NamedTuple):
    """An instance, the number of pulls, and how many are asked for at a time."""

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    rows = []
    for problem in problems():
        result = ma.simulate(
            list(POLICIES.values()), problem.instance, horizon=problem.horizon,
            replications=options.runs, checkpoints=1, batch=problem.batch,
        )  # fmt: skip
        errors = result.simple_regret.std(axis=1, ddof=1) / np.sqrt(options.runs)
        means = zip(result.simple_regret.mean(axis=1), errors, strict=True)
        rows.append([problem.name, *(f"{mean:.3f} ± {error:.3f}" for mean, error in means)])
    print(markdown_table(["problem", *POLICIES], rows))


if __name__ == "__main__":
    main()
