"""A handle's memory grows with the arms touched and the pending pulls, not with the pulls."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import manyarms as ma
from tests.helpers import EVERY_POLICY, label, state_of

ARMS, PULLS, FEW = 10, 3000, 20
_LOGS = 4096  # the most logarithms that a table of slots stores


def _stored(state: Any) -> Iterator[int]:
    """Yield the number of stored elements of each part of a state."""
    for name, part in zip(state._fields, state, strict=True):
        if isinstance(part, dict) and name == "log":
            assert len(part) <= _LOGS
        elif isinstance(part, dict):
            yield len(part)
        elif hasattr(part, "_fields"):
            yield from _stored(part)


def _most(live: ma.Live, chance: random.Random, pulls: int) -> int:
    """Play with late and missing rewards; return the largest number of stored elements."""
    most = 0
    for k in range(pulls):
        live.ask()
        while len(live.pending) > FEW:
            pull = chance.choice(live.pending[:5])
            if chance.random() < 0.2:
                live.abandon(pull)
            else:
                live.tell(pull, float(chance.random() < (pull.arm + 1) / 12))
        if k % 50 == 0:
            most = max(most, sum(_stored(state_of(live))))
    return most


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("policy", EVERY_POLICY, ids=label)
def test_no_policy_needs_more_memory_for_more_pulls(policy: ma.Policy) -> None:
    live = policy.live(n_arms=ARMS, horizon=None if policy.anytime else 2 * PULLS, seed=1)
    chance = random.Random(2)
    before = _most(live, chance, PULLS)
    # sets, rounds and phases grow in steps, so one may be late: up to 400 elements on ten arms
    assert _most(live, chance, PULLS) < before + PULLS / 4
