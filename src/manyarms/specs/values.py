"""Values in a spec: checked one by one, and told apart from lists of them to sweep."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from manyarms.core.checks import check_int, check_number
from manyarms.errors import ParameterError
from manyarms.specs.problems import Problems

__all__ = [
    "Check",
    "Scalar",
    "Sweep",
    "number",
    "numbers",
    "plain",
    "read_value",
    "text",
    "whole",
    "whole_numbers",
]

Scalar: TypeAlias = str | int | float | bool
Check: TypeAlias = Callable[[str, Any], Any]  # (name, value) -> the value, or an error

_LONGEST = 60  # characters of a value that an error shows


@dataclass(frozen=True)
class Sweep:
    """Values to take one after the other."""

    values: tuple[Any, ...]


def whole(*, at_least: int = 0, at_most: int | None = None) -> Check:
    """Return a check for an integer."""
    return lambda name, value: check_int(name, value, at_least=at_least, at_most=at_most)


def number(
    *, at_least: float = -math.inf, at_most: float = math.inf, above: float = -math.inf
) -> Check:
    """Return a check for a number, which becomes a float."""
    return lambda name, value: check_number(
        name, value, at_least=at_least, at_most=at_most, above=above
    )


def text(name: str, value: Any) -> str:
    """Check that a value is a text, and not an empty one."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ParameterError(f"`{name}` must be a text in quotes, got {shown(value)}.")
    return value


def numbers(**bounds: float) -> Check:
    """Return a check for a list of numbers, which becomes a tuple of floats."""
    return _listed("numbers", number(**bounds))


def whole_numbers(*, at_least: int = 0, at_most: int | None = None) -> Check:
    """Return a check for a list of integers, which becomes a tuple."""
    return _listed("integers", whole(at_least=at_least, at_most=at_most))


def _listed(what: str, each: Check) -> Check:
    def check(name: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or not value:
            raise ParameterError(f"`{name}` must be a list of {what}, got {shown(value)}.")
        return tuple(each(name, one) for one in value)

    return check


def read_value(
    problems: Problems, place: str, value: Any, check: Check, *, list_by_nature: bool = False
) -> Any:
    """Return the value or a `Sweep` of values, each checked; None if one is wrong.

    >>> read_value(Problems(), "instance.n", [10, 20], whole())
    Sweep(values=(10, 20))
    >>> problems = Problems()
    >>> read_value(problems, "instance.n", [10, "20"], whole())
    >>> problems.lines
    ["instance.n: must be an integer >= 0, got '20'."]
    """
    name = place.rpartition(".")[2]
    swept = isinstance(value, list)
    if list_by_nature:
        swept = swept and any(isinstance(one, list) for one in value)
    before = problems.count
    values = []
    for one in value if swept else [value]:
        with problems.at(place):
            values.append(check(name, one))
    if swept and not value:
        problems.add(place, "must hold a value at least, got an empty list.")
    if problems.count > before:
        return None
    for k, one in enumerate(values):
        if one in values[:k]:
            problems.add(place, f"must hold different values, got {shown(one)} twice.")
            return None
    return Sweep(tuple(values)) if swept else values[0]


def plain(value: Any) -> Scalar:
    """Return a value as it stands in a table's column: lists become text.

    >>> plain((0.9, 0.5))
    '[0.9, 0.5]'
    """
    return json.dumps(value) if isinstance(value, tuple) else value


def shown(value: Any) -> str:
    """Return a value for an error, cut where it is long."""
    words = repr(list(value) if isinstance(value, tuple) else value)
    return words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."
