"""Every policy gets the same numbers in every way of running it, on every kind of rewards.

The ways: a handle that is told the rewards of the simulation, `simulate`, and a sweep that is
killed, resumed in another process, read back and tabulated.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import manyarms as ma
from manyarms.core.memory import BOUNDED
from manyarms.core.rng import draw
from manyarms.errors import ParameterError
from manyarms.instances import BetaMeans, BetaRewards, Gaussian, Instance, reward
from manyarms.instances.tape import next_reward, record_of, rewind, tape
from manyarms.kit import unit
from manyarms.protocol.keys import run_key
from manyarms.protocol.scales import given_sigma
from manyarms.simulation import Sweep, cell, read_results
from manyarms.simulation.results import Result
from manyarms.simulation.sweep import Cell, informed_policy
from tests.helpers import EVERY_POLICY, run_python
from tests.simulation.runs import stopped

pytest.importorskip("pyarrow")

HORIZON, REPLICATIONS, SEED = 150, 3, 11
CHUNK = HORIZON  # a chunk has one replication, so a killed sweep has parts of a policy


class Orders(NamedTuple):
    """A visitor buys for `basket`, or does not buy."""

    basket: float

    @property
    def reward_range(self) -> tuple[float, float]:
        return 0.0, self.basket


@reward.register(Orders)
def order(law: Orders, arm: int, mean: float, word: int) -> float:
    return law.basket if unit(word) < mean / law.basket else 0.0


VISITS = {f"{number:03}": [0, 0, 4, number % 5] for number in range(40)}
INSTANCES: dict[str, Instance] = {
    "clicks": ma.instances.planted(n=60, m=3),
    "normal": ma.instances.planted(n=60, m=3, rewards=Gaussian(2.0)),
    "shares": ma.instances.planted(n=60, m=3, rewards=BetaRewards(3.0)),
    "orders": ma.instances.from_means([2.0] * 4 + [0.5] * 56, rewards=Orders(20.0)),
    "recorded": ma.instances.from_rewards(VISITS),
    "certain": ma.instances.from_means([1.0] * 3 + [0.25] * 57),
    "drawn": ma.instances.reservoir(BetaMeans(2, 3)),
}


def cell_of(policy: ma.Policy, name: str) -> Cell | None:
    """Return a cell with one policy, or None if the policy refuses such rewards."""
    try:
        return cell(
            policy,
            INSTANCES[name],
            horizon=HORIZON,
            replications=REPLICATIONS,
            checkpoints=3,
            parameters={"rewards": name, "number": EVERY_POLICY.index(policy)},
        )
    except ParameterError:
        return None


def sweep_of(pairs: list[tuple[int, str]]) -> Sweep:
    """Return a sweep with a cell for each pair of a policy's number and a kind of rewards."""
    cells = (cell_of(EVERY_POLICY[number], name) for number, name in pairs)
    return Sweep("every way", tuple(each for each in cells if each is not None), SEED)


def live_arms(one: Cell) -> tuple[list[int], int]:
    """Play the first replication on a handle; return the arms and the recommended one."""
    instance = one.instance
    policy = informed_policy(one.players[0].policy, instance)
    reel, world = tape(BOUNDED, instance.n_arms, HORIZON), instance.world(HORIZON)
    rewind(reel)
    key = draw(draw(run_key(SEED), 0), 1)
    live = policy.live(
        n_arms=instance.n_arms,
        horizon=HORIZON,
        seed=SEED,
        reward_range=instance.rewards.reward_range,
    )
    arms = []
    for _ in range(HORIZON):
        pull = live.ask()
        arms.append(pull.arm)
        record_of(reel, world, key, pull.arm)
        live.tell(pull, next_reward(reel, world))
    return arms, live.recommend().arm


def assert_equal_rows(result: Result, other: Result) -> None:
    assert result.specifications == other.specifications
    for rows, others in zip(result.rows, other.rows, strict=True):
        np.testing.assert_array_equal(rows, others)


def check(pairs: list[tuple[int, str]], folder: Path) -> None:
    """Run the sweep of these pairs in every way, and compare all numbers."""
    sweep = sweep_of(pairs)
    stopped(sweep, folder, chunks=len(sweep.cells))
    code = (
        "from pathlib import Path\n"
        "from manyarms.simulation import chunks, run\n"
        "from tests.simulation.test_every_way import CHUNK, sweep_of\n"
        "chunks.CHUNK_PULLS = chunks.PLAIN_PULLS = CHUNK\n"
        f"run(sweep_of({pairs!r}), {str(folder)!r}, workers=1, progress=False)\n"
    )
    run_python(code)
    results = read_results(folder)
    table = results.to_dataframe()
    for k, (one, read) in enumerate(zip(sweep.cells, results.cells, strict=True)):
        policy = EVERY_POLICY[int(one.parameters["number"])]
        what = f"{policy} on {one.parameters['rewards']}"
        simulated = ma.simulate(
            policy,
            one.instance,
            horizon=HORIZON,
            replications=REPLICATIONS,
            seed=SEED,
            checkpoints=3,
            workers=1,
            record_arms=True,
        )
        assert_equal_rows(read, simulated)
        assert simulated.arms is not None
        scaled = given_sigma(informed_policy(policy, one.instance)) is not None
        if scaled or one.instance.rewards.reward_range is not None:  # else handles refuse it
            arms, recommended = live_arms(one)
            assert arms == simulated.arms[0, 0].tolist(), what
            assert recommended == simulated.recommended[0, 0], what
        summary = simulated.summary().policies[0]
        row = table.iloc[k]
        assert (row["policy"], row["rewards"]) == (summary.policy, one.parameters["rewards"])
        assert math.isclose(row["mean"], simulated.regret[0, :, -1].mean(), rel_tol=1e-12), what
        assert row["mean"] == summary.mean, what


KINDS = list(INSTANCES)
ALL = [(number, kind) for number in range(len(EVERY_POLICY)) for kind in KINDS]
# Each policy on two kinds of rewards. For orders, each policy is compiled again.
SAMPLE = [
    (number, KINDS[(number + shift) % len(KINDS)])
    for number in range(len(EVERY_POLICY))
    for shift in (0, 3)
    if number == 0 or KINDS[(number + shift) % len(KINDS)] != "orders"
]


@pytest.fixture(autouse=True)
def one_replication_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms.simulation.chunks.CHUNK_PULLS", CHUNK)
    monkeypatch.setattr("manyarms.simulation.chunks.PLAIN_PULLS", CHUNK)


@pytest.mark.interpreted
@pytest.mark.patient
def test_all_ways_agree(tmp_path: Path) -> None:
    check(ALL, tmp_path)


@pytest.mark.compiled
@pytest.mark.slow
def test_all_ways_agree_compiled(tmp_path: Path) -> None:
    check(SAMPLE, tmp_path)


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.long
def test_all_ways_agree_compiled_with_all_rewards(tmp_path: Path) -> None:
    check(ALL, tmp_path)


@pytest.mark.interpreted
def test_rewards_are_refused_in_every_way_or_in_none() -> None:
    refused = 0
    for number, kind in ALL:
        policy, instance = EVERY_POLICY[number], INSTANCES[kind]
        if cell_of(policy, kind) is not None:
            continue
        refused += 1
        with pytest.raises(ParameterError):
            ma.simulate(policy, instance, horizon=HORIZON)
        with pytest.raises(ParameterError):
            policy.live(
                n_arms=instance.n_arms,
                horizon=HORIZON,
                reward_range=instance.rewards.reward_range,
            )
    assert refused > 0
