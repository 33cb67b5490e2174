"""Checks that every policy must pass in extreme cases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import manyarms as ma
from manyarms.core.memory import SPARSE
from manyarms.instances import BetaMeans, Gaussian, Instance, from_means, planted, reservoir
from manyarms.policies.moss_plus_plus import iterations
from manyarms.protocol import ask, reset, tell
from manyarms.protocol.scales import given_sigma
from tests.helpers import ALL_POLICIES, EVERY_POLICY, label, play_live, unit_only

CORNERS: list[tuple[str, Instance, int]] = [
    ("one arm", from_means([0.3]), 40),
    ("one pull", planted(n=50, m=2), 1),
    ("two pulls", planted(n=50, m=2), 2),
    ("three pulls", planted(n=50, m=2), 3),
    ("two arms", from_means([0.9, 0.1]), 100),
    ("fewer arms than any set", planted(n=6, m=1), 300),
    ("far more arms than pulls", planted(n=10**9, m=10**6), 60),
    ("all best", from_means([0.5] * 30), 200),
    ("never a reward", from_means([0.0] * 30), 200),
    ("always a reward", from_means([1.0] * 30), 200),
    ("ends within an iteration", planted(n=500, m=5), 777),
    ("rewards outside [0, 1]", from_means([-3.0, 4.0, 0.5] * 20, rewards=Gaussian(2.0)), 300),
    ("infinitely many arms", reservoir(BetaMeans(1, 2)), 150),
]


@pytest.mark.parametrize(("name", "instance", "horizon"), CORNERS, ids=[c[0] for c in CORNERS])
@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_extreme_cases_in_simulations(
    policy: ma.Policy, name: str, instance: Instance, horizon: int
) -> None:
    if "outside" in name and unit_only(policy):
        return  # it refuses such rewards
    replications = 3
    result = ma.simulate(
        policy,
        instance,
        horizon=horizon,
        replications=replications,
        workers=1,
        checkpoints=horizon,
        record_arms=True,
    )
    assert result.arms is not None
    arms, regret = result.arms[0], result.regret[0]
    assert arms.shape == (replications, horizon)
    assert ((arms >= 0) & (arms < instance.n_arms)).all()
    assert (np.diff(regret, axis=1) >= 0).all()
    assert (regret[:, 0] >= 0).all()
    assert (result.best_pulls <= horizon).all()
    for r in range(replications):
        distinct = set(arms[r].tolist())
        assert result.distinct_arms[0, r] == len(distinct) <= min(instance.n_arms, horizon)
        assert int(result.recommended[0, r]) in distinct
    if instance.n_best == instance.n_arms:
        assert (regret == 0).all()
        assert (result.best_pulls == horizon).all()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "instance", "horizon"), CORNERS, ids=[c[0] for c in CORNERS])
@pytest.mark.parametrize("policy", EVERY_POLICY, ids=label)
def test_extreme_cases_live(policy: ma.Policy, name: str, instance: Instance, horizon: int) -> None:
    outside = "outside" in name
    if outside and unit_only(policy):
        return  # it refuses such rewards
    means = [instance.mean(arm) for arm in range(instance.n_arms)] if instance.n_arms < 100 else []
    scaled = policy.with_reward_range(None if outside else (0.0, 1.0), 2.0)
    limits: tuple[float, float] | None = (-100.0, 100.0) if outside else (0.0, 1.0)
    if outside and given_sigma(scaled) is not None:
        limits = None
    live = scaled.live(n_arms=instance.n_arms, horizon=horizon, seed=2, reward_range=limits)

    def reward(arm: int, count: int) -> float:
        mean = means[arm] if means else (arm % 10) / 10
        return float((7 * arm + count) % 10 < 10 * mean) if 0.0 <= mean <= 1.0 else mean

    arms = play_live(live, horizon, reward)
    assert len(arms) == horizon
    assert all(0 <= arm < instance.n_arms for arm in arms)
    assert live.progress().told == horizon


SETTLES_ON_ONE = (ma.Patience,)  # it never leaves an arm that may be best


@pytest.mark.parametrize(
    "policy", [p for p in ALL_POLICIES if not isinstance(p, SETTLES_ON_ONE)], ids=label
)
def test_every_arm_of_a_small_set_is_tried(policy: ma.Policy) -> None:
    """With few arms and enough pulls, no policy may ignore an arm."""
    result = ma.simulate(policy, from_means([0.2, 0.8]), horizon=64, replications=20, workers=1)
    assert (result.distinct_arms == 2).all()
    assert (result.recommended == 1).mean() > 0.8


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", [ma.MOSSPlusPlus, ma.EmpMOSSPlusPlus])
@pytest.mark.parametrize("wrap", [lambda policy: policy, ma.Guarded], ids=["alone", "guarded"])
def test_the_last_iteration_goes_on_after_the_horizon(
    kind: type[ma.MOSSPlusPlus], wrap: Callable[[ma.Policy], ma.Policy]
) -> None:
    for n, horizon, beta in ((500, 300, 0.5), (3, 1, 0.5), (40, 60, 1.0), (5, 1024, 0.5)):
        scaled = wrap(kind(beta=beta)).with_reward_range((0.0, 1.0))
        state = scaled.new_state(SPARSE, n_arms=n, pulls=horizon)
        reset(state, 7, horizon)
        for time in range(8 * horizon + 20):
            slot, arm = ask(state)
            assert 0 <= arm < n
            tell(state, slot, float((7 * arm + time) % 10 < 4))
        inner = getattr(state, "inner", state)
        assert inner.clock[0].iteration <= max(1, iterations(horizon, beta))


def test_every_state_has_a_docstring() -> None:
    for state in reset.bodies:
        if state.__module__.startswith("manyarms."):
            said = state.__doc__ or ""
            assert not said.startswith(f"{state.__name__}("), state  # NamedTuple's default
            assert said.split("\n")[0].endswith("."), state
