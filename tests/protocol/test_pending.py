"""The rules for late rewards, as described in docs/late_rewards.md."""

from __future__ import annotations

import pytest

import manyarms as ma
from manyarms.live.handle import Live
from tests.helpers import ALL_POLICIES, label

HORIZON = 1000


def tell_in_turn(live: Live, pulls: int, reward: float = 0.0) -> None:
    for _ in range(pulls):
        live.tell(live.ask(), reward)


def next_arms(live: Live, pulls: int) -> list[int]:
    """Ask without telling rewards; return the arms."""
    return [pull.arm for pull in live.ask(pulls)]


@pytest.mark.parametrize(
    "policy", [p for p in ALL_POLICIES if not isinstance(p, ma.Patience)], ids=label
)  # Patience pulls one arm at a time
def test_a_batch_asks_for_different_fresh_arms(policy: ma.Policy) -> None:
    live = policy.live(n_arms=1000, horizon=HORIZON, seed=1)
    expected = policy.live(n_arms=1000, horizon=HORIZON, seed=1)
    batch = live.ask(2)
    assert batch[0].arm != batch[1].arm
    tell_in_turn(expected, 1)
    assert batch[1].arm == expected.ask().arm  # fresh arms come in the same order as with rewards


def test_counting_late_pulls_spreads_a_batch() -> None:
    live = ma.MOSS(count_late=True).live(n_arms=2, horizon=HORIZON, seed=1)
    first, second = live.ask(2)
    live.tell_many([(first, 1.0), (second, 0.5)])
    arms = next_arms(live, 100)
    assert {first.arm, second.arm} == set(arms)
    assert arms.count(first.arm) > arms.count(second.arm)


@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_a_reward_is_late_only_after_the_next_ask(policy: ma.Policy) -> None:
    """However long a reward takes, it is not late without another ask in the meantime."""
    one_by_one = policy.live(n_arms=30, horizon=HORIZON, seed=3)
    by_id = policy.live(n_arms=30, horizon=HORIZON, seed=3)
    for step in range(200):
        pull, same = one_by_one.ask(), by_id.ask()
        assert pull == same
        one_by_one.tell(pull, float(step % 3 == 0))
        by_id.tell_many([(same.id, float(step % 3 == 0))])


def test_an_abandoned_pull_counts_in_the_clock() -> None:
    """With 100 pulls of MOSS++, p = 4, and the first iteration has 2^5 pulls."""
    live = ma.MOSSPlusPlus().live(n_arms=1000, horizon=100, seed=2)
    for _ in range(32):
        live.abandon(live.ask())
    assert live.progress().stage == "iteration 1 of 3"
    assert (live.progress().abandoned, live.progress().told) == (32, 0)
    live.abandon(live.ask())
    assert live.progress().stage == "iteration 2 of 3"
    for _ in range(67):
        live.abandon(live.ask())
    with pytest.raises(ma.TurnError, match="all 100 pulls"):
        live.ask()


def late_twins(policy: ma.Policy) -> tuple[list[Live], list[ma.Pull]]:
    """Play the first iteration's 64 pulls and more, without telling 24 of the 64."""
    twins = [policy.live(n_arms=60, horizon=HORIZON, seed=5) for _ in range(2)]
    late: list[ma.Pull] = []
    for live in twins:
        tell_in_turn(live, 40)
        late = live.ask(24)
        assert live.progress().stage == "iteration 1 of 5"
        tell_in_turn(live, 1)
        assert live.progress().stage == "iteration 2 of 5"
    return twins, late


def test_emp_moss_plus_plus_keeps_late_rewards() -> None:
    """Only late rewards are successes, and the next sets contain these arms."""
    (told, not_told), late = late_twins(ma.EmpMOSSPlusPlus())
    told.tell_many([(pull, 1.0) for pull in late])
    good = {pull.arm for pull in late}
    hits = []
    for live in (told, not_told):
        tell_in_turn(live, 127)  # to the end of the second iteration
        arms = []
        for _ in range(200):
            pull = live.ask()
            arms.append(pull.arm)
            live.tell(pull, 0.0)
        hits.append(sum(arm in good for arm in arms))
    assert hits[0] > hits[1]


def test_parallel_credits_the_subroutine_that_asked() -> None:
    """Late rewards of the first epoch come in the second epoch and decide the third."""
    epoch = 32  # ceil(sqrt(1000))
    third = []
    for reward in (1.0, 0.0):
        live = ma.Parallel(best_mean=0.9).live(n_arms=1000, horizon=HORIZON, seed=1)
        late = live.ask(epoch)
        first = live.progress().stage
        tell_in_turn(live, 1)
        assert live.progress().stage != first
        live.tell_many([(pull, reward) for pull in late])
        tell_in_turn(live, epoch - 1)
        live.ask()
        third.append(live.progress().stage == first)
    assert third == [True, False]  # more than a best arm gains, and least of all
