"""A policy of the field beside its slow reference: live, simulated, many arms, no horizon."""

from __future__ import annotations

import manyarms as ma
from tests.reference.moss import Player
from tests.reference.words import policy_key
from tests.reference.world import bernoulli
from tests.test_oracle import (
    MEANS,
    WORLDS,
    check_same,
    live_arms,
    reference_arms,
    rewards_of,
    seed_for,
    simulated_arms,
    worlds_for,
)

ARMS = (1, 2, 3, 17, 150)
HORIZONS = (1, 2, 3, 4, 16, 50, 257, 400)


def check_live(policy: ma.Policy, player: Player, n: int) -> None:
    """Play live games of many lengths on many worlds."""
    for horizon in HORIZONS:
        for world in worlds_for(horizon, policy.label, n, of=WORLDS, most=len(WORLDS)):
            seed = seed_for(policy.label, n, horizon, world)
            rewards = rewards_of(world, n, seed)
            check_same(
                live_arms(policy, n, horizon, horizon, seed, rewards),
                reference_arms(player, n, horizon, horizon, policy_key(seed, 0), rewards),
                f"{policy!r}, n={n}, T={horizon}, seed={seed}, {world}",
            )


def check_simulated(policy: ma.Policy, player: Player, n: int) -> None:
    """Simulate with Bernoulli rewards."""
    for horizon in HORIZONS:
        for world in worlds_for(horizon, policy.label, n, "simulated", of=[*MEANS], most=3):
            check_one(policy, player, MEANS[world](n), horizon, world)


def check_one(
    policy: ma.Policy, player: Player, means: list[float], horizon: int, world: str
) -> None:
    """Simulate two replications of one game."""
    n = len(means)
    seed = seed_for(policy.label, n, horizon, world, "simulated")
    runs = simulated_arms(policy, ma.instances.from_means(means), horizon, 2, seed)
    for r, arms in enumerate(runs):
        tape = bernoulli(means, seed, r)
        check_same(
            arms,
            reference_arms(player, n, horizon, horizon, policy_key(seed, r), tape),
            f"{policy!r}, n={n}, T={horizon}, seed={seed}, {world}, replication {r}",
        )


def check_endless(policy: ma.Policy, player: Player) -> None:
    """Play without a horizon."""
    for n in (1, 3, 60):
        for world in WORLDS:
            seed = seed_for(policy.label, n, world, "endless")
            rewards = rewards_of(world, n, seed)
            check_same(
                live_arms(policy, n, None, 100, seed, rewards),
                reference_arms(player, n, None, 100, policy_key(seed, 0), rewards),
                f"{policy!r}, n={n}, no horizon, seed={seed}, {world}",
            )


def check_all(policy: ma.Policy, player: Player) -> None:
    """Do all of the above, and play with far more arms than pulls."""
    for n in ARMS:
        check_live(policy, player, n)
        check_simulated(policy, player, n)
    check_one(policy, player, MEANS["spread"](20_000), 150, "many arms")
    if policy.anytime:
        check_endless(policy, player)
