"""Prospector's trials of added arms, compared with a slow reference and by hand."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.core.hash_map import find
from manyarms.core.jit import compiled
from manyarms.core.memory import SPARSE, changing
from manyarms.core.rng import draw, unit
from manyarms.policies.parts.guard_slots import (
    Guard,
    first_newcomer,
    has_fresh,
    open_newcomer,
    open_next,
)
from manyarms.policies.parts.target import ProspectState
from manyarms.protocol.policy import arrive, ask, reset, retire, tell
from manyarms.protocol.state_dump import classes_in
from tests.live.stores import copied, leave
from tests.policies.compare import check_same
from tests.reference.changing import ChangingProspector
from tests.reference.words import policy_key

# name: the probabilities, at every step, of asking while rewards are pending, of abandoning instead
# of telling, of adding arms, and of retiring an arm
TRAFFIC = {
    "in turn": (0.0, 0.0, 0.01, 0.005),
    "late": (0.5, 0.1, 0.02, 0.01),
    "flood": (0.9, 0.05, 0.02, 0.02),
    "busy": (0.3, 0.05, 0.1, 0.1),
    "only retired": (0.2, 0.0, 0.0, 0.03),
}


def mean_of(arm: int, seed: int, best: float) -> float:
    return best * random.Random(1000 * arm + seed).random() ** 2


def play_both(
    n: int,
    horizon: int | None,
    seed: int,
    *,
    trials: float,
    traffic: str,
    pulls: int,
    best: float,
    revenue: bool,
) -> tuple[list[int], list[int], ChangingProspector]:
    """Make the same random calls on the package and the reference; return the arms of each."""
    on, lost, come, go = TRAFFIC[traffic]
    chance = random.Random(seed)
    live = ma.Prospector(trials=trials).live(n_arms=n, horizon=horizon, seed=seed)
    reference = ChangingProspector(n, horizon, policy_key(seed, 0), trials=trials)
    there, due = list(range(n)), dict[int, int]()  # the arms in play; pending pulls and their arms
    came, gone = 0, list[int]()  # since the last pull
    left: list[int] = []  # the pending pulls of the arms that went
    picked: list[int] = []
    expected: list[int] = []
    while len(picked) < pulls:
        if chance.random() < come:
            count = chance.choice([1, 2, 5, 40])
            there += range(n, n + count)
            n += count
            live.add_arms(count)
            came += count
        if chance.random() < go and len(there) > 1:
            recent = [arm for arm in picked[-20:] if arm in there]
            arm = chance.choice(recent if recent and chance.random() < 0.7 else there)
            there.remove(arm)
            for number in [number for number, of in due.items() if of == arm]:
                left.append(number)
                del due[number]
            live.retire(arm)
            gone.append(arm)
        if not due or chance.random() < on:
            if came:
                reference.arrive(came)
            for number in sorted(left):
                reference.abandon(number)
            for arm in gone:
                reference.retire(arm)
            came, gone, left = 0, [], []
            asked = live.ask()
            picked.append(asked.arm)
            expected.append(reference.ask())
            due[asked.id] = asked.arm
            continue
        number = chance.choice(list(due))
        arm = due.pop(number)
        if chance.random() < lost:
            live.abandon(number)
            reference.abandon(number)
        else:
            reward = float(chance.random() < mean_of(arm, seed, best))
            reward *= chance.choice([0.0625, 0.125, 0.125, 0.5]) if revenue else 1.0
            live.tell(number, reward)
            reference.tell(number, reward)
    return picked, expected, reference


@pytest.mark.slow
@pytest.mark.parametrize("traffic", TRAFFIC)
def test_the_reference_picks_the_same_arms(traffic: str) -> None:
    tried = 0
    for k, (n, horizon, trials, best) in enumerate(
        itertools.product((1, 5, 60), (None, 300), (0.02, 0.3), (0.1, 1.0))
    ):
        revenue = k % 3 == 1  # in some cases of every kind
        options: dict[str, Any] = {"trials": trials, "best": best, "revenue": revenue}
        picked, expected, reference = play_both(
            n, horizon, k, traffic=traffic, pulls=300, **options
        )
        check_same(picked, expected, f"{traffic}, {n=}, {horizon=}, {options}, seed={k}")
        tried += sum(pull.who == "trial" for pull in reference.made)
    assert tried > 100


def new_state(n: int, seed: int = 1, *, trials: float = 0.02) -> ProspectState:
    policy = ma.Prospector(trials=trials).with_reward_range((0.0, 1.0))
    state: ProspectState = policy.new_state(SPARSE, n_arms=n, pulls=1 << 40)
    reset(state, seed, 0)
    return state


def waiting_in(guard: Guard) -> set[int]:
    """Return the newcomers that may get a trial, opened and retired ones included."""
    order, first = guard.newcomers, first_newcomer(guard)
    numbers = set[int]()
    for place in range(order.drawn[0], order.n[0]):
        at = find(order.moved, place)
        numbers.add(first + (order.moved.cells[at + 1] if order.moved.cells[at] else place))
    return numbers


@pytest.mark.slow
def test_every_arm_is_drawn_once_by_guard_rule_or_trials() -> None:
    for seed in range(100):
        chance = random.Random(seed)
        n = chance.randrange(1, 12)
        state = new_state(n, seed)
        guard = state.guard
        there, opened, waiting = set(range(n)), set[int](), set[int]()
        for _ in range(80):
            turn = chance.random()
            if turn < 0.15:
                new = set(range(n, n + chance.choice([1, 2, 5, 30])))
                before, room = waiting_in(guard), 16 - len(new)  # T^beta is 16
                n, there = n + len(new), there | new
                arrive(state, len(new))
                waiting = waiting_in(guard)
                assert new <= waiting <= before | new
                assert len(waiting - new) == min(len(before), max(0, room))
            elif turn < 0.3 and len(there) > 1:
                arm = chance.choice(sorted(there))
                there.discard(arm)
                retire(state, arm)
            else:
                may = (waiting if turn < 0.65 else there) & there - opened
                slot = -1
                if turn < 0.65:
                    slot = open_newcomer(guard)
                    waiting = waiting_in(guard) | {guard.slot[slot].arm} if slot >= 0 else set()
                elif has_fresh(guard):
                    slot = open_next(guard)
                assert (slot >= 0) == bool(may)
                if slot >= 0:
                    assert guard.slot[slot].arm in may
                    opened.add(guard.slot[slot].arm)
            assert has_fresh(guard) == bool(there - opened)


def test_the_newest_group_is_tried_first() -> None:
    """Earlier ones that are left come next; each arm of a group may be its first."""
    firsts = Counter[int]()
    for seed in range(60):
        state = new_state(10, seed)
        arrive(state, 6)
        early = [open_newcomer(state.guard) for _ in range(2)]
        arrive(state, 4)
        slots = early + [open_newcomer(state.guard) for _ in range(8)]
        arms = [state.guard.slot[slot].arm for slot in slots]
        assert sorted(arms[2:6]) == [16, 17, 18, 19]
        assert sorted(arms) == list(range(10, 20))
        assert open_newcomer(state.guard) == -1
        firsts[arms[2]] += 1
    assert len(firsts) == 4


@pytest.mark.slow
def test_draws_of_old_and_added_arms_are_uniform() -> None:
    """Chi-square on 240 outcomes: an old arm, an added arm, any, any. False alarm 1e-6."""
    runs, counts = 12_000, Counter[tuple[int, ...]]()
    for seed in range(runs):
        state = new_state(4, 31 * seed + 5)
        slots = [open_next(state.guard)]
        arrive(state, 3)
        slots += [open_newcomer(state.guard), open_next(state.guard), open_next(state.guard)]
        counts[tuple(state.guard.slot[slot].arm for slot in slots)] += 1
    assert len(counts) == 4 * 3 * 5 * 4
    expected = runs / 240
    statistic = sum((count - expected) ** 2 / expected for count in counts.values())
    degrees, z = 239, NormalDist().inv_cdf(1 - 1e-6)
    bound = degrees * (1 - 2 / (9 * degrees) + z * math.sqrt(2 / (9 * degrees))) ** 3
    assert statistic < bound


def play(
    state: ProspectState, pulls: int, best: int, *, amount: float = 1.0, every: int = 5
) -> list[tuple[int, bool]]:
    """Return the arms, and whether a pull was a trial.

    Only `best` earns, at its pulls number `every`, 2 `every`, and so on.
    """
    made, count = [], 0
    for _ in range(pulls):
        note, arm = ask(state)
        made.append((arm, state.guard.pending[note].by_rule == 2))
        count += arm == best
        tell(state, note, amount if arm == best and count % every == 0 else 0.0)
    return made


def settled(trials: float = 0.02, *, amount: float = 1.0) -> tuple[ProspectState, int]:
    """Return a state with 1000 arms that has settled on one arm."""
    state = new_state(1000, trials=trials)
    note, best = ask(state)
    tell(state, note, amount)
    play(state, 3000, best, amount=amount)
    assert {arm for arm, _ in play(state, 500, best, amount=amount)} == {best}
    return state, best


@pytest.mark.parametrize("trials", [0.0, 0.02, 0.1, 0.5])
def test_trials_are_at_most_the_stated_share(trials: float) -> None:
    state, best = settled(trials)
    before = state.guard.clock[0].made
    arrive(state, 400)
    tries = 0
    for k, (_, trial) in enumerate(play(state, 4000, best)):
        tries += trial
        assert tries <= trials * (before + k)
    assert tries >= 0.9 * trials * 4000


@pytest.mark.parametrize("amount", [1.0, 0.125])
def test_every_added_arm_is_tried_before_one_is_tried_again(amount: float) -> None:
    state, best = settled(amount=amount)
    arrive(state, 30)
    tried = [arm for arm, trial in play(state, 4000, best, amount=amount) if trial]
    assert sorted(tried[:30]) == list(range(1000, 1030))
    assert sorted(tried[30:60]) == list(range(1000, 1030))
    # an arm that never earns has cost as much as one order after five pulls
    assert max(Counter(tried).values()) == 5


def test_the_only_known_arm_is_retired() -> None:
    for late in (False, True):
        live = ma.Prospector().live(n_arms=50, seed=3)
        first = live.ask()
        live.tell(first, 1.0)
        pending = live.ask(20) if late else []
        live.retire(first.arm)
        others = live.ask(5) if late else []
        for pull in [*pending, *others]:
            if pull.arm != first.arm:
                live.tell(pull, 0.0)
        for _ in range(300):
            pull = live.ask()
            assert pull.arm != first.arm
            live.tell(pull, float(pull.arm % 7 == 0))
        assert live.recommend().arm % 7 == 0


def sequence(state: Any, key: int, arms: Any, changes: Any) -> None:
    """Fill `arms` with pulls; arms are added and retired at every 100th."""
    reset(state, key, 0)
    for time in range(len(arms)):
        if time % 100 == 99:
            arrive(state, changes[time // 100])
            retire(state, arms[time - 1])
        note, arm = ask(state)
        arms[time] = arm
        tell(state, note, 1.0 if unit(draw(key, 1000 * arm + time)) < arm % 40 / 100 else 0.0)


@pytest.mark.long
@pytest.mark.compiled
@pytest.mark.slow
def test_compiled_trials_pick_the_same_arms() -> None:
    policy = ma.Prospector(trials=0.1).with_reward_range((0.0, 1.0))
    changes = [3, 40, 1, 200, 2] * 6
    interpreted = policy.new_state(SPARSE, n_arms=300, pulls=1 << 40)
    expected = [0] * 3000
    sequence(interpreted, 7, expected, changes)
    memory = changing(sum(changes))
    state = policy.new_state(memory, n_arms=300 + sum(changes), pulls=3000)
    state.guard.sampler.n[0] = 300
    arms = np.zeros(3000, np.int64)
    compiled(sequence, *classes_in(state))(state, 7, arms, np.array(changes))
    check_same(arms.tolist(), expected, "compiled")
    assert interpreted.clock[0].paid > 0.0


@pytest.mark.parametrize("recorded", [False, True])
def test_a_catalogue_that_changes_every_day(recorded: bool, tmp_path: Path) -> None:
    """Handles: batches of asks, late and abandoned rewards, saving, and restored arms."""
    names = [f"old {k}" for k in range(300)]
    path = tmp_path / "shop.db" if recorded else None
    live = ma.Prospector().live(arms=names, seed=4, store=path)
    chance = random.Random(1)
    rate = dict.fromkeys(names, 0.1)
    for day in range(4):
        if day:
            new = [f"day {day}, {k}" for k in range(20)]
            rate |= dict.fromkeys(new, 0.05) | {new[7]: day / 3}
            names = names[10:] + new
            done = live.sync_arms([*names, "old 3"] if day > 1 else names)
            assert list(done.added) == new
            assert list(done.restored) == (["old 3"] if day == 2 else [])
        for _ in range(60):
            for pull in chance.sample(live.ask(25), 25):
                if chance.random() < 0.02:
                    live.abandon(pull)
                else:
                    live.tell(pull, float(chance.random() < rate[pull.arm]))
        if day:
            asked = {row.arm for row in live.top(10_000)}
            assert set(new) <= asked
    assert live.recommend().arm == "day 3, 7"
    live.retire("day 3, 7")
    assert "day 3, 7" not in {pull.arm for pull in live.ask(100)}
    if path is None:
        again = copied(live)
        assert [pull.arm for pull in again.ask(99)] == [pull.arm for pull in live.ask(99)]
    else:
        known = live.recommend()
        leave(live)  # without a snapshot, so events are replayed and every choice is compared
        with ma.load(path) as again:
            assert again.recommend() == known


def test_rewards_of_a_retired_arm_do_not_extend_the_search() -> None:
    state, best = settled()
    second = state.guard.slot[1].arm
    play(state, 5000, best)
    opened = state.guard.clock[0].opened
    retire(state, best)
    play(state, 2000, second, every=10)
    looks = 0.02 * state.guard.clock[0].made
    assert state.guard.clock[0].opened - opened <= looks + 400  # the guard may test some
