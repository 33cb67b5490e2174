"""With bad rules in the guard, each step of the proof in docs/guard.md holds in every run.

Some steps always hold. The others fail with a probability that the proof bounds: T^-1/2 each for
the floor and the keeper, and 10^-9 for a sum of deviations. Seeds are fixed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from manyarms.theory import Problem, guarded_steps_bound
from tests.reference.guarded import Guarded, Stage


@dataclass
class Played:
    """Statistics of a run, by what pulled."""

    guard: Guarded
    regret: float = 0.0
    lost: float = 0.0  # by the rule, relative to the floor, in means
    tests: list[tuple[Stage, int, int, float, float]] = field(default_factory=list)
    keeper_short: bool = False  # whether the keeper's mean was ever below the floor


Rule = Callable[[Guarded], int]


def play(rule: Rule, means: list[float], horizon: int, beta: float, seed: int) -> Played:
    """Play 0/1 rewards; slot j has mean means[j]."""
    rng = random.Random(seed)
    guard = Guarded(rule, horizon, beta, len(means))
    played = Played(guard)
    best = max(means)
    for _ in range(horizon):
        who, j = guard.ask()
        played.regret += best - means[j]
        if guard.ends:
            played.lost += guard.floor - means[j] if who == "rule" else 0.0
            played.keeper_short |= who == "keeper" and guard.floor > means[j]
            if who == "guard" and j < len(guard.slots):
                stage, slot = guard.stages[len(guard.ends)], guard.slots[j]
                played.tests.append((stage, j, slot.pulls, slot.mean, guard.floor))
        guard.tell(who, j, 1.0 if rng.random() < means[j] else 0.0)
    return played


def rules(means: list[float], few: int, turn: int) -> dict[str, Rule]:
    """Return bad rules that know the means and open `few` arms at first."""

    def opened(after: Callable[[Guarded], int]) -> Rule:
        return lambda guard: len(guard.slots) if len(guard.slots) < few else after(guard)

    def best(guard: Guarded) -> int:
        return max(range(len(guard.slots)), key=means.__getitem__)

    def worst(guard: Guarded) -> int:
        return min(range(few), key=means.__getitem__)

    return {
        "never searches": lambda guard: 0,
        "always the worst": opened(worst),
        "alternates": opened(lambda guard: (best, worst)[guard.made % 2](guard)),
        "best, then worst": opened(lambda guard: (best, worst)[guard.made >= turn](guard)),
    }


def check_steps(played: Played, means: list[float], best_arms: int) -> None:
    guard = played.guard
    horizon, done = guard.horizon, 0
    wanted = min(guard.n, guard.n / best_arms * math.log(horizon))
    for stage, end, floor in zip(guard.stages, guard.ends, guard.floors, strict=False):
        done += stage.arms * stage.pulls
        assert end <= stage.start + done  # step 4: when stages end
        if stage.arms >= wanted:
            assert floor >= max(means) - stage.error  # step 1: the floor
    assert guard.lost <= guard.allowance + 1  # step 3: the rule's debt
    deviation = math.sqrt(horizon * math.log(1e9) / 2)  # Hoeffding's, exceeded once in 10^9
    assert played.lost <= guard.allowance + 1 + deviation
    assert not played.keeper_short
    assert len({(j, pulls) for _, j, pulls, _, _ in played.tests}) == len(played.tests)
    for stage, j, pulls, mean, floor in played.tests:  # step 3: the guard
        assert j < stage.arms
        assert pulls < stage.pulls
        assert floor <= mean + math.sqrt(stage.level / (2 * pulls)) + 1e-9
    work = sum(math.sqrt(2 * s.level) * s.arms * math.sqrt(s.pulls) for s in guard.stages[1:])
    assert sum(floor - mean for _, _, _, mean, floor in played.tests) <= work


NAMES = list(rules([0.0], 1, 0))


@pytest.mark.parametrize("name", NAMES)
def test_the_steps_if_the_bound_is_informative(name: str) -> None:
    means, horizon = [0.05, 0.95], 2**17
    rule = rules(means, 1 if name == NAMES[0] else 2, horizon // 4)[name]
    played = play(rule, means, horizon, 0.5, seed=1)
    check_steps(played, means, best_arms=1)
    assert played.guard.dropped
    bound = guarded_steps_bound(Problem(2, 1, horizon), beta=0.5)
    assert played.regret <= bound < 0.9 * horizon  # the regret of the first two rules alone


@pytest.mark.parametrize("name", NAMES)
def test_the_steps_if_the_guard_must_search(name: str) -> None:
    rng = random.Random(7)
    means = [0.9] * 32 + [0.2] * 32
    rng.shuffle(means)
    means[0] = 0.2
    played = play(rules(means, 6, 5000)[name], means, 2**14, 0.7, seed=2)
    check_steps(played, means, best_arms=means.count(0.9))
    assert max(played.guard.floors) > 0.6  # it found a good arm, independent of the rule
