"""The tables of a spec, read by calling constructors, and all that is wrong with them."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from manyarms.core import checks
from manyarms.errors import ManyarmsError, nearest
from manyarms.instances import FAMILIES, RESERVOIRS, REWARDS, Instance, reservoir, reward
from manyarms.protocol.loading import load_class, load_policy
from manyarms.protocol.registry import maker, policy_names

T = TypeVar("T")

_LONGEST = 60  # characters of a value that an error shows
_MOST_LISTED = 10
# In the place of wrong values, and of required ones that are missing, to check the others
_USUAL: dict[str, Any] = {"n": 1 << 50, "horizon": 1000, "alpha": 0.5, "m": 1}
_OFTEN_REQUIRED = ("n", "horizon")
_SETTINGS = ("horizon", "replications", "seed", "checkpoints", "delay", "batch")
_ELSEWHERE = dict.fromkeys(_SETTINGS, "[experiment]")
_ELSEWHERE |= {"family": "[instance]", "rewards": "[instance]"}


class Problems:
    """Collects problems, so that a user need not fix them one by one.

    >>> import manyarms as ma
    >>> problems = Problems()
    >>> problems.made("policy[1]", ma.MOSSPlusPlus, {"beta": 2, "sigma": 0.5})
    >>> problems.lines
    ['policy[1].beta: must be a number >= 0.5 and <= 1, got 2.']
    """

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}  # a set in order
        self.count = 0  # with those that were noted before

    def add(self, place: str, text: str) -> None:
        """Note a problem; the cells of a sweep often share one."""
        self.count += 1
        self._lines[f"{place}: {text}"] = None

    @property
    def lines(self) -> list[str]:
        """The problems, each one once."""
        return list(self._lines)

    def made(
        self,
        place: str,
        make: Callable[..., T],
        arguments: Mapping[str, Any],
        *,
        only_named: bool = False,
    ) -> T | None:
        """Return what a constructor makes, or None and note everything it refuses.

        An error names the parameter that is at fault. That one is left out, and the rest tried
        again: so all wrong values are found, by the very checks that guard the constructor.
        `only_named` notes nothing else, for a table that is not complete.
        """
        arguments, refused, stand_ins = dict(arguments), only_named, dict[str, Any]()
        while True:
            try:
                made = make(**stand_ins, **arguments)
            except (ManyarmsError, OSError) as error:
                name = getattr(error, "parameter", None)
                if name in arguments:
                    self.add(f"{place}.{name}", str(error).removeprefix(f"`{name}` "))
                    del arguments[name]
                    stand_ins |= {name: _USUAL[name]} if name in _USUAL else {}
                    refused = True
                    continue
                if not refused:
                    self.add(place, str(error))
            except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
                # a user's own policy need not check its parameters as ours do; and a required
                # parameter may be among those left out
                if not refused:
                    self.add(place, f"cannot be made: {error}.")
            else:
                return None if refused else made
            return None

    def check_keys(
        self,
        place: str,
        table: Mapping[str, object],
        *,
        known: Iterable[str],
        required: Iterable[str] = (),
        elsewhere: Mapping[str, str] | None = None,
    ) -> bool:
        """Note unknown and missing keys; return whether none is missing."""
        known, required = list(known), list(required)
        for key in table:
            if key not in known:
                home = (elsewhere or {}).get(key)
                # a key that is there already is not what was meant
                near = nearest(key, [one for one in known if one not in table], known)
                hint = f"It belongs in {home}." if home else near
                self.add(f"{place}.{key}" if place else key, f"unknown key. {hint}")
        for key in required:
            if key not in table:
                self.add(f"{place}.{key}" if place else key, "is required.")
        return all(key in table for key in required)


def shown(value: Any) -> str:
    """Return a value for one line of a list of problems."""
    return checks.shown(value, _LONGEST)


@dataclass(frozen=True)
class Sweep:
    """Values to take one after the other."""

    values: tuple[Any, ...]


class SpecTable(NamedTuple):
    """A table that a constructor will be called with."""

    place: str
    fixed: dict[str, str]  # what chose the constructor: family, distribution, model or name
    make: Callable[..., Any]
    values: dict[str, Any]  # by parameter: a value, a Sweep, or for rewards a table

    @property
    def label(self) -> str:
        """A reward model with its parameters."""
        inner = ", ".join(f"{key}={value!r}" for key, value in self.values.items())
        return self.fixed["model"] + (f"({inner})" if inner else "")


def _hints(make: Callable[..., Any], typed: bool) -> dict[str, Any]:
    """Return the parameters of a constructor with their types, in order."""
    found = typing.get_type_hints(make) if typed else {}
    return {name: found.get(name, Any) for name in inspect.signature(make).parameters}


def _required(make: Callable[..., Any]) -> list[str]:
    known = inspect.signature(make).parameters.values()
    return [one.name for one in known if one.default is one.empty]


def _options(hint: Any) -> tuple[Any, ...]:
    """Return the types that a hint allows."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _item(hint: Any) -> Any:
    """Return the type of the items if the parameter itself is a list, else None."""
    for option in _options(hint):
        if typing.get_origin(option) is Sequence:
            return typing.get_args(option)[0]
    return None


def _as_float(value: Any, hint: Any) -> Any:
    """Return a whole number as a float where only floats are meant, so that 1 and 1.0 are one."""
    whole = type(value) is int and float in _options(hint) and int not in _options(hint)
    return float(value) if whole and abs(value) < 1 << 53 else value


def read_value(problems: Problems, place: str, value: Any, hint: Any) -> Any:
    """Return a value or a `Sweep` of values; None if it is no value at all."""
    item = _item(hint)
    swept = isinstance(value, list)
    if item is not None:
        swept = swept and any(isinstance(one, list) for one in value)
    found = []
    for one in value if swept else [value]:
        if isinstance(one, dict) or (isinstance(one, list) and item is None):
            problems.add(place, f"must be a number or a text, got {shown(one)}.")
            return None
        found.append(
            tuple(_as_float(x, item) for x in one)
            if isinstance(one, list)
            else _as_float(one, hint)
        )
    return _sweep(problems, place, found) if swept else found[0]


def _sweep(problems: Problems, place: str, values: list[Any]) -> Sweep | None:
    if not values:
        problems.add(place, "must contain at least one value, got an empty list.")
        return None
    seen = set()
    for value in values:
        words = value.label if isinstance(value, SpecTable) else repr(value)
        if words in seen:
            own = list(value) if type(value) is tuple else value
            words = value.label if isinstance(value, SpecTable) else shown(own)
            problems.add(place, f"must contain different values, got {words} twice.")
            return None
        seen.add(words)
    return Sweep(tuple(values))


def _read_table(
    problems: Problems,
    place: str,
    table: Mapping[str, Any],
    make: Callable[..., Any],
    *,
    fixed: dict[str, str],
    given: Sequence[str] = (),
    typed: bool = True,
) -> SpecTable | None:
    """Read a table for a constructor; `given` are parameters that come from elsewhere.

    `typed` says whether its annotations tell lists from sweeps, and floats from integers: users'
    policies need have none.
    """
    before = problems.count
    hints = {name: hint for name, hint in _hints(make, typed).items() if name not in given}
    required = [name for name in _required(make) if name in hints]
    known, elsewhere = [*fixed, *hints], _ELSEWHERE
    if "rewards" in given:
        known.append("rewards")
    problems.check_keys(place, table, known=known, required=required, elsewhere=elsewhere)
    values = {
        key: read_value(problems, f"{place}.{key}", table[key], hint)
        for key, hint in hints.items()
        if key in table
    }
    read = SpecTable(place, fixed, make, values)
    if problems.count == before:
        return read
    try_values(problems, read, typed=typed)
    return None


def try_values(problems: Problems, table: SpecTable, *, typed: bool) -> None:
    """Find the wrong values of a table where something else is wrong: all are reported at once."""
    known = {
        key: value
        for key, value in table.values.items()
        if value is not None and not any(isinstance(one, SpecTable) for one in values_of(value))
    }
    hints = _hints(table.make, typed)
    rest = {key: _USUAL[key] for key in _OFTEN_REQUIRED if key in hints}
    first = rest | {key: values_of(value)[0] for key, value in known.items()}
    for key, value in known.items():
        for one in values_of(value):
            problems.made(table.place, table.make, {**first, key: one}, only_named=True)


def _choice(
    problems: Problems, place: str, key: str, table: Any, known: Mapping[str, Any], what: str = ""
) -> Any:
    """Return what a key's value stands for; it must be one of `known` and cannot be swept."""
    value, place = table.get(key), f"{place}.{key}"
    if key not in table:
        listed = f" Known: {', '.join(sorted(known))}." if len(known) <= _MOST_LISTED else ""
        problems.add(place, f"is required.{listed}")
    elif isinstance(value, list):
        problems.add(place, f"cannot be swept, got {shown(value)}. Write a spec for each.")
    elif not isinstance(value, str) or not value.strip():
        problems.add(place, f"must be a text in quotes, got {shown(value)}.")
    elif value not in known:
        problems.add(place, f"unknown {what or key} {value!r}. {nearest(value, known)}")
    else:
        return known[value]
    return None


def values_of(value: Any) -> tuple[Any, ...]:
    """Return the values of a sweep, or the one value."""
    return value.values if isinstance(value, Sweep) else (value,)


def read_instance(problems: Problems, table: Mapping[str, Any] | None) -> SpecTable | None:
    """Check the table [instance], key by key; None if anything is wrong."""
    if table is None:
        return None
    before = problems.count
    make = _choice(problems, "instance", "family", table, FAMILIES | {"reservoir": reservoir})
    fixed = {"family": str(table.get("family"))}
    if make is reservoir:
        law = _choice(problems, "instance", "distribution", table, RESERVOIRS)
        fixed["distribution"] = str(table.get("distribution"))
        make = None if law is None else _reservoir(law)
    if make is None:
        return None
    given = ("horizon", "rewards", "label")
    read = _read_table(problems, "instance", table, make, fixed=fixed, given=given)
    if "rewards" in table and "rewards" not in inspect.signature(make).parameters:
        problems.add("instance.rewards", "must be left out: the table has the rewards.")
    rewards = _read_rewards(problems, table.get("rewards", "bernoulli"))
    if read is not None and problems.count > before:
        try_values(problems, read, typed=True)
    if read is None or problems.count > before:
        return None
    if "rewards" not in inspect.signature(make).parameters:
        return read
    return read._replace(values=read.values | {"rewards": rewards})


def _reservoir(law: Callable[..., Any]) -> Callable[..., Instance]:
    """Return a constructor that takes the parameters of a law and those of `reservoir`."""

    def make(*, epsilon: float | None = None, rewards: Any = None, **parameters: Any) -> Instance:
        return reservoir(law(**parameters), epsilon=epsilon, rewards=rewards)

    own = list(inspect.signature(make).parameters.values())[:2]
    laws = inspect.signature(law).parameters.values()
    keywords = [one.replace(kind=one.KEYWORD_ONLY) for one in laws]
    make.__signature__ = inspect.Signature([*keywords, *own])  # type: ignore[attr-defined]
    make.__annotations__ |= typing.get_type_hints(law)
    return make


def _read_rewards(problems: Problems, value: Any) -> Any:
    """Return a reward model's table, or a `Sweep` of models; None if it is wrong."""
    if not isinstance(value, list):
        return _read_model(problems, value)
    models = []
    for one in value:
        model = _read_model(problems, one)
        if model is None:
            return None
        if any(isinstance(inner, Sweep) for inner in model.values.values()):
            problems.add(
                "instance.rewards", f"must not contain a sweep within a sweep, got {shown(one)}."
            )
            return None
        models.append(model)
    return _sweep(problems, "instance.rewards", models)


def _own_law(name: str) -> Callable[..., Any]:
    """Return the reward law "module:Class"."""
    law = load_class(name)
    if law not in reward.bodies:
        law_of = "a reward law, a NamedTuple with a body of manyarms.instances.reward"
        raise checks.refusal("name", f"that of {law_of}", name)
    return law


def _read_model(problems: Problems, value: Any) -> SpecTable | None:
    table = value if isinstance(value, dict) else {"rewards": value}
    key = "model" if isinstance(value, dict) else "rewards"
    place = "instance.rewards" if isinstance(value, dict) else "instance"
    name = table.get(key)
    if isinstance(name, str) and ":" in name:
        make: Any = problems.made(place, _own_law, {"name": name})
    else:
        make = _choice(problems, place, key, table, REWARDS, "model")
    if make is None:
        return None
    rest = {name: one for name, one in table.items() if name != key}
    fixed = {"model": table[key]}
    return _read_table(problems, "instance.rewards", {**fixed, **rest}, make, fixed=fixed)


def _policy_name(problems: Problems, place: str, table: Mapping[str, Any]) -> Any:
    """Return the name of a policy, loaded if it is not one of ours; None if it is wrong."""
    name = table.get("name")
    if isinstance(name, str) and problems.made(place, load_policy, {"name": name}) is None:
        return None
    known = {name: name for name in policy_names()}
    return _choice(problems, place, "name", table, known, "policy")


def read_policies(problems: Problems, content: Mapping[str, Any]) -> list[SpecTable]:
    """Check the tables [[policy]]; return those without a problem."""
    tables = content.get("policy")
    if not isinstance(tables, list) or not tables:
        got = "" if "policy" not in content else f", got {shown(tables)}"
        problems.add("policy", f"is required{got}. Add a table [[policy]] for each policy.")
        return []
    found = []
    for number, table in enumerate(tables, 1):
        place = f"policy[{number}]"
        if not isinstance(table, dict):
            problems.add(place, f"must be a table with a name, got {shown(table)}.")
        elif name := _policy_name(problems, place, table):
            read = _read_table(
                problems, place, table, maker(name), fixed={"name": name}, typed=False
            )
            if read is not None:
                found.append(read._replace(values=dict(sorted(read.values.items()))))
    return found
