"""Measure how often Prospector and others lose much: the tables of docs/policies/prospector.md.

    python benchmarks/tails.py                 the problems of the page, 2000 runs each (minutes)
    python benchmarks/tails.py --runs 4000     more runs
    python benchmarks/tails.py --known         a search that knows both means and the share

A run lost 90 % if its regret is above 0.9 T times the gap between the best mean and the next one;
with two means, best arms then had less than a tenth of the pulls. `--known` plays two problems with
arms of two means, where the likelihood ratio of an arm's rewards is a sufficient statistic: an arm
is pulled while its ratio is at least that of a fresh arm, 1, and then never again. It also plays
rules that leave an arm earlier or later.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

import manyarms as ma
from manyarms.instances import Instance, from_means, grouped, planted

HORIZON = 50_000
PROBLEMS: dict[str, tuple[Instance, float, int]] = {  # with the gap to the next mean, and T
    **{
        f"Figure 2(a), {alpha}": (planted(n=20_000, alpha=alpha, horizon=HORIZON), 0.4, HORIZON)
        for alpha in (0.2, 0.5, 0.6)
    },
    "0.03 over 0.01": (grouped(sizes=[50_000, 950_000], means=[0.03, 0.01]), 0.02, 20_000),
    "0.01 over 0.003": (grouped(sizes=[30_000, 970_000], means=[0.01, 0.003]), 0.007, 50_000),
    "three arms": (from_means([0.5, 0.4, 0.3]), 0.1, 100_000),
}
POLICIES = ("prospector", "empmoss++", "moss++", "moss", "quantile", "ss-greedy")
KNOWN = {
    "0.03 over 0.01": (0.03, 0.01, 0.05, 20_000),
    "0.01 over 0.003": (0.01, 0.003, 0.03, 50_000),
}
LEAVES = (1.35, 1.0, 0.78, 0.37)  # an arm is left if its likelihood ratio falls below this


def oracle_search(
    best: float, other: float, share: float, horizon: int, leave: float, runs: int
) -> np.ndarray:
    """Return, by run, the pulls of best arms by a search that knows the means and the share."""
    luck = np.random.default_rng(0)
    up, down = math.log(best / other), math.log((1.0 - other) / (1.0 - best))
    is_best, ratio = luck.random(runs) < share, np.zeros(runs)
    pulls, floor = np.zeros(runs, np.int64), math.log(leave)
    for _ in range(horizon):
        pulls += is_best
        won = luck.random(runs) < np.where(is_best, best, other)
        ratio += np.where(won, up, -down)
        left = ratio < floor
        ratio[left] = 0.0
        is_best[left] = luck.random(int(left.sum())) < share
    return pulls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--known", action="store_true")
    options = parser.parse_args()
    if options.known:
        for name, (best, other, share, horizon) in KNOWN.items():
            for leave in LEAVES:
                pulls = oracle_search(best, other, share, horizon, leave, options.runs)
                lost = float((pulls < horizon / 10).mean())
                doubt = math.sqrt(lost * (1.0 - lost) / options.runs)
                print(f"{name}, left below {leave:g}: lost 90 % {lost:.2%} (± {doubt:.2%})")
        return
    for name, (instance, gap, horizon) in PROBLEMS.items():
        for policy in map(ma.policy, POLICIES):
            result = ma.simulate(
                policy, instance, horizon=horizon, replications=options.runs, seed=0, checkpoints=1
            )
            (row,) = result.summary().policies
            deviation = float(result.regret.std(ddof=1))
            lost = float((result.regret > 0.9 * horizon * gap).mean())
            print(
                f"{name:18} {row.policy:14} mean {row.mean:7.0f}  sd {deviation:6.0f}  "
                f"99 % {row.q99:7.0f}  worst {row.worst:7.0f}  lost 90 % {lost:.2%}"
            )


if __name__ == "__main__":
    main()
