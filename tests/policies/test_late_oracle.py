"""With late, reordered or missing rewards, the package picks the arms of the slow references."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest

import manyarms as ma
from manyarms.policies.parts.parameters import IndexPolicy
from tests.policies.compare import check_same, rewards_of, seed_for
from tests.policies.pairs import PAIRS, Pair, label
from tests.reference.late import LateReference
from tests.reference.rewards import Rewards, counted
from tests.reference.words import policy_key

PROBLEMS = ("spread", "one best", "eighths")
LATE_PAIRS = [pair for pair in PAIRS if pair.late is not None]

# name: the probabilities of asking while pulls are pending, of abandoning instead of telling, and
# of choosing the oldest pull
TRAFFIC = {
    "now and then late": (0.2, 0.02, False),
    "late": (0.5, 0.1, False),
    "in order": (0.6, 0.0, True),
    "in order, some lost": (0.6, 0.3, True),
    "flood": (0.9, 0.1, False),
    "many lost": (0.5, 0.6, False),
}


def play_both(
    live: ma.live.Live,
    reference: LateReference,
    horizon: int,
    rewards: Rewards,
    traffic: str,
    seed: int,
) -> tuple[list[int], list[int]]:
    """Make the same random calls on both; return the arms of each."""
    chance, pull = random.Random(seed), counted(rewards)
    on, lost, oldest = TRAFFIC[traffic]
    picked: list[int] = []
    expected: list[int] = []
    due: dict[int, float] = {}
    while len(picked) < horizon:
        if not due or chance.random() < on:
            asked = live.ask()
            picked.append(asked.arm)
            expected.append(reference.ask())
            due[asked.id] = pull(asked.arm)
            continue
        number = min(due) if oldest else chance.choice(list(due))
        reward = due.pop(number)
        if chance.random() < lost:
            live.abandon(number)
            reference.abandon(number)
        else:
            live.tell(number, reward)
            reference.tell(number, reward)
    return picked, expected


def check_runs(pair: Pair, traffic: str, count_late: bool) -> None:
    assert pair.late is not None
    assert isinstance(pair.policy, IndexPolicy)
    policy = replace(pair.policy, count_late=count_late)
    for n, horizon, problem in product((1, 2, 7, 40), (1, 7, 50, 200), PROBLEMS):
        seed = seed_for(str(policy), traffic, n, horizon, problem)
        live = policy.live(n_arms=n, horizon=horizon, seed=seed)
        reference = pair.late(n, horizon, policy_key(seed, 0), count_late=count_late)
        rewards = rewards_of(problem, n, seed)
        picked, expected = play_both(live, reference, horizon, rewards, traffic, seed)
        check_same(picked, expected, f"{policy!r}, n={n}, T={horizon}, {problem}, {seed=}")


@pytest.mark.slow
@pytest.mark.parametrize("traffic", TRAFFIC)
@pytest.mark.parametrize("pair", LATE_PAIRS, ids=label)
def test_late_rewards(pair: Pair, traffic: str) -> None:
    check_runs(pair, traffic, count_late=False)


@pytest.mark.slow
@pytest.mark.parametrize("traffic", ["in order", "in order, some lost", "late"])
@pytest.mark.parametrize("pair", LATE_PAIRS, ids=label)
def test_late_pulls_count_in_the_bonus(pair: Pair, traffic: str) -> None:
    check_runs(pair, traffic, count_late=True)
