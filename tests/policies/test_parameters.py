"""Parameters and names of policies."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.policies.field import (
    CBT,
    SubSampled,
)
from manyarms.protocol.parameters import checks_of
from tests.helpers import ALL_POLICIES, label


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ma.MOSS(sigma=0), "`sigma` must be a number > 0 .* got 0"),
        (lambda: ma.MOSS(sigma=1e200), "`sigma` must be .* got 1e.200"),
        (lambda: ma.MOSS(sigma=10**400), "`sigma` must be"),
        (lambda: ma.MOSS(sigma=math.nan), "`sigma` must be .* got nan"),
        (lambda: ma.MOSS(exploration=-1), "`exploration` must be a number > 0 .* got -1"),
        (lambda: ma.MOSSPlusPlus(beta=0.4), "`beta` must be a number >= 0.5 and <= 1, got 0.4"),
        (lambda: ma.MOSSPlusPlus(beta=1.01), "`beta` must be .* got 1.01"),
        (lambda: ma.MOSSPlusPlus(beta="x"), "`beta` must be .* got 'x'"),  # type: ignore[arg-type]
        (lambda: ma.MOSSPlusPlus(mixture_sigma=0), "`mixture_sigma` must be a number > 0 .* got 0"),
        (lambda: ma.EmpMOSSPlusPlus(beta=0.0), "`beta` must be .* got 0.0"),
        (lambda: ma.EmpMOSSPlusPlus(rank="some"), "`rank` must be one of 'all', 'pulled'"),
        (lambda: ma.MOSSOracle(), "`alpha`, `m` and `size` must be given, got none. MOSS Oracle"),
        (
            lambda: ma.MOSSOracle(alpha=0.1, m=3),
            "given, got alpha=0.1, m=3. Leave out all but one.",
        ),
        (lambda: ma.MOSSOracle(alpha=-0.1), "`alpha` must be a number >= 0 and <= 1, got -0.1"),
        (lambda: ma.MOSSOracle(m=0), "`m` must be an integer >= 1 .*got 0"),
        (lambda: ma.Quantile(exponent=0), "`exponent` must be a number > 0 and <= 1, got 0"),
        (lambda: ma.Parallel(best_mean=math.inf), "`best_mean` must be a finite number, got inf"),
        (
            lambda: ma.Parallel(subset_factor=3),
            "`subset_factor` must be an integer .* <= 2, got 3",
        ),
        (lambda: ma.Doubling("moss"), "`policy` must be a policy such as"),  # type: ignore[arg-type]
        (lambda: ma.Doubling(ma.Quantile()), "quantile, which is already anytime"),
        (lambda: ma.Doubling(ma.Doubling(ma.MOSS())), "already anytime"),
        (lambda: ma.Doubling(SubSampled(ma.MOSS(), exponent=0.5)), "got .* Give it `size`"),
        (
            lambda: ma.MOSSPlusPlus(index="KL"),
            "`index` must be one of 'moss', 'kl', 'kl..', got 'KL'",
        ),
        (lambda: ma.Patience(bound="x"), "`bound` must be one of 'mean', 'kl', got 'x'"),
        (lambda: ma.Parallel().live(n_arms=3, horizon=9), "`best_mean` must be given to Parallel"),
        (lambda: ma.MOSS(index="kl", exploration=0.0), "`exploration` must be a number > 0"),
        (lambda: SubSampled("x", size=3), "`policy` must be a policy such as MOSS"),  # type: ignore[arg-type]
        (lambda: SubSampled(ma.MOSS(), size=3, exponent=0.5), "Exactly one of `size` and `expon"),
        (lambda: SubSampled(ma.MOSS(), exponent=1.1), "`exponent` must be a number >= 0 and <= 1"),
        (lambda: CBT(factor=0.5), "`factor` must be a number >= 1"),
    ],
)
def test_bad_parameters(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ma.ParameterError, match=message):
        call()


VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, -1, 10**400, 0.0, 0.3, 0.7, 1.0, 2.0, -0.5, 1e101, 5e-324),
    *(math.nan, math.inf, -math.inf, np.float32(0.7), np.int32(2), np.bool_(True), Fraction(3, 4)),
    *("", "x", "kl", "kl++", "mean", "pulled", "0.5", b"kl", 1j, object(), [0.5], (1,), {}),
    *(np.array(0.5), np.array([0.5]), np.array(["kl", "moss"]), np.array([]), np.ma.masked),
]
KINDS = [
    kind
    for kind in vars(ma.policies).values()
    if isinstance(kind, type) and issubclass(kind, ma.Policy) and kind is not ma.Policy
]
NEEDED: dict[Any, dict[str, Any]] = {
    ma.MOSSOracle: {"alpha": 0.3},
    **{kind: {"policy": ma.MOSS()} for kind in (ma.Doubling, ma.Guarded, SubSampled)},
}


def _accepted(kind: Any, given: dict[str, Any]) -> ma.Policy | None:
    """Return the policy, or None if it is refused with an error that names a parameter."""
    try:
        made: ma.Policy = kind(**NEEDED.get(kind, {}) | given)
    except ma.ParameterError as error:
        reason = str(error)
    else:
        return made
    assert any(f"`{name}`" in reason for name in given), reason
    return None


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_parameter_is_refused_or_kept_as_plain_data(kind: Any) -> None:
    names = [field.name for field in fields(kind) if field.name != "policy"]
    checked = checks_of(kind)
    for name in names:
        assert name in checked, f"{name} of {kind.__name__} has no check"
        fine = []
        for value in VALUES:
            made = _accepted(kind, {name: value})
            if made is None:
                continue
            fine.append(value)
            kept = getattr(made, name)
            assert type(kept) in (float, int, bool, str, type(None)), (name, value)
            assert isinstance(value, bool) == isinstance(kept, bool), (name, value)
            assert kept is None or isinstance(kept, str) or math.isfinite(kept)
            assert kept == value or math.isclose(kept, value, rel_tol=1e-6), (name, value)
            assert ma.policy(str(made)) == made
        assert fine, name
        assert len(fine) < len(VALUES) - 10, name


IGNORED: list[tuple[Any, dict[str, Any]]] = [
    *((kind, {"index": "kl", "sigma": 3}) for kind in (ma.MOSS, ma.Quantile, ma.Parallel)),
    *((ma.MOSS, {"index": index, "sigma": 0.5}) for index in ("kl++", "switch")),
    *((ma.MOSSPlusPlus, {"index": "kl", name: 0.5}) for name in ("sigma", "mixture_sigma")),
    (ma.EmpMOSSPlusPlus, {"index": "kl++", "mixture_sigma": 3}),
    (ma.Patience, {"bound": "kl", "sigma": 0.5}),
    (ma.Prospector, {"bound": "kl", "sigma": 0.5}),
    (CBT, {"target": 0.5, "b": 2.0}),
    (CBT, {"target": 0.5, "weight": 2.0}),
]


@pytest.mark.parametrize(("kind", "given"), IGNORED)
def test_a_parameter_without_an_effect_is_refused(kind: Any, given: dict[str, Any]) -> None:
    assert _accepted(kind, given) is None
    for name, value in given.items():
        assert _accepted(kind, {name: value}) is not None


@pytest.mark.parametrize("number", [np.float32(0.6), np.float64(0.6), Fraction(3, 5)])
def test_parameters_are_kept_as_plain_numbers(number: Any) -> None:
    # a float32 beta once gave tables one iteration too small
    for policy in (
        ma.MOSSPlusPlus(sigma=number, beta=number),
        ma.EmpMOSSPlusPlus(sigma=number, beta=number),
    ):
        assert type(policy.beta) is float
        assert type(policy.sigma) is float
    assert type(ma.MOSSOracle(alpha=number).alpha) is float
    assert type(ma.Quantile(exponent=number).exponent) is float
    assert type(ma.Parallel(best_mean=number).best_mean) is float
    three: Any = np.int32(3)
    assert type(ma.MOSSOracle(m=three).m) is int
    assert "np." not in str(ma.MOSSPlusPlus(beta=number))
    instance = ma.instances.planted(n=90, m=2)
    ma.simulate(ma.MOSSPlusPlus(beta=number), instance, horizon=1024, replications=2, workers=1)


def test_a_mixture_sigma_changes_the_arms() -> None:
    instance = ma.instances.planted(n=200, m=2)
    for kind in (ma.MOSSPlusPlus, ma.EmpMOSSPlusPlus):
        policies = [kind(), kind(mixture_sigma=2.0)]
        result = ma.simulate(policies, instance, horizon=1000, replications=4, workers=1)
        assert (result.regret[0, :, -1] != result.regret[1, :, -1]).any()


def test_a_misspelled_parameter_is_suggested() -> None:
    with pytest.raises(ma.UnknownNameError, match="of MOSSPlusPlus: 'bta'. Did you mean 'beta'?"):
        ma.MOSSPlusPlus(bta=0.5)  # type: ignore[call-arg]


def test_labels_name_parameters_that_are_not_the_defaults() -> None:
    assert str(ma.MOSSPlusPlus()) == "moss++"
    assert str(ma.MOSSPlusPlus(beta=0.6, sigma=1.0)) == "moss++(sigma=1.0, beta=0.6)"
    assert str(ma.Doubling(ma.MOSSPlusPlus(beta=0.6))) == "anytime-moss++(beta=0.6)"
    assert str(CBT(b=2.0)) == "cbt(b=2.0)"


def test_doubling_takes_any_policy_with_a_horizon() -> None:
    live = ma.Doubling(ma.EmpMOSSPlusPlus()).live(n_arms=100)
    for _ in range(100):
        live.tell(live.ask(), 1.0)
    assert live.pulls == 100


@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_policies_are_plain_data(policy: ma.Policy) -> None:
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert hash(policy) == hash(pickle.loads(pickle.dumps(policy)))


def test_parallel_takes_the_best_mean_of_an_instance_by_default() -> None:
    assert ma.Parallel().with_best_mean(0.7).best_mean == 0.7
    assert ma.Parallel(best_mean=0.6).with_best_mean(0.7).best_mean == 0.6
    assert ma.Doubling(ma.Parallel()).with_best_mean(0.7).policy == ma.Parallel(best_mean=0.7)
    assert ma.MOSS().with_best_mean(0.7) == ma.MOSS()
