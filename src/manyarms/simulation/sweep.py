"""Sweeps: policies, instances, horizons and numbers of replications."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from manyarms.core.checks import check_choice, check_int, refusal
from manyarms.core.jit import check_bodies
from manyarms.core.memory import BOUNDED, Memory
from manyarms.errors import ParameterError
from manyarms.instances.instance import Instance
from manyarms.protocol.policy import Policy, ask, reset, tell
from manyarms.simulation.players import Player, Scalar, players_of

Engine: TypeAlias = Literal["threads", "cuda"]  # what runs replications
Objective: TypeAlias = Literal["earn", "find"]  # regret, or simple regret

MOST_PULLS = 1 << 40  # of one replication; also the largest number of replications
MOST_TIMES = 10**6  # the largest number of checkpoints

_FORMAT = "manyarms sweep 1"
_CHECKPOINTS = 100
_TAKEN = (  # names of other columns of the tables
    *("policy", "replication", "regret", "best_pulls", "distinct_arms", "recommended"),
    *("recommended_mean", "checkpoints", "regret_at_checkpoints"),
)


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
            "parameters": _check_parameters(self.parameters),
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
        check_objective(self.objective)
        check_int("seed", self.seed, at_most=2**64 - 1)
        if not self.cells:
            raise ParameterError("`cells` must contain at least one cell, got none.")
        seen: set[str] = set()
        for each in self.cells:
            # compared as in columns, where 1, 1.0 and "1" are equal
            text = repr(sorted((key, _as_text(value)) for key, value in each.parameters.items()))
            if text in seen:
                raise ParameterError(
                    f"`cells` must differ in their parameters, got {each.label!r} twice. Give "
                    f"each cell different `parameters`."
                )
            seen.add(text)

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

        A parameter of a cell keeps its name. A parameter of a policy gets the prefix "policy_" if
        a parameter of a cell or another column has the same name.
        """
        found: dict[str, list[Any]] = {}
        for each in self.cells:
            for name, value in each.parameters.items():
                found.setdefault(name, []).append(value)
        for key, name in self._policy_columns.items():
            found[name] = [
                player.parameters.get(key) for each in self.cells for player in each.players
            ]
        return {name: _column_type(values) for name, values in found.items()}

    def row(self, each: Cell, player: Player) -> dict[str, Scalar | None]:
        """Return a player's values in `columns`, None for parameters that it does not have."""
        found: dict[str, Scalar | None] = dict(each.parameters)
        for key, name in self._policy_columns.items():
            found[name] = player.parameters.get(key)
        return {
            name: str(value) if value is not None and kind == "string" else value
            for name, kind in self.columns.items()
            for value in [found.get(name)]
        }

    @functools.cached_property
    def _policy_columns(self) -> dict[str, str]:
        """The column of each parameter of the policies."""
        taken = {name for each in self.cells for name in each.parameters} | {*_TAKEN}
        keys = {key: None for each in self.cells for p in each.players for key in p.parameters}
        return {key: f"policy_{key}" if key in taken else key for key in keys}

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
                        [p.label, repr(p.policy), p.replications, dict(p.parameters)]
                        for p in each.players
                    ],
                ]
                for each in self.cells
            ],
        ]


def _check_parameters(parameters: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the parameters of a cell as numbers and strings, or raise."""
    found: dict[str, Scalar] = {}
    for name, value in parameters.items():
        if name in _TAKEN:
            raise ParameterError(
                f"`parameters` must not have the name of another column of the tables, got "
                f"{name!r}. Choose another name.",
                parameter="parameters",
            )
        number = value.item() if isinstance(value, np.generic) else value
        if not isinstance(number, str | int | float):
            raise refusal("parameters", "numbers or strings", value)
        found[name] = number
    return found


def _as_text(value: Scalar) -> str:
    try:
        return repr(float(value))
    except ValueError:
        return str(value)


def informed_policy(policy: Policy, instance: Instance) -> Policy:
    """Give the policy the instance's best mean and reward range, if it needs and lacks them."""
    informed = policy.with_best_mean(instance.best_mean)
    return informed.with_reward_range(instance.rewards.reward_range)


def new_state(policy: Policy, instance: Instance, horizon: int, memory: Memory) -> Any:
    """Make the state of a policy on the instance."""
    informed = informed_policy(policy, instance)
    return informed.new_state(memory, n_arms=instance.n_arms, pulls=horizon)


def check_playable(policy: Policy, instance: Instance, horizon: int) -> None:
    """Raise unless the policy can play the instance. This takes less than a millisecond."""
    informed = informed_policy(policy, instance)
    informed.check_rewards(instance.rewards.reward_range)
    check_bodies(new_state(policy, instance, horizon, BOUNDED), (reset, ask, tell))


def check_objective(objective: Any) -> Objective:
    """Return the objective, or raise."""
    check_choice("objective", objective, get_args(Objective))
    found: Objective = objective
    return found


def _column_type(values: list[Any]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int} and all(abs(value) < 1 << 63 for value in values if value is not None):
        return "int64"
    if kinds == {bool}:
        return "bool"
    return "double" if kinds <= {int, float} else "string"
