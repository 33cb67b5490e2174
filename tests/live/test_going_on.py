"""A game that goes on: rewards observed elsewhere, arms that come back, seasons."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.live.arms import Seats
from manyarms.policies.field import Best
from tests.helpers import EVERY_POLICY, label
from tests.inference.games import new, step


def tape(arm: Any, k: int) -> float:
    """Return the k-th reward of an arm, whoever pulls it."""
    return float(random.Random(f"{arm} {k}").random() < (int(arm) % 10) / 10)


def play_tape(live: ma.Live, pulls: int, seen: dict[Any, int]) -> list[Any]:
    """Play so many pulls in turn, and return their arms."""
    arms = []
    for _ in range(pulls):
        pull = live.ask()
        arms.append(pull.arm)
        live.tell(pull, tape(pull.arm, seen.setdefault(pull.arm, 0)))
        seen[pull.arm] += 1
    return arms


def all_arms(live: ma.Live) -> list[Any]:
    """Return the arms of all pulls, those that were answered from memory too."""
    return list(live.events().table()["arm"].tolist())


POLICIES = [ma.MOSS(), ma.EmpMOSSPlusPlus(), ma.Prospector(), ma.MOSSPlusPlus()]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_season_is_a_game_from_the_start_that_need_not_repeat_its_pulls(
    policy: ma.Policy,
) -> None:
    """All of it, bit for bit: this is what its guarantee rests on."""
    first = ma.recorded(ma.InMemory(), policy.live(n_arms=40, horizon=150, seed=3))
    seen: dict[Any, int] = {}
    play_tape(first, 150, seen)
    second = ma.recorded(ma.InMemory(), first.season(horizon=250, policy=ma.Prospector(), seed=5))
    remembered = dict(seen)
    real = play_tape(second, 200, seen)
    anew = ma.recorded(ma.InMemory(), ma.Prospector().live(n_arms=40, horizon=400, seed=5))
    order = list(remembered)
    for arm in order:  # in the same order of arms, and with no rewards: so it must pull them all
        anew._game.drawn_next[anew._game.arms.number(arm)] = None
    play_tape(anew, second.pulls, {})
    assert all_arms(anew) == all_arms(second)
    assert second.pulls > 200  # some pulls were answered
    left = second.progress().observed
    assert second.pulls - 200 + left == 150
    ended = second.events().table()["end"].tolist()
    assert ended.count("answered") == 150 - left
    assert ended.count("told") == len(real)


def test_a_season_of_an_anytime_policy_goes_on_as_if_nothing_had_happened() -> None:
    first = ma.recorded(ma.InMemory(), ma.Prospector().live(n_arms=1000, seed=3))
    seen: dict[Any, int] = {}
    play_tape(first, 300, seen)
    second = first.season()
    assert second.recommend().interval == first.recommend().interval
    same = dict(seen)
    assert play_tape(second, 100, seen) == play_tape(first, 100, same)


def test_a_season_without_a_history_knows_how_much_and_not_in_which_order() -> None:
    first = new(ma.MOSS(), horizon=200)
    play_tape(first, 200, {})
    first.retire([0, 1])
    first.add_arms(2)
    second = first.season(horizon=50)
    assert second.horizon == 250
    assert second.n_arms == first.n_arms == 12
    assert [(a.arm, a.told, a.interval) for a in second.arms()] == [
        (a.arm, a.told, a.interval) for a in first.arms()
    ]
    with pytest.raises(ma.ParameterError, match="`policy` must be able to do without retired arms"):
        first.season(policy=Best(arm=3))
    play_tape(second, 50, {})
    assert not {0, 1} & {pull.arm for pull in second.pending}
    third = new(ma.MOSS(), reward_range=(0.0, 10.0), horizon=50)
    third.observe(3, [1.0, 9.5])
    assert list(third.season(horizon=9)._game.stock[3]) == [5.25, 5.25]


def test_observed_arms_come_first_and_their_pulls_are_answered() -> None:
    live = ma.recorded(ma.InMemory(), ma.MOSS().live(n_arms=10**6, horizon=1000, seed=1))
    live.observe(77, [0.0, 1.0])
    live.observe(999_999, 1.0)
    assert [arm.arm for arm in live.arms()] == [77, 999_999]
    assert live.recommend().told == 1 or live.recommend().told == 2
    pull = live.ask()
    assert pull.arm not in (77, 999_999)  # their first pulls were answered
    assert pull.id == 2
    assert all_arms(live)[:2] == [77, 999_999]
    assert live.progress().observed == 1
    assert "1 observed reward left" in str(live.progress())


def test_no_pull_is_refused_halfway_because_rewards_were_observed() -> None:
    live = new(ma.MOSS(), n_arms=2, horizon=6)
    live.observe(0, [1.0] * 50)
    assert len(live.ask(5)) == 5  # at most one could be answered
    assert live.pulls == 6
    with pytest.raises(ma.TurnError, match="all 6 pulls of the horizon are made"):
        live.ask()


def test_a_policy_that_was_told_the_arm_is_not_given_another() -> None:
    live = Best(arm=3).live(n_arms=10, seed=1)
    live.observe(7, [1.0])
    live.observe(3, [1.0])
    pull = live.ask()
    assert (pull.arm, pull.id) == (3, 1)


def test_what_is_observed_is_checked() -> None:
    live = new()
    for wrong in (2.0, float("nan"), "1", [0.5, None]):
        with pytest.raises(ma.ParameterError, match="Cannot observe reward"):
            live.observe(3, wrong)  # type: ignore[arg-type]
    with pytest.raises(ma.UnknownArmError, match="Unknown arm 99"):
        live.observe(99, 1.0)
    live.observe(3, [])
    assert live.arms() == []


def test_arms_come_back_and_come_next() -> None:
    live = new(ma.MOSS(), n_arms=1000)
    tried = [pull.arm for pull in live.ask(5)]
    for pull in live.pending:
        live.tell(pull, 1.0)
    live.retire(tried[:2])
    assert live.n_arms == 998
    with pytest.raises(ma.TurnError, match=f"Cannot restore arm {tried[2]}: it is not retired"):
        live.restore([tried[0], tried[2]])
    assert live.n_arms == 998
    live.restore(tried[:2])
    assert live.n_arms == 1000
    assert [pull.arm for pull in live.ask(2)] == tried[:2]
    live.add_arms(5)
    assert {pull.arm for pull in live.ask(1001)} >= {1000, 1001, 1002, 1003, 1004}
    assert next(arm for arm in live.arms() if arm.arm == tried[0]).pulls >= 2


def test_an_arm_may_come_back_again_and_again(tmp_path: Path) -> None:
    """Two returns of one arm made a file that could not be read."""
    live = ma.recorded(ma.Journal(tmp_path / "game"), new(ma.MOSS(), n_arms=5))
    for _ in range(3):
        pull = live.ask()
        live.retire(3)
        live.restore(3)
        live.add_arms(1)  # which compacts the journal
        live.tell(pull, 1.0)
        again = ma.Live.from_bytes(live.to_bytes())
        assert again.to_bytes() == live.to_bytes()
    live.close()
    with ma.recorded(tmp_path / "game") as live:
        assert live.n_arms == 8
        assert live.ask(8) == again.ask(8)


def test_retiring_many_is_all_or_nothing() -> None:
    live = new(n_arms=4)
    live.retire(2)
    for arms, message in (
        ([0, 2], "Cannot retire arm 2: it is retired already"),
        ([0, 9], "Unknown arm 9"),
        ([0, 1, 3], "Cannot retire 3 arms: none would be left"),
    ):
        with pytest.raises(ma.ManyarmsError, match=message):
            live.retire(arms)
        assert live.n_arms == 3
    live.retire([])
    live.retire([0, 0, 1])
    assert live.n_arms == 1


def play_on(live: ma.Live, events: int) -> None:
    """Let all kinds of things happen."""
    for k in range(events):
        game = live._game
        chance = random.Random(f"{k} {game.pulls} {len(game.stock)}")
        if chance.random() < 0.1:
            live.observe(game.arms.name(chance.randrange(game.arms.count)), [0.0, 1.0][: k % 2 + 1])
        elif game.retired and chance.random() < 0.1:
            live.restore(game.arms.name(min(game.retired)))
        else:
            step(live)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("history", [True, False])
def test_journals_and_saved_handles_know_it_all(
    policy: ma.Policy, history: bool, tmp_path: Path
) -> None:
    store = ma.Journal(tmp_path / "game", sync="never", compact_every=150, history=history)
    live = ma.recorded(store, new(policy, n_arms=60))
    for _ in range(4):
        play_on(live, 130)
        known = live.to_bytes()
        again = ma.Live.from_bytes(known)
        assert again.to_bytes() == known
        live.close()
        live = ma.recorded(store)
        assert live.to_bytes() == known
        play_on(again, 30)
        play_on(live, 30)
        assert again.to_bytes() == live.to_bytes()
    assert live._game.seats.count > live._game.arms.count
    live.close()


@pytest.mark.parametrize("policy", EVERY_POLICY, ids=label)
def test_every_policy_can_observe_and_has_seasons(policy: ma.Policy) -> None:
    live, luck = policy.live(n_arms=60, horizon=400, seed=3), random.Random(1)
    for k in range(120):
        if k % 12 == 0:
            live.observe(luck.randrange(60), [0.0, 1.0])
        live.tell(live.ask(), float(luck.random() < 0.4))
    second = live.season(horizon=70)
    assert ma.Live.from_bytes(second.to_bytes()).to_bytes() == second.to_bytes()
    for _ in range(60):
        second.tell(second.ask(), 1.0)
    for each in (live, second):
        known = each.to_bytes()
        assert ma.Live.from_bytes(known).verdict() == each.verdict()
        assert ma.Live.from_bytes(known).ask() == each.ask()


def test_seats_that_cannot_be_are_refused() -> None:
    ok = Seats(5)
    ok.swap(1, 3)
    ok.come_back(4)
    ok.add(5, 3)
    pairs, shifts = list(ok.seat_of.items()), ok.shifts()
    again = Seats.restored(8, 1, pairs, shifts)
    assert [again.arm(s) for s in range(9) if s != 4] == [0, 3, 2, 1, 4, 5, 6, 7]
    assert again.count == ok.count == 9
    for wrong in (
        (8, 0, pairs, shifts),
        (8, 1, pairs[:1], shifts),
        (8, 1, [(0, 99)], ([], [])),
        (8, 1, [(9, 0)], ([], [])),
        (8, 1, [*pairs, pairs[0]], shifts),
        (8, 1, pairs, ([5], [2])),
        (8, 1, pairs, ([9], [1])),
        (8, 1, pairs, ([5, 5], [1, 1])),
        (8, 1, pairs, ([5], [-1])),
    ):
        with pytest.raises(ValueError, match="seat"):
            Seats.restored(*wrong)
