"""Arms that are added and retired: which arms are asked for, counts, and the policies' sets."""

from __future__ import annotations

import importlib
import math
import random
from typing import Any

import pytest

import manyarms as ma
from manyarms.policies.emp_moss_plus_plus import EmpMossPlusPlusState
from manyarms.policies.guarded import GuardedState
from manyarms.policies.parallel import run_of
from manyarms.policies.parts.moss_run import GONE, MossRun, moss_index
from tests.helpers import ALL_POLICIES, label, play_live, state_of

MORE_POLICIES = [
    *ALL_POLICIES,
    ma.Doubling(ma.MOSS()),
    ma.Doubling(ma.MOSSOracle(alpha=0.3)),
    ma.Doubling(ma.EmpMOSSPlusPlus(rank="pulled")),
    ma.EmpMOSSPlusPlus(count_late=True),
    ma.MOSSPlusPlus(beta=0.75, index="kl", count_late=True),
    ma.Patience(best_mean=1.0, bound="kl"),
    ma.Doubling(ma.Patience(best_mean=0.9)),
    ma.Prospector(guess_horizon=True, count_late=False),
    ma.Guarded(ma.EmpMOSSPlusPlus()),
    ma.Guarded(ma.Doubling(ma.Patience(best_mean=0.9))),
    ma.Doubling(ma.Guarded(ma.MOSS())),
]


def _runs(state: Any) -> list[MossRun]:
    """Return the slots of each MOSS run in a state; Patience and Prospector have none."""
    if isinstance(state, GuardedState):
        return []  # arms have other numbers inside
    state = getattr(state, "inner", state)
    if hasattr(state, "subroutine"):
        return [run_of(state, i) for i in range(state.clock[0].subroutines)]
    return [state.moss] if hasattr(state, "moss") else []


def _check(live: ma.Live, alive: set[int]) -> None:
    """Check the invariants of a handle's state."""
    state = getattr(state_of(live), "inner", state_of(live))
    assert live.n_arms == len(alive)
    progress = live.progress()
    assert progress.told == sum(arm.told for arm in live.arms())
    for slots in _runs(state_of(live)):
        run = slots.run[slots.rank.number]
        if run.horizon == 0 or (hasattr(state, "mixtures") and state.clock[0].retired == 1):
            continue  # not begun, or the set shrinks with the next pull
        every = range(slots.rank.base, slots.rank.base + run.opened)
        members = [slots.slot[k].arm for k in every]
        real = [member for member in members if member >= 0]
        assert members.count(GONE) == run.gone
        assert len(real) == len(set(real))
        assert set(real) <= alive
        assert run.scale == run.horizon / run.members
        in_the_set = [k for k in every if slots.slot[k].arm != GONE]
        if isinstance(state, EmpMossPlusPlusState):
            if state.clock[0].iteration == 0:
                continue
            in_the_set = [state.chosen.slot[k] for k in range(state.chosen.size[0])]
        assert run.members == len(in_the_set) + run.fresh + run.waiting >= 1
        for k in in_the_set:
            is_due = k - slots.rank.base < run.due  # computed when no fresh member is left
            if slots.slot[k].pulls > 0 and not slots.rule.late_counts and not is_due:
                assert slots.rank.entrant[k].key == moss_index(slots, k, 0)


def _play_random_changes(policy: ma.Policy, seed: int, n: int, horizon: int, change: float) -> None:
    """Play with rewards in any order or never, while arms are added and retired."""
    dice = random.Random(seed)
    live = policy.live(n_arms=n, horizon=horizon, seed=seed)
    alive = set(range(n))
    pending: list[ma.Pull] = []
    for _ in range(3 * horizon):
        event = dice.random()
        if event < change and len(alive) > 1:
            often = dice.choice([1, 1, 1, 3, len(alive) - 1])  # sometimes all but one
            for _ in range(min(often, len(alive) - 1)):
                known = [arm.arm for arm in live.arms() if not arm.retired]
                arm = dice.choice(known if known and dice.random() < 0.7 else sorted(alive))
                live.retire(arm)
                alive.remove(arm)
        elif event < 1.5 * change:
            alive.update(live.add_arms(dice.randint(1, 4)))
        elif event < 0.35 and pending:
            live.abandon(pending.pop(dice.randrange(len(pending))))
        elif event < 0.65 and pending:
            live.tell(pending.pop(dice.randrange(len(pending))), float(dice.random() < 0.5))
        elif live.pulls < horizon:
            for pull in live.ask(min(dice.choice([1, 1, 1, 7]), horizon - live.pulls)):
                assert pull.arm in alive
                pending.append(pull)
        _check(live, alive)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("policy", MORE_POLICIES, ids=label)
def test_a_retired_arm_is_never_asked_again(policy: ma.Policy) -> None:
    cases = [(1, 20, 0.1), (2, 30, 0.1), (5, 64, 0.1), (20, 150, 0.2), (30, 200, 0.04)]
    for seed in range(2):
        for n, horizon, change in cases:
            _play_random_changes(policy, seed, n, horizon, change)


@pytest.mark.parametrize("policy", MORE_POLICIES, ids=label)
def test_arms_change_before_the_first_pull_and_between_stages(policy: ma.Policy) -> None:
    for moment in range(0, 40, 3):
        live = policy.live(n_arms=3, horizon=100, seed=moment)
        play_live(live, moment, lambda arm, k: float(arm == 2))
        live.add_arms(2)
        for arm in range(3):
            live.retire(arm)
        assert set(play_live(live, 100 - moment, lambda arm, k: 0.5)) <= {3, 4}


@pytest.mark.parametrize("policy", MORE_POLICIES, ids=label)
def test_the_last_arm_is_pulled_until_the_end(policy: ma.Policy) -> None:
    live = policy.live(n_arms=40, horizon=200, seed=3)
    play_live(live, 60, lambda arm, k: arm / 40)
    for arm in range(40):
        if arm != 7:
            live.retire(arm)
    assert set(play_live(live, 140, lambda arm, k: 0.5)) == {7}
    with pytest.raises(ma.TurnError, match=r"Cannot retire arm 7: it is the last one. Add others"):
        live.retire(7)


# policies that must find an added arm, and the number of arms before
SEEKERS = [
    (ma.MOSS(), 4),
    (ma.MOSSOracle(alpha=0.9), 4),
    (ma.MOSSOracle(size=9), 4),
    (ma.Quantile(exponent=1.0), 4),
    (ma.MOSSPlusPlus(), 4),
    (ma.EmpMOSSPlusPlus(), 4),
    (ma.Parallel(best_mean=0.9), 4),
    (ma.Doubling(ma.MOSSPlusPlus()), 4),
    (ma.Doubling(ma.Parallel(best_mean=0.9)), 4),
]


@pytest.mark.parametrize(("policy", "n"), SEEKERS, ids=lambda value: getattr(value, "label", value))
def test_every_arm_in_play_is_pulled(policy: ma.Policy, n: int) -> None:
    live = policy.live(n_arms=n, horizon=3000, seed=1)
    play_live(live, 500, lambda arm, k: 0.1)
    assert {arm.arm for arm in live.arms()} == set(range(n))
    assert live.add_arms(3) == range(4, 7)
    live.retire(0)
    after = play_live(live, 2500, lambda arm, k: 0.1 if arm < 5 else 0.2)
    assert set(after) == {1, 2, 3, 4, 5, 6}


@pytest.mark.parametrize("policy", [ma.MOSSPlusPlus(), ma.EmpMOSSPlusPlus()], ids=label)
def test_added_arms_join_in_the_next_iteration(policy: ma.Policy) -> None:
    # T = 1024: iteration 1 has 2^6 pulls, iteration 2 has 2^7
    live = policy.live(n_arms=4, horizon=1024, seed=1)
    play_live(live, 10, lambda arm, k: 0.0)
    live.add_arms(3)
    assert max(play_live(live, 64 - 10, lambda arm, k: 0.0)) < 4
    assert {4, 5, 6} <= set(play_live(live, 128, lambda arm, k: 0.0))


def test_the_index_uses_the_present_number_of_arms() -> None:
    live = ma.MOSS().live(n_arms=10, horizon=500, seed=1)
    run = state_of(live).moss.run[0]
    play_live(live, 30, lambda arm, k: arm / 10)
    assert (run.members, run.scale) == (10, 50.0)
    live.add_arms(10)
    live.ask()
    assert (run.members, run.scale) == (20, 25.0)
    for arm in range(15):
        live.retire(arm)
    live.ask()
    assert (run.members, run.scale) == (5, 100.0)
    _check(live, set(range(15, 20)))


def test_rewards_of_a_retired_arm_count_only_in_estimates() -> None:
    live, other = (ma.MOSS().live(n_arms=3, horizon=100, seed=2) for _ in range(2))
    for handle in (live, other):
        pulls = handle.ask(6)
        handle.retire(pulls[0].arm)
    late = [pull for pull in pulls if pull.arm == pulls[0].arm]
    assert len(late) == 2
    live.tell_many((pull, 1.0) for pull in late)
    for pull in late:
        other.abandon(pull)
    seen = {arm.arm: arm for arm in live.arms()}[late[0].arm]
    assert (seen.told, seen.estimate, seen.retired) == (2, 1.0, True)
    for handle in (live, other):
        for pull in pulls:
            if pull not in late:
                handle.tell(pull, 0.5)
    assert play_live(live, 50, lambda arm, k: 0.5) == play_live(other, 50, lambda arm, k: 0.5)


def test_all_arms_of_a_mixture_may_retire() -> None:
    for policy in (ma.MOSSPlusPlus(), ma.EmpMOSSPlusPlus(), ma.EmpMOSSPlusPlus(rank="pulled")):
        for moment in (63, 64, 65, 100, 190, 192, 193):
            live = policy.live(n_arms=500, horizon=1024, seed=moment)
            gone = set(play_live(live, moment, lambda arm, k: float(arm % 2)))
            for arm in gone:
                live.retire(arm)
            assert not gone & set(play_live(live, 1024 - moment, lambda arm, k: 0.5))


def _is_likely(count: int, trials: int, chance: float) -> bool:
    """Test a binomial count (z-test, false alarm about 1e-9)."""
    return abs(count - trials * chance) < 6.2 * math.sqrt(trials * chance * (1.0 - chance))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "n", "before", "between"),
    [
        (ma.MOSS(), 8, 4, 0),
        (ma.MOSSOracle(size=8), 8, 4, 0),
        (ma.Parallel(best_mean=0.9), 8, 4, 0),
        (ma.Quantile(exponent=1.0), 8, 6, 0),  # round 2 has opened 4 arms, round 3 begins
        (ma.MOSSPlusPlus(), 8, 64, 0),  # iteration 2 begins, and draws from all arms
        (ma.EmpMOSSPlusPlus(), 200, 4, 60),  # all means are 0; iteration 2 begins
    ],
    ids=lambda value: getattr(value, "label", value),
)
def test_added_arms_are_drawn_as_often_as_others(
    policy: ma.Policy, n: int, before: int, between: int
) -> None:
    """After `n` arms were added to `n`, half of the first draws are added arms."""
    trials = new = 0
    for seed in range(600):
        live = policy.live(n_arms=n, horizon=1024, seed=seed)
        play_live(live, before, lambda arm, k: 0.0)
        live.add_arms(n)
        play_live(live, between, lambda arm, k: 0.0)
        touched = {arm.arm for arm in live.arms()}
        if isinstance(policy, ma.MOSSPlusPlus):
            touched = set()
        arm = live.ask().arm
        if arm not in touched:  # otherwise empMOSS++'s mixture-arm was first
            trials += 1
            new += int(arm >= n)
    assert trials > 500
    assert _is_likely(new, trials, n / (2 * n - len(touched)))


def test_all_fresh_arms_are_equally_likely() -> None:
    """Two of 4 arms are drawn, and 4 are added."""
    counts = [0] * 8
    for seed in range(3000):
        live = ma.MOSS().live(n_arms=4, horizon=100, seed=seed)
        live.ask(2)
        live.add_arms(4)
        counts[live.ask().arm] += 1
    for count in counts[:4]:  # these were asked for half of the time
        assert _is_likely(count, 3000, 1 / 6 * 1 / 2)
    assert all(_is_likely(count, 3000, 1 / 6) for count in counts[4:])


def test_a_policy_without_changing_arms_refuses_them() -> None:
    own = importlib.import_module("own_policy").OwnUCB()
    for policy in (own, ma.Doubling(own)):
        live = policy.live(n_arms=5, horizon=20)
        live.ask()
        with pytest.raises(ma.ParameterError, match="OwnUCBState has no `arrive`. Write one"):
            live.add_arms(2)
        with pytest.raises(ma.ParameterError, match="OwnUCBState has no `retire`. Write one"):
            live.retire(1)
        assert live.n_arms == live._experiment.ledger.n_all == 5
