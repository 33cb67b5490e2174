"""Play the paper's policies on every contest on this machine: the tables of docs/contests.md.

manyarms data get --all                  downloads the contests (250 MB)
python benchmarks/contests.py            20 runs of each policy (minutes)
python benchmarks/contests.py --runs 200
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

import manyarms as ma
from manyarms.core.tabular import markdown_table

HORIZON = 100_000
THRESHOLDS = {"with the paper's threshold of 0.8": 0.8, "with means as voted": None}
NAMES = ("MOSS", "MOSS Oracle", "Quantile", "Parallel", "MOSS++", "empMOSS++")


def policies(alpha: float) -> list[ma.Policy]:
    return [
        ma.MOSS(),
        ma.MOSSOracle(alpha=alpha),
        ma.Quantile(),
        ma.Parallel(),
        ma.MOSSPlusPlus(),
        ma.EmpMOSSPlusPlus(),
    ]


def ranks(regrets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks, 1 for the least regret; ties get the mean of their ranks."""
    row, column = regrets[:, None], regrets
    return np.asarray(0.5 + (column < row).sum(axis=1) + 0.5 * (column == row).sum(axis=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    found = ma.instances.local_contests()
    if not found:
        raise SystemExit(
            "There are no contests on this machine. Download them with `manyarms data get --all`, "
            "or set MANYARMS_DATA to their folder."
        )
    for title, threshold in THRESHOLDS.items():
        regrets, missed, rows = [], [], []
        for name, path in found.items():
            contest = ma.instances.captions(path, threshold=threshold)
            alpha = contest.problem(HORIZON).alpha
            result = ma.simulate(
                policies(alpha), contest, horizon=HORIZON, replications=options.runs, checkpoints=1
            )
            regrets.append(result.regret[:, :, -1].mean(axis=1))
            missed.append((result.best_pulls == 0).mean(axis=1))
            about = [name, f"{contest.n_arms}", f"{contest.n_best}", f"{alpha:.2f}"]
            rows.append([*about, *(f"{regret:.0f}" for regret in regrets[-1])])
        all_regrets = np.array(regrets)
        relative = np.median(all_regrets / all_regrets.min(axis=1, keepdims=True), axis=0)
        wins = (all_regrets == all_regrets.min(axis=1, keepdims=True)).sum(axis=0)
        places = np.mean([ranks(each) for each in regrets], axis=0)
        numbers = zip(NAMES, relative, wins, places, np.mean(missed, axis=0), strict=True)
        standing = [
            [name, f"{times:.2f}", f"{won}", f"{rank:.2f}", f"{share:.0%}"]
            for name, times, won, rank, share in sorted(numbers, key=lambda row: row[3])
        ]
        head = ["policy", "relative regret (median)", "wins", "rank (mean)", "missed"]
        print(f"{len(found)} contests {title}, {options.runs} runs\n")
        print(markdown_table(head, standing), "\n")
        print(markdown_table(["contest", "captions", "best", "hardness", *NAMES], rows), "\n")


if __name__ == "__main__":
    main()
