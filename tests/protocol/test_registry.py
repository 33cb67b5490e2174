"""Policies by name."""

from __future__ import annotations

import pytest

import manyarms as ma

NAMES = {
    "moss": {},
    "moss-oracle": {"alpha": 0.4},
    "quantile": {"exponent": 0.4},
    "moss++": {"beta": 0.6},
    "empmoss++": {"beta": 0.6, "rank": "pulled"},
    "parallel": {"best_mean": 0.9, "subset_factor": 1},
    "anytime-moss++": {"beta": 0.6, "sigma": 1.0},
    "anytime-parallel": {"best_mean": 0.9, "exploration": 0.5},
}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_makes_a_policy_that_carries_it(name: str) -> None:
    policy = ma.policy(name, **NAMES[name])  # type: ignore[arg-type]
    assert policy.name == name
    assert name in ma.policy_names()
    assert all(f"{key}={value!r}" in policy.label for key, value in NAMES[name].items())  # type: ignore[attr-defined]


def test_a_wrong_name_suggests_the_nearest() -> None:
    with pytest.raises(ma.UnknownNameError, match=r"Unknown policy 'mos\+\+'. Did you mean 'moss"):
        ma.policy("mos++")
    with pytest.raises(ma.UnknownNameError, match=r"Did you mean 'empmoss\+\+'"):
        ma.policy("emp-moss++")
    with pytest.raises(ma.UnknownNameError, match=r"'moss\+\+': 'betta'. Did you mean 'beta'"):
        ma.policy("moss++", betta=0.5)


def test_a_name_is_given_once() -> None:
    with pytest.raises(ma.DuplicateNameError, match="'moss' exists already"):
        ma.register("moss", ma.MOSSPlusPlus)
    assert ma.register("moss", ma.MOSS) is ma.MOSS  # the same again is no conflict


def test_only_makers_are_registered() -> None:
    with pytest.raises(ma.ParameterError, match="`make` must be a policy's class or a function"):
        ma.register("tests-nothing", 3)  # type: ignore[type-var]


def test_a_maker_that_wants_more_says_so() -> None:
    def make(*, size: int) -> ma.Policy:
        return ma.MOSSOracle(m=size)

    ma.register("tests-sized", make)
    with pytest.raises(ma.ParameterError, match=r"'tests-sized' needs `size`\. Give it by name"):
        ma.policy("tests-sized")
