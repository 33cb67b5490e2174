"""Plain Python classes as policies: the same rewards and tables, live and with late rewards."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import manyarms as ma
from manyarms.policies import SubSampled
from tests.fixed import Fixed


class Stay:
    """Always pulls arm 3, or another given arm."""

    heard: ClassVar[list[Any]] = []

    def __init__(self, arm: int = 3, **told: Any) -> None:
        self.arm, self.told, self.waiting = arm, told, 0

    def ask(self) -> int:
        self.waiting += 1
        return self.arm

    def tell(self, arm: int, reward: float) -> None:
        assert arm == self.arm
        self.heard.append((self.waiting, reward))
        self.waiting -= 1


class First:
    """Always pulls arm 0."""

    def ask(self) -> int:
        return 0

    def tell(self, arm: int, reward: float) -> None:
        pass


class Constructed:
    """Stores the arguments of its constructor."""

    seeds: ClassVar[set[int]] = set()

    def __init__(self, n_arms: int, horizon: int, seed: int) -> None:
        assert (n_arms, horizon) == (20, 30)
        self.seeds.add(seed)

    def ask(self) -> np.int64:
        return np.int64(7)

    def tell(self, arm: int, reward: float) -> None: ...


ARMS = ma.instances.planted(n=20, m=5)


def test_plain_classes_get_the_same_rewards_as_compiled_policies() -> None:
    best = Fixed(arm=3)
    result = ma.simulate([Stay, best], ARMS, horizon=30, replications=4, seed=9)
    assert result.policies == ("Stay", "fixed")
    assert (result.regret[0] == result.regret[1]).all()
    rewards = [reward for _, reward in Stay.heard]
    assert 0.7 < np.mean(rewards) < 1.0  # the mean is 0.9
    other = ma.simulate(Stay, ARMS, horizon=30, replications=4, seed=9, workers=2)
    assert (other.regret[0] == result.regret[0]).all()


def test_the_constructor_gets_the_parameters_that_it_has() -> None:
    ma.simulate([Constructed], ARMS, horizon=30, replications=4, workers=1)
    assert len(Constructed.seeds) == 4
    with pytest.raises(ma.ParameterError, match="`horizon`"):
        ma.plain_policy(Constructed).live(n_arms=20)
    assert ma.plain_policy(Stay).anytime


@pytest.mark.parametrize(("late", "waiting"), [({"delay": 3}, 4), ({"batch": 5}, 5), ({}, 1)])
def test_rewards_may_be_late(late: dict[str, Any], waiting: int) -> None:
    Stay.heard.clear()
    ma.simulate(Stay, ARMS, horizon=30, replications=1, **late)
    assert max(count for count, _ in Stay.heard) == waiting


def test_wrappers_accept_plain_classes() -> None:
    policies = [ma.Guarded(ma.plain_policy(Stay)), ma.Guarded(ma.plain_policy(Stay, arm=1))]
    result = ma.simulate(policies, ARMS, horizon=30, replications=2, workers=1)
    assert result.policies == ("guarded-Stay", "guarded-Stay(arm=1)")


class Finder:
    """Pulls arms 0, 1, 2 in turn, and recommends an arm."""

    def __init__(self, kept: Any) -> None:
        self.kept, self.pulls = kept, 0

    def ask(self) -> int:
        self.pulls += 1
        return self.pulls % 3

    def tell(self, arm: int, reward: float) -> None: ...

    def recommend(self) -> Any:
        return self.kept


@pytest.mark.parametrize("late", [{}, {"delay": 4}, {"batch": 40}])
def test_a_plain_class_recommends_its_arm(late: dict[str, Any]) -> None:
    means = ma.instances.from_means([0.9, 0.8, 0.1, 0.5])
    makers = {kept: ma.plain_policy(Finder, kept=kept) for kept in (2, np.int64(1), None)}
    result = ma.simulate([*makers.values()], means, horizon=40, replications=3, **late)
    assert result.recommended[:2].tolist() == [[2] * 3, [1] * 3]
    assert result.simple_regret[0] == pytest.approx(0.8)
    assert (result.recommended[2] < 2).all()  # by the common rule
    inside = SubSampled(makers[2], size=3)
    found = ma.simulate(inside, means, horizon=40, record_arms=True, **late)
    assert found.arms is not None
    assert (found.recommended[0] == found.arms[0, :, 1]).all()  # its second pull is its arm 2


def test_a_plain_class_recommends_its_arm_live() -> None:
    live = ma.plain_policy(Finder, kept=2).live(n_arms=4, horizon=9)
    for _ in range(3):
        live.tell(live.ask(), 1.0)
    assert live.recommend().arm == 2


def test_wrong_recommendations_are_refused() -> None:
    for kept in (4, -1, "a", 1.5):
        with pytest.raises(ma.ParameterError, match="`recommend` of Finder.* from 0 to 3, got"):
            ma.simulate(ma.plain_policy(Finder, kept=kept), _four(), horizon=9, replications=1)
    with pytest.raises(ma.ParameterError, match="must return an arm with a reward, got 3, which"):
        ma.simulate(ma.plain_policy(Finder, kept=3), _four(), horizon=9, replications=1)


def _four() -> ma.instances.Instance:
    return ma.instances.from_means([0.9, 0.8, 0.1, 0.5])


def test_a_plain_class_is_live_and_cannot_be_saved(tmp_path: Path) -> None:
    live = ma.plain_policy(Stay, arm=2).live(n_arms=5)
    live.tell(live.ask(), 1.0)
    assert live.recommend().arm == 2
    for policy in (live.policy, ma.Guarded(live.policy)):
        with pytest.raises(ma.ParameterError, match=r"Stay\(arm=2\) is a plain Python class and"):
            policy.live(n_arms=5, horizon=9).save(tmp_path / "saved.db")
    with pytest.raises(ma.ParameterError, match="has no `retire`"):
        live.retire(4)


def test_errors_of_plain_classes() -> None:
    for arm in (20, -1, "a", None, 1.5):
        with pytest.raises(ma.ParameterError, match=r"must return an arm from 0 to 19, got"):
            ma.simulate(ma.plain_policy(Stay, arm=arm), ARMS, horizon=3, replications=1)
    with pytest.raises(ma.ParameterError, match="`make` must be a class with `ask"):
        ma.plain_policy(ma.MOSS)
    with pytest.raises(
        ma.UnknownNameError, match="Unknown parameter of Constructed: 'sead'. Did you mean"
    ):
        ma.plain_policy(Constructed, sead=3)  # now, not when it plays
    with pytest.raises(ma.ParameterError, match="`x` must be left out: First takes no parameters"):
        ma.plain_policy(First, x=1)


def test_a_tell_without_the_arm_is_refused_with_the_fix() -> None:
    class Short:
        def ask(self) -> int:
            return 0

        def tell(self, reward: float) -> None: ...

    with pytest.raises(ma.ParameterError, match=r"Write def tell\(self, arm, reward\)"):
        ma.plain_policy(Short)
    with pytest.raises(ma.ParameterError, match=r"Wrap your class: ma.plain_policy"):
        ma.Guarded(Short)  # type: ignore[arg-type]
