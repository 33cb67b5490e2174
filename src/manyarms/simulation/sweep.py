"""Sweeps: policies, instances, horizons and numbers of replications."""

from __future__ import annotations

import copy
import functools
import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from manyarms.core.checks import check_choice, check_int, refusal
from manyarms.core.fingerprint import digest_of_data
from manyarms.core.jit import check_bodies, check_repeatable
from manyarms.core.memory import BOUNDED, Memory
from manyarms.errors import ParameterError
from manyarms.instances.instance import Instance
from manyarms.protocol.plain_classes import PlainPolicy
from manyarms.protocol.policy import Policy, ask, reset, tell
from manyarms.protocol.state_dump import classes_in
from manyarms.simulation.columns import (
    Scalar,
    check_exact,
    check_parameters,
    check_text,
    column_names,
    column_type,
    columns_of,
    comparable,
    taken_name,
    values_by_name,
)
from manyarms.simulation.players import Player, players_of

Engine: TypeAlias = Literal["threads", "cuda"]  # what runs replications
Objective: TypeAlias = Literal["earn", "find"]  # regret, or simple regret

MOST_PULLS = 1 << 40  # of one replication; also the largest number of replications
MOST_TIMES = 10**6  # the largest number of checkpoints

_FORMAT = "manyarms sweep 1"
_CHECKPOINTS = 100


@dataclass(frozen=True)
class Cell:
    """An instance and the policies to simulate on it; `cell` makes one.

    Attributes
    ----------
    instance, horizon, players
        The instance, the number of pulls, and the players.
    times
        The times at which regret is recorded (see `checkpoints` of `simulate`). The last one is
        the horizon.
    parameters
        The parameters that distinguish this cell from the others, each in its own column.
    delay, batch
        When rewards are told, as for `simulate`.
    first_replication
        The number of the first replication.
    """

    instance: Instance
    horizon: int
    players: tuple[Player, ...]
    times: tuple[int, ...]
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    delay: int = 0
    batch: int = 1
    first_replication: int = 0

    def __post_init__(self) -> None:
        horizon = check_int("horizon", self.horizon, at_least=1, at_most=MOST_PULLS)
        delay, batch = check_late(self.delay, self.batch)
        checked = {
            "horizon": horizon,
            "times": checkpoint_times(self.times, horizon),
            "parameters": check_parameters(self.parameters),
            "delay": delay,
            "batch": batch,
            "first_replication": check_int(
                "first_replication", self.first_replication, at_most=MOST_PULLS
            ),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def label(self) -> str:
        """The parameters as text; empty if there are none."""
        return ", ".join(f"{key}={value}" for key, value in self.parameters.items())

    @property
    def pulls(self) -> int:
        """The pulls of all players."""
        return self.horizon * sum(player.replications for player in self.players)

    @functools.cached_property
    def law_classes(self) -> frozenset[type]:
        """The classes of the distributions of rewards and means; compiled code depends on them."""
        world = self.instance.world(self.horizon)
        return frozenset((type(world.law), type(world.mean_law)))

    @functools.cached_property
    def world_digest(self) -> str:
        """A digest of the instance's data, because the file of a contest may change."""
        found = hashlib.sha256()
        *parts, law, mean_law = self.instance.world(self.horizon)
        for own in (law, mean_law):
            found.update(f"{type(own).__module__}:{type(own).__qualname__}".encode())
            parts += own
        for part in parts:
            array = np.asarray(part)
            found.update(repr((array.dtype.str, array.shape)).encode() + array.tobytes())
        return found.hexdigest()


def cell(
    policies: Policy | type | Sequence[Policy | Player | type],
    instance: Instance,
    *,
    horizon: int,
    replications: int = 100,
    first_replication: int = 0,
    checkpoints: int | Iterable[int] | None = None,
    delay: int = 0,
    batch: int = 1,
    parameters: Mapping[str, Scalar] | None = None,
) -> Cell:
    """Make a cell, and check its arguments.

    Parameters
    ----------
    policies
        One policy or several. A `Player` keeps its label, parameters and number of replications.
    instance, horizon, replications, first_replication, checkpoints, delay, batch
        As for `simulate`.
    parameters
        The parameters that distinguish this cell from others of its sweep (default: none).

    Examples
    --------
    >>> import manyarms as ma
    >>> coins = ma.instances.planted(n=1000, m=10)
    >>> made = cell([ma.MOSS(), ma.MOSSPlusPlus(beta=0.6)], coins, horizon=500, replications=20)
    >>> [player.label for player in made.players], made.pulls
    (['moss', 'moss++(beta=0.6)'], 20000)
    """
    if not isinstance(instance, Instance):
        raise refusal("instance", "an Instance such as instances.planted(...)", instance)
    replications = check_int("replications", replications, at_least=1, at_most=MOST_PULLS)
    times: Any = checkpoints
    late = delay, batch
    made = Cell(instance, horizon, (), times, parameters or {}, *late, first_replication)
    players = players_of(policies, replications)
    for player in players:
        check_int("replications", player.replications, at_least=1, at_most=MOST_PULLS)
        check_playable(player.policy, instance, made.horizon)
    return replace(made, players=players)


def checkpoint_times(checkpoints: Any, horizon: int) -> tuple[int, ...]:
    """Return the times at which regret is recorded. The horizon is always one of them.

    `checkpoints` is the number of evenly spaced times, or a list of times.

    >>> checkpoint_times(4, 200)
    (50, 100, 150, 200)
    >>> checkpoint_times((7, 3), 200)
    (3, 7, 200)
    """
    if checkpoints is None:
        checkpoints = min(_CHECKPOINTS, horizon)
    if not isinstance(checkpoints, Iterable) or getattr(checkpoints, "ndim", 1) == 0:
        most = min(horizon, MOST_TIMES)
        count = check_int("checkpoints", checkpoints, at_least=1, at_most=most)
        times = [horizon * (k + 1) // count for k in range(count)]
    else:
        given = list(itertools.islice(checkpoints, MOST_TIMES + 1))
        if len(given) > MOST_TIMES:
            raise refusal("checkpoints", f"at most {MOST_TIMES} times", given)
        times = [check_int("checkpoints", time, at_least=1, at_most=horizon) for time in given]
    return tuple(sorted({*times, horizon}))


def check_late(delay: Any, batch: Any) -> tuple[int, int]:
    """Check `delay` and `batch`, of which only one may be used."""
    delay = check_int("delay", delay, at_most=MOST_PULLS)
    batch = check_int("batch", batch, at_least=1, at_most=MOST_PULLS)
    if delay > 0 and batch > 1:
        raise ParameterError(
            f"`delay` or `batch` must be left out, got delay={delay} and batch={batch}. Rewards "
            f"are told one by one after a delay, or in batches."
        )
    return delay, batch


@dataclass(frozen=True, eq=False)
class Sweep:
    """A set of simulations. Its name, cells and seed determine all results.

    Two sweeps are equal if their hashes are.

    Parameters
    ----------
    name
        The name of the sweep.
    cells
        The simulations. No two cells may have the same parameters.
    seed
        The seed of all random numbers (default: 0).
    objective
        The loss in its summary and its page: "earn" (regret; default) or "find" (simple regret).
        The tables have both.

    Examples
    --------
    >>> import manyarms as ma
    >>> coins = ma.instances.planted(n=50, m=2)
    >>> cells = [
    ...     cell(ma.MOSS(), coins, horizon=t, replications=5, parameters={"horizon": t})
    ...     for t in (100, 200)
    ... ]
    >>> sweep = Sweep("two horizons", tuple(cells))
    >>> sweep.pulls, sweep.columns
    (1500, {'horizon': 'int64'})
    """

    name: str
    cells: tuple[Cell, ...]
    seed: int = 0
    objective: Objective = "earn"

    def __post_init__(self) -> None:
        check_text("name", self.name)
        check_objective(self.objective)
        check_int("seed", self.seed, at_most=2**64 - 1)
        if not self.cells:
            raise ParameterError("`cells` must contain at least one cell, got none.")
        seen: set[str] = set()
        for each in self.cells:
            # compared as in columns, where 1, 1.0 and "1" are equal
            text = repr(sorted((key, comparable(value)) for key, value in each.parameters.items()))
            if text in seen:
                raise ParameterError(
                    f"`cells` must differ in their parameters, got {each.label!r} twice. Give "
                    f"each cell different `parameters`."
                )
            seen.add(text)
        object.__setattr__(self, "cells", _with_columns(self.cells))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sweep) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    @property
    def pulls(self) -> int:
        """The total number of pulls."""
        return sum(each.pulls for each in self.cells)

    @property
    def replications(self) -> int:
        """The largest number of replications of any player."""
        return max(player.replications for each in self.cells for player in each.players)

    @functools.cached_property
    def hash(self) -> str:
        """The SHA-256 of the cells, name, seed and objective."""
        text = json.dumps([_FORMAT, self.objective, self._described()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @functools.cached_property
    def columns(self) -> dict[str, str]:
        """The types of the parameters' columns in tables: int64, double, bool or string.

        A parameter of a cell keeps its name. If some policy has another value of a parameter than
        the default, there is a column with the values of all policies of its class, also of
        policies inside others. It is called "beta" if no other class and no cell has a column of
        this name, otherwise "moss++.beta".
        """
        players = [player for each in self.cells for player in each.players]
        parameters = [dict(each.parameters) for each in self.cells]
        values = values_by_name([*parameters, *(dict(each.parameters) for each in players)])
        return {name: column_type(column) for name, column in values.items()}

    def row(self, each: Cell, player: Player) -> dict[str, Scalar | None]:
        """Return a player's values in `columns`, None for parameters that it does not have."""
        found: dict[str, Scalar | None] = {**each.parameters, **player.parameters}
        return {
            name: str(value) if value is not None and kind == "string" else value
            for name, kind in self.columns.items()
            for value in [found.get(name)]
        }

    def _described(self) -> list[Any]:
        return [
            self.name,
            self.seed,
            [
                [
                    dict(each.parameters),
                    each.world_digest,
                    [each.instance.label, each.horizon, each.times],
                    [each.delay, each.batch, each.first_replication],
                    [
                        [p.label, _identity(p.policy), p.replications, dict(p.parameters)]
                        for p in each.players
                    ],
                ]
                for each in self.cells
            ],
        ]


def _with_columns(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Return the cells with all parameters of their players, or raise if tables cannot hold them.

    Players with parameters keep them; see `Sweep.columns` for the others.
    """
    players = [player for each in cells for player in each.players]
    fixed = [player for player in players if player.parameters]
    named = {name for player in fixed for name in player.parameters}
    taken = {name for each in cells for name in each.parameters}
    names = column_names([p.policy for p in players if not p.parameters], named | taken)
    for name in taken & (named | {*names.values()}):
        raise taken_name(name)
    chosen = [check_parameters(player.parameters, optional=True) for player in fixed]
    check_exact(values_by_name([*(each.parameters for each in cells), *chosen]))
    return tuple(_with_players(each, names) for each in cells)


def _with_players(each: Cell, names: Mapping[tuple[type, str], str]) -> Cell:
    """Return a copy of the cell whose players have the parameters of these columns."""

    def parameters(player: Player) -> dict[str, Scalar | None]:
        if not player.parameters:
            return columns_of(informed_policy(player.policy, each.instance), names)
        return {**check_parameters(player.parameters, optional=True)}

    made = copy.copy(each)
    players = tuple(replace(player, parameters=parameters(player)) for player in each.players)
    object.__setattr__(made, "players", players)
    return made


def values_of(policy: Policy) -> dict[str, Any]:
    """Return the values of a policy's fields, and what else it stores and cannot compute again."""
    values = {one.name: getattr(policy, one.name) for one in fields(policy)} | vars(policy)
    computed = functools.cached_property
    return {
        k: v for k, v in values.items() if not isinstance(getattr(type(policy), k, 0), computed)
    }


def _identity(policy: Policy) -> list[Any]:
    """Return a policy's class, and its parameters as digests, or raise if one is not plain data."""
    kind: type = type(policy)
    values = values_of(policy)
    if isinstance(policy, PlainPolicy):
        kind, values = policy.make, dict(policy.parameters)

    def inner(value: Any) -> Iterator[str]:
        if not isinstance(value, Policy):
            raise TypeError
        yield json.dumps(_identity(value))

    digests = {}
    for name, value in values.items():
        try:
            digests[name] = digest_of_data(value, inner)
        except (TypeError, RecursionError):
            rule = "made of numbers, strings and arrays to identify the results of a sweep"
            fix = f"Make the object in {kind.__name__} from such parameters, or use `simulate`."
            raise refusal(name, rule, value, fix) from None
    return [f"{kind.__module__}:{kind.__qualname__}", digests]


def informed_policy(policy: Policy, instance: Instance) -> Policy:
    """Return the policy to play: it gets what it needs, and was not given, from the instance.

    That is the best mean and the scale of the rewards. Raise if it cannot play these rewards.
    """
    rewards, informed = instance.rewards, policy.with_best_mean(instance.best_mean)
    return informed.with_reward_range(rewards.reward_range, rewards.reward_sigma)


def new_state(policy: Policy, instance: Instance, horizon: int, memory: Memory) -> Any:
    """Make the state of a policy on the instance."""
    informed = informed_policy(policy, instance)
    return informed.new_state(memory, n_arms=instance.n_arms, pulls=horizon)


def check_playable(policy: Policy, instance: Instance, horizon: int) -> None:
    """Raise unless the policy can play the instance. This takes a few milliseconds at most."""
    state = new_state(policy, instance, horizon, BOUNDED)
    check_bodies(state, (reset, ask, tell))
    world = instance.world(horizon)
    check_repeatable({*classes_in(state), type(world.law), type(world.mean_law)})


def check_objective(objective: Any) -> Objective:
    """Return the objective, or raise."""
    check_choice("objective", objective, get_args(Objective))
    found: Objective = objective
    return found
