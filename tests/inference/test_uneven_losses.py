"""The warning about arms whose pulls are abandoned more or less often than others."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from typing import Any

import pytest

import manyarms as ma
from manyarms.inference.facts import CONTROL
from manyarms.inference.uneven_losses import ERROR, Loss, uneven_losses


def found(live: ma.Live) -> list[Loss]:
    pending = Counter(pull.arm for pull in live._experiment.ledger.pending.values())
    return uneven_losses(live._tried_arms(), pending)


def play(live: ma.Live, pulls: int, lost: Any, dice: random.Random, every: int = 25) -> int:
    """Ask for pulls in tens, with late rewards; return the checks that raised an alarm."""
    pending: list[ma.Pull] = []
    alarms = 0
    for turn in range(pulls // 10):
        pending += live.ask(10)
        dice.shuffle(pending)
        while len(pending) > 40:
            pull = pending.pop()
            mean = 0.1 if pull.arm == "today" else 0.6 if pull.arm % 10 == 0 else 0.2
            reward = float(dice.random() < mean)
            if dice.random() < lost(pull.arm, reward):
                live.abandon(pull)
            else:
                live.tell(pull, reward)
        alarms += turn % every == 0 and bool(found(live))
    return alarms


@pytest.mark.slow
def test_random_losses_raise_no_alarm() -> None:
    wrong = 0
    for seed in range(40):
        dice = random.Random(seed)
        share = dice.choice([0.02, 0.2, 0.7])
        live = ma.Prospector(count_late=True).live(n_arms=40, seed=seed, control="today")
        wrong += play(live, 800, lambda arm, reward: share, dice, every=4) > 0  # noqa: B023
    assert wrong <= 2, "at most 0.4 are expected; more than 2 have probability 0.8 %"


def _evidence(mine: int, others: int, pulls: int, rest: int) -> float:
    """Return the logarithm of E, computed in another way."""

    def mixed(lost: float, of: float) -> float:
        beta = math.lgamma(lost + 0.5) + math.lgamma(of - lost + 0.5) - math.lgamma(of + 1)
        return beta - math.log(math.pi)

    lost, of = mine + others, pulls + rest
    share = lost / of
    best = sum(k * math.log(p) for k, p in ((lost, share), (of - lost, 1 - share)) if k)
    return mixed(mine, pulls) + mixed(others, rest) - best


def test_pending_pulls_may_be_told_or_abandoned() -> None:
    """The outcome with the smallest evidence counts."""
    dice = random.Random(4)
    clear = 0
    for seed in range(60):
        live = ma.policy("uniform").live(n_arms=2, horizon=1000, seed=seed)
        shares = dice.random(), dice.random()
        for pull in live.ask(dice.randint(20, 200)):
            end = dice.random()
            if end < 0.9 * shares[pull.arm]:
                live.abandon(pull)
            elif end < 0.9:
                live.tell(pull, 1.0)
        tried = live._tried_arms()
        place = {int(arm): at for at, arm in enumerate(tried.arm)}
        asked = [int(tried.asked[place[arm]]) for arm in (0, 1)]
        told = [int(tried.told[place[arm]]) for arm in (0, 1)]
        pending = [sum(pull.arm == arm for pull in live.pending) for arm in (0, 1)]
        gone = [asked[arm] - told[arm] - pending[arm] for arm in (0, 1)]
        for loss in found(live)[:1]:
            me, other = loss.arm, 1 - loss.arm
            assert (loss.abandoned, loss.pulls) == (gone[me], asked[me])
            error = 6 * ERROR / (math.pi * (place[me] + 1)) ** 2
            ends = itertools.product(range(pending[me] + 1), range(pending[other] + 1))
            evidence = [
                _evidence(gone[me] + a, gone[other] + b, asked[me], asked[other]) for a, b in ends
            ]
            assert min(evidence) >= -math.log(error) - 1e-9
            clear += 1
    assert clear > 10


def test_untold_failures_raise_an_alarm() -> None:
    dice = random.Random(1)
    live = ma.Prospector(count_late=True).live(n_arms=40, seed=3)
    play(live, 3000, lambda arm, reward: 0.8 if arm == 7 and not reward else 0.05, dice)
    first = found(live)[0]
    assert first.arm == 7
    assert first.abandoned / first.pulls > 0.4
    assert first.others < 0.1


def test_lost_rewards_of_the_control_raise_an_alarm() -> None:
    dice = random.Random(1)
    live = ma.Prospector(count_late=True).live(n_arms=10, seed=3, control="today", share=0.2)
    play(live, 2000, lambda arm, reward: 0.3 if arm == "today" else 0.02, dice)
    assert found(live)[0].arm == CONTROL


def test_observed_rewards_do_not_count_as_pulls() -> None:
    live = ma.policy("uniform").live(n_arms=3, horizon=9000, seed=3)
    live.observe(0, [1.0] * 900)
    dice = random.Random(2)
    for _ in range(3000):
        pull = live.ask()
        live.abandon(pull) if dice.random() < 0.2 else live.tell(pull, 1.0)
    assert found(live) == []
    live.observe(1, [1.0] * 5)
    assert found(live) == []
