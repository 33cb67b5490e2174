"""The queues by count: their heads are the best, whatever comes when."""

from __future__ import annotations

import random
from typing import Any

import pytest

import manyarms as ma
from manyarms.core.memory import ENDLESS
from manyarms.policies.field import IMOSS, KLUCB, UCB1
from manyarms.policies.parts.count_queues import Queues, head, more, waits
from manyarms.protocol import ask, count_late, reset, tell


def heads_of(arms: Queues) -> dict[int, int]:
    """Return the head of each nonempty queue, as linked."""
    found: dict[int, int] = {}
    number = more(arms, 0)
    while number > 0:
        assert number > max(found, default=0)
        found[number] = head(arms, number)
        number = more(arms, number)
    return found


@pytest.mark.parametrize("policy", [UCB1(), KLUCB(), IMOSS(b=0.9)], ids=lambda p: p.name)
@pytest.mark.parametrize("seed", range(3))
def test_heads_are_the_best_of_their_count_though_rewards_come_in_any_order(
    policy: ma.Policy, seed: int
) -> None:
    choice = random.Random(seed)
    state: Any = policy.new_state(ENDLESS, n_arms=25, pulls=400)
    reset(state, seed, 0)
    arms: Queues = state.arms
    flying: list[int] = []
    for _ in range(400):
        slot, _ = ask(state)
        flying.append(slot)
        count_late(state, slot, 1)
        choice.shuffle(flying)
        while flying and choice.random() < 0.6:
            landed = flying.pop()
            if choice.random() < 0.9:
                tell(state, landed, float(choice.random() < landed / 30))
            count_late(state, landed, -1)
        opened = [arms.node[k] for k in range(1, arms.clock[0].opened + 1)]
        counts = {node.pulls for node in opened if node.pulls > 0}
        heads = heads_of(arms)
        assert set(heads) == counts
        for number, best in heads.items():
            alike = [node for node in opened if node.pulls == number]
            means = [node.mean for node in alike]
            assert arms.node[best].mean == max(means)
            assert arms.queue[number].tied == means.count(max(means))
        unseen = [k for k in range(1, len(opened) + 1) if arms.node[k].pulls == 0]
        fewest = min((arms.late[k].pulls for k in unseen), default=0)
        assert waits(arms) == bool(unseen)
        assert not unseen or arms.late[head(arms, 0)].pulls == fewest
