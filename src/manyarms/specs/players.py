"""Policies in a spec: found by name, with parameters that may be sweeps."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from manyarms.core.jit import check_bodies
from manyarms.core.memory import SPARSE
from manyarms.errors import ManyarmsError, ParameterError
from manyarms.instances import Instance
from manyarms.protocol import Policy, policy, policy_names
from manyarms.protocol.policy import ask, reset, tell
from manyarms.protocol.registry import maker
from manyarms.specs.problems import Problems, suggestion
from manyarms.specs.values import Scalar, Sweep, read_value, shown, text

__all__ = ["Entry", "PolicySpec", "build_policy", "count_entries", "entries", "read_policy"]

_TOLD = ("alpha", "m", "size")  # what a MOSS oracle may be told


@dataclass(frozen=True)
class PolicySpec:
    """A table [[policy]]; `parameters` are (key, value or `Sweep`), by key."""

    name: str
    parameters: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Entry:
    """One policy of a sweep.

    Attributes
    ----------
    place
        Where its table stands, such as "policy[1]".
    label
        Its name, with what the spec says of its parameters where the name occurs twice. So it
        is the same in all cells, also where an oracle is told another hardness in each.
    parameters
        By key.
    """

    place: str
    name: str
    label: str
    parameters: Mapping[str, Scalar]


def read_policy(
    problems: Problems, place: str, table: Any, elsewhere: Mapping[str, str]
) -> PolicySpec | None:
    """Check a table [[policy]], key by key; None if anything is wrong."""
    before = problems.count
    if not isinstance(table, dict):
        problems.add(place, f"must be a table with a name, got {shown(table)}.")
        return None
    if not problems.check_keys(place, table, known=table, required=["name"]):
        return None
    names, name = policy_names(), table["name"]
    with problems.at(f"{place}.name"):
        if text("name", name) not in names:
            problems.add(f"{place}.name", f"unknown policy {name!r}. {suggestion(name, names)}")
    if problems.count > before:
        return None
    known = inspect.signature(maker(name)).parameters
    problems.check_keys(place, table, known=["name", *known], elsewhere=elsewhere)
    parameters = []
    for key in sorted(set(table) & set(known)):

        def check(key: str, value: Any, name: str = name) -> Scalar:
            return _check_parameter(name, key, value)

        parameters.append((key, read_value(problems, f"{place}.{key}", table[key], check)))
    return None if problems.count > before else PolicySpec(name, tuple(parameters))


def _check_parameter(name: str, key: str, value: Any) -> Scalar:
    """Check a parameter by making the policy with it alone, so that each wrong one is found."""
    if not isinstance(value, str | int | float):
        raise ParameterError(f"`{key}` must be a number or a text, got {shown(value)}.")
    try:
        policy(name, **{key: value})
    except ManyarmsError as error:
        if str(error).startswith(f"`{key}` must"):
            raise
        # else it lacks others: that is seen when it is made with all of them
    return value


def count_entries(spec: PolicySpec) -> int:
    """Return how many policies a table's sweeps make."""
    return math.prod(len(v.values) for _, v in spec.parameters if isinstance(v, Sweep))


def entries(specs: Iterable[tuple[str, PolicySpec]]) -> list[Entry]:
    """Multiply out the sweeps of (place, policy), in the order of the file.

    >>> spec = PolicySpec("moss++", (("beta", Sweep((0.5, 0.7))),))
    >>> [entry.label for entry in entries([("policy[1]", spec)])]
    ['moss++(beta=0.5)', 'moss++(beta=0.7)']
    """
    found: list[tuple[str, str, dict[str, Scalar]]] = []
    for place, spec in specs:
        choices = [
            [(key, one) for one in (value.values if isinstance(value, Sweep) else [value])]
            for key, value in spec.parameters
        ]
        found += [(place, spec.name, dict(chosen)) for chosen in itertools.product(*choices)]
    names = [name for _, name, _ in found]
    return [
        Entry(place, name, _label(name, parameters, names.count(name) == 1), parameters)
        for place, name, parameters in found
    ]


def _label(name: str, parameters: Mapping[str, Scalar], alone: bool) -> str:
    inner = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
    return name if alone or not inner else f"{name}({inner})"


def build_policy(entry: Entry, instance: Instance, *, alpha: float | None, horizon: int) -> Policy:
    """Make the policy, told by the instance what it must know, and see that it can be played.

    An oracle without `alpha`, `m` or `size` takes `alpha`, the hardness that the spec gives the
    instance, or else the number of best arms.
    """
    parameters = dict(entry.parameters)
    if entry.name == "moss-oracle" and not any(key in parameters for key in _TOLD):
        if alpha is not None:
            parameters["alpha"] = alpha
        elif instance.n_best is not None:
            parameters["m"] = instance.n_best
    made = policy(entry.name, **parameters)
    made = made.with_best_mean(instance.best_mean)
    state = made.new_state(SPARSE, n_arms=instance.n_arms, pulls=horizon)  # costs next to nothing
    check_bodies(state, (reset, ask, tell))
    return made
