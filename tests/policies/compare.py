"""Play a policy and its reference on the same rewards, and compare them pull by pull."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import pytest

import manyarms as ma
from manyarms.protocol.scales import given_sigma
from tests.policies.pairs import Pair, unit_only
from tests.reference.rewards import (
    Rewards,
    bernoulli,
    clipped,
    counted,
    eighths,
    floats,
    gaussian,
    raised,
    signed_halves,
)
from tests.reference.words import draw, policy_key

__all__ = ["LONG", "MEANS", "PROBLEMS", "check_live", "check_same", "check_simulated", "rewards_of"]
__all__ += ["problems_for", "seed_for"]

SHORT = 16  # with a horizon up to this, several problems are played
LONG = 200  # with a horizon from this on, one problem is played, with fewer numbers of arms

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
PROBLEMS = [*MEANS, *OTHER_REWARDS]


def rewards_of(problem: str, n: int, seed: int) -> Rewards:
    """Return the rewards of a problem."""
    if problem in MEANS:
        return bernoulli(MEANS[problem](n), seed, 0)
    return OTHER_REWARDS[problem](seed)


def problems_for(horizon: int, *salt: object, of: Sequence[str], most: int) -> list[str]:
    """Return some problems for a horizon; other horizons get others."""
    count = most if horizon <= SHORT else min(most, 3) if horizon < LONG else 1
    first = zlib.crc32(repr((horizon, *salt)).encode())
    return [of[(first + k) % len(of)] for k in range(count)]


def seed_for(*salt: object) -> int:
    """Return a seed of up to 64 bits for a case."""
    crc = zlib.crc32(repr(salt).encode())
    return crc if crc % 2 else draw(crc, 0)


def check_live(pair: Pair, n: int, horizon: int | None, problem: str, pulls: int = 0) -> None:
    """Compare a handle with the reference, for `pulls` pulls or else the whole horizon."""
    __tracebackhide__ = True
    seed = seed_for(pair.label, n, horizon, problem)
    rewards = rewards_of(problem, n, seed)
    limits: tuple[float, float] | None = None
    if given_sigma(pair.policy.with_reward_range((0.0, 1.0))) is None:
        limits = (-100.0, 100.0)
    if unit_only(pair.policy):
        limits = 0.0, 1.0
        rewards = raised(rewards) if problem == "signed halves" else clipped(rewards)
    pull = counted(rewards)
    scaled = pair.policy.with_reward_range((0.0, 1.0))
    live = scaled.live(n_arms=n, horizon=horizon, seed=seed, reward_range=limits)
    arms = []
    for _ in range(pulls or horizon or 0):
        asked = live.ask()
        arms.append(asked.arm)
        live.tell(asked, pull(asked.arm))
    expected = _reference_arms(pair, n, horizon, len(arms), policy_key(seed, 0), rewards)
    check_same(arms, expected, f"{pair.policy!r}, n={n}, T={horizon}, seed={seed}, {problem}")


def check_simulated(
    pair: Pair, means: list[float], horizon: int, *, sigma: float = 0.0, replications: int = 2
) -> None:
    """Compare a simulation with the reference, on Gaussian rewards if `sigma` is given."""
    __tracebackhide__ = True
    seed = seed_for(pair.label, len(means), horizon, means[:9], sigma)
    rewards = ma.instances.Gaussian(sigma) if sigma else ma.instances.Bernoulli()
    result = ma.simulate(
        pair.policy.with_reward_range((0.0, 1.0)),
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
    run = pair.reference.play(n, horizon, key)
    arms = [next(run)]
    while len(arms) < pulls:
        arms.append(run.send(pull(arms[-1])))
    return arms


def check_same(picked: list[int], expected: list[int], case: object) -> None:
    __tracebackhide__ = True
    assert len(picked) == len(expected), case
    for t, (ours, reference) in enumerate(zip(picked, expected, strict=True)):
        if ours != reference:
            pytest.fail(f"{case}: pull {t} is of arm {ours}, the reference's of arm {reference}")
