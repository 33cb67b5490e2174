"""Prospector on arms that come and go: trials of new arms, against a slow reference and by hand."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from statistics import NormalDist

import pytest

import manyarms as ma
from manyarms.core.memory import ENDLESS
from manyarms.policies.parts.guard_slots import TRIAL, has_fresh, open_newcomer, open_next
from manyarms.policies.prospector import ProspectState
from manyarms.protocol.policy import arrive, ask, reset, retire, tell
from tests.policies.games import check_same
from tests.reference.changing import ChangingProspector
from tests.reference.words import policy_key

# name: chances, at every step, of asking on while rewards are pending, of abandoning instead of
# telling, of new arms, and of retiring an arm
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
    n: int, horizon: int | None, seed: int, *, trials: float, traffic: str, pulls: int, best: float
) -> tuple[list[int], list[int], ChangingProspector]:
    """Do the same to the package and to the reference, at random; return the arms of each."""
    on, lost, come, go = TRAFFIC[traffic]
    chance = random.Random(seed)
    live = ma.Prospector(trials=trials).live(n_arms=n, horizon=horizon, seed=seed)
    game = ChangingProspector(n, horizon, policy_key(seed, 0), trials=trials)
    there, due = list(range(n)), dict[int, int]()  # the arms in play; pending pulls and their arms
    picked: list[int] = []
    expected: list[int] = []
    while len(picked) < pulls:
        if chance.random() < come:
            count = chance.choice([1, 2, 5, 40])
            there += range(n, n + count)
            n += count
            live.add_arms(count)
            game.arrive(count)
        if chance.random() < go and len(there) > 1:
            recent = [arm for arm in picked[-20:] if arm in there]
            arm = chance.choice(recent if recent and chance.random() < 0.7 else there)
            there.remove(arm)
            for number in [number for number, of in due.items() if of == arm]:
                game.abandon(number)
                del due[number]
            live.retire(arm)
            game.retire(arm)
        if not due or chance.random() < on:
            asked = live.ask()
            picked.append(asked.arm)
            expected.append(game.ask())
            due[asked.id] = asked.arm
            continue
        number = chance.choice(list(due))
        arm = due.pop(number)
        if chance.random() < lost:
            live.abandon(number)
            game.abandon(number)
        else:
            reward = float(chance.random() < mean_of(arm, seed, best))
            live.tell(number, reward)
            game.tell(number, reward)
    return picked, expected, game


@pytest.mark.slow
@pytest.mark.parametrize("traffic", TRAFFIC)
def test_the_reference_picks_the_same_arms(traffic: str) -> None:
    tried = 0
    for k, (n, horizon, trials, best) in enumerate(
        itertools.product((1, 5, 60), (None, 300), (0.02, 0.3), (0.1, 1.0))
    ):
        picked, expected, game = play_both(
            n, horizon, k, trials=trials, traffic=traffic, pulls=300, best=best
        )
        check_same(picked, expected, f"{traffic}, {n=}, {horizon=}, {trials=}, {best=}, seed={k}")
        tried += sum(pull.who == "trial" for pull in game.made)
    assert tried > 100


def new_state(n: int, seed: int = 1, *, trials: float = 0.02) -> ProspectState:
    state: ProspectState = ma.Prospector(trials=trials).new_state(ENDLESS, n_arms=n, pulls=1 << 40)
    reset(state, seed, 0)
    return state
