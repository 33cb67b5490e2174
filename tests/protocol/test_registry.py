"""Policies by name."""

from __future__ import annotations

import pytest

import manyarms as ma
from manyarms.protocol.registry import makers_of
from tests.policies.battery import PAIRS

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
    assert all(f"{key}={value!r}" in str(policy) for key, value in NAMES[name].items())  # type: ignore[attr-defined]
    assert ma.policy(str(policy)) == policy
    assert ma.policy("moss++(index=kl)") == ma.policy("moss++(index='kl')")


@pytest.mark.parametrize("policy", [pair.policy for pair in PAIRS], ids=str)
def test_every_policy_is_made_again_from_its_name(policy: ma.Policy) -> None:
    assert ma.policy(str(policy)) == policy


@pytest.mark.parametrize(
    "text",
    [
        "guarded(beta=0.6, bound='mean', top=4.0)-anytime-ss(size=9)-moss(count_late=True)",
        "ss(exponent=1/3)-kl-ucb++(exploration=0.5)",
        "prospector(bold=True, trials=0.0)",
    ],
)
def test_names_of_layers_and_parameters(text: str) -> None:
    assert str(ma.policy(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("moss++(0.6)", r"`name` must have parameters as key=value, .* got 'moss\+\+\(0.6\)'"),
        ("moss++(betta=0.6)", "'betta'. Did you mean 'beta'"),
        ("moss++(beta=half)", "`beta` must be a number .* got 'half'"),
        ("moss++(beta=1/0)", "`beta` must be a number .* got '1/0'"),
        ("ss-", "Unknown policy 'ss-'"),
        ("anytime", "'anytime' needs `policy`"),
        ("moss(", "Unknown policy"),
        ("", "Unknown policy ''"),
        ("ss-" * 10 + "moss", "Unknown policy"),  # nested too deeply
    ],
)
def test_texts_that_are_no_names(text: str, message: str) -> None:
    with pytest.raises(ma.ManyarmsError, match=message):
        ma.policy(text)


def test_every_class_is_in_policies() -> None:
    for name in ma.policy_names():
        for make in makers_of(name):
            kind = getattr(make, "func", make)  # a KL form is MOSS with an index
            if kind.__module__.startswith("manyarms."):
                assert getattr(ma.policies, kind.__name__) is kind
    assert ma.policies.UCB1() == ma.policy("ucb1")


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
