"""The experiment: frozen, with its cells, its cost, its hash, and its canonical text."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from manyarms.specs.families import InstanceSpec
from manyarms.specs.players import PolicySpec
from manyarms.specs.rewards import RewardsSpec
from manyarms.specs.sweep import Cell, Player, axes_of
from manyarms.specs.values import Scalar, Sweep

__all__ = ["Experiment"]

_FORMAT = "manyarms experiment 1"
_TAKEN = ("policy", "replication", "time", "regret", "best_pulls", "distinct_arms", "recommended")


@dataclass(frozen=True)
class Experiment:
    """An experiment that was checked as a whole. Made by `load_spec` and its kin.

    Attributes
    ----------
    name
        What it is called.
    horizon
        The number of pulls, or a `Sweep`.
    replications, seed
        As for `simulate`.
    checkpoints
        How many, or at which times, or None for `simulate`'s default.
    instance, policies
        What the spec says of them.

    Examples
    --------
    >>> from manyarms.specs import experiment_from
    >>> experiment = experiment_from({
    ...     "experiment": {"name": "x", "horizon": [100, 200], "replications": 5},
    ...     "instance": {"family": "planted", "n": 50, "m": 2},
    ...     "policy": [{"name": "moss"}],
    ... })
    >>> experiment.cost(), experiment.hash[:8]
    (1500, 'c25b37bc')
    """

    name: str
    horizon: int | Sweep
    replications: int
    seed: int
    checkpoints: int | tuple[int, ...] | None
    instance: InstanceSpec
    policies: tuple[PolicySpec, ...]
    _cells: tuple[Cell, ...] = field(repr=False, compare=False)

    def cells(self) -> list[Cell]:
        """Return every combination of the swept values, always in the same order."""
        return list(self._cells)

    def cost(self) -> int:
        """Return the number of pulls in all."""
        return self.replications * sum(cell.horizon * len(cell.players) for cell in self._cells)

    @property
    def hash(self) -> str:
        """The SHA-256 of the content: the same for any order of keys and any layout."""
        content = json.dumps([_FORMAT, self.content()], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def columns(self) -> dict[str, str]:
        """Return the swept parameters as columns of a table: name to int64, double or string.

        Those of the instance keep their names. Those of policies do too, unless an instance's
        has the same: then "policy_" stands before it.
        """
        return dict(self._columns)

    @functools.cached_property
    def _columns(self) -> dict[str, str]:
        axes = axes_of(self.horizon, self.instance)
        found: dict[str, list[Any]] = {
            name: [cell.parameters[name] for cell in self._cells] for name in axes
        }
        for key, name in self._policy_columns().items():
            found[name] = [
                _parameter(player, key) for cell in self._cells for player in cell.players
            ]
        return {name: _column_type(values) for name, values in found.items()}

    def row(self, cell: Cell, player: Player) -> dict[str, Scalar | None]:
        """Return a policy's values in these columns; None where it lacks the parameter."""
        found: dict[str, Scalar | None] = dict(cell.parameters)
        for key, name in self._policy_columns().items():
            found[name] = _parameter(player, key)
        return {
            name: str(value) if value is not None and self._columns[name] == "string" else value
            for name, value in found.items()
        }

    def _policy_columns(self) -> dict[str, str]:
        """Return the policies' swept parameters, and their columns."""
        taken = {*axes_of(self.horizon, self.instance), *_TAKEN}
        swept = {
            key: None
            for policy in self.policies
            for key, value in policy.parameters
            if isinstance(value, Sweep)
        }
        return {key: f"policy_{key}" if key in taken else key for key in swept}

    def content(self) -> dict[str, Any]:
        """Return the spec as plain data, with defaults filled in: `experiment_from` reads it."""
        experiment = {
            "name": self.name,
            "horizon": _content(self.horizon),
            "replications": self.replications,
            "seed": self.seed,
        }
        if self.checkpoints is not None:
            experiment["checkpoints"] = _content(self.checkpoints)
        instance = {"family": self.instance.family}
        instance |= {key: _content(value) for key, value in self.instance.parameters}
        return {
            "experiment": experiment,
            "instance": instance | {"rewards": _content(self.instance.rewards)},
            "policy": [
                {"name": policy.name} | {key: _content(value) for key, value in policy.parameters}
                for policy in self.policies
            ],
        }

    def as_json(self) -> str:
        """Return the content as JSON."""
        return json.dumps(self.content(), indent=2) + "\n"

    def as_toml(self) -> str:
        """Return the content as TOML: equal for equal hashes."""
        content = self.content()
        parts = [("[experiment]", content["experiment"]), ("[instance]", content["instance"])]
        parts += [("[[policy]]", table) for table in content["policy"]]
        return "\n".join(
            "\n".join([head, *(f"{key} = {_toml(value)}" for key, value in table.items()), ""])
            for head, table in parts
        )


def _parameter(player: Player, key: str) -> Scalar | None:
    """Return the value that a policy plays with: the spec's, else its default."""
    if key in player.parameters:
        return player.parameters[key]
    value = getattr(player.policy, key, None)
    return value if isinstance(value, str | int | float) else None


def _column_type(values: list[Any]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int} and all(abs(value) < 1 << 63 for value in values if value is not None):
        return "int64"
    return "double" if kinds <= {int, float} else "string"


def _content(value: Any) -> Any:
    """Return plain data: lists for sweeps and tuples, a name or a table for a reward model."""
    if isinstance(value, Sweep):
        return [_content(one) for one in value.values]
    if isinstance(value, RewardsSpec):
        inner = {key: _content(one) for key, one in value.parameters}
        return {"model": value.model} | inner if inner else value.model
    return list(value) if isinstance(value, tuple) else value


def _toml(value: Any) -> str:
    """Write a value; the standard library reads TOML, but does not write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's too, but for one control character that JSON lets pass
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(one)}' for key, one in value.items())} }}"
    return repr(value)
