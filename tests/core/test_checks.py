"""Errors name the parameter, the rule, the value and the fix."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from manyarms.core.checks import check_choice, check_int, check_number
from manyarms.core.memory import BOUNDED, Record
from manyarms.errors import ManyarmsError, ParameterError, UnknownNameError


@pytest.mark.parametrize("value", [0, -1, 2.0, "3", None, True, math.nan])
def test_integers_must_be_integers_in_range(value: object) -> None:
    with pytest.raises(
        ParameterError, match=r"^`horizon` must be an integer >= 1, got .*\. Fix\.$"
    ):
        check_int("horizon", value, at_least=1, fix="Fix.")


def test_numpy_integers_are_integers() -> None:
    assert check_int("n", np.int32(3)) == 3
    assert type(check_int("n", np.int32(3))) is int


@pytest.mark.parametrize("value", [0.0, 1.5, math.nan, math.inf, "x", None, True])
def test_numbers_must_be_finite_and_in_range(value: object) -> None:
    with pytest.raises(ParameterError, match=r"^`p` must be a number > 0 and <= 1, got "):
        check_number("p", value, above=0.0, at_most=1.0)


def test_choices_are_listed() -> None:
    with pytest.raises(ParameterError, match="`rank` must be one of 'all', 'pulled', got 'al'"):
        check_choice("rank", "al", ("all", "pulled"))


def test_unknown_names_suggest_the_nearest() -> None:
    error = UnknownNameError("policy", "mosss", ["moss", "quantile"])
    assert str(error) == "Unknown policy 'mosss'. Did you mean 'moss'?"
    assert isinstance(error, KeyError)
    assert isinstance(error, ManyarmsError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_memory_has_bounds() -> None:
    numbers = BOUNDED.ints(3)
    numbers[2] += 1
    for place in (-1, 3):
        with pytest.raises(IndexError, match=f"place {place} of 3"):
            numbers[place] += 1


def test_records_hold_numbers_only() -> None:
    with pytest.raises(ParameterError, match="`Flags.on` must be an int, a float or a Word"):

        class Flags(Record):
            on: bool
