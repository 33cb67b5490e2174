"""Measure the coverage of the intervals of mean regret and of live arms.

    python benchmarks/interval_coverage.py                  2000 runs of each policy: two minutes
    python benchmarks/interval_coverage.py --runs 20000     better estimates of rare misses

A situation is a distribution of regret and a number of runs. The distribution is that of many
simulated runs, so its mean is known. Samples are drawn from them, each with a 95 % interval, and
the table shows how many intervals contain that mean. Student's interval is shown for comparison
(for a ratio r, that of the mean of over - r under). The last column is the mean width of our
intervals, in widths of Student's. If rare misses matter, Student's interval is too narrow.
"""

from __future__ import annotations

import argparse
import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import manyarms as ma
from manyarms.core.statistics import mean_intervals, ratio_interval
from manyarms.inference.confidence_sequences import (
    spent_error,
    uniform_half_width,
    uniform_interval,
)
from manyarms.instances import Gaussian, Instance, planted

Numbers = NDArray[np.float64]

RUNS, SAMPLES = 2000, 2000
RATIOS = 25  # samples for the width of a ratio's interval
N_ARMS, HORIZON = 20_000, 50_000  # of Figure 2(a)
ARMS, LOOKS, EXPERIMENTS = 200, 100, 200  # of the live experiments


class Situation(NamedTuple):
    """An instance, one or two policies, and a number of runs.

    With one policy, the interval is for its mean regret. With two, it is for the mean difference
    or the ratio of the means.
    """

    name: str
    runs: int
    instance: Instance
    horizon: int
    policies: tuple[ma.Policy, ...]
    ratio: bool = False


class Covered(NamedTuple):
    """Shares of intervals that contain the truth, and the width of ours in widths of Student's."""

    student: float
    ours: float
    width: float


def situations() -> Iterator[Situation]:
    """Yield the situations: rare misses first, then ordinary ones, then pairs."""

    def figure(
        name: str, alpha: float, runs: int, *policies: ma.Policy, ratio: bool = False
    ) -> Situation:
        instance = planted(n=N_ARMS, alpha=alpha, horizon=HORIZON)
        return Situation(f"{name}, hardness {alpha}", runs, instance, HORIZON, policies, ratio)

    oracle = {alpha: ma.MOSSOracle(alpha=alpha) for alpha in (0.1, 0.25, 0.4)}
    greedy, emp, moss_pp = ma.policy("ss-greedy"), ma.EmpMOSSPlusPlus(), ma.MOSSPlusPlus()
    small = planted(n=500, m=10)
    noisy = planted(n=2000, m=50, rewards=Gaussian(0.5))
    hopeless = planted(n=10**6, m=1)
    yield figure("MOSS Oracle", 0.1, 100, oracle[0.1])
    yield figure("MOSS Oracle", 0.1, 1000, oracle[0.1])
    yield figure("SS-Greedy", 0.25, 25, greedy)
    yield figure("SS-Greedy", 0.25, 5, greedy)
    yield figure("MOSS Oracle", 0.25, 100, oracle[0.25])
    yield figure("empMOSS++", 0.4, 100, emp)
    yield figure("empMOSS++", 0.4, 25, emp)
    yield figure("SS-Greedy", 0.4, 5, greedy)
    yield figure("SS-Greedy", 0.4, 100, greedy)
    yield figure("Quantile", 0.25, 25, ma.Quantile())
    yield figure("Quantile", 0.25, 100, ma.Quantile())
    yield figure("MOSS++", 0.4, 25, moss_pp)
    yield figure("MOSS++", 0.4, 100, moss_pp)
    yield Situation("MOSS++, Gaussian rewards", 100, noisy, 5000, (moss_pp,))
    yield Situation("MOSS on 500 arms, no miss", 100, small, 5000, (ma.MOSS(),))
    yield Situation("MOSS, 1 best arm of 10^6", 100, hopeless, 1000, (ma.MOSS(),))
    yield figure("MOSS Oracle - SS-Greedy", 0.25, 25, oracle[0.25], greedy)
    yield figure("empMOSS++ - MOSS Oracle", 0.4, 100, emp, oracle[0.4])
    yield figure("MOSS++ - empMOSS++", 0.4, 25, moss_pp, emp)
    yield figure("MOSS Oracle / SS-Greedy", 0.25, 100, oracle[0.25], greedy, ratio=True)
    yield figure("MOSS++ / empMOSS++", 0.4, 100, moss_pp, emp, ratio=True)


def measured(situation: Situation, *, runs: int = RUNS, samples: int = SAMPLES) -> Covered:
    """Return how often intervals of samples contain the value of all runs."""
    regrets = [_played(situation, policy, runs) for policy in situation.policies]
    picked = np.random.default_rng(1).integers(0, runs, (situation.runs, samples))
    largest = situation.horizon * situation.instance.largest_gap
    if not situation.ratio:
        values = regrets[0] if len(regrets) == 1 else regrets[0] - regrets[1]
        lowest = 0.0 if len(regrets) == 1 else -largest
        return _of_means(values, picked, (lowest, largest))
    # an interval contains the true ratio r if that of the mean of over - r under contains 0
    over, under = regrets
    truth = float(over.mean() / under.mean())
    found = _of_means(over - truth * under, picked, (-truth * largest, largest))
    widths = []
    for rows in picked.T[:RATIOS]:
        a, b = over[rows], under[rows]
        new = ratio_interval(a, b, at_most=(largest, largest))
        spread = float((a - new.estimate * b).std(ddof=1)) / math.sqrt(len(rows)) / float(b.mean())
        student = 2.0 * _student_quantile(len(rows) - 1) * spread
        widths.append((new.high - new.low) / student)
    return found._replace(width=float(np.mean(widths)))


def _of_means(values: Numbers, picked: NDArray[Any], bounds: tuple[float, float]) -> Covered:
    truth, count = values.mean(), len(picked)
    drawn = values[picked]
    low, high = mean_intervals(drawn, bounds=bounds)
    deviation = drawn.std(axis=0, ddof=1) / math.sqrt(count)
    half = _student_quantile(count - 1) * deviation
    slack = 1e-9 * max(map(abs, bounds))  # if nothing varies, rounding decides
    return Covered(
        student=float((np.abs(drawn.mean(axis=0) - truth) <= half + slack).mean()),
        ours=float(((low <= truth + slack) & (truth - slack <= high)).mean()),
        width=float((high - low).mean() / (2.0 * half).mean()),
    )


@functools.cache
def _student_quantile(degrees: int) -> float:
    """Return the 97.5 % quantile to three digits, from random draws."""
    draws = np.random.default_rng(0).standard_t(degrees, 4_000_000)
    return float(np.quantile(np.abs(draws), 0.95))


def _played(situation: Situation, policy: ma.Policy, runs: int) -> Numbers:
    return _regret(policy, situation.instance.label, situation.horizon, runs)


@functools.cache
def _regret(policy: ma.Policy, label: str, horizon: int, runs: int) -> Numbers:
    instance = next(s.instance for s in situations() if s.instance.label == label)
    result = ma.simulate(
        policy, instance, horizon=horizon, replications=runs, seed=77, checkpoints=1
    )
    return np.asarray(result.regret[0, :, 0])


def ever_wrong(mean: float, *, experiments: int = EXPERIMENTS) -> tuple[float, float, float]:
    """Return the shares of experiments in which intervals are ever wrong, if all arms are equal.

    The first is for the recommended arm, with the mixture for any variance and no correction for
    the number of arms; the second for the recommended arm, with the error spent over all arms; the
    third for any arm.
    """
    rng = np.random.default_rng(2)
    counts = np.arange(1, LOOKS + 1)
    half = uniform_half_width(counts, 0.5)
    errors = spent_error(0.05, np.arange(1, ARMS + 1))[:, None]
    wrong = np.zeros(3)
    for _ in range(experiments):
        totals = np.cumsum(rng.random((ARMS, LOOKS)) < mean, axis=1)
        means = totals / counts
        low, high = uniform_interval(counts, totals, error=errors)
        old, new = (np.abs(means - mean) > half), (mean < low) | (high < mean)
        wrong += (
            old[(means - half).argmax(axis=0), counts - 1].any(),
            new[low.argmax(axis=0), counts - 1].any(),
            new.any(),
        )
    alone, chosen, any_arm = wrong / experiments
    return float(alone), float(chosen), float(any_arm)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=RUNS, help="played of each policy")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="drawn from them")
    options = parser.parse_args()
    print(f"{'situation (nominal 95 %)':38} {'runs':>5} {'Student':>8} {'ours':>7} {'width':>8}")
    for each in situations():
        found = measured(each, runs=options.runs, samples=options.samples)
        numbers = f"{found.student:>8.1%} {found.ours:>7.1%} {found.width:>8.2f}"
        print(f"{each.name:38} {each.runs:>5} {numbers}", flush=True)
    print(f"\n{ARMS} equal arms, looked at {LOOKS} times: experiments ever wrong (nominal 5 %)")
    print(f"{'mean':>6} {'recommended, as before':>24} {'recommended':>12} {'any arm':>8}")
    for mean in (0.5, 0.1, 0.03):
        alone, chosen, any_arm = ever_wrong(mean)
        print(f"{mean:>6} {alone:>24.1%} {chosen:>12.1%} {any_arm:>8.1%}")


if __name__ == "__main__":
    main()
