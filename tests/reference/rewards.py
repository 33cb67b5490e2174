"""Rewards: the tape of a simulation, and arbitrary ones for live experiments."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import TypeAlias

from tests.reference.words import draw, replication_key, unit

Rewards: TypeAlias = Callable[[int, int], float]  # (arm, k) -> the k-th reward of the arm


def _tape(seed: int, replication: int) -> Callable[[int, int], int]:
    rewards_key = draw(draw(replication_key(seed, replication), 1), 1)
    return lambda arm, k: draw(draw(rewards_key, arm), k)


def bernoulli(means: Sequence[float], seed: int, replication: int) -> Rewards:
    """Return the tape of a Bernoulli instance."""
    word = _tape(seed, replication)

    def reward(arm: int, k: int) -> float:
        return 1.0 if unit(word(arm, k)) < means[arm] else 0.0

    return reward


def gaussian(means: Sequence[float], sigma: float, seed: int, replication: int) -> Rewards:
    """Return the tape of a Gaussian instance; its last bits may differ from the package's."""
    word = _tape(seed, replication)

    def reward(arm: int, k: int) -> float:
        p = ((word(arm, k) >> 12) + 0.5) / 2**52
        return means[arm] + sigma * NormalDist().inv_cdf(p)

    return reward


def _number(*what: int) -> int:
    text = "/".join(map(str, what))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big")


def eighths(salt: int) -> Rewards:
    """Return rewards 0, 1/8, ..., 1, with exact sums and many ties; some arms are better."""
    return lambda arm, k: max(_number(salt, arm) % 9, _number(salt, arm, k) % 9) / 8


def signed_halves(salt: int) -> Rewards:
    """Return rewards -1, -1/2, ..., 1, with means of every sign, often exactly 0."""

    def reward(arm: int, k: int) -> float:
        kind = _number(salt, arm) % 4
        if kind == 0:
            return -0.0 if k % 2 == 0 else 0.0
        shift = (0, -1, 0, 1)[kind]
        return min(2, max(-2, _number(salt, arm, k) % 5 - 2 + shift)) / 2

    return reward


def floats(salt: int) -> Rewards:
    """Return floats in [-1, 2) whose sums round."""
    return lambda arm, k: (_number(salt, arm) + 2 * _number(salt, arm, k)) / 2**48 - 1.0


def clipped(rewards: Rewards) -> Rewards:
    """Return rewards clipped to [0, 1]."""
    return lambda arm, k: min(1.0, max(0.0, rewards(arm, k)))


def raised(rewards: Rewards) -> Rewards:
    """Return rewards in [-1, 1] moved to [0, 1], so that those below 0 still differ."""
    return lambda arm, k: 0.5 + 0.5 * rewards(arm, k)


def counted(rewards: Rewards) -> Callable[[int], float]:
    """Return a function that returns the next reward of an arm."""
    pulls: Counter[int] = Counter()

    def pull(arm: int) -> float:
        pulls[arm] += 1
        return rewards(arm, pulls[arm] - 1)

    return pull
