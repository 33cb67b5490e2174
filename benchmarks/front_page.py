"""Measure the numbers of README's examples: `python benchmarks/front_page.py` (a minute).

50000 pictures whose click rates are drawn around 3 %, the best about 10 %; 20000 visitors. Clicks
per visitor by policy, over 100 replications with common random numbers. For the prompts, see
`benchmarks/finding.py`.
"""

from __future__ import annotations

import numpy as np

import manyarms as ma

VISITORS, RUNS = 20_000, 100


def main() -> None:
    """Print clicks per visitor."""
    rates = np.random.default_rng(1).beta(6, 190, 50_000)
    pictures = ma.instances.from_means(rates)
    policies = [
        ma.policy(name) for name in ("prospector", "empmoss++", "ss-greedy", "moss", "uniform")
    ]
    policies.append(ma.policy("ss-greedy", exponent=2 / 3))
    result = ma.simulate(
        policies, pictures, horizon=VISITORS, replications=RUNS, checkpoints=1, seed=0
    )
    for policy in policies:
        clicks = rates.max() - result.of(policy)[:, -1] / VISITORS
        low, high = np.quantile(clicks, [0.05, 0.95])
        print(f"{policy!s:28} {clicks.mean():.2%} [{low:.2%}, {high:.2%}] of visitors click")


if __name__ == "__main__":
    main()
