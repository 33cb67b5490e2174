"""A game of a policy and of its reference, on the same rewards, compared pull by pull."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import pytest

import manyarms as ma
from tests.policies.battery import Pair
from tests.reference.words import draw, policy_key
from tests.reference.world import (
    Rewards,
    bernoulli,
    counted,
    eighths,
    floats,
    gaussian,
    signed_halves,
)

__all__ = ["LONG", "MEANS", "WORLDS", "check_live", "check_same", "check_simulated", "rewards_of"]
__all__ += ["seed_for", "worlds_for"]

SHORT = 16  # games up to here are played on several worlds each
LONG = 200  # games from here on are played on one world each, and on fewer numbers of arms

# name: means of n arms
MEANS: dict[str, Callable[[int], list[float]]] = {
    "spread": lambda n: [(0.1, 0.5, 0.9, 0.3, 0.2, 0.4)[7 * arm % 6] for arm in range(n)],
    "one best": lambda n: [0.9 if arm == n // 3 else 0.2 for arm in range(n)],
    "equal": lambda n: [0.6] * n,
    "zeros": lambda n: [0.0] * n,
    "ones": lambda n: [1.0] * n,
    "rare": lambda n: [0.02] * n,
}
OTHER_REWARDS = {"eighths": eighths, "signed halves": signed_halves, "floats": floats}
WORLDS = [*MEANS, *OTHER_REWARDS]


def rewards_of(world: str, n: int, seed: int) -> Rewards:
    """Make the rewards of a live game."""
    if world in MEANS:
        return bernoulli(MEANS[world](n), seed, 0)
    return OTHER_REWARDS[world](seed)


def worlds_for(horizon: int, *salt: object, of: Sequence[str], most: int) -> list[str]:
    """Return the worlds for a game; where that is not all of them, they take turns."""
    count = most if horizon <= SHORT else min(most, 3) if horizon < LONG else 1
    first = zlib.crc32(repr((horizon, *salt)).encode())
    return [of[(first + k) % len(of)] for k in range(count)]


def seed_for(*salt: object) -> int:
    """Give every case a seed of its own, of up to 64 bits."""
    crc = zlib.crc32(repr(salt).encode())
    return crc if crc % 2 else draw(crc, 0)


def check_live(pair: Pair, n: int, horizon: int | None, world: str, pulls: int = 0) -> None:
    """Play a live game and the reference's, of `pulls` pulls if not of the whole horizon."""
    __tracebackhide__ = True
    seed = seed_for(pair.label, n, horizon, world)
    rewards = rewards_of(world, n, seed)
    pull = counted(rewards)
    live = pair.policy.live(n_arms=n, horizon=horizon, seed=seed, reward_range=None)
    arms = []
    for _ in range(pulls or horizon or 0):
        asked = live.ask()
        arms.append(asked.arm)
        live.tell(asked, pull(asked.arm))
    expected = _reference_arms(pair, n, horizon, len(arms), policy_key(seed, 0), rewards)
    check_same(arms, expected, f"{pair.policy!r}, n={n}, T={horizon}, seed={seed}, {world}")


def check_simulated(
    pair: Pair, means: list[float], horizon: int, *, sigma: float = 0.0, replications: int = 2
) -> None:
    """Simulate with Bernoulli rewards, or Gaussian ones where `sigma` is given."""
    __tracebackhide__ = True
    seed = seed_for(pair.label, len(means), horizon, means[:9], sigma)
    rewards = ma.instances.Gaussian(sigma) if sigma else ma.instances.Bernoulli()
    result = ma.simulate(
        pair.policy,
        ma.instances.from_means(means, rewards=rewards),
        horizon=horizon,
        replications=replications,
        seed=seed,
        workers=1,
        record_arms=True,
        progress=False,
    )
    assert result.arms is not None
    for r in range(replications):
        tape = gaussian(means, sigma, seed, r) if sigma else bernoulli(means, seed, r)
        key = policy_key(seed, r)
        expected = _reference_arms(pair, len(means), horizon, horizon, key, tape)
        case = f"{pair.policy!r}, n={len(means)}, T={horizon}, seed={seed}, replication {r}"
        check_same(result.arms[0, r, :].tolist(), expected, case)


def _reference_arms(
    pair: Pair, n: int, horizon: int | None, pulls: int, key: int, rewards: Rewards
) -> list[int]:
    pull = counted(rewards)
    game = pair.reference.play(n, horizon, key)
    arms = [next(game)]
    while len(arms) < pulls:
        arms.append(game.send(pull(arms[-1])))
    return arms


def check_same(picked: list[int], expected: list[int], case: object) -> None:
    __tracebackhide__ = True
    assert len(picked) == len(expected), case
    for t, (ours, reference) in enumerate(zip(picked, expected, strict=True)):
        if ours != reference:
            pytest.fail(f"{case}: pull {t} is of arm {ours}, the reference's of arm {reference}")
