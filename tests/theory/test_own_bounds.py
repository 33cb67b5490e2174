"""Our own bounds by hand, and the lemmas and constants of the proof of the guard."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from manyarms.errors import ParameterError
from manyarms.policies.parts.guard import guard_upper_level
from manyarms.theory import (
    Problem,
    anytime_guarded_bound,
    guard_stages,
    guarded_bound,
    guarded_problem_bound,
    guarded_steps_bound,
    informative_from,
    patience_bound,
)

BETAS = (0.5, 0.55, 0.6, 0.75, 0.9, 1.0)
HORIZONS = [round(2 ** (j / 2)) for j in range(2, 124)]
LOG_2 = 0.6931471806


def test_patience() -> None:
    # log 2 = 0.693147: 4 log T + 3 = 5.772589; 2 sqrt(1 * 2 * 5.772589) + 1
    assert patience_bound(3, 3, 2) == pytest.approx(7.795642, abs=1e-5)
    # log 10000 = 9.210340: 39.841361; n/m = 25: 2 sqrt(25 * 10000 * 39.841361) + 1
    assert patience_bound(100, 4, 10_000) == pytest.approx(6313.002, abs=0.01)
    np.testing.assert_allclose(patience_bound(np.array([3, 12]), 3, 2), [7.795642, 14.591285], 1e-5)


def test_guarded() -> None:
    # the rate at 0.25 is 0.75: 2^(16 * 0.75) = 4096
    told = guarded_bound(0.25, 2**16, beta=0.5)
    assert told == pytest.approx(10 * (16 * LOG_2) ** 2.5 * 4096)
    both = guarded_bound(np.array([0.0, 1.0]), 2**4, beta=0.5)
    np.testing.assert_allclose(both, [10 * (4 * LOG_2) ** 2.5 * 4, 10 * (4 * LOG_2) ** 2.5 * 16])


def test_anytime_guarded() -> None:
    # 3 + 9 / (2 * 0.5) = 12, and 8 T = 2^19
    anytime = anytime_guarded_bound(0.25, 2**16, beta=0.5)
    assert anytime == pytest.approx(12 * (19 * LOG_2) ** 2.5 * 4096)


def test_guarded_problem() -> None:
    # L = 16 log 2 = 11.09; both powers of T are 256; K = min(10, 5 * 11.09) = 10
    scale = (16 * LOG_2) ** 1.5 * 256
    told = guarded_problem_bound(Problem(10, 2, 2**16), beta=0.5)
    assert told == pytest.approx(scale * (6 + 4.472135955 * 10))
    # of infinitely many arms K = 5 * 11.09 = 55.45
    many = guarded_problem_bound(Problem.infinite(probability=0.2, horizon=2**16), beta=0.5)
    assert many == pytest.approx(scale * (6 + 4.472135955 * 5 * 16 * LOG_2))
    # 6 root 8 / (1 - 1/root 2) = 57.94112550; 2 root 5 / (2 * 0.5) = 4.472135955
    anytime = guarded_problem_bound(Problem(10, 2, 2**16), beta=0.5, anytime=True)
    scale = (19 * LOG_2) ** 1.5 * 256
    assert anytime == pytest.approx(scale * (57.94112550 + 4.472135955 * 10))


def test_guarded_steps_by_hand() -> None:
    # T = 2^20, beta = 1/2, two arms: L = 13.862944, S = 73.8659, allowance 4 * 1024 * L = 56782.62
    steps = guarded_steps_bound(Problem(2, 1, 2**20), beta=0.5)
    low, up = 34.65735903, 6.25
    wanted = [74, 37, 19, 10, 5, 3, 2, 1]
    pulls = [math.ceil((73.86590 / a) ** 2) for a in wanted]
    ends = np.array([math.ceil(1024 * 73.86590 / a) for a in wanted], dtype=float)
    arms = np.array([2, 2, 2, 2, 2, 2, 2, 1])
    ends += np.cumsum(arms * pulls)
    errors = np.minimum(1.0, [2 * math.sqrt(low / 2 / n) for n in pulls])
    floor = ends[0] + np.diff(ends)[:6] @ errors[:6] + (2**20 - ends[6]) * errors[6]
    x = np.array([low] * 7 + [up])
    tests = ((np.sqrt(2 * x) + 0.5) * arms * np.sqrt(pulls))[1:].sum()
    assert steps == pytest.approx(floor + 56782.62 + 1 + 2 * 1024 + tests + 2, rel=1e-6)


def problems(horizon: int) -> list[Problem]:
    """Return problems of hardness 0, 0.1, ..., 1, with few and many best arms."""
    made = []
    for alpha in np.linspace(0, 1, 11):
        ratio = 2 * horizon**alpha
        for m in (1, max(1, round(math.log(horizon))), 100):
            n = min(2**62, max(m, math.floor(ratio * m)))
            made.append(Problem(n, m, horizon))
        made.append(Problem.infinite(probability=1 / ratio, horizon=horizon))
    return made


def test_steps_below_theorem_below_corollary() -> None:
    constant = 0.0
    for horizon in HORIZONS[::8]:
        for beta in BETAS:
            for problem in problems(horizon):
                steps = guarded_steps_bound(problem, beta=beta)
                theorem = min(horizon, guarded_problem_bound(problem, beta=beta))
                corollary = guarded_bound(min(1.0, problem.alpha), horizon, beta=beta)
                assert steps <= theorem * (1 + 1e-12)
                assert theorem <= corollary * (1 + 1e-12)
                constant = max(constant, 10 * theorem / corollary)
    assert 8 < constant < 9.3  # the constant that the proof leaves; the limit is 4 root 5


def bits(bound: Callable[[int], float]) -> int:
    """Return the j such that the bound says something from T = 2^j on."""
    first = informative_from(bound, at_most=1 << 60)
    assert first is not None
    return (first - 1).bit_length()


def test_from_where_on_they_say_something() -> None:
    def half(horizon: int) -> Problem:
        return Problem.infinite(probability=0.5, horizon=horizon)

    assert bits(lambda t: guarded_bound(0.0, t, beta=0.5)) == 29
    assert bits(lambda t: guarded_problem_bound(half(t), beta=0.5)) == 28
    assert bits(lambda t: guarded_steps_bound(half(t), beta=0.5)) == 25
    assert bits(lambda t: guarded_steps_bound(Problem(2, 1, t), beta=0.5)) == 16


def test_missing_good_arms_exactly() -> None:
    """Lemma 4: E 2^-B <= (1 - m/2n)^k for B good arms among k of n, drawn without replacement."""
    for n in range(1, 26):
        for m in range(1, n + 1):
            for k in range(n + 1):
                ways = sum(
                    Fraction(math.comb(m, b) * math.comb(n - m, k - b), 2**b)
                    for b in range(max(0, k - n + m), min(m, k) + 1)
                )
                assert ways / math.comb(n, k) <= (1 - Fraction(m, 2 * n)) ** k


@pytest.mark.parametrize("mean", [0.05, 0.5, 0.95])
def test_upper_bounds_hold_at_all_counts(mean: float) -> None:
    """Lemma 2: an upper bound is ever below the mean with probability at most 1/2.

    If that is so, fewer than 873 of 2000 runs are sound with probability e^-16 (Hoeffding) at most.
    """
    runs, horizon = 2000, 500
    counts = np.arange(1, horizon + 1)
    rewards = np.random.default_rng(3).random((runs, horizon)) < mean
    p = np.cumsum(rewards, axis=1) / counts
    zero = np.where(p > 0, p, 1.0)  # 0 log 0 = 0
    one = np.where(p < 1, 1 - p, 1.0)
    kl = p * np.log(zero / mean) + (1 - p) * np.log(one / (1 - mean))
    too_low = (p < mean) & (counts * kl > guard_upper_level(horizon))
    assert np.count_nonzero(~too_low.any(axis=1)) >= 873


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: patience_bound(3, 4, 10), r"`m` must be <= n, the number of arms, got 1 too many"),
        (lambda: patience_bound(3, 1, 10, sigma=1.0), r"`sigma` must be 0.5 for this bound, got 1"),
        (lambda: guard_stages(1, beta=0.5), r"`horizon` must be an integer >= 2"),
        (lambda: anytime_guarded_bound(0, 9, beta=1), r"`beta` must be .* < 1, got 1. At 1 the"),
        (
            lambda: guarded_problem_bound((2, 1, 9), beta=0.5),  # type: ignore[arg-type]
            r"`problem` must be a Problem, got \(2, 1, 9\). Use",
        ),
        (
            lambda: guarded_steps_bound(Problem(2, 1, 1), beta=0.5),
            r"`horizon` must be an integer >= 2, got 1. One pull",
        ),
    ],
)
def test_bad_input(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ParameterError, match=message):
        call()
