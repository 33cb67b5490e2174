"""A control gets its share of the pulls and does not affect the policy."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.core.rng import draw, unit
from manyarms.inference.facts import CONTROL
from manyarms.live.replaying import replay
from manyarms.live.snapshots import snapshot
from manyarms.protocol.keys import control_key
from manyarms.protocol.state_dump import dump_state
from tests.helpers import ALL_POLICIES, label, state_of
from tests.live.stores import ADDRESSES, copied, known
from tests.serve.machines import new_name

NAMES = [f"item {k}" for k in range(12)]


def begun(control: str | None = "current", **given: Any) -> ma.Live:
    given = {"now": lambda: 1e9} | given
    chosen: dict[str, Any] = {} if control is None else {"control": control, "share": 0.25}
    return ma.MOSS().live(arms=NAMES, horizon=500, seed=4, **chosen, **given)


def play(live: ma.Live, pulls: int, seed: int = 0) -> None:
    """Play with rewards in batches, late, out of order, and sometimes never."""
    dice = random.Random(seed)
    for _ in range(pulls):
        live.ask(dice.randint(1, 3))
        for pull in live.pending:
            if dice.random() < 0.6:
                live.tell(pull, float(dice.random() < 0.4))
            elif dice.random() < 0.1:
                live.abandon(pull)


@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_the_control_does_not_affect_the_policy(policy: ma.Policy) -> None:
    plain = policy.live(arms=NAMES, horizon=300, seed=3)
    with_control = policy.live(arms=NAMES, horizon=300, seed=3, control="current", share=0.3)
    dice = random.Random(1)
    for _ in range(60):
        batch = with_control.ask(dice.randint(1, 4))
        ours = [pull for pull in batch if pull.arm != "current"]
        twins = dict(zip(ours, plain.ask(len(ours)) if ours else [], strict=True))
        assert all(pull.arm == twin.arm for pull, twin in twins.items())
        for pull in dice.sample(batch, len(batch)):
            reward = float(dice.random() < 0.5)
            if dice.random() < 0.8:
                with_control.tell(pull, reward)
                if pull in twins:
                    plain.tell(twins[pull], reward)
    assert plain.arms() == with_control.arms()
    assert plain.progress() == replace(
        with_control.progress(), control=None, control_pulls=0, control_mean=math.nan
    )
    assert repr(dump_state(state_of(plain))) == repr(dump_state(state_of(with_control)))


def test_the_seed_determines_the_pulls_of_the_control() -> None:
    live = begun()
    pulls = [*live.ask(40), *(live.ask() for _ in range(60))]
    key = control_key(4)
    assert [pull.arm == "current" for pull in pulls] == [
        unit(draw(key, k)) < 0.25 for k in range(100)
    ]
    assert [pull.id for pull in pulls] == list(range(100))
    assert live.pulls + sum(pull.arm == "current" for pull in pulls) == 100


def test_observed_rewards_use_no_pull_of_the_control() -> None:
    live = begun()
    live.observe("item 3", [1.0] * 30)
    pulls = live.ask(60)
    key = control_key(4)
    assert [pull.arm == "current" for pull in pulls] == [
        unit(draw(key, k)) < 0.25 for k in range(60)
    ]


def test_pulls_of_the_control_are_told_like_others() -> None:
    live = begun()
    own = [pull for pull in live.ask(60) if pull.arm == "current"]
    assert set(own) <= set(live.pending)
    live.tell(own[0], 1.0)
    live.tell_many([(own[1].id, 0.0), (own[2], 1.0)])
    live.abandon(own[3])
    control = live._experiment.ledger.control
    assert control is not None
    assert (control.told, control.total, control.abandoned) == (3, 2.0, 1)
    assert not set(own[:4]) & set(live.pending)
    for pull, said in ((own[0], "already been told"), (own[3], "was abandoned")):
        with pytest.raises(ma.TurnError, match=said):
            live.tell(pull, 1.0)
        live.tell(pull, 1.0, again="ignore")
    with pytest.raises(ma.TurnError, match="not asked for"):
        live.tell(10**6, 1.0)
    with pytest.raises(ma.TurnError, match="of arm 'current'"):
        live.tell(ma.Pull("item 1", own[5].id), 1.0)
    with pytest.raises(ma.ParameterError, match="reward_range"):
        live.tell(own[5], 3.0)
    with pytest.raises(ma.TurnError, match="not asked for"):
        begun(None).tell(own[5].id, 1.0)


@pytest.mark.parametrize("place", ADDRESSES)
def test_the_control_is_kept_in_the_store(place: str, tmp_path: Path) -> None:
    store, name = ADDRESSES[place](tmp_path), new_name()
    with begun(store=store, name=name) as live:
        play(live, 30)
        expected = copied(live)
        own = {event.pull for event in live.events() if event.arm == CONTROL}
        assert {pull.id for pull in live.pending if pull.arm == "current"} <= own
    with begun(store=store, name=name) as live:
        assert known(live) == known(expected)
        play(live, 20, seed=1)
        play(expected, 20, seed=1)
        assert live.pending == expected.pending
        assert live.arms() == expected.arms()
    for other in (None, "old"):
        with pytest.raises(ma.ParameterError, match="control is 'current' in the store, and"):
            begun(other, store=store, name=name)


def test_replay_checks_the_pulls_of_the_control() -> None:
    live = begun()
    events = live._experiment.log = []
    play(live, 15)
    again = begun()._context
    replay(*again, events, "it", None)
    assert snapshot(again.experiment) == known(live)
    own = next(k for k, event in enumerate(events) if event.arm == CONTROL)
    for wrong in (
        [*events[:own], *events[own + 1 :]],  # one is missing
        [events[own], *events],  # one is too early
        [*events[:own], events[own]._replace(arm=3), *events[own + 1 :]],
    ):
        with pytest.raises(ma.SavedFileError, match="is inconsistent"):
            replay(*begun()._context, wrong, "it", None)


def test_a_season_keeps_the_control() -> None:
    live = begun()
    play(live, 60)
    control = live._experiment.ledger.control
    assert control is not None
    before = control.asked, control.told, control.total
    live.season(horizon=100)
    assert live._experiment.ledger.control is control
    assert (control.asked, control.told, control.total) == before


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"share": 0.1}, "`share` needs `control`"),
        ({"control": "x", "share": 0.0}, "`share` must be"),
        ({"control": "x", "share": 0.6}, "`share` must be"),
        ({"control": 1.5}, "`control` must be"),
        ({"reward": "a\nb"}, "`reward` must say"),
        ({"reward": 3}, "`reward` must say"),
    ],
)
def test_wrong_settings_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ma.ParameterError, match=said):
        ma.MOSS().live(arms=NAMES, horizon=9, **given)


def test_the_horizon_counts_pulls_of_the_policy() -> None:
    live = ma.MOSS().live(n_arms=3, horizon=20, seed=1, control="current", share=0.5)
    given = []
    while live.pulls < 20:
        given.append(live.ask())
    with pytest.raises(ma.TurnError, match="all 20 pulls"):
        live.ask()
    assert sum(pull.arm != "current" for pull in given) == live.pulls == 20
    assert len(given) > 20
    assert math.isnan(live.progress().mean_reward)


def test_missing_rewards_of_the_control_give_a_warning() -> None:
    """Every second reward is missing. If these were 1, the control would be better."""
    live = ma.MOSS().live(arms=["a", "b"], horizon=9000, seed=3, control="today", share=0.3)
    for k in range(6000):
        pull = live.ask()
        if pull.arm != "today":
            live.tell(pull, float(k % 3 == 0))
        elif k % 2:
            live.tell(pull, 0.0)
        else:
            live.abandon(pull)
    for margin in (None, "5%"):
        said = live.verdict(target="control", margin=margin)
        assert said.stop
        assert "of those of the target" in said.warning


def test_the_control_cannot_be_retired_and_a_missing_one_is_no_target() -> None:
    live = ma.MOSS().live(arms=["a", "b"], horizon=9, seed=1, control="today")
    with pytest.raises(ma.ParameterError, match="got 'today', which is the control"):
        live.retire("today")
    live = ma.MOSS().live(arms=["a", "b"], horizon=9, seed=1)
    live.observe("a", [1.0])
    with pytest.raises(ma.ParameterError, match="'control', but this experiment has no control"):
        live.verdict(target="control")
    live.add_arms(["control"])
    assert live.verdict(target="control").outcome == "too early to say"


def test_the_control_is_the_default_target_of_verdicts() -> None:
    live = ma.MOSS().live(arms=["a", "b"], horizon=9, seed=1, control="today")
    live.observe("a", [1.0])
    assert live.verdict().target == "today"
    assert live.verdict(epsilon="10%").target is live.verdict(quantile=0.1).target is None
    live = ma.MOSS().live(arms=["a", "b"], horizon=9, seed=1, control="today", epsilon="20%")
    live.observe("a", [1.0])
    assert (live.verdict().target, live.verdict().epsilon) == (None, "20%")
