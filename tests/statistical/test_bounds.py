"""No policy's regret exceeds its bound on 222 problems, nor does that of an iteration of MOSS++.

The bounds are on expectations, so the upper end of Student's interval for a mean is compared with
its bound, at a one-sided level of 1e-6 divided by the number of comparisons. If the tests pass, all
expectations are below their bounds with confidence 1 - 1e-6 (if means are normal). The measured
means are more than twice as many standard errors below their bounds as this level requires, so the
probability of a false alarm is also below 1e-6.

A comparison can fail only if the bound is below T times the largest gap, the most that T pulls can
lose. Such a bound *bites*, and the tests count them. `python -m tests.statistical.test_bounds`
prints the table of the documentation.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import manyarms as ma
from manyarms import theory
from manyarms.instances import Bernoulli, BetaRewards, Gaussian
from manyarms.instances.instance import Instance
from manyarms.instances.rewards import RewardModel
from manyarms.policies.moss_oracle import subset_size
from manyarms.policies.moss_plus_plus import iteration_arms, iteration_pulls, iterations
from tests.helpers import Stepper
from tests.student_t import student_quantile

FALSE_ALARM = 1e-6
RUNS = 12

pytestmark = pytest.mark.compiled


class Setting(NamedTuple):
    """m best arms among n; the other arms have the gaps in equal shares."""

    n: int
    m: int
    horizon: int
    gaps: tuple[float, ...]
    rewards: RewardModel

    @property
    def instance(self) -> Instance:
        best = (1.0 + max(self.gaps)) / 2
        others = [best - gap for gap in self.gaps]
        return ma.instances.planted(
            n=self.n, m=self.m, best=best, others=others, rewards=self.rewards
        )

    @property
    def gap_of_arm(self) -> NDArray[np.float64]:
        share, rest = divmod(self.n - self.m, len(self.gaps))
        sizes = [self.m] + [share + (k < rest) for k in range(len(self.gaps))]
        return np.repeat([0.0, *self.gaps], sizes)

    @property
    def alpha(self) -> float:
        return theory.hardness(self.n, self.m, self.horizon)


class Comparison(NamedTuple):
    """The regret of one policy on one problem, and a bound on its expectation."""

    bound_of: str
    regret: NDArray[np.float64]  # by run
    bound: float
    possible: float  # the regret of always pulling the worst arm
    horizon: int

    @property
    def ratio(self) -> float:
        return float(self.regret.mean()) / self.bound

    @property
    def bites(self) -> bool:
        return self.bound < self.possible

    def upper_end(self, comparisons: int) -> float:
        quantile = student_quantile(1 - FALSE_ALARM / comparisons, len(self.regret) - 1)
        error = self.regret.std(ddof=1) / math.sqrt(len(self.regret))
        return float(self.regret.mean() + quantile * error)


def few_arms() -> Iterator[Setting]:
    """Yield problems with so few arms that MOSS's bound bites; gaps fixed, and c sqrt(n/T)."""
    for n in (2, 3, 5, 10, 20):
        for horizon in (2**12, 2**14, 2**16):
            unit = math.sqrt(n / horizon)
            # 22 units for all of T are more than the bound, 20.5 sqrt(nT)
            for gap in (0.2, 0.95, unit, min(22 * unit, 0.99)):
                for rewards in (Bernoulli(), Gaussian(0.5)):
                    yield Setting(n, max(1, n // 5), horizon, (gap,), rewards)


def many_arms() -> Iterator[Setting]:
    """Yield the paper's means, and gaps of the order of sqrt(|S|/T) for the Oracle's set."""
    for n in (300, 20_000, 1_000_000):
        for alpha in (0.0, 0.1, 0.2, 0.4, 0.8):
            for horizon in (2**10, 2**12, 2**14):
                m = theory.best_arms(n, horizon, alpha)
                yield Setting(n, m, horizon, (0.8, 0.7, 0.6, 0.5, 0.4), Bernoulli())
                gap = math.sqrt(subset_size(horizon, alpha, 2.0, n) / horizon)
                yield Setting(n, m, horizon, (min(gap, 0.99),), Gaussian(0.5))
    # here the Oracle's bound bites: first with its two parts, later with the theorem's
    for n, horizon, alphas in (
        (20_000, 2**16, (0.0, 0.03, 0.06, 0.1, 0.15, 0.2)),
        (200, 2**18, (0.0, 0.02)),
        (200, 2**20, (0.0, 0.03, 0.06, 0.1)),
    ):
        for alpha in alphas:
            m = theory.best_arms(n, horizon, alpha)
            yield Setting(n, m, horizon, (0.98,), Bernoulli())


SETTINGS = [*few_arms(), *many_arms()]


def oracle_bound(setting: Setting) -> float:
    """Return the sum of the proof's two parts: MOSS on the set, and missing the best arms."""
    n, m, horizon = setting.n, setting.m, setting.horizon
    size = subset_size(horizon, setting.alpha, 2.0, n)
    missed = theory.miss_probability(n, m, size) * horizon * max(setting.gaps)
    return float(theory.moss_bound(size, horizon)) + missed


def phases_bound(setting: Setting) -> float:
    """Return the sum of Parallel's bounds for all phases, or a phase's length if it has none."""
    total = 0.0
    for length in (2**i for i in range(setting.horizon.bit_length())):
        alpha = theory.hardness(setting.n, setting.m, length)
        known = length >= 3 and alpha <= 1.0
        total += theory.parallel_bound(alpha, length) if known else length
    return total


def bounds(setting: Setting) -> Iterator[tuple[str, ma.Policy, float]]:
    """Yield a name, a policy and its bound."""
    alpha, horizon = setting.alpha, setting.horizon
    if setting.n <= horizon <= 2**16:
        total = float(setting.gap_of_arm.sum())
        moss = theory.moss_bound(setting.n, horizon, sum_of_gaps=total)
        yield "MOSS, 19.5 √(nT) + Σ gaps", ma.MOSS(), moss
        half = theory.moss_bound(setting.n, horizon, exploration=0.5)
        yield "MOSS with exploration 1/2, 18 √(nT)", ma.MOSS(exploration=0.5), half
    oracle = ma.MOSSOracle(alpha=alpha)
    yield "MOSS Oracle, the theorem", oracle, theory.subroutine_bound(alpha, horizon)
    yield "MOSS Oracle, the proof's two parts", oracle, oracle_bound(setting)
    if horizon > 2**14:
        return  # the other bounds are far from biting, and slower to test
    for beta in (0.5, 0.75):
        # a mixture of normal rewards has a larger variance proxy
        sigma = math.hypot(0.5, max(setting.gaps) / 2) if setting.rewards == Gaussian(0.5) else 0.5
        policy = ma.MOSSPlusPlus(beta=beta, mixture_sigma=sigma)
        bound = theory.moss_plus_plus_bound(alpha, horizon, beta=beta)
        yield f"MOSS++ (β = {beta}), the theorem", policy, bound
    anytime = theory.anytime_moss_plus_plus_bound(alpha, horizon, beta=0.75)
    yield "anytime MOSS++ (β = 0.75), the theorem", ma.Doubling(policy), anytime
    if setting.rewards == Bernoulli():  # the proof is for rewards in [0, 1]
        yield "Parallel, the theorem", ma.Parallel(), theory.parallel_bound(alpha, horizon)
        yield "anytime Parallel, phase by phase", ma.Doubling(ma.Parallel()), phases_bound(setting)


def compare(setting: Setting, seed: int) -> Iterator[Comparison]:
    entries = list(bounds(setting))
    policies = list(dict.fromkeys(policy for _, policy, _ in entries))
    result = ma.simulate(
        policies,
        setting.instance,
        horizon=setting.horizon,
        replications=RUNS,
        seed=seed,
        checkpoints=1,
    )
    possible = setting.horizon * max(setting.gaps)
    for name, policy, bound in entries:
        regret = result.regret[policies.index(policy), :, -1]
        yield Comparison(name, regret, bound, possible, setting.horizon)


@cache
def sweep() -> list[Comparison]:
    return [each for seed, setting in enumerate(SETTINGS) for each in compare(setting, seed)]


def iteration_settings() -> Iterator[tuple[Setting, float]]:
    """Yield problems for MOSS++, long enough for the later iterations' bounds to bite."""
    for horizon, beta in ((2**14, 0.5), (2**16, 0.5), (2**18, 0.5), (2**15, 0.6)):
        for n, alpha in ((4, 0.0), (300, 0.1), (20_000, 0.1), (20_000, 0.3), (20_000, 0.5)):
            m = theory.best_arms(n, horizon, alpha)
            yield Setting(n, m, horizon, (0.8, 0.7, 0.6, 0.5, 0.4), Bernoulli()), beta
            yield Setting(n, m, horizon, (0.98,), BetaRewards(1.0)), beta


def learning_errors(setting: Setting, beta: float, seed: int) -> Iterator[Comparison]:
    """Play MOSS++ by iterations, and check its state after each complete one."""
    n, horizon = setting.n, setting.horizon
    instance, p = setting.instance, iterations(horizon, beta)
    stepper = Stepper(ma.MOSSPlusPlus(beta=beta), instance, horizon=horizon, seed=seed)
    means = instance.best_mean - setting.gap_of_arm
    assert means[[0, -1]].tolist() == pytest.approx([instance.mean(0), instance.mean(n - 1)])
    lengths = [iteration_pulls(p, i, horizon) for i in range(1, p + 1)]
    whole = [i for i in range(1, p + 1) if sum(lengths[:i]) <= horizon]
    errors = np.zeros((len(whole), RUNS))
    for run in range(RUNS):
        start, lost = 0, 0.0
        mixtures: list[float] = []
        for i in whole:
            pulls = lengths[i - 1]
            regret = stepper.play(run, start, start + pulls)
            moss = stepper.state.moss
            table = moss.slot[: moss.run["opened"][0]]
            assert len(table) == iteration_arms(p, i, n) + i - 1  # every member was pulled
            assert table["asked"].sum() == pulls
            # member -j is mixture-arm j
            real = np.maximum(table["member"], 0)
            mixed = np.array([*mixtures, 0.0])[np.maximum(-table["member"], 1) - 1]
            values = np.where(table["member"] >= 0, means[real], mixed)
            lost_now = regret - lost
            errors[i - 1, run] = lost_now - pulls * (instance.best_mean - values.max())
            mixtures.append(float(values @ table["asked"]) / pulls)
            start, lost = start + pulls, lost + lost_now
    for i in whole:
        bound = theory.learning_error_bound(horizon, i, beta=beta, n=n)
        possible = lengths[i - 1] * max(setting.gaps)
        name = "MOSS++, each whole iteration, 20.5 √(set · pulls)"
        yield Comparison(name, errors[i - 1], bound, possible, lengths[i - 1])


def parallel_parts() -> Iterator[Comparison]:
    """Compare Parallel's bound with MOSS on all arms as subroutine, which bites with few arms."""
    horizon = 2**21
    q = math.ceil(math.log(horizon))
    luck = 4 * math.sqrt(horizon * math.log(2 * horizon**1.5 * q))
    for seed, (n, gap) in enumerate([(2, 0.95), (2, 0.8), (4, 0.95), (4, 0.8)]):
        assert subset_size(horizon, 1 / q, 2.0, n) == n  # every subroutine has all arms
        setting = Setting(n, 1, horizon, (gap,), Bernoulli())
        result = ma.simulate(
            ma.Parallel(),
            setting.instance,
            horizon=horizon,
            replications=RUNS // 2,
            seed=seed,
            checkpoints=1,
        )
        bound = q * (theory.moss_bound(n, horizon) + luck) + math.sqrt(horizon)
        name = "Parallel, the proof's parts, few arms and T = 2^21"
        yield Comparison(name, result.regret[0, :, -1], bound, horizon * gap, horizon)


@cache
def iteration_sweep() -> list[Comparison]:
    return [
        each
        for seed, (setting, beta) in enumerate(iteration_settings())
        for each in learning_errors(setting, beta, seed)
    ]


def exceeded(comparisons: list[Comparison]) -> list[Comparison]:
    return [each for each in comparisons if each.upper_end(len(comparisons)) > each.bound]


def bites(comparisons: list[Comparison], beginning: str) -> int:
    return sum(each.bites for each in comparisons if each.bound_of.startswith(beginning))


@pytest.mark.long
@pytest.mark.slow
def test_no_regret_exceeds_its_bound() -> None:
    assert len(set(SETTINGS)) == len(SETTINGS) >= 200
    assert all(setting.alpha <= 1.0 for setting in SETTINGS)
    comparisons = sweep()
    assert exceeded(comparisons) == []
    assert bites(comparisons, "MOSS,") >= 50
    assert bites(comparisons, "MOSS with exploration 1/2") >= 50
    assert bites(comparisons, "MOSS Oracle, the proof's two parts") >= 50
    assert bites(comparisons, "MOSS Oracle, the theorem") >= 6


def test_a_policy_that_does_not_learn_is_detected() -> None:
    # always the same random arm, which is not one of the 2 best of 10 with probability 0.8
    setting = Setting(10, 2, 2**16, (0.95,), Bernoulli())
    result = ma.simulate(
        ma.MOSSOracle(size=1), setting.instance, horizon=2**16, replications=RUNS, checkpoints=1
    )
    bound = theory.moss_bound(10, 2**16)
    assert exceeded([Comparison("MOSS", result.regret[0, :, -1], bound, 0.95 * 2**16, 2**16)])


@pytest.mark.long
@pytest.mark.slow
def test_no_iteration_of_moss_plus_plus_exceeds_its_learning_error() -> None:
    comparisons = iteration_sweep()
    assert exceeded(comparisons) == []
    assert bites(comparisons, "MOSS++") >= 50


@pytest.mark.slow
def test_parallel_stays_within_the_parts_of_its_bound() -> None:
    comparisons = list(parallel_parts())
    assert exceeded(comparisons) == []
    assert all(each.bites for each in comparisons)


def table(comparisons: list[Comparison]) -> Iterator[str]:
    """Yield a Markdown table of the bounds and the largest ratios."""
    yield "| bound | compared | can fail | largest measured / bound | where it can fail | bound/T |"
    yield "|---|---|---|---|---|---|"
    for name in dict.fromkeys(each.bound_of for each in comparisons):
        rows = [each for each in comparisons if each.bound_of == name]
        biting = [each.ratio for each in rows if each.bites]
        shares = [theory.share_of_horizon(each.bound, each.horizon) for each in rows]
        cells = [
            name,
            str(len(rows)),
            str(len(biting)),
            two_digits(max(each.ratio for each in rows)),
            two_digits(max(biting)) if biting else "",
            f"{two_digits(min(shares))} to {two_digits(max(shares))}",
        ]
        yield f"| {' | '.join(cells)} |"


def two_digits(number: float) -> str:
    return np.format_float_positional(number, precision=2, fractional=False, trim="-")


if __name__ == "__main__":
    everything = [*sweep(), *parallel_parts(), *iteration_sweep()]
    sys.stdout.write("\n".join(table(everything)) + "\n")
