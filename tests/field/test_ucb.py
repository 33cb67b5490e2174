"""UCB1, UCB, KL-UCB, IMOSS and the queues by count beneath them."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

import manyarms as ma
from manyarms.core.memory import ENDLESS
from manyarms.errors import ParameterError
from manyarms.policies.field.imoss import IMOSS
from manyarms.policies.field.kl_ucb import KLUCB
from manyarms.policies.field.ucb import UCB
from manyarms.policies.field.ucb1 import UCB1
from manyarms.policies.parts.count_queues import ByCount, head, more
from manyarms.protocol.policy import ask, defer, reset, tell
from tests.reference.field_ucb import Imoss, KlUcb, Ucb, Ucb1
from tests.reference.moss import Player
from tests.reference.words import policy_key
from tests.reference.world import bernoulli, gaussian
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

PAIRS: dict[str, tuple[ma.Policy, Player]] = {
    "ucb1": (UCB1(), Ucb1()),
    "ucb1-shy": (UCB1(exploration=0.1), Ucb1(0.1)),
    "ucb": (UCB(), Ucb()),
    "ucb-wide": (UCB(sigma=1.0), Ucb(1.0)),
    "imoss": (IMOSS(), Imoss()),
    "imoss-0.8": (IMOSS(a=0.5, b=0.8), Imoss(0.5, 0.8)),
    "imoss-1": (IMOSS(a=0.0, b=1.0), Imoss(0.0, 1.0)),
    "kl-ucb": (KLUCB(), KlUcb()),
    "kl-ucb-3": (KLUCB(c=3.0), KlUcb(3.0)),
}
POLICIES = [policy for policy, _ in PAIRS.values()]


@pytest.mark.parametrize("n", [1, 2, 3, 17, 60])
@pytest.mark.parametrize("name", PAIRS)
def test_live_games(name: str, n: int) -> None:
    policy, player = PAIRS[name]
    for horizon in (1, 2, 3, 7, 50, 257):
        for world in worlds_for(horizon, name, n, of=WORLDS, most=4):
            seed = seed_for(name, n, horizon, world)
            rewards = rewards_of(world, n, seed)
            check_same(
                live_arms(policy, n, horizon, horizon, seed, rewards),
                reference_arms(player, n, horizon, horizon, policy_key(seed, 0), rewards),
                f"{policy!r}, n={n}, T={horizon}, seed={seed}, {world}",
            )


@pytest.mark.parametrize("name", PAIRS)
def test_simulations(name: str) -> None:
    policy, player = PAIRS[name]
    for n, horizon, world in [
        (1, 9, "equal"),
        (7, 600, "spread"),
        (40, 400, "ones"),
        (300, 20, "rare"),
    ]:
        seed = seed_for(name, n, horizon, world, "simulated")
        means = MEANS[world](n)
        runs = simulated_arms(policy, ma.instances.from_means(means), horizon, 2, seed)
        for r, arms in enumerate(runs):
            tape = bernoulli(means, seed, r)
            expected = reference_arms(player, n, horizon, horizon, policy_key(seed, r), tape)
            check_same(arms, expected, f"{policy!r}, n={n}, T={horizon}, {world}, replication {r}")


@pytest.mark.parametrize("name", PAIRS)
def test_gaussian_rewards(name: str) -> None:
    policy, player = PAIRS[name]
    n, horizon, seed = 20, 150, seed_for(name, "gaussian")
    means = [mean - 0.5 for mean in MEANS["spread"](n)]
    instance = ma.instances.from_means(means, rewards=ma.instances.Gaussian(0.7))
    for r, arms in enumerate(simulated_arms(policy, instance, horizon, 2, seed)):
        tape = gaussian(means, 0.7, seed, r)
        expected = reference_arms(player, n, horizon, horizon, policy_key(seed, r), tape)
        check_same(arms, expected, f"{policy!r}, seed={seed}, replication {r}")


@pytest.mark.parametrize("name", PAIRS)
def test_many_arms_and_no_horizon(name: str) -> None:
    policy, player = PAIRS[name]
    n, seed = 5000, seed_for(name, "many")
    rewards = bernoulli(MEANS["spread"](n), seed, 0)
    check_same(
        live_arms(policy, n, None, 120, seed, rewards),
        reference_arms(player, n, None, 120, policy_key(seed, 0), rewards),
        f"{policy!r}",
    )


def queues(arms: ByCount) -> dict[int, int]:
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
    arms: ByCount = state.arms
    flying: list[int] = []
    for _ in range(400):
        slot, _ = ask(state)
        flying.append(slot)
        defer(state, slot, 1)
        choice.shuffle(flying)
        while flying and choice.random() < 0.6:
            landed = flying.pop()
            if choice.random() < 0.9:
                tell(state, landed, float(choice.random() < landed / 30))
            defer(state, landed, -1)
        opened = [arms.node[k] for k in range(1, arms.clock[0].opened + 1)]
        counts = {node.pulls for node in opened if node.pulls > 0}
        heads = queues(arms)
        assert set(heads) == counts
        for number, best in heads.items():
            alike = [node for node in opened if node.pulls == number]
            first = max(alike, key=lambda node: (node.mean, node.tie))
            assert first is arms.node[best]
        unseen = [k for k in range(1, len(opened) + 1) if arms.node[k].pulls == 0]
        fewest = min((arms.late[k].pulls for k in unseen), default=0)
        assert (head(arms, 0) > 0) == bool(unseen)
        assert not unseen or arms.late[head(arms, 0)].pulls == fewest


@pytest.mark.parametrize("policy", [UCB1(), UCB(), KLUCB()], ids=lambda p: p.name)
def test_a_batch_goes_through_all_arms_before_any_is_repeated(policy: ma.Policy) -> None:
    live = policy.live(n_arms=10, seed=3)
    first = live.ask(10)
    assert {pull.arm for pull in first} == set(range(10))
    again = live.ask(10)
    assert {pull.arm for pull in again} == set(range(10))
    for pull in reversed(first + again):
        live.tell(pull, 1.0 if pull.arm == 4 else 0.0)
    assert [live.ask().arm for _ in range(3)] == [4, 4, 4]


def test_an_abandoned_first_pull_is_made_up_for() -> None:
    live = UCB1().live(n_arms=3, seed=1)
    lost, *others = live.ask(3)
    for pull in others:
        live.tell(pull, 1.0)
    live.abandon(lost)
    assert live.ask().arm == lost.arm


def test_the_index_is_that_of_the_source() -> None:
    # after one pull each, t = 2: the bonus is the same, so the better mean wins; after that
    # 1/2 + sqrt(2 log 3 / 2) = 1.548 against 0 + sqrt(2 log 3) = 1.482
    live = UCB1().live(n_arms=2, seed=0)
    good = live.ask()
    live.tell(good, 1.0)
    live.tell(live.ask(), 0.0)
    third = live.ask()
    assert third.arm == good.arm
    live.tell(third, 0.0)
    assert math.sqrt(math.log(3)) + 0.5 > math.sqrt(2 * math.log(3))
    assert live.ask().arm == good.arm


def test_imoss_opens_about_t_to_the_b_arms() -> None:
    for b, arms in ((0.5, 30), (0.25, 6), (1.0, 900)):
        result = ma.simulate(
            IMOSS(b=b), ma.instances.planted(n=10**6, m=10), horizon=900, replications=1, workers=1
        )
        assert result.distinct_arms[0, 0] == arms


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UCB1(exploration=0.0), "`exploration` must be a number > 0"),
        (lambda: UCB(sigma=-1.0), "`sigma` must be a number > 0"),
        (lambda: KLUCB(c=-0.1), "`c` must be a number >= 0"),
        (lambda: IMOSS(a=-1.0), "`a` must be a number > -1"),
        (lambda: IMOSS(b=0.0), "`b` must be a number > 0 and <= 1, got 0"),
        (lambda: IMOSS(b=1.5), "`b` must be a number > 0 and <= 1, got 1.5"),
    ],
)
def test_parameters(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.label)
def test_pulls_go_on_though_nobody_says_that_rewards_are_late(policy: ma.Policy) -> None:
    state: Any = policy.new_state(ENDLESS, n_arms=2, pulls=20)
    reset(state, 1, 0)
    slots = [ask(state)[0] for _ in range(5)]
    tell(state, slots[0], 1.0)
    slots += [ask(state)[0] for _ in range(5)]
    assert set(slots) <= {1, 2}
    assert slots[-1] == slots[0]
