"""The cells of a spec: every combination of the swept values, built and checked."""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from manyarms.instances import Instance
from manyarms.protocol.policy import Policy, in_brackets, short_form
from manyarms.protocol.registry import own_name, policy
from manyarms.simulation.experiment import Cell, check_playable
from manyarms.simulation.players import Player, Scalar
from manyarms.simulation.spec_tables import Problems, SpecTable, Sweep, values_of

_MOST_IN_ALL = 10**15  # pulls: a year of a fast processor
_MOST_ROWS = 10**10
_MOST_PAIRS = 100_000


class _Entry(NamedTuple):
    """One policy of a sweep; its label is the same in all cells."""

    place: str
    name: str
    label: str
    key: str  # the label that earlier versions gave
    parameters: dict[str, Scalar]


def _axes(settings: Mapping[str, Any], instance: SpecTable) -> dict[str, tuple[Any, ...]]:
    """Return what is swept, in the order of the tables' columns; the last one turns fastest."""
    values = {key: settings[key] for key in ("horizon", "delay", "batch")} | instance.values
    rewards = values.pop("rewards", None)  # none where a table has them
    if rewards is not None:
        values |= {"rewards": rewards} if isinstance(rewards, Sweep) else rewards.values
    return {name: value.values for name, value in values.items() if isinstance(value, Sweep)}


def build_cells(
    problems: Problems,
    settings: Mapping[str, Any],
    instance: SpecTable,
    policies: list[SpecTable],
) -> tuple[Cell, ...]:
    """Build all cells, unless a slip of the pen makes far too many."""
    axes = _axes(settings, instance)
    if not _fits(problems, settings, axes, policies):
        return ()
    entries = _entries(policies)
    keys = [key for table in policies for key, v in table.values.items() if isinstance(v, Sweep)]
    cells = []
    for chosen in itertools.product(*axes.values()):
        at = dict(zip(axes, chosen, strict=True))
        horizon = at.get("horizon", settings["horizon"])
        made = _instance_at(problems, instance, at, horizon)
        if made is None:
            continue
        players, alpha = [], at.get("alpha", instance.values.get("alpha"))
        for entry in entries:
            played = _policy_at(problems, entry, made, alpha, horizon)
            if played is not None:
                columns = {key: _column(entry, played, key) for key in keys}
                replications = settings["replications"] or 1
                players.append(Player(played, entry.label, replications, columns, entry.key))
        swept = {name: _as_column(value) for name, value in at.items()}
        build = functools.partial(
            Cell, made, horizon, tuple(players), settings["checkpoints"], swept
        )
        late = {key: at.get(key, settings[key]) for key in ("delay", "batch")}
        if (built := problems.made("experiment", build, late)) is not None:
            cells.append(built)
    _refuse_twins(problems, cells, entries)
    return tuple(cells)


def _fits(
    problems: Problems,
    settings: Mapping[str, Any],
    axes: Mapping[str, tuple[Any, ...]],
    policies: list[SpecTable],
) -> bool:
    """Note it if there is too much to play."""
    others = math.prod(len(values) for name, values in axes.items() if name != "horizon")
    others *= sum(math.prod(len(values_of(v)) for v in table.values.values()) for table in policies)
    horizons = values_of(settings["horizon"])
    checkpoints, replications = settings["checkpoints"], settings["replications"] or 1
    times = len(checkpoints) + 1 if isinstance(checkpoints, tuple) else checkpoints or 100
    before = problems.count
    for count, most, what in (
        (others * len(horizons), _MOST_PAIRS, "combinations of swept values"),
        (others * sum(horizons) * replications, _MOST_IN_ALL, "pulls in all"),
        (others * len(horizons) * times * replications, _MOST_ROWS, "rows of regret"),
    ):
        if count > most:
            problems.add("experiment", f"must make at most {most:.0e} {what}, got {count:.3g}.")
    return problems.count == before


def _instance_at(
    problems: Problems, instance: SpecTable, at: Mapping[str, Any], horizon: int
) -> Instance | None:
    values = {key: at.get(key, value) for key, value in instance.values.items()}
    offered: dict[str, Any] = {"horizon": horizon}
    if "rewards" in values:
        model: SpecTable = values.pop("rewards")
        swept = {} if "rewards" in at else at  # a model of a sweep has no sweeps within
        inner = {key: swept.get(key, one) for key, one in model.values.items()}
        offered["rewards"] = problems.made("instance.rewards", model.make, inner)
        if offered["rewards"] is None:
            return None
    asked = inspect.signature(instance.make).parameters
    rest = {key: value for key, value in offered.items() if key in asked}

    def build(**given: Any) -> Instance:
        made: Instance = instance.make(**given, **rest)
        return made

    return problems.made("instance", build, values)


def _policy_at(
    problems: Problems,
    entry: _Entry,
    instance: Instance,
    alpha: float | None,
    horizon: int,
) -> Policy | None:
    """Make the policy with what it needs to know about the instance; check that it can play."""

    def make(**parameters: Any) -> Policy:
        known = told(entry.name, parameters, instance, alpha)
        made = policy(entry.name, **parameters, **known).with_best_mean(instance.best_mean)
        check_playable(made, instance, horizon)
        return made

    return problems.made(entry.place, make, entry.parameters)


def told(
    name: str, parameters: Mapping[str, Any], instance: Instance, alpha: float | None
) -> dict[str, Any]:
    """Return what MOSS Oracle is given if the spec does not say it: the hardness, or m."""
    if name != "moss-oracle" or parameters.keys() & {"alpha", "m", "size"}:
        return {}
    if alpha is not None:
        return {"alpha": alpha}
    return {} if instance.n_best is None else {"m": instance.n_best}


def _entries(policies: list[SpecTable]) -> list[_Entry]:
    """Multiply out the sweeps of the policies, in the order of the file."""
    found = [
        (table, dict(zip(table.values, chosen, strict=True)))
        for table in policies
        for chosen in itertools.product(*(values_of(value) for value in table.values.values()))
    ]
    names = Counter(table.fixed["name"] for table, _ in found)
    labels = Counter(_label(table, parameters) for table, parameters in found)
    entries = []
    for table, parameters in found:
        name, label = table.fixed["name"], _label(table, parameters)
        if labels[label] > 1:  # classes of one name in two modules
            label = _label(table, parameters, name)
        inner = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
        key = name if names[name] == 1 or not inner else f"{name}({inner})"
        entries.append(_Entry(table.place, name, label, key, parameters))
    return entries


def _label(table: SpecTable, parameters: Mapping[str, Any], name: str | None = None) -> str:
    """Return the name with the parameters that are swept or not the default ones."""
    defaults = {one.name: one.default for one in inspect.signature(table.make).parameters.values()}
    shown = []
    for key, value in parameters.items():
        short = short_form(key, value)
        swept = isinstance(table.values[key], Sweep) and short != value  # moss(moss) says nothing
        if swept or value != defaults[key]:
            shown.append(short)
    return (name or own_name(table.fixed["name"])) + in_brackets(shown)


def _column(entry: _Entry, played: Policy, key: str) -> Scalar | None:
    """Return the value that a policy plays with: the spec's, else its default."""
    value = entry.parameters.get(key, getattr(played, key, None))
    return value if isinstance(value, str | int | float) else None


def _refuse_twins(problems: Problems, cells: list[Cell], entries: list[_Entry]) -> None:
    """Refuse two policies that are the same in every cell."""
    complete = [cell for cell in cells if len(cell.players) == len(entries)]
    seen: dict[tuple[str, ...], _Entry] = {}
    for place, entry in enumerate(entries):
        played = tuple(repr(cell.players[place].policy) for cell in complete)
        early = seen.setdefault(played or (entry.label,), entry)
        if early is not entry:
            problems.add(
                entry.place,
                f"must differ from {early.place}, got {entry.label} twice. Leave one out.",
            )


def _as_column(value: Any) -> Scalar:
    """Return a value as it stands in a table's column: lists become text."""
    if isinstance(value, SpecTable):
        return value.label
    return json.dumps(value) if isinstance(value, tuple) else value
