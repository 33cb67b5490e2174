"""Verdicts are right through a season, with a look at every step.

The caller knows the means. At an error rate of 5 %, more than `WRONG` of `RUNS` runs are wrong with
probability 0.0004, in each case. The seeds are fixed. The long versions have more runs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import manyarms as ma
from tests.inference.test_sample import Run

RUNS, WRONG = 8, 3
MANY_RUNS, MANY_WRONG = 100, 13  # at 5 % each, more than 13 have probability 0.0005


class Watched(Run):
    """A run with a look after every reward."""

    def play(self, pulls: int, silent: object = ()) -> None:
        kept = set(silent)  # type: ignore[call-overload]
        for _ in range(pulls):
            if self.verdict is not None:
                return
            pull = self.live.ask()
            if pull.arm not in kept:
                self.live.tell(pull, self.reward(pull.arm))
                self.look()


def _skipped(run: Run) -> None:
    """Best arms have a known reward, and are not pulled: the policy has no room for more arms."""
    run.play(100, silent=run.best)
    for arm in run.best[:7]:
        run.live.observe(arm, run.reward(arm))
    run.season(policy=ma.MOSSOracle(size=20, count_late=True), horizon=100)
    run.play(40, silent=run.best)
    run.season(policy=ma.MOSSOracle(size=260, count_late=True))
    run.play(2400)


def _retired_untried(run: Run) -> None:
    """Best arms are retired before their first reward: untried ones, and some that were pulled."""
    run.live.retire(run.best[:4])
    run.play(230, silent=run.best)
    run.live.retire(sorted({pull.arm for pull in run.live.pending})[:3])
    run.look()
    run.season(policy=ma.MOSSOracle(size=260, count_late=True))
    run.play(2400)


def _silent(run: Run) -> None:
    """The best arms are silent before the season, and answer late in it."""
    run.play(230, silent=run.best)
    waiting = run.live.pending
    run.season()
    run.play(30, silent=run.best)
    for pull in waiting:
        run.live.tell(pull, run.reward(pull.arm))
        run.look()
    run.play(2400)


CASES = {case.__name__.strip("_"): case for case in (_skipped, _retired_untried, _silent)}


def _check(case: Callable[[Run], None], seeds: range, wrong: int) -> None:
    runs = [Watched(seed) for seed in seeds]
    for run in runs:
        case(run)
    stopped = [run for run in runs if run.verdict is not None]
    by_chance = [run for run in stopped if "tried at random" in str(run.verdict)]
    assert len(by_chance) >= len(runs) // 2  # else nothing was tested
    assert sum(run.wrong() for run in stopped) <= wrong


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_verdicts_through_a_season_are_right(case: Callable[[Run], None]) -> None:
    _check(case, range(RUNS), WRONG)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_verdicts_through_a_season_are_right_in_many_runs(case: Callable[[Run], None]) -> None:
    _check(case, range(MANY_RUNS), MANY_WRONG)


def _stops_wrongly(seed: int, pulls: int) -> bool:
    """Whether one of 12 arms of mean 0.5 is ever said to be above 0.5; looks at every step."""
    luck = np.random.default_rng(seed)
    live = ma.MOSS().live(n_arms=12, horizon=pulls, seed=seed)
    for horizon in (pulls, pulls):
        for _ in range(pulls):
            live.tell(live.ask(), float(luck.random() < 0.5))
            if live.verdict(target=0.5).stop:
                return True
        live.season(horizon=horizon)
    return False


def test_targets_are_seldom_reached_by_chance_through_a_season() -> None:
    assert sum(_stops_wrongly(seed, 150) for seed in range(RUNS)) <= WRONG


@pytest.mark.long
def test_targets_are_seldom_reached_by_chance_in_many_runs() -> None:
    """At 5 % each, more than 35 of 400 have probability 0.0005."""
    assert sum(_stops_wrongly(seed, 150) for seed in range(400)) <= 35
