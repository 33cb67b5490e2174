"""From a spec to its cells: every combination of the swept values, built and checked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from manyarms.instances import Instance
from manyarms.protocol import Policy
from manyarms.specs.families import InstanceSpec, build_instance
from manyarms.specs.players import Entry, PolicySpec, build_policy, count_entries
from manyarms.specs.problems import Problems
from manyarms.specs.rewards import RewardsSpec, build_rewards
from manyarms.specs.values import Scalar, Sweep, plain

__all__ = ["Cell", "Player", "axes_of", "build_cells", "size_of"]

_CHECKPOINTS = 100  # as `simulate` has them


class Player(NamedTuple):
    """A policy of a cell.

    Attributes
    ----------
    label
        What tables call it; no other policy of the cell is called so.
    policy
        The policy.
    parameters
        What the spec says of its parameters.
    """

    label: str
    policy: Policy
    parameters: Mapping[str, Scalar]


@dataclass(frozen=True)
class Cell:
    """One combination of the swept values: what is played on what, for how long.

    Attributes
    ----------
    number
        Which cell of the experiment it is, from 0.
    parameters
        The swept parameters of instance and horizon, as they stand in tables.
    instance, horizon, checkpoints, players
        The instance, the number of pulls, what the spec says of checkpoints, and the policies.
    """

    number: int
    parameters: Mapping[str, Scalar]
    instance: Instance
    horizon: int
    checkpoints: int | tuple[int, ...] | None
    players: tuple[Player, ...]

    @property
    def times(self) -> tuple[int, ...]:
        """The times at which regret is recorded; the last one is the horizon."""
        return checkpoint_times(self.checkpoints, self.horizon)

    @property
    def label(self) -> str:
        """The swept parameters in a few words; empty where nothing is swept."""
        return ", ".join(f"{key}={value}" for key, value in self.parameters.items())


class _Point(NamedTuple):
    """A cell before it is built."""

    horizon: int
    parameters: dict[str, Any]  # of the family
    rewards: tuple[str, dict[str, Any]]
    swept: dict[str, Scalar]


def axes_of(horizon: int | Sweep, instance: InstanceSpec) -> dict[str, tuple[Any, ...]]:
    """Return what is swept, in the order of the tables' columns; the last one turns fastest."""
    axes = [("horizon", horizon), *instance.parameters]
    if isinstance(instance.rewards, RewardsSpec):
        axes += instance.rewards.parameters
    else:
        axes += [("rewards", instance.rewards)]
    return {name: value.values for name, value in axes if isinstance(value, Sweep)}


def _points(horizon: int | Sweep, instance: InstanceSpec) -> Iterator[_Point]:
    axes = axes_of(horizon, instance)
    for chosen in itertools.product(*axes.values()):
        at = dict(zip(axes, chosen, strict=True))
        model = at.get("rewards", instance.rewards)
        swept = {
            name: value.label if isinstance(value, RewardsSpec) else plain(value)
            for name, value in at.items()
        }
        yield _Point(
            at.get("horizon", horizon),
            {key: at.get(key, value) for key, value in instance.parameters},
            (model.model, {key: at.get(key, value) for key, value in model.parameters}),
            swept,
        )


def build_cells(
    problems: Problems,
    *,
    horizon: int | Sweep,
    checkpoints: int | tuple[int, ...] | None,
    instance: InstanceSpec,
    players: Sequence[Entry],
) -> tuple[Cell, ...]:
    """Build everything that will run; what cannot be built is noted, and left out."""
    cells = []
    keys = [key for key, _ in instance.parameters]
    for number, point in enumerate(_points(horizon, instance)):
        model, inner = point.rewards
        made = None
        with problems.at("instance", keys):
            made = build_instance(
                instance.family,
                point.parameters,
                rewards=build_rewards(model, inner),
                horizon=point.horizon,
            )
        if made is None:
            continue
        ready = []
        for entry in players:
            with problems.at(entry.place, entry.parameters):
                alpha = point.parameters.get("alpha")
                policy = build_policy(entry, made, alpha=alpha, horizon=point.horizon)
                ready.append(Player(entry.label, policy, entry.parameters))
        cells.append(Cell(number, point.swept, made, point.horizon, checkpoints, tuple(ready)))
    _refuse_twins(problems, cells, players)
    return tuple(cells)


def _refuse_twins(problems: Problems, cells: Sequence[Cell], players: Sequence[Entry]) -> None:
    """Two policies that are the same in every cell would only say everything twice."""
    complete = [cell for cell in cells if len(cell.players) == len(players)]
    seen: dict[tuple[str, ...], Entry] = {}
    for seat, late in enumerate(players):
        played = tuple(repr(cell.players[seat].policy) for cell in complete)
        early = seen.setdefault(played or (late.label,), late)
        if early is not late:
            problems.add(
                late.place,
                f"must differ from {early.place}, got {late.label} twice. Leave one out.",
            )


def checkpoint_times(checkpoints: int | tuple[int, ...] | None, horizon: int) -> tuple[int, ...]:
    """Return the times at which regret is recorded, as `simulate` counts them.

    >>> checkpoint_times(4, 200)
    (50, 100, 150, 200)
    >>> checkpoint_times((7, 3), 200)
    (3, 7, 200)
    """
    if checkpoints is None:
        checkpoints = min(_CHECKPOINTS, horizon)
    if isinstance(checkpoints, int):
        count = checkpoints
        checkpoints = tuple(horizon * (k + 1) // count for k in range(count))
    return tuple(sorted({*checkpoints, horizon}))


def size_of(
    horizon: int | Sweep, instance: InstanceSpec, policies: Sequence[PolicySpec]
) -> tuple[int, int]:
    """Return the number of (cell, policy) pairs and the pulls of one replication of all."""
    axes = axes_of(horizon, instance)
    others = math.prod(len(values) for name, values in axes.items() if name != "horizon")
    others *= sum(count_entries(policy) for policy in policies)
    horizons = axes.get("horizon", (horizon,))
    return others * len(horizons), others * sum(horizons)
