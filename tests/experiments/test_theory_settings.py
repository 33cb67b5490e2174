"""The settings of the theory's experiments: constant hardness, fair policies, no rounding."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import pytest

from manyarms.errors import ParameterError
from manyarms.experiments import exponent_settings, lower_bound_trade_off
from manyarms.experiments.exponents import ExponentSetting, runs_at
from manyarms.policies import MOSSPlusPlus


def test_the_sweep_of_the_budget() -> None:
    settings = lower_bound_trade_off()
    family = settings[0].family
    assert family.budget == pytest.approx(family.horizon**family.alpha)
    for before, after in itertools.pairwise(settings):
        assert after.family.budget == 2 * before.family.budget
    for setting in settings:
        assert setting.open.policies == setting.hidden.policies  # the same on all instances
        for policy in setting.open.policies:
            assert policy.with_best_mean(0.3) is policy  # nobody is told the best mean
        gap = setting.family.gap
        assert (setting.open.instance.best_mean, setting.hidden.instance.best_mean) == (
            gap / 2,
            gap,
        )
        for one in (setting.open, setting.hidden):
            assert one.instance.problem(one.horizon).alpha <= one.alpha


def series() -> dict[tuple[str, float, str], list[ExponentSetting]]:
    found = defaultdict(list)
    for one in exponent_settings(100):
        found[one.policy, one.setting.alpha, one.kind].append(one)
    return found


def test_every_policy_at_every_hardness() -> None:
    kinds = defaultdict(set)
    for policy, alpha, kind in series():
        kinds[policy, alpha].add(kind)
    assert len(kinds) == 5 * 3
    assert kinds["moss++(beta=0.5)", 0.1] == {"planted", "lower bound"}
    assert kinds["moss++(beta=0.6)", 0.1] == {"planted"}  # 1 + 0.1 - 0.6 is below 0.6
    assert kinds["moss-oracle", 0.3] == {"shrinking gap"}


def test_hardness_is_constant_and_p_is_not_rounded() -> None:
    for (_, alpha, kind), settings in series().items():
        horizons = {one.setting.horizon for one in settings}
        assert len(horizons) >= 3
        for one in settings:
            (policy,), horizon = one.setting.policies, one.setting.horizon
            problem = one.setting.instance.problem(horizon)
            if kind == "lower bound":
                assert problem.alpha <= alpha + 1e-9
            else:
                assert problem.alpha == pytest.approx(alpha, abs=1e-6)
            if isinstance(policy, MOSSPlusPlus):
                p = policy.beta * math.log2(horizon)
                assert p == pytest.approx(round(p), abs=1e-9)
                assert problem.n >= 2 ** (round(p) + 1)


def test_gaps_shrink_as_they_should() -> None:
    for (policy, alpha, kind), settings in series().items():
        worst = [one for one in settings if one.factor == min(s.factor for s in settings)]
        first, last = worst[0], worst[-1]
        slope = math.log(last.settled / first.settled) / math.log(
            last.setting.horizon / first.setting.horizon
        )
        if kind == "planted":
            assert slope == pytest.approx(1.0)
        elif kind == "lower bound":  # T times the gap T^(alpha - beta)
            beta = float(policy.removeprefix("moss++(beta=").rstrip(")"))
            assert slope == pytest.approx(1 + alpha - beta, abs=1e-9)
        elif policy == "quantile":  # T sqrt(T^0.347 / T)
            assert slope == pytest.approx((1 + 0.347) / 2)
        else:  # sqrt(K T) with K = 2 T^alpha log sqrt(T), rounded up
            assert slope == pytest.approx((1 + alpha) / 2 + 0.0476, abs=0.01)


def test_fewer_long_runs() -> None:
    runs = [runs_at(2**k, 50, kind="lower bound") for k in range(10, 26)]
    assert runs == sorted(runs, reverse=True)
    assert (runs[0], runs[-1]) == (50, 2)
    with pytest.raises(ParameterError, match="`replications`"):
        exponent_settings(0)
