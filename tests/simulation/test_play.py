"""Late and batched rewards: the simulator's second loop agrees with handles and with `play`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import manyarms as ma
from manyarms.core.memory import BOUNDED
from manyarms.instances import (
    BetaRewards,
    Gaussian,
    Instance,
    from_means,
    from_rewards,
    planted,
    reward,
)
from manyarms.instances.tape import next_reward, record_of, rewind, tape
from manyarms.kit import unit
from manyarms.protocol.keys import tape_key
from manyarms.simulation import play
from manyarms.simulation import runner as runner_module
from manyarms.simulation.runner import CpuRunner, Played
from manyarms.simulation.sweep import cell, informed_policy
from tests.helpers import ALL_POLICIES, label, unit_only

HORIZON = 300
COUNTING: list[ma.Policy] = [
    ma.MOSS(count_late=True),
    ma.Parallel(best_mean=0.9, count_late=True),
    ma.EmpMOSSPlusPlus(count_late=True),
]
# Each policy compiles another kernel. These have one way each to credit a late reward; the others
# are compiled every night.
NOW = {"moss++", "parallel", "patience", "prospector"}
COMPILED = [
    pytest.param(policy, id=str(policy), marks=[] if policy.name in NOW else pytest.mark.long)
    for policy in ALL_POLICIES + COUNTING
]
INSTANCES = {
    "bernoulli": planted(n=100, m=8),
    "gaussian": planted(n=90, m=2, rewards=Gaussian()),
    "certain": from_means([1.0] * 4 + [0.7] * 16),
}
LATENESS: dict[str, dict[str, Any]] = {
    "delay 1": {"delay": 1},
    "delay 30": {"delay": 30},
    "batch 2": {"batch": 2},
    "batch 70": {"batch": 70},  # the last one is cut by the horizon
    "never": {"delay": HORIZON},
}

SOME_LATENESS: list[dict[str, Any]] = [{"delay": 1}, {"delay": 30}, {"batch": 7}]


def noisy(policy: ma.Policy) -> Instance:
    """Return an instance with fractions as rewards, in [0, 1] if the policy needs that."""
    unit = planted(n=90, m=2, rewards=BetaRewards(1.0))
    return unit if unit_only(policy) else INSTANCES["gaussian"]


def simulated_arms(policy: ma.Policy, instance: Instance, late: dict[str, Any]) -> list[int]:
    result = ma.simulate(
        policy, instance, horizon=HORIZON, replications=1, seed=4, record_arms=True, **late
    )
    assert result.arms is not None
    return [int(arm) for arm in result.arms[0, 0]]


def played_live(
    policy: ma.Policy,
    instance: Instance,
    late: dict[str, Any],
    *,
    seed: int = 4,
) -> tuple[list[int], ma.Live]:
    """Play a handle, and tell each reward when it is due, before the next ask."""
    reel, numbers = tape(BOUNDED, instance.n_arms, HORIZON), instance.world(HORIZON)
    rewind(reel)
    key = tape_key(seed, 0)
    limits = instance.rewards.reward_range
    live = informed_policy(policy, instance).live(
        n_arms=instance.n_arms, horizon=HORIZON, seed=seed, reward_range=limits
    )
    delay, batch = late.get("delay", 0), late.get("batch", 1)
    arms: list[int] = []
    waiting: list[tuple[ma.Pull, float]] = []
    while len(arms) < HORIZON:
        if batch > 1:
            live.tell_many(waiting)
            waiting = []
        elif len(waiting) > delay:
            live.tell(*waiting.pop(0))
        for pull in live.ask(min(batch, HORIZON - len(arms))):
            arms.append(pull.arm)
            record_of(reel, numbers, key, pull.arm)
            reward = next_reward(reel, numbers)
            waiting.append((pull, reward))
    live.tell_many(waiting)
    return arms, live


def live_arms(policy: ma.Policy, instance: Instance, late: dict[str, Any]) -> list[int]:
    return played_live(policy, instance, late)[0]


class Purchase(NamedTuple):
    """Rewards of 50 or -20."""

    @property
    def reward_range(self) -> tuple[float, float]:
        return -20.0, 50.0


@reward.register(Purchase)
def spend(law: Purchase, arm: int, mean: float, word: int) -> float:
    return 50.0 if unit(word) < (mean + 20.0) / 70.0 else -20.0


MANY_MEANS = [k % 10 / 10 for k in range(30)]
SCALES = {
    "coins": from_means(MANY_MEANS),
    "betas": from_means(MANY_MEANS, rewards=BetaRewards(1.0)),
    "normal": from_means([20 * mean for mean in MANY_MEANS], rewards=Gaussian(20.0)),
    "table": from_rewards({k: [0] * (k % 5) + [k % 7, 80] for k in range(30)}),
    "table in [0, 1]": from_rewards({k: [0] * (k % 5) + [0.2, 0.9] for k in range(30)}),
    "own law": from_means([70 * mean - 20 for mean in MANY_MEANS], rewards=Purchase()),
}


@pytest.mark.interpreted
@pytest.mark.parametrize("rewards", SCALES)
@pytest.mark.parametrize("policy", [ma.MOSS(), ma.Prospector()], ids=label)
def test_simulations_recommend_the_same_arm_as_handles(policy: ma.Policy, rewards: str) -> None:
    instance = SCALES[rewards]
    if isinstance(policy, ma.Prospector) and rewards == "normal":
        policy = ma.Prospector(bottom=0.0, top=18.0)
    seen = set()
    for seed in range(20):
        result = ma.simulate(policy, instance, horizon=HORIZON, replications=1, seed=seed)
        _, live = played_live(policy, instance, {}, seed=seed)
        assert result.recommended[0, 0] == live.recommend().arm
        seen.add(int(result.recommended[0, 0]))
    assert len(seen) > 1


@pytest.mark.interpreted
@pytest.mark.parametrize("late", ["delay 1", "delay 30", "batch 70"])
@pytest.mark.parametrize("policy", ALL_POLICIES + COUNTING, ids=label)
def test_live_picks_the_arms_of_the_simulator(policy: ma.Policy, late: str) -> None:
    instance = noisy(policy)
    simulated = simulated_arms(policy, instance, LATENESS[late])
    assert live_arms(policy, instance, LATENESS[late]) == simulated


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("late", LATENESS)
@pytest.mark.parametrize("policy", COMPILED)
def test_live_picks_the_arms_of_the_compiled_simulator(policy: ma.Policy, late: str) -> None:
    for name, instance in (INSTANCES | {"noisy": noisy(policy)}).items():
        if name == "gaussian" and unit_only(policy):
            continue
        simulated = simulated_arms(policy, instance, LATENESS[late])
        assert live_arms(policy, instance, LATENESS[late]) == simulated, name


@pytest.mark.interpreted
@pytest.mark.parametrize("policy", ALL_POLICIES + COUNTING, ids=label)
def test_no_delay_equals_a_delay_of_0(policy: ma.Policy) -> None:
    each = cell(policy, noisy(policy), horizon=HORIZON, replications=3, checkpoints=[1, 40])

    def played(rewards: str) -> Played:
        runner = CpuRunner(each, each.players[0], seed=9, record_arms=True)
        if rewards == "late":
            no_pull = play.late(runner._memory, delay=0, batch=1, pulls=HORIZON)
            runner._idle = [runner._idle[0]._replace(rewards=no_pull)]
        return runner.play(0, 3, lambda: False, lambda pulls: None)

    in_turn, waiting = played("in turn"), played("late")
    np.testing.assert_array_equal(waiting.rows, in_turn.rows)
    np.testing.assert_array_equal(waiting.arms, in_turn.arms)


@pytest.mark.compiled
@pytest.mark.parametrize("late", ["in turn", *LATENESS])
def test_the_same_bits_in_parts_and_for_any_number_of_workers(
    late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(workers: int) -> ma.Result:
        return ma.simulate(
            [ma.MOSSPlusPlus(), ma.Prospector()],
            noisy(ma.Prospector()),
            horizon=HORIZON,
            replications=4,
            workers=workers,
            checkpoints=[1, 77, 200],
            record_arms=True,
            **LATENESS.get(late, {}),
        )

    whole = play(1)
    for piece in ("PIECE", "SLOW_PIECE"):
        monkeypatch.setattr(runner_module, piece, 23)
    pieces = play(3)
    for field in ("arms", "regret", "best_pulls", "first_best", "distinct_arms", "recommended"):
        np.testing.assert_array_equal(getattr(whole, field), getattr(pieces, field))


@pytest.mark.interpreted
@pytest.mark.parametrize("policy", ALL_POLICIES + COUNTING, ids=label)
def test_small_problems_stay_within_their_memory(policy: ma.Policy) -> None:
    """Without the JIT, an index beyond the memory raises."""
    for n in (1, 7, 10**9):
        instance = from_means([0.5]) if n == 1 else planted(n=n, m=1)
        for horizon in (1, 2, 5, 40):
            for late in SOME_LATENESS:
                result = ma.simulate(policy, instance, horizon=horizon, replications=1, **late)
                assert (result.distinct_arms <= min(n, horizon)).all()
                assert (result.distinct_arms >= 1).all()


@pytest.mark.interpreted
def test_without_rewards_only_fresh_arms_are_pulled() -> None:
    result = ma.simulate(ma.MOSS(), planted(n=50, m=5), horizon=60, replications=3, delay=60)
    assert (result.distinct_arms == 50).all()  # and ten of them a second time


@pytest.mark.parametrize(
    ("late", "words"),
    [
        ({"delay": -1}, "`delay` must be an integer >= 0"),
        ({"delay": 1.5}, "`delay` must be an integer >= 0"),
        ({"batch": 0}, "`batch` must be an integer >= 1"),
        ({"batch": True}, "`batch` must be an integer >= 1"),
        ({"delay": 3, "batch": 2}, "`delay` or `batch` must be left out, got delay=3 and batch=2"),
    ],
)
def test_wrong_arguments(late: dict[str, Any], words: str) -> None:
    with pytest.raises(ma.ParameterError, match=words):
        ma.simulate(ma.MOSS(), planted(n=10, m=1), horizon=10, replications=1, **late)
