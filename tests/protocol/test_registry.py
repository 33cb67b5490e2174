"""Policies by name."""

from __future__ import annotations

import pytest

import manyarms as ma
from manyarms.protocol.registry import makers_of
from tests.policies.pairs import PAIRS


@pytest.mark.parametrize("policy", [pair.policy for pair in PAIRS], ids=str)
def test_every_policy_can_be_created_from_its_name(policy: ma.Policy) -> None:
    assert ma.policy(str(policy)) == policy


@pytest.mark.parametrize(
    "text",
    [
        "guarded(beta=0.6, bound='mean', top=4.0)-anytime-ss(size=9)-moss(count_late=True)",
        "ss(exponent=1/3)-kl-ucb++(exploration=0.5)",
        "prospector(bold=True, trials=0.0)",
    ],
)
def test_names_of_wrappers_with_parameters(text: str) -> None:
    assert str(ma.policy(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("moss++(0.6)", r"`name` must have parameters as key=value, .* got 'moss\+\+\(0.6\)'"),
        ("moss++(betta=0.6)", "'betta'. Did you mean 'beta'"),
        ("moss++(beta=half)", "`beta` must be a number .* got 'half'"),
        ("anytime", "'anytime' needs `policy`"),
        ("moss(", "Unknown policy"),
        ("ss-" * 10 + "moss", "Unknown policy"),  # nested too deeply
    ],
)
def test_invalid_names(text: str, message: str) -> None:
    with pytest.raises(ma.ManyarmsError, match=message):
        ma.policy(text)


def test_every_class_is_in_policies() -> None:
    for name in ma.policy_names():
        for make in makers_of(name):
            kind = getattr(make, "func", make)  # a KL variant is MOSS with an index
            if kind.__module__.startswith("manyarms."):
                assert getattr(ma.policies, kind.__name__) is kind
    assert ma.policies.UCB1() == ma.policy("ucb1")


def test_a_name_cannot_be_registered_twice() -> None:
    with pytest.raises(ma.DuplicateNameError, match="'moss' exists already"):
        ma.register("moss", ma.MOSSPlusPlus)
    assert ma.register("moss", ma.MOSS) is ma.MOSS  # registering the same again is allowed


def test_only_classes_and_functions_are_registered() -> None:
    with pytest.raises(ma.ParameterError, match="`make` must be a policy's class or a function"):
        ma.register("tests-nothing", 3)  # type: ignore[type-var]


def test_missing_parameters_of_a_function_are_named() -> None:
    def make(*, size: int) -> ma.Policy:
        return ma.MOSSOracle(m=size)

    ma.register("tests-sized", make)
    with pytest.raises(ma.ParameterError, match=r"'tests-sized' needs `size`\. Give it by name"):
        ma.policy("tests-sized")


@pytest.mark.parametrize("name", ["", " ", "my(x)", "my(", "a,b", "a=b", " mine", "mine\n"])
def test_names_that_no_text_can_have_are_not_registered(name: str) -> None:
    with pytest.raises(ma.ParameterError, match="`name` must have at least one character"):
        ma.register(name, ma.MOSS)


def test_registered_names_are_parsed() -> None:
    for name in ("tests-x", "tests x", "tests:Class.Inner", "x"):
        ma.register(name, lambda: ma.MOSSPlusPlus(beta=0.6))
        assert ma.policy(name) == ma.MOSSPlusPlus(beta=0.6)


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("moss++(beta=0.6,beta=0.7)", {}),
        ("moss++(beta=0.6, beta=0.6)", {}),
        ("moss++(beta=0.6)", {"beta": 0.7}),
        ("anytime-moss++(beta=0.6)", {"beta": 0.7}),
    ],
)
def test_repeated_parameters_are_refused(text: str, more: dict[str, float]) -> None:
    with pytest.raises(ma.ParameterError, match="`beta` must be given once, got it twice"):
        ma.policy(text, **more)


@pytest.mark.parametrize("value", ["1_0", "0x10", "1e", "٣", "nan", "inf", "2.0", "True", "--1"])
def test_values_that_are_no_integers(value: str) -> None:
    with pytest.raises(ma.ParameterError, match="`m` must be an integer >= 1 .*got"):
        ma.policy(f"moss-oracle(m={value})")
