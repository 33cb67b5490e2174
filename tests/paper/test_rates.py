"""Measured exponents: the problems, the fit of known exponents, and the table."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from manyarms.errors import ParameterError
from manyarms.policies import MOSSPlusPlus
from manyarms.simulation import Cell
from paper.exponents import (
    Array,
    fit_exponent,
)
from paper.rates import APART, sweep

HORIZONS = [2**k for k in range(10, 23, 2)]


@cache
def series() -> dict[tuple[str, Any, str], list[Cell]]:
    found = defaultdict(list)
    for cell in sweep(100, 0).cells:
        (player,) = cell.players
        found[player.label, cell.parameters["alpha"], str(cell.parameters["kind"])].append(cell)
    return found


def test_every_policy_at_every_hardness() -> None:
    kinds = defaultdict(set)
    for policy, alpha, kind in series():
        kinds[policy, alpha].add(kind)
    assert len(kinds) == 5 * 3
    assert kinds["moss++(beta=0.5)", 0.1] == {"planted", "lower bound"}
    assert kinds["moss++(beta=0.6)", 0.1] == {"planted"}  # 1 + 0.1 - 0.6 is below 0.6
    assert kinds["moss-oracle", 0.3] == {"shrinking gap"}


def test_cells_share_no_random_numbers() -> None:
    ends = 0
    for cell in sweep(APART // 4, 0).cells:
        assert cell.first_replication >= ends
        ends = cell.first_replication + cell.players[0].replications
    for refused in (0, APART // 4 + 1):
        with pytest.raises(ParameterError, match="`replications` must be an integer"):
            sweep(refused, 0)


def test_hardness_is_constant_and_p_is_not_rounded() -> None:
    for (_, alpha, kind), cells in series().items():
        assert len({cell.horizon for cell in cells}) >= 3
        for cell in cells:
            policy, problem = cell.players[0].policy, cell.instance.problem(cell.horizon)
            if kind == "lower bound":
                assert problem.alpha <= alpha + 1e-9
            else:
                assert problem.alpha == pytest.approx(alpha, abs=1e-6)
            if isinstance(policy, MOSSPlusPlus):
                p = policy.beta * math.log2(cell.horizon)
                assert p == pytest.approx(round(p), abs=1e-9)
                assert problem.n >= 2 ** (round(p) + 1)


def test_gaps_shrink_with_the_horizon() -> None:
    for (policy, alpha, kind), cells in series().items():
        about = [cell.parameters for cell in cells]
        factors: list[Any] = [each["factor"] for each in about]
        worst: list[Any] = [each for each in about if each["factor"] == min(factors)]
        first, last = worst[0], worst[-1]
        times = last["horizon"] / first["horizon"]
        slope = math.log(last["settled"] / first["settled"]) / math.log(times)
        if kind == "planted":
            assert slope == pytest.approx(1.0)
        elif kind == "lower bound":  # T times the gap T^(alpha - beta)
            beta: Any = cells[0].players[0].parameters["beta"]
            assert slope == pytest.approx(1 + alpha - beta, abs=1e-9)
        elif policy == "quantile":  # T sqrt(T^0.347 / T)
            assert slope == pytest.approx((1 + 0.347) / 2)
        else:  # sqrt(K T) with K = 2 T^alpha log sqrt(T), rounded up
            assert slope == pytest.approx((1 + alpha) / 2 + 0.0476, abs=0.01)


def exact(law: Callable[[float], float]) -> dict[int, list[Array]]:
    return {t: [np.full(4, law(t))] for t in HORIZONS}


def test_powers_and_logarithms_are_distinguished() -> None:
    fit = fit_exponent(exact(lambda t: 3 * t**0.6 * math.log(t) ** 1.5), largest_log_power=2.5)
    assert fit.exponent == pytest.approx((0.6, 0.6, 0.6))
    assert fit.log_power == pytest.approx(1.5)
    assert fit.without_log.estimate > 0.7  # it counts the logarithm as a power


def test_intervals_contain_the_truth() -> None:
    """Nominally 95 %, in 60 constructed experiments with 40 runs for each horizon.

    The bootstrap of means of 40 is a little narrow: at 92 % or more, fewer than 46 of 60 come with
    a probability below 1e-4 (binomial: 6e-5), which is the false-alarm probability.
    """
    rng = np.random.default_rng(7)
    hits, widths = 0, []
    for _ in range(60):
        runs = {t: [t**0.7 * math.log(t) * rng.gamma(4.0, 0.25, 40)] for t in HORIZONS}
        fit = fit_exponent(runs, largest_log_power=100.0, draws=400)
        hits += fit.exponent.low <= 0.7 <= fit.exponent.high
        widths.append(fit.exponent.high - fit.exponent.low)
    assert hits >= 46
    assert max(widths) < 1.5  # and not because they are very wide
