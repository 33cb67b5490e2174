"""Compiled code, CPython in the simulator's loop, and handles pick the same arms."""

from __future__ import annotations

import json

import numpy as np
import pytest

import manyarms as ma
from manyarms.core.memory import BOUNDED
from manyarms.core.rng import draw
from manyarms.instances import BetaMeans, BetaRewards, Gaussian, Instance, planted, reservoir
from manyarms.instances.tape import next_reward, record_of, rewind, tape
from manyarms.protocol.keys import run_key
from manyarms.simulation.sweep import informed_policy
from tests.helpers import ALL_POLICIES, label, run_python, unit_only

INSTANCES: dict[str, Instance] = {
    "bernoulli": planted(n=400, m=8),
    "gaussian": planted(n=90, m=2, rewards=Gaussian()),
    "beta": planted(n=400, m=8, rewards=BetaRewards(3.0)),
    "reservoir": reservoir(BetaMeans(2, 3)),
    "certain": ma.instances.from_means([1.0] * 20 + [0.7] * 80),
}
HORIZON, SEEDS = 700, (0, 1, 12345678901234567890)


def simulated_arms(policy: ma.Policy, instance: Instance, seed: int) -> list[int]:
    result = ma.simulate(
        policy, instance, horizon=HORIZON, replications=1, seed=seed, workers=1, record_arms=True
    )
    assert result.arms is not None
    return [int(arm) for arm in result.arms[0, 0]]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_live_picks_the_arms_of_the_simulator(policy: ma.Policy, name: str, seed: int) -> None:
    instance = INSTANCES[name]
    if name == "gaussian" and unit_only(policy):
        return
    reel, numbers = tape(BOUNDED, instance.n_arms, HORIZON), instance.world(HORIZON)
    rewind(reel)
    key = draw(draw(run_key(seed), 0), 1)
    informed, limits = informed_policy(policy, instance), instance.rewards.reward_range
    live = informed.live(n_arms=instance.n_arms, horizon=HORIZON, seed=seed, reward_range=limits)
    arms = []
    for _ in range(HORIZON):
        pull = live.ask()
        arms.append(pull.arm)
        record_of(reel, numbers, key, pull.arm)
        live.tell(pull, next_reward(reel, numbers))
    assert arms == simulated_arms(policy, instance, seed)


@pytest.mark.compiled
@pytest.mark.slow
def test_compiled_code_picks_the_arms_of_the_same_loop_in_cpython() -> None:
    code = (
        "import json, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "from tests.policies.test_parity import *\n"
        "arms = {f'{p}/{w}': simulated_arms(p, i, 1)\n"
        "        for p in ALL_POLICIES for w, i in INSTANCES.items()\n"
        "        if w != 'gaussian' or not unit_only(p)}\n"
        "import sys; assert 'numba' not in sys.modules\n"
        "print(json.dumps(arms))"
    )
    by_python = json.loads(run_python(code, NUMBA_DISABLE_JIT="1").stdout)
    for policy in ALL_POLICIES:
        for name, instance in INSTANCES.items():
            if name == "gaussian" and unit_only(policy):
                continue
            expected = by_python[f"{policy}/{name}"]
            assert simulated_arms(policy, instance, 1) == expected, (str(policy), name)


@pytest.mark.compiled
@pytest.mark.long
@pytest.mark.slow
def test_compiled_code_never_leaves_its_memory() -> None:
    """Numba checks bounds, on problems with the smallest possible tables."""
    code = (
        "import manyarms as ma, itertools\n"
        "from tests.helpers import ALL_POLICIES\n"
        "for n, horizon in itertools.product((1, 2, 7, 33, 10**9), (1, 2, 3, 5, 31, 64, 1000)):\n"
        "    instance = ma.instances.from_means([0.5]) if n == 1 else "
        "ma.instances.planted(n=n, m=1)\n"
        "    for policy in ALL_POLICIES:\n"
        "        ma.simulate(policy, instance, horizon=horizon, replications=3, workers=1)\n"
    )
    run_python(code, NUMBA_BOUNDSCHECK="1")


def test_regrets_are_the_same_floats() -> None:
    result = ma.simulate(ma.MOSS(), INSTANCES["gaussian"], horizon=50, replications=2, workers=1)
    again = ma.simulate(ma.MOSS(), INSTANCES["gaussian"], horizon=50, replications=2, workers=2)
    np.testing.assert_array_equal(result.regret, again.regret)
