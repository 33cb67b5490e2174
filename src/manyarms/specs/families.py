"""Instances in a spec: which keys a family has, what they may be, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from manyarms.errors import ParameterError
from manyarms.instances import (
    BetaMeans,
    DiscreteMeans,
    Instance,
    RewardModel,
    UniformMeans,
    from_means,
    grouped,
    planted,
    reservoir,
)
from manyarms.protocol.policy import MOST_ARMS
from manyarms.specs.problems import Problems, suggestion
from manyarms.specs.rewards import read_rewards
from manyarms.specs.values import (
    Check,
    Scalar,
    number,
    numbers,
    read_value,
    shown,
    text,
    whole,
    whole_numbers,
)

__all__ = ["InstanceSpec", "build_instance", "read_instance"]

Build = Callable[[dict[str, Any], RewardModel, int], Instance]


@dataclass(frozen=True)
class InstanceSpec:
    """An instance, or a sweep of them.

    Attributes
    ----------
    family
        "planted", "groups", "means", "reservoir" or "captions".
    parameters
        (key, value or `Sweep`), in the family's order, which is the order of sweeps and columns.
    rewards
        A `RewardsSpec`, or a `Sweep` of them.
    """

    family: str
    parameters: tuple[tuple[str, Any], ...]
    rewards: Any


@dataclass(frozen=True)
class Family:
    """The keys of a family."""

    build: Build
    keys: Mapping[str, Check]
    lists: Mapping[str, Check]  # lists by nature: swept as lists of lists
    required: tuple[str, ...] = ()


def _planted(given: dict[str, Any], rewards: RewardModel, horizon: int) -> Instance:
    if "alpha" not in given and "m" not in given:
        raise ParameterError(
            "`alpha` or `m`, the hardness or the number of best arms, must be given, got neither."
        )
    if "alpha" in given:
        given["horizon"] = horizon
    return planted(**given, rewards=rewards)


def _groups(given: dict[str, Any], rewards: RewardModel, horizon: int) -> Instance:
    return grouped(**given, rewards=rewards)


def _means(given: dict[str, Any], rewards: RewardModel, horizon: int) -> Instance:
    return from_means(**given, rewards=rewards)


def _captions(given: dict[str, Any], rewards: RewardModel, horizon: int) -> Instance:
    from manyarms.instances.captions import captions  # rarely needed, and reads files

    return captions(given.pop("contest"), **given, rewards=rewards)


def _reservoir(law: Callable[..., Any]) -> Build:
    def build(given: dict[str, Any], rewards: RewardModel, horizon: int) -> Instance:
        epsilon = given.pop("epsilon", None)
        return reservoir(law(**given), epsilon=epsilon, rewards=rewards)

    return build


def _contest(name: str, value: Any) -> int | str:
    known = isinstance(value, str | int) and not isinstance(value, bool)
    if not known or (isinstance(value, int) and not 0 <= value < 1 << 31) or value == "":
        raise ParameterError(f"`{name}` must be a contest's number, name or path, got {value!r}.")
    return value  # type: ignore[no-any-return]


_POSITIVE = number(above=0.0)
_FAMILIES = {
    "planted": Family(
        _planted,
        {
            "n": whole(at_least=1, at_most=MOST_ARMS),
            "alpha": number(at_least=0.0, at_most=1.0),
            "m": whole(at_least=1),
            "best": number(),
        },
        {"others": numbers()},
        ("n",),
    ),
    "groups": Family(
        _groups, {}, {"sizes": whole_numbers(), "means": numbers()}, ("sizes", "means")
    ),
    "means": Family(_means, {}, {"means": numbers()}, ("means",)),
    "captions": Family(
        _captions,
        {"contest": _contest, "threshold": number(above=0.0, at_most=1.0)},
        {},
        ("contest",),
    ),
}
_EPSILON = {"epsilon": number(at_least=0.0)}
_RESERVOIRS = {
    "beta": Family(
        _reservoir(BetaMeans), {"a": _POSITIVE, "b": _POSITIVE, **_EPSILON}, {}, ("a", "b")
    ),
    "uniform": Family(
        _reservoir(UniformMeans), {"low": number(), "high": number(), **_EPSILON}, {}
    ),
    "discrete": Family(
        _reservoir(DiscreteMeans),
        _EPSILON,
        {"values": numbers(), "probabilities": numbers(above=0.0, at_most=1.0)},
        ("values", "probabilities"),
    ),
}


def read_instance(
    problems: Problems, table: Mapping[str, Any], elsewhere: Mapping[str, str]
) -> InstanceSpec | None:
    """Check the table [instance], key by key; None if anything is wrong."""
    before = problems.count
    fixed = {"family": _choice(problems, "family", table, [*_FAMILIES, "reservoir"])}
    if fixed["family"] == "reservoir":
        fixed["distribution"] = _choice(problems, "distribution", table, list(_RESERVOIRS))
    if None in fixed.values():
        return None
    family = _family(fixed)
    checks = {**family.keys, **family.lists}
    problems.check_keys(
        "instance",
        table,
        known=[*fixed, *checks, "rewards"],
        required=family.required,
        elsewhere=elsewhere,
    )
    parameters: list[tuple[str, Any]] = [(key, fixed[key]) for key in fixed if key != "family"]
    for key, check in checks.items():
        if key in table:
            listed = key in family.lists
            place = f"instance.{key}"
            value = read_value(problems, place, table[key], check, list_by_nature=listed)
            parameters.append((key, value))
    rewards = read_rewards(problems, "instance.rewards", table.get("rewards", "bernoulli"))
    if problems.count > before:
        return None
    return InstanceSpec(str(fixed["family"]), tuple(parameters), rewards)


def build_instance(
    family: str, parameters: Mapping[str, Any], *, rewards: RewardModel, horizon: int
) -> Instance:
    """Build an instance from parameters that are no sweeps.

    >>> from manyarms.instances import Bernoulli
    >>> parameters = {"n": 1000, "alpha": 0.5}
    >>> build_instance("planted", parameters, rewards=Bernoulli(), horizon=2500).label
    'planted(n=1000, m=10)'
    """
    given = dict(parameters)
    fixed: dict[str, Scalar | None] = {"family": family}
    if "distribution" in given:
        fixed["distribution"] = given.pop("distribution")
    return _family(fixed).build(given, rewards, horizon)


def _family(fixed: Mapping[str, Scalar | None]) -> Family:
    if "distribution" in fixed:
        return _RESERVOIRS[str(fixed["distribution"])]
    return _FAMILIES[str(fixed["family"])]


def _choice(
    problems: Problems, key: str, table: Mapping[str, Any], known: list[str]
) -> Scalar | None:
    """Return a key's value, which must be one of `known` and cannot be swept."""
    place = f"instance.{key}"
    if key not in table:
        problems.add(place, f"must be given, got nothing. Known: {', '.join(sorted(known))}.")
        return None
    if isinstance(table[key], list):
        problems.add(place, f"cannot be swept, got {shown(table[key])}. Write a spec for each.")
        return None
    before = problems.count
    with problems.at(place):
        if text(key, table[key]) not in known:
            problems.add(place, f"unknown {key} {table[key]!r}. {suggestion(table[key], known)}")
    return None if problems.count > before else str(table[key])
