"""The guard: its schedule is that of the theory, and late rewards count as in the proof."""

from __future__ import annotations

import math
import random

import pytest

from manyarms.core.memory import SPARSE
from manyarms.policies.parts.guard import (
    guard_learn,
    guard_turn,
    plan_stage,
    reset_guard,
    stage_begins,
)
from manyarms.policies.parts.guard_slots import (
    Guard,
    count_guarded_late,
    guard,
    launch_pull,
    open_next,
    stage_words,
)
from manyarms.theory import guard_stages


def made(
    n: int = 100,
    horizon: int = 5000,
    *,
    beta: float = 0.5,
    kl: bool = True,
    sigma: float = 0.5,
    bottom: float = 0.0,
    top: float = 1.0,
) -> Guard:
    interval = {"least": 0.0, "width": 1.0, "bottom": bottom, "top": top}
    ready = guard(SPARSE, n, pulls=10**6, beta=beta, kl=kl, sigma=sigma, **interval)
    reset_guard(ready, 7, horizon)
    return ready


def turn(guard: Guard) -> int:
    stage_begins(guard)
    return guard_turn(guard)


def pulled(guard: Guard, slot: int, *rewards: float, by_rule: int = 1) -> None:
    """Pull a slot repeatedly, telling each reward."""
    while guard.clock[0].opened <= slot:
        open_next(guard)
    for reward in rewards:
        guard_learn(guard, launch_pull(guard, slot, by_rule), reward)


@pytest.mark.parametrize("n", [1, 2, 30, 10**9])
@pytest.mark.parametrize("beta", [0.5, 0.6, 0.75, 1.0])
def test_the_schedule_is_that_of_the_theory(beta: float, n: int) -> None:
    for horizon in (2, 3, 10, 1000, 50_000, 5_000_000, 2**40):
        ready, stages = made(n, horizon, beta=beta), guard_stages(horizon, beta=beta, n=n)
        clock = ready.clock[0]
        assert clock.allowance == stages.allowance
        assert clock.low == stages.floor_level
        for i in range(len(stages.arms)):
            plan_stage(ready, i)
            numbers = (clock.size, clock.need, clock.start, clock.level, clock.error)
            theirs = (stages.arms, stages.pulls, stages.starts, stages.levels, stages.errors)
            assert numbers == tuple(column[i] for column in theirs)
        plan_stage(ready, len(stages.arms))
        assert clock.start > horizon


def test_sub_gaussian_rewards_scale_bounds_and_allowance() -> None:
    # W = 6 and 2 sigma = 4, so V = 6; every error is 4 times that of rewards in [0, 1]
    plain, wide = made(), made(kl=False, sigma=2.0, bottom=-1.0, top=5.0)
    assert wide.clock[0].allowance == 6.0 * plain.clock[0].allowance
    assert wide.clock[0].error == 4.0 * plain.clock[0].error
    pulled(wide, 0, *[4.0] * 400)
    turn(wide)  # a stage was due, so the floor is 4 - 2 sqrt(2 x / 400)
    assert wide.clock[0].floor == pytest.approx(4.0 - 2.0 * math.sqrt(5.0 * math.log(5000) / 400))
    for reward, floor in ((-50.0, -1.0), (90.0, 5.0)):  # it stays in the range of means
        far = made(kl=False, sigma=2.0, bottom=-1.0, top=5.0)
        pulled(far, 0, *[reward] * 400)
        turn(far)
        assert far.clock[0].floor == floor


def test_the_rule_is_dropped_permanently_if_its_debt_is_too_large() -> None:
    ready = made(2, 50_000)
    pulled(ready, 0, *[1.0] * 300)
    turn(ready)
    clock = ready.clock[0]
    floor, allowance = clock.floor, clock.allowance
    assert 0.7 < floor < 1.0
    late = [launch_pull(ready, 0, 1) for _ in range(300)]
    wanted = math.floor(allowance / floor)
    for _ in range(wanted):
        pulled(ready, 1, 0.0)
    assert clock.dropped == 0
    assert clock.debt == pytest.approx(wanted * floor)
    pulled(ready, 1, 0.0)
    assert clock.dropped == 1
    for note in late:  # these reduce the debt, but too late
        guard_learn(ready, note, 1.0)
    assert clock.debt < allowance
    assert clock.dropped == 1
    clock.start = 1 << 62  # between stages
    assert turn(ready) == clock.keeper == 0
    assert stage_words(ready) == "the policy was dropped; the guard chooses all arms"
    before = clock.debt
    pulled(ready, 1, 0.0, by_rule=0)
    assert clock.debt == before  # the guard's own pulls do not count


def test_the_floor_at_the_time_of_the_pull_counts() -> None:
    ready = made(2, 50_000)
    early = launch_pull(ready, open_next(ready), 1)  # before the end of stage 0
    pulled(ready, 1, *[1.0] * 300)
    turn(ready)
    clock = ready.clock[0]
    first = clock.floor
    late = launch_pull(ready, 0, 1)
    clock.floor = 0.99
    clock.debt = 0.0
    guard_learn(ready, early, 0.0)
    assert clock.debt == 0.0
    guard_learn(ready, late, 0.0)
    assert clock.debt == first


def test_doubling_the_guess_restarts_the_guard() -> None:
    ready = made(3, 0)
    clock = ready.clock[0]
    assert clock.horizon == 256
    pulled(ready, 0, *[1.0] * 63)
    turn(ready)
    assert clock.horizon == 256
    late = launch_pull(ready, 0, 1)
    clock.dropped, clock.debt, period = 1, 99.0, clock.period
    assert stage_begins(ready)
    assert clock.horizon == 512
    assert (clock.dropped, clock.debt, clock.floor, clock.stage) == (0, 0.0, -math.inf, 0)
    assert clock.period == period + 1
    assert ready.slot[0].pulls == 63  # statistics stay
    guard_learn(ready, late, -100.0)
    assert clock.debt == 0.0  # a pull of the last period
    pulled(ready, 0, *[1.0] * 64)
    turn(ready)
    assert clock.horizon == 1024


def test_bounds_use_the_longest_complete_prefix() -> None:
    ready = made()
    slot = open_next(ready)
    own = ready.slot[slot]
    notes = [launch_pull(ready, slot, 1) for _ in range(5)]
    guard_learn(ready, notes[1], 1.0)
    guard_learn(ready, notes[2], 1.0)
    assert (own.pulls, own.total) == (0, 0.0)
    guard_learn(ready, notes[0], 0.0)
    assert (own.pulls, own.total) == (3, 2.0)
    guard_learn(ready, notes[4], 1.0)
    assert own.pulls == 3
    assert count_guarded_late(ready, notes[3], 0)  # abandoned, so not pending
    assert (own.pulls, own.total) == (4, 3.0)
    assert ready.clock[0].free == ready.clock[0].notes == 5


def test_random_traffic_agrees_with_a_plain_log() -> None:
    """The guard's pulls wait for the slot's rewards, and no note is lost."""
    chance = random.Random(3)
    ready = made(6, 50_000)
    clock = ready.clock[0]
    log: dict[int, list[list[float]]] = {}  # slot: [note, settled (1 told, 2 lost), reward]
    pending: dict[int, tuple[int, list[float]]] = {}  # note: slot, its entry
    newest, tests = -1, 0
    for _ in range(9000):
        if not pending or (len(pending) < 6 and chance.random() < 0.6):
            if newest in pending:
                assert not count_guarded_late(ready, newest, 1)
            slot = turn(ready)
            by_rule = int(slot < 0)
            if by_rule:
                fresh = clock.opened < 6 and chance.random() < 0.01
                slot = open_next(ready) if fresh or clock.opened == 0 else clock.opened - 1
            else:
                tests += 1
                assert all(other != slot for other, _ in pending.values())
            newest = launch_pull(ready, slot, by_rule)
            assert newest not in pending
            entry = [newest, 0, 0.0]
            log.setdefault(slot, []).append(entry)
            pending[newest] = slot, entry
        else:
            note = chance.choice(list(pending))
            slot, entry = pending.pop(note)
            late = note != newest
            if chance.random() < 0.1:
                entry[1] = 2
                assert count_guarded_late(ready, note, -int(late))
            else:
                entry[1:] = 1, float(chance.random() < 0.3)
                guard_learn(ready, note, entry[2])
                assert not (late and count_guarded_late(ready, note, -1))
            first = next((k for k, e in enumerate(log[slot]) if e[1] == 0), len(log[slot]))
            told = [e[2] for e in log[slot][:first] if e[1] == 1]
            assert (ready.slot[slot].pulls, ready.slot[slot].total) == (len(told), sum(told))
    assert tests > 30
    assert clock.made == sum(map(len, log.values()))


def test_the_rule_pulls_while_all_arms_of_a_stage_are_pending() -> None:
    ready = made(30, 50_000)
    for slot in range(3):
        pulled(ready, slot, 0.0)
    ready.clock[0].made = 49_999  # all stages are due; the first tests 3 arms
    notes = {}
    for slot in range(3):
        assert turn(ready) == slot
        notes[slot] = launch_pull(ready, slot, 0)
        count_guarded_late(ready, notes[slot], 1)
    assert turn(ready) == -1
    for slot in reversed(notes):
        guard_learn(ready, notes[slot], 0.0)
        count_guarded_late(ready, notes[slot], -1)
        assert turn(ready) == slot  # the first slot that may be pulled
