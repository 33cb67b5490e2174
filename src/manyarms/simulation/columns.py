"""The columns of parameters in the tables of a sweep: their names, values and types."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from manyarms.core.checks import refusal, shown
from manyarms.errors import ParameterError
from manyarms.protocol.plain_classes import PlainPolicy
from manyarms.protocol.policy import Policy, layers
from manyarms.protocol.wrapper import Wrapper

Scalar: TypeAlias = str | int | float | bool

RESERVED = (  # the other columns of the tables
    *("policy", "replication", "regret", "best_pulls", "first_best", "distinct_arms"),
    *("recommended", "recommended_mean", "checkpoints", "regret_at_checkpoints"),
    *("mean", "se", "median", "q05", "q95", "q99", "worst", "miss_rate", "replications"),
    *("low", "high"),
)
_LARGEST_INT = (1 << 63) - 1  # of a column of integers
_LARGEST_EXACT = 1 << 53  # larger integers are not exact in a column of floats


class Layer(NamedTuple):
    """A policy, or one inside it, with its parameters."""

    owner: type  # the class that has the parameters
    name: str
    values: Mapping[str, Any]
    defaults: Mapping[str, Any]

    def varied(self) -> Iterator[str]:
        """Yield the parameters with a value for a table that is not the default."""
        for name, value in self.values.items():
            if isinstance(value, Scalar | np.generic) and value != self.defaults[name]:
                yield name


def check_parameters(parameters: Mapping[str, Any], *, optional: bool = False) -> dict[str, Scalar]:
    """Return parameters as numbers and strings, or raise if no table can hold them.

    If they are `optional`, a value may be None.
    """
    checked: dict[str, Any] = {}
    for name, value in parameters.items():
        check_text("parameters", name, "The names of parameters are strings.")
        if name in RESERVED:
            raise taken_name(name)
        number = value.item() if isinstance(value, np.generic) else value
        if number is None and optional:
            checked[name] = None
            continue
        if not isinstance(number, Scalar):
            raise refusal("parameters", "numbers or strings", value)
        if isinstance(number, str):
            check_text("parameters", number)
        elif not _fits(number):
            raise ParameterError(
                f"`parameters` must have finite numbers, and integers between -2^63 and 2^63, got "
                f"{name}={shown(number, 40)}. Pass a string, or leave it out.",
                parameter="parameters",
            )
        checked[name] = number
    return checked


def taken_name(name: str) -> ParameterError:
    """Return the error for a parameter with the name of another column."""
    return ParameterError(
        f"`parameters` must not have the name of another column of the tables, got {name!r}. "
        f"Choose another name.",
        parameter="parameters",
    )


def check_text(name: str, text: Any, fix: str = "") -> str:
    """Return a text, or raise if it is not a string that a file in UTF-8 can hold."""
    if not isinstance(text, str):
        raise refusal(name, "a string", text, fix)
    if text.encode(errors="ignore").decode() != text:
        raise refusal(name, "text that UTF-8 can encode", text, "Remove lone surrogates.")
    return text


def check_exact(columns: Mapping[str, Sequence[Scalar | None]]) -> None:
    """Raise if a column has fractions and integers that would be rounded beside them."""
    for name, values in columns.items():
        kinds = {type(value) for value in values if value is not None}
        if kinds == {int, float} and column_type(values) == "string":
            raise ParameterError(
                f"`parameters` must have integers up to 2^53 in a column with fractions, got "
                f"{name}={next(filter(_is_large, values))}. Pass strings in all cells.",
                parameter="parameters",
            )


def values_by_name(every: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return all values of each parameter."""
    values: dict[str, list[Any]] = {}
    for parameters in every:
        for name, value in parameters.items():
            values.setdefault(name, []).append(value)
    return values


def comparable(value: Scalar) -> str:
    """Return a value as text; those that are equal in a column are equal."""
    try:
        number = float(value)
    except ValueError:
        return str(value)
    if abs(number) < 1 << 53:
        return repr(number)
    return str(int(value) if isinstance(value, float) else value)  # a float would be rounded


def column_type(values: Iterable[Scalar | None]) -> str:
    """Return the type of a column: int64, double, bool or string."""
    present = [value for value in values if value is not None]
    kinds = {type(value) for value in present}
    if kinds in ({int}, {bool}):
        return "int64" if kinds == {int} else "bool"
    exact = kinds <= {int, float} and not any(map(_is_large, present))
    return "double" if exact else "string"


def layers_of(policy: Policy) -> list[Layer]:
    """Return the layers of a policy, from the outside in.

    >>> import manyarms as ma
    >>> [(layer.name, *layer.varied()) for layer in layers_of(ma.Doubling(ma.MOSSPlusPlus(beta=1)))]
    [('anytime',), ('moss++', 'beta')]
    """
    return [_layer(each) for each in layers(policy)]


def _layer(policy: Policy) -> Layer:
    if isinstance(policy, PlainPolicy):
        defaults = policy.defaults()
        return Layer(policy.make, policy.name, defaults | dict(policy.parameters), defaults)
    name = policy.prefix if isinstance(policy, Wrapper) else policy.name
    kept = [each for each in fields(policy) if not isinstance(getattr(policy, each.name), Policy)]
    values = {each.name: getattr(policy, each.name) for each in kept}
    return Layer(type(policy), name, values, {each.name: each.default for each in kept})


def column_names(policies: Iterable[Policy], taken: Iterable[str]) -> dict[tuple[type, str], str]:
    """Return the column of each parameter that a policy has with another value than the default.

    It is called "beta" if policies of one class have such a column, otherwise "moss++.beta", also
    if "beta" is `taken`. Classes of the same name get their module's name.

    >>> import manyarms as ma
    >>> forms = [ma.MOSSPlusPlus(beta=0.6), ma.EmpMOSSPlusPlus(beta=0.7)]
    >>> [*column_names(forms, []).values()], [*column_names(forms[:1], []).values()]
    (['moss++.beta', 'empmoss++.beta'], ['beta'])
    """
    varied: dict[tuple[type, str], str] = {}  # the name of the class of each column
    classes: dict[str, set[type]] = {}  # by name
    for policy in policies:
        for layer in layers_of(policy):
            classes.setdefault(layer.name, set()).add(layer.owner)
            varied |= {(layer.owner, parameter): layer.name for parameter in layer.varied()}
    count = Counter(parameter for _, parameter in varied)
    names = {}
    for (owner, parameter), name in varied.items():
        if count[parameter] == 1 and parameter not in (*RESERVED, *taken):
            names[owner, parameter] = parameter
            continue
        same = len(classes[name]) > 1
        title = f"{owner.__module__}:{owner.__qualname__}" if same else name
        names[owner, parameter] = f"{title}.{parameter}"
    return names


def columns_of(policy: Policy, names: Mapping[tuple[type, str], str]) -> dict[str, Scalar | None]:
    """Return a policy's values in the columns of `column_names`, those of the outer layers first.

    What a table cannot hold becomes text.
    """
    values: dict[str, Scalar | None] = {}
    for layer in layers_of(policy):
        for parameter, value in layer.values.items():
            if (layer.owner, parameter) in names:
                values.setdefault(names[layer.owner, parameter], _entry(value))
    return values


def _entry(value: Any) -> Scalar | None:
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, str):
        return number.encode(errors="backslashreplace").decode()
    return number if number is None or _fits(number) else shown(number)


def _fits(value: Any) -> bool:
    """Return whether a column can hold a number."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and abs(value) <= _LARGEST_INT


def _is_large(value: Any) -> bool:
    return type(value) is int and abs(value) > _LARGEST_EXACT
