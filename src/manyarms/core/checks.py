"""Checks of parameters. Their errors give the name, the rule, the value and the fix."""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import numbers
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from manyarms.errors import ParameterError, UnknownNameError

P = ParamSpec("P")
R = TypeVar("R")

_LONGEST = 200  # characters of a value that an error shows


def by_name(function: Callable[P, R]) -> Callable[P, R]:
    """Make wrong calls of a method raise errors that name its parameters, instead of a TypeError.

    >>> class Light:
    ...     @by_name
    ...     def show(self, *, colour=None, size=None):
    ...         pass
    >>> Light().show("red")
    Traceback (most recent call last):
    manyarms.errors.ParameterError: `show` takes its parameters by name (colour=..., size=...), got
    'red' without one.
    >>> Light().show(color="red")
    Traceback (most recent call last):
    manyarms.errors.UnknownNameError: Unknown parameter of `show`: 'color'. Did you mean 'colour'?
    """
    known = [*inspect.signature(function).parameters][1:]

    @functools.wraps(function)
    def call(*values: P.args, **given: P.kwargs) -> R:
        if len(values) > 1:
            raise ParameterError(
                f"`{function.__name__}` takes its parameters by name "
                f"({', '.join(f'{name}=...' for name in known)}), got {shown(values[1])} "
                f"without one."
            )
        for name in given.keys() - {*known}:
            raise UnknownNameError(f"parameter of `{function.__name__}`:", name, known)
        return function(*values, **given)

    return call


def check_int(
    name: str, value: Any, *, at_least: int = 0, at_most: int | None = None, fix: str = ""
) -> int:
    """Return `value` as an int, or raise.

    >>> check_int("horizon", 0, at_least=1)
    Traceback (most recent call last):
    manyarms.errors.ParameterError: `horizon` must be an integer >= 1, got 0.
    """
    rule = f"an integer >= {at_least}" + ("" if at_most is None else f" and <= {at_most}")
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or value < at_least or (at_most is not None and value > at_most):
        raise refusal(name, rule, value, fix)
    return int(value)


def check_number(
    name: str,
    value: Any,
    *,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
    fix: str = "",
) -> float:
    """Return `value` as a finite float within the bounds, or raise.

    >>> check_number("beta", 0.2, at_least=0.5, at_most=1)
    Traceback (most recent call last):
    manyarms.errors.ParameterError: `beta` must be a number >= 0.5 and <= 1, got 0.2.
    """
    bounds = [(">", above), (">=", at_least), ("<", below), ("<=", at_most)]
    rule = " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if math.isfinite(bound))
    rule = f"a number {rule}" if rule else "a finite number"
    number = math.nan
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # an integer too large for a float
            number = float(value)
    inside = at_least <= number <= at_most and above < number < below
    if not inside or not math.isfinite(number):
        raise refusal(name, rule, value, fix)
    return number


def check_probability(name: str, value: Any, *, fix: str = "") -> float:
    """Return `value` as a float in [0, 1], or raise."""
    return check_number(name, value, at_least=0.0, at_most=1.0, fix=fix)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`, or raise."""
    if not isinstance(value, str) or value not in choices:  # comparing an array raises
        raise refusal(name, f"one of {', '.join(map(repr, choices))}", value)
    return str(value)


def check_flag(name: str, value: Any) -> bool:
    """Return `value` if it is True or False, or raise."""
    if not isinstance(value, bool):
        raise refusal(name, "True or False", value)
    return value


def check_one(fix: str, **values: Any) -> None:
    """Raise unless exactly one of the values is not None.

    >>> check_one("Try exponent=0.5.", size=None, exponent=None)
    Traceback (most recent call last):
    manyarms.errors.ParameterError: Exactly one of `size` and `exponent` must be given, got none.
    Try exponent=0.5.
    """
    got = [f"{name}={value!r}" for name, value in values.items() if value is not None]
    if len(got) != 1:
        *names, last = [f"`{name}`" for name in values]
        told = f"{', '.join(got)}. Leave out all but one." if got else f"none. {fix}"
        raise ParameterError(
            f"Exactly one of {', '.join(names)} and {last} must be given, got {told}"
        )


def check_path(name: str, value: Any) -> Path:
    """Return `value` as a path, or raise if it cannot be one. The path need not exist.

    >>> check_path("out", 5)
    Traceback (most recent call last):
    manyarms.errors.ParameterError: `out` must be a path, got 5.
    """
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or "\0" in text:
        raise refusal(name, "a path", value)
    return Path(text)


def refusal(name: str, rule: str, value: Any, fix: str = "") -> ParameterError:
    """Return the error to raise for an invalid value of a parameter.

    >>> print(refusal("beta", "at most 1", 2, "Choose 1."))
    `beta` must be at most 1, got 2. Choose 1.
    """
    text = f"`{name}` must be {rule}, got {shown(value)}." + (f" {fix}" if fix else "")
    return ParameterError(text, parameter=name)


def shown(value: Any, longest: int = _LONGEST) -> str:
    """Format a value for an error message, truncated if it is long.

    >>> shown([1, 2]), shown("x" * 100, 10), shown(1 << 50000)
    ('[1, 2]', "'xxxxxx...", 'an integer of 50001 bits')
    """
    try:
        words = repr(value)
    except ValueError:  # Python does not print integers of more than 4300 digits
        bits = getattr(value, "bit_length", lambda: "many")()
        return f"an integer of {bits} bits"
    return words if len(words) <= longest else words[: longest - 3] + "..."
