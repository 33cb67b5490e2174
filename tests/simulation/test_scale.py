"""A warning where rewards do not have the scale that a policy takes them to have."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import pytest

import manyarms as ma
from manyarms.errors import ScaleWarning
from manyarms.instances import Bernoulli, BetaRewards, Gaussian, planted, reward
from manyarms.kit import unit
from manyarms.simulation import cell


class Revenue(NamedTuple):
    """A basket, or nothing; the law does not say its range."""

    basket: float


@reward.register(Revenue)
def revenue(law: Revenue, arm: int, mean: float, word: int) -> float:
    return law.basket if unit(word) < mean / law.basket else 0.0


def play(policy: Any, rewards: Any) -> None:
    cell(policy, planted(n=20, m=2, rewards=rewards), horizon=10, replications=1)


@pytest.mark.parametrize(
    ("policy", "rewards", "says"),
    [
        (ma.MOSS(), Gaussian(5.0), r"`sigma` of moss is 0.5, but Gaussian\(sigma=5.0\) .* 5\."),
        (ma.MOSS(sigma=4.0), Gaussian(0.1), r"`sigma` of moss\(sigma=4.0\) is 4, .*sigma=0.1"),
        (ma.MOSS(), Revenue(20.0), r"`sigma` of moss is 0.5, but Revenue\(basket=20.0\)"),
        (ma.Prospector(), Gaussian(0.5), r"prospector plays on Gaussian\(sigma=0.5\) .*\[0, 1\]"),
        (ma.Patience(bound="kl"), Gaussian(0.5), r"`bound` is \"kl\", which is for rewards in"),
    ],
)
def test_it_names_both(policy: Any, rewards: Any, says: str) -> None:
    with pytest.warns(ScaleWarning, match=says):
        play(policy, rewards)


@pytest.mark.parametrize(
    ("policy", "rewards"),
    [
        (ma.MOSS(), Gaussian(1.0)),
        (ma.MOSS(sigma=5.0), Gaussian(5.0)),
        (ma.MOSS(), Bernoulli()),
        (ma.MOSS(), BetaRewards(100.0)),
        (ma.MOSS(sigma=4.0), Revenue(20.0)),
        (ma.Prospector(), Bernoulli()),
        (ma.policy("ss-greedy"), Gaussian(9.0)),
    ],
)
def test_nothing_is_said_where_they_fit(policy: Any, rewards: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(policy, rewards)
