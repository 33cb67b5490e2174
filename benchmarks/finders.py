"""Compare finders on 40 problems that were drawn before any was played.

    python benchmarks/finders.py                    the held-out half, 100 runs each (minutes)
    python benchmarks/finders.py --half tuned       the half for choosing constants
    python benchmarks/finders.py --half near-one    8 problems where many arms have means near 1
    python benchmarks/finders.py --runs 400         more runs

Each drawn problem has arms of one kind, and n/100 to 100 n pulls. A finder's score is its mean
simple regret divided by the least of all finders. First 0.001 is added to both, because smaller
differences do not matter. `>` marks a score that exceeds 1.3 by more than two standard errors.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import manyarms as ma
from manyarms.instances import BetaMeans, Instance, UniformMeans, from_means, reservoir

SEEDS = {"tuned": 28_001, "held out": 28_002}
COUNT = 20  # problems in each half
SHORTEST, LONGEST, MOST_ARMS = 300, 30_000, 200_000
LIMIT, SMALL = 1.3, 0.001
FINDERS = {
    "scout": ma.policy("scout"),
    "scout(search=0.3)": ma.policy("scout(search=0.3)"),
    "halving": ma.policy("sequential-halving"),
    "halving(4096)": ma.policy("sequential-halving", size=4096),
}

Luck = np.random.Generator


class FindersProblem(NamedTuple):
    """Arms of one kind, and a horizon."""

    name: str
    instance: Instance
    horizon: int


def _beta(luck: Luck, n: int) -> tuple[str, np.ndarray]:
    a, b = np.exp(luck.uniform(math.log(0.5), math.log(8.0), 2))
    return f"Beta({a:.1f}, {b:.1f})", luck.beta(a, b, n)


def _uniform(luck: Luck, n: int) -> tuple[str, np.ndarray]:
    low, high = np.sort(luck.random(2))
    return f"U({low:.2f}, {high:.2f})", luck.uniform(low, high, n)


def _atoms(luck: Luck, n: int) -> tuple[str, np.ndarray]:
    values = np.sort(luck.random(luck.integers(2, 6)))
    return "atoms " + " ".join(f"{v:.2f}" for v in values), luck.choice(values, n)


def _planted(luck: Luck, n: int) -> tuple[str, np.ndarray]:
    best = luck.uniform(0.3, 1.0)
    m = max(1, round(n * math.exp(luck.uniform(math.log(0.002), math.log(0.2)))))
    means = best * luck.uniform(0.2, 0.9, n)
    means[:m] = best
    return f"{m} of {best:.2f}", means


def _tiny(luck: Luck, n: int) -> tuple[str, np.ndarray]:
    scale, spread = math.exp(luck.uniform(math.log(0.005), math.log(0.05))), luck.uniform(0.3, 1.0)
    means = np.minimum(scale * np.exp(spread * luck.standard_normal(n)), 0.5)
    return f"tiny, about {scale:.3f}", means


_KINDS: dict[str, Callable[[Luck, int], tuple[str, np.ndarray]]] = {
    "Beta": _beta,
    "uniform": _uniform,
    "atoms": _atoms,
    "planted": _planted,
    "tiny rates": _tiny,
    "few arms": _uniform,
}


_NEAR_ONE = BetaMeans(2.0, 1.0), BetaMeans(5.0, 1.0), UniformMeans(0.0, 1.0), UniformMeans(0.5, 1.0)


def problems(half: str) -> Iterator[FindersProblem]:
    """Yield the problems of a half, with alternating kinds, or those with means near 1."""
    if half == "near-one":
        for law in _NEAR_ONE:
            for horizon in (5000, 20_000):
                yield FindersProblem(f"{law}, T = {horizon}", reservoir(law), horizon)
        return
    luck = np.random.default_rng(SEEDS[half])
    for number in range(COUNT):
        kind = list(_KINDS)[number % len(_KINDS)]
        horizon = round(math.exp(luck.uniform(math.log(SHORTEST), math.log(LONGEST))))
        n = round(horizon * math.exp(luck.uniform(math.log(0.01), math.log(100.0))))
        n = int(luck.integers(3, 40)) if kind == "few arms" else min(max(n, 3), MOST_ARMS)
        name, means = _KINDS[kind](luck, n)
        arms = from_means(means, label=name)
        yield FindersProblem(f"{kind}: {name}, n = {n}, T = {horizon}", arms, horizon)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--half", choices=[*SEEDS, "near-one"], default="held out")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--workers", type=int, default=None)
    options = parser.parse_args()
    scores: dict[str, list[float]] = {name: [] for name in FINDERS}
    print(" ".join(f"{name:>17}" for name in FINDERS))
    for problem in problems(options.half):
        regrets = []
        for finder in FINDERS.values():
            result = ma.simulate(
                finder,
                problem.instance,
                horizon=problem.horizon,
                replications=options.runs,
                seed=1,
                checkpoints=1,
                workers=options.workers,
                progress=False,
            )
            regrets.append(problem.instance.best_mean - result.recommended_mean[0])
        means = np.array([regret.mean() for regret in regrets]) + SMALL
        best = int(means.argmin())
        cells = []
        for name, regret, mean in zip(FINDERS, regrets, means, strict=True):
            scores[name].append(mean / means[best])
            excess = regret + SMALL - LIMIT * (regrets[best] + SMALL)
            beyond = excess.mean() > 2.0 * excess.std() / math.sqrt(options.runs)
            cells.append(f"{'>' if beyond else ''}{mean / means[best]:.2f}")
        print(" ".join(f"{cell:>17}" for cell in cells), f" {means[best]:.4f} ", problem.name)
    table = np.array(list(scores.values()))
    for title, row in ("geometric mean", np.exp(np.log(table).mean(1))), ("worst", table.max(1)):
        print(" ".join(f"{score:17.2f}" for score in row), "", title)


if __name__ == "__main__":
    main()
