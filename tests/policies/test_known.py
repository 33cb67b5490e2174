"""Known rewards that are credited without a pull."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.core.jit import compiled, kernel
from manyarms.core.memory import SPARSE, changing
from manyarms.core.rng import draw, unit
from manyarms.policies import SubSampled, field
from manyarms.protocol import arrive, ask, credit_known, reset, retire, tell
from manyarms.protocol.pending import PendingRecord, abandon_pull, ask_pull, tell_pull
from manyarms.protocol.policy import recommend
from manyarms.protocol.state_dump import classes_in, dump_state, restore_state
from tests.policies.compare import check_same
from tests.policies.pairs import EVERY_POLICY, label
from tests.reference.changing import ChangingProspector
from tests.reference.late import LateMoss

ROOM = 1 << 40


def states_of(policy: ma.Policy) -> list[type]:
    """Return the class of the policy's state, and of those that it wraps."""
    state, classes = policy.with_reward_range((0.0, 1.0)).new_state(SPARSE, n_arms=9, pulls=99), []
    while state is not None:
        classes.append(type(state))
        state = getattr(state, "inner", None)
    return classes


LEARNING = [policy for policy in EVERY_POLICY if policy.name != "uniform"]
MORE = [
    *LEARNING,
    ma.EmpMOSSPlusPlus(rank="pulled"),
    ma.MOSSPlusPlus(index="kl", count_late=True),
    ma.Doubling(ma.MOSS()),
    ma.Doubling(ma.MOSSOracle(m=1)),
    ma.Doubling(ma.EmpMOSSPlusPlus()),
    ma.Doubling(ma.Patience(best_mean=0.9)),
    ma.Doubling(ma.Guarded(ma.MOSS())),
    ma.Guarded(ma.Doubling(ma.MOSS())),
    ma.Prospector(guess_horizon=True, count_late=False),
    SubSampled(SubSampled(ma.MOSS(), size=5), size=25),
]
CHANGING = [policy for policy in MORE if all(kind in retire.bodies for kind in states_of(policy))]


class Player:
    """A state with pending pulls, as an experiment keeps them."""

    def __init__(self, policy: ma.Policy, n: int, horizon: int, key: int) -> None:
        self.state = policy.with_reward_range((0.0, 1.0)).new_state(
            SPARSE, n_arms=n, pulls=horizon or ROOM
        )
        reset(self.state, key, horizon)
        self.pending: Any = SPARSE.records(ROOM, PendingRecord)
        self.made, self.last = 0, -1
        self.due: dict[int, int] = {}  # the pending pulls and their arms

    def ask(self) -> int:
        before = self.last if self.last in self.due else -1
        arm = ask_pull(self.state, self.pending, self.made, before)
        self.due[self.made] = arm
        self.last = self.made
        self.made += 1
        return arm

    def tell(self, number: int, reward: float) -> None:
        del self.due[number]
        tell_pull(self.state, self.pending, number, reward)

    def abandon(self, number: int) -> None:
        del self.due[number]
        abandon_pull(self.state, self.pending, number)

    def credit(self, arm: int, rewards: list[float]) -> int:
        squares = sum(reward * reward for reward in rewards)
        return credit_known(self.state, arm, len(rewards), sum(rewards), squares)


def test_every_policy_that_learns_uses_known_rewards() -> None:
    for policy in EVERY_POLICY:
        state = policy.with_reward_range((0.0, 1.0)).new_state(SPARSE, n_arms=10, pulls=100)
        assert type(state) in credit_known.bodies


@pytest.mark.parametrize("policy", MORE, ids=label)
def test_the_best_known_arm_is_pulled_from_the_beginning(policy: ma.Policy) -> None:
    n, horizon, best = 30, 400, 2
    player = Player(policy, n, 0 if policy.anytime else horizon, 3)
    chance = random.Random(1)
    means: dict[int, float] = {}
    for k in range(n):
        mean = 0.9 if k == best else 0.1
        rewards = [float(chance.random() < mean) for _ in range(200)]
        arm = player.credit(-1, rewards)
        if arm < 0:
            assert k >= 5  # the subset is full
            break
        assert arm not in means
        means[arm] = mean
    asked = []
    for _ in range(horizon):
        arm = player.ask()
        asked.append(means.get(arm, 0.1))
        player.tell(player.made - 1, float(chance.random() < asked[-1]))
    if policy.name in ("sequential-halving", "scout"):  # they pull the arms that they compare
        assert means[recommend(player.state)] == 0.9
    elif policy.name == "cbt":  # it leaves every arm that fails often
        assert asked[0] == 0.9
    else:
        assert sum(mean == 0.9 for mean in asked) > 0.45 * horizon


@pytest.mark.parametrize("policy", MORE, ids=label)
def test_credits_at_any_time_with_late_rewards_and_changing_arms(policy: ma.Policy) -> None:
    """Fresh arms are new ones, retired arms do not come back, and a saved state continues."""
    for seed in range(12):
        chance = random.Random(seed)
        n, horizon = chance.choice([(1, 40), (4, 60), (30, 200)])
        player = Player(policy, n, 0 if policy.anytime else horizon, seed)
        there, seen = set(range(n)), set[int]()
        before = chance.choice([0, 3, 40])  # credits before the first pull
        for step in range(3 * horizon):
            turn = chance.random()
            rewards = [float(chance.random() < 0.3) for _ in range(chance.choice([1, 2, 30]))]
            if step < before or turn < 0.1:
                arm = player.credit(-1, rewards)
                assert arm == -1 or arm in there
                assert arm == -1 or arm not in seen
                seen.add(arm)
            elif turn < 0.2 and seen & there:
                player.credit(chance.choice(sorted(seen & there)), rewards)
            elif turn < 0.25 and policy in CHANGING and len(there) > 1:
                arm = chance.choice(sorted(there))
                there.remove(arm)
                for number in [number for number, of in player.due.items() if of == arm]:
                    player.abandon(number)
                retire(player.state, arm)
            elif turn < 0.28 and policy in CHANGING:
                arrive(player.state, 2)
                there |= {n, n + 1}
                n += 2
            elif turn < 0.5 and player.due:
                player.tell(chance.choice(sorted(player.due)), rewards[0])
            elif player.made < horizon:
                arm = player.ask()
                assert arm in there
                seen.add(arm)
        copy = policy.with_reward_range((0.0, 1.0)).new_state(
            SPARSE, n_arms=n, pulls=ROOM if policy.anytime else horizon
        )
        restore_state(copy, dump_state(player.state))
        assert player.made > 0


@pytest.mark.parametrize("traffic", ["in turn", "late"])
@pytest.mark.parametrize("size", [None, 5])
def test_moss_agrees_with_its_reference(traffic: str, size: int | None) -> None:
    policy = ma.MOSS() if size is None else ma.MOSSOracle(size=size)
    for seed in range(40):
        chance = random.Random(seed)
        n, horizon = chance.choice([1, 5, 30]), 200
        player = Player(policy, n, horizon, seed)
        reference = LateMoss(n, horizon, seed, count_late=False, size=size)
        compare(player, reference, chance, traffic, lambda rewards: (len(rewards), sum(rewards)))


@pytest.mark.parametrize("traffic", ["in turn", "late"])
@pytest.mark.parametrize("revenue", [False, True])
def test_prospector_agrees_with_its_reference(traffic: str, revenue: bool) -> None:
    for seed in range(40):
        chance = random.Random(seed)
        n, horizon = chance.choice([1, 5, 60]), chance.choice([0, 300])
        player = Player(ma.Prospector(), n, horizon, seed)
        reference = ChangingProspector(n, horizon or None, seed)
        amount = 0.125 if revenue else 1.0
        compare(player, reference, chance, traffic, sums, amount)


def sums(rewards: list[float]) -> tuple[int, float, float]:
    return len(rewards), sum(rewards), sum(reward * reward for reward in rewards)


def compare(
    player: Player,
    reference: Any,
    chance: random.Random,
    traffic: str,
    sums: Any,
    amount: float = 1.0,
) -> None:
    """Credit, ask and tell both the same in random order."""
    seen: list[int] = []
    picked: list[int] = []
    expected: list[int] = []
    before = chance.choice([0, 3, 20])
    while len(picked) < 200:
        turn = chance.random()
        many = chance.choice([1, 2, 30])
        rewards = [amount * (chance.random() < chance.choice([0.05, 0.5])) for _ in range(many)]
        if (len(picked) < 1 and len(seen) < before) or turn < 0.04:
            arm = player.credit(-1, rewards)
            assert arm == reference.credit(-1, *sums(rewards))
            seen += [arm] if arm >= 0 else []
            before -= 1
        elif turn < 0.08 and seen:
            arm = chance.choice(seen)
            assert player.credit(arm, rewards) == arm == reference.credit(arm, *sums(rewards))
        elif player.due and (traffic == "in turn" or turn < 0.5):
            number = chance.choice(sorted(player.due))
            player.tell(number, rewards[0])
            reference.tell(number, rewards[0])
        else:
            picked.append(player.ask())
            expected.append(reference.ask())
            seen += [] if picked[-1] in seen else [picked[-1]]
    check_same(picked, expected, traffic)


def sequence(state: Any, key: int, horizon: int, arms: Any) -> None:
    """Credit, ask and tell in random order, and fill `arms`."""
    reset(state, key, horizon)
    last, fresh = -1, 0
    for time in range(len(arms)):
        last, fresh = step(state, key, time, last, fresh, arms)


def sequence_with_changes(state: Any, key: int, horizon: int, arms: Any) -> None:
    """Do the same, and retire arms."""
    reset(state, key, horizon)
    last, fresh = -1, 0
    for time in range(len(arms)):
        if last >= 0 and unit(draw(key + 1, time)) < 0.04:
            retire(state, last)
            last = -1
        last, fresh = step(state, key, time, last, fresh, arms)


@kernel
def step(state: Any, key: int, time: int, last: int, fresh: int, arms: Any) -> tuple[int, int]:
    turn, count = unit(draw(key, time)), 1 + time * time % 7
    total = float(time % 3 % (count + 1))
    if fresh < 60 and (time < 30 or turn < 0.08):
        arms[time] = credit_known(state, -1, count, total, total)
        return last, fresh + 1
    if turn < 0.12 and last >= 0:
        arms[time] = credit_known(state, last, count, total, total)
        return last, fresh
    slot, arm = ask(state)
    arms[time] = arm
    tell(state, slot, 1.0 if unit(draw(key, 1000 * arm + time)) < arm % 7 / 10 else 0.0)
    return arm, fresh


FEW = {"moss", "empmoss++", "moss++", "parallel", "prospector", "scout"}


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(policy, marks=[] if policy.name in FEW else pytest.mark.long)
        for policy in [*LEARNING, ma.Doubling(ma.MOSS()), SubSampled(field.Thompson(), size=20)]
    ],
    ids=label,
)
def test_compiled_code_credits_as_cpython_does(policy: ma.Policy) -> None:
    n, steps = 200, 900
    played = sequence_with_changes if policy in CHANGING else sequence
    for horizon in (steps, 8 * steps):
        arms, expected = np.zeros(steps, np.int64), [0] * steps
        state = policy.with_reward_range((0.0, 1.0)).new_state(
            changing(200), n_arms=n, pulls=8 * steps
        )
        compiled(played, *classes_in(state))(state, 7, horizon, arms)
        interpreted = policy.with_reward_range((0.0, 1.0)).new_state(
            SPARSE, n_arms=n, pulls=8 * steps
        )
        played(interpreted, 7, horizon, expected)
        check_same(arms.tolist(), expected, f"{policy}, {horizon=}")
