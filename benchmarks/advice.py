"""How good advice is: on some problems, what it costs against the best that knows no more.

    python benchmarks/advice.py                 all of them, 100 runs: a quarter of an hour
    python benchmarks/advice.py 2 5 --runs 25   the second and the fifth

For each problem `advise` gets what a user would know: means of their own, a bound on how rare
best arms are, the scale of rewards, the best mean. Then everybody who knows no more plays the
true problem, with other luck; `best` is the least mean regret, and the ratio is that of the policy
that was advised to it. The last problems are earlier ones, with more or less that is known.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import manyarms as ma
from manyarms import instances
from manyarms.instances import Instance, planted


class Known(NamedTuple):
    """A problem, and what `advise` gets."""

    name: str
    truth: Instance
    horizon: int
    told: dict[str, Any]


def problems() -> Iterator[Known]:
    """Yield them."""
    contest = instances.contest_652()
    own: dict[str, Any] = {"instance": contest}
    yield Known("contest 652, best mean 1", contest, 100_000, own | {"best_mean": 1.0})
    arms: dict[str, Any] = {"n": 20_000}
    easy = planted(n=20_000, alpha=0.25, horizon=50_000)
    yield Known("hardness 0.25", easy, 50_000, arms | {"alpha_at_most": 0.25})
    uniform = instances.from_means(np.random.default_rng(0).uniform(size=50_000))
    yield Known("50000 uniform means", uniform, 10_000, {"instance": uniform})
    moderate = planted(n=20_000, alpha=0.4, horizon=50_000)
    told = arms | {"alpha_at_most": 0.4, "best_mean": 0.9}
    yield Known("hardness 0.4, best mean 0.9", moderate, 50_000, told)
    yield Known("contest 652", contest, 100_000, own)
    close = planted(n=20_000, alpha=0.3, horizon=20_000, best=0.6, others=[0.5])
    told = arms | {"alpha_at_most": 0.3, "best_between": (0.6, 0.6), "others": [0.5]}
    yield Known("0.6 over 0.5, hardness 0.3", close, 20_000, told)
    yield Known("1 best of 100", planted(n=100, m=1), 10_000, {"n": 100, "m_at_least": 1})
    few = planted(n=1000, m=10)
    yield Known("10 best of 1000", few, 10_000, {"n": 1000, "m_at_least": 10})
    many = planted(n=10**6, alpha=0.4, horizon=20_000)
    told = {"n": 10**6, "alpha_at_most": 0.4}
    yield Known("a million arms, hardness 0.4", many, 20_000, told)
    lesser = [mean / 18 for mean in (0.1, 0.2, 0.3, 0.4, 0.5)]
    clicks = planted(n=20_000, alpha=0.3, horizon=100_000, best=0.05, others=lesser)
    told = arms | {"alpha_at_most": 0.3, "best_between": (0.01, 0.05)}
    yield Known("click rates up to 0.05", clicks, 100_000, told)
    short = planted(n=5000, m=100)
    yield Known("100 best of 5000", short, 5000, {"n": 5000, "m_at_least": 100})
    scale: dict[str, Any] = {"best_between": (0.9, 0.9)}
    told = arms | {"alpha_at_most": 0.25} | scale
    yield Known("hardness 0.25, scale 0.9", easy, 50_000, told)
    told = {"n": 1000, "m_at_least": 10} | scale
    yield Known("10 best of 1000, scale 0.9", few, 10_000, told)
    told = {"n": 10**6, "alpha_at_most": 0.4} | scale
    yield Known("a million arms, hardness 0.4, scale 0.9", many, 20_000, told)
    told = {"n": 5000, "m_at_least": 100} | scale
    yield Known("100 best of 5000, scale 0.9", short, 5000, told)
    yield Known("best mean 0.9 alone", moderate, 50_000, arms | {"best_mean": 0.9})


def measured(known: Known, runs: int) -> str:
    """Return a line of the table."""
    advice = ma.advise(horizon=known.horizon, **known.told)
    bounds = ("m_at_least", "alpha_at_most", "best_mean")
    told: dict[str, Any] = {key: known.told.get(key) for key in bounds}
    same: dict[str, Any] = {"horizon": known.horizon, "replications": runs, "seed": 1}
    played = ma.simulate(advice.recommended, known.truth, **same)
    race = ma.advise(instance=known.truth, policies="all", **told, **same)  # on the truth
    mean = played.regret[0, :, -1].mean()
    best = min((row for row in race.rows if row.finalist), key=lambda row: row.mean)
    labels = {row.code: row.label for row in advice.rows}
    return (
        f"| {known.name} | {labels[advice.code]} {mean:.0f} | {best.label} {best.mean:.0f} | "
        f"{mean / best.mean:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("numbers", type=int, nargs="*", help="of problems (default: all)")
    parser.add_argument("--runs", type=int, default=100, help="of those who play to the end")
    given = parser.parse_args()
    print("| problem | advised | best that knows no more | ratio |")
    print("|---|---|---|---|")
    for number, known in enumerate(problems(), 1):
        if not given.numbers or number in given.numbers:
            print(measured(known, given.runs), flush=True)


if __name__ == "__main__":
    main()
