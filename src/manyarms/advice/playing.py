"""Play every candidate at every hardness, as often as the time allows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.advice.candidates import Candidate
from manyarms.advice.question import Question
from manyarms.lab.experiment import Experiment, Player, cell
from manyarms.lab.progress import ProgressCallback
from manyarms.lab.simulate import run_in_memory
from manyarms.theory import Problem, miss_probability

__all__ = ["Game", "play"]

_BUDGET = 16e9  # nanoseconds of one processor, for all games together
_FOR_ONE = 0.5e9  # and for one of them
_FEWEST, _MOST = 4, 200  # replications
_LARGE_SET, _HUGE_SET = 1 << 14, 1 << 17  # arms; a policy's tables outgrow one cache, then all
_SMALL, _LARGE = 40.0, 150.0  # nanoseconds per pull with small and large sets, measured
_WORTH_SKIPPING = 10_000  # pulls; shorter games are played even if their mean is known


class Game(NamedTuple):
    """A candidate on a problem: its regret in every replication, and how often it missed."""

    regrets: NDArray[np.float64]  # their mean where it is known without playing
    median: float
    miss_rate: float
    exact: bool = False


def play(
    question: Question,
    players: Sequence[Candidate],
    *,
    replications: int | None,
    seed: int,
    workers: int | None,
    progress: bool | ProgressCallback | None,
) -> list[list[Game]]:
    """Return the games by problem and candidate."""
    problems = question.problems()
    times = [_replications(question, player, len(problems) * len(players)) for player in players]
    if replications is not None:
        times = [replications] * len(players)
    games = {
        (k, seat): game
        for k, problem in enumerate(problems)
        for seat, player in enumerate(players)
        if (game := _skipped(question, player, problem)) is not None
    }
    cells = []
    for k, problem in enumerate(problems):
        seats = [seat for seat in range(len(players)) if (k, seat) not in games]
        if seats:
            cells.append(
                cell(
                    [
                        Player(players[seat].policy, f"player {seat}", times[seat], {"seat": seat})
                        for seat in seats
                    ],
                    question.instance(problem),
                    horizon=question.horizon,
                    checkpoints=1,
                    parameters={"problem": k},
                )
            )
    if cells:
        experiment = Experiment("advice", tuple(cells), seed)
        for result in run_in_memory(experiment, workers=workers, progress=progress):
            for about, rows in zip(result.policy_parameters, result.rows, strict=True):
                final, missed = rows["regret"][:, -1], float((rows["best_pulls"] == 0).mean())
                game = Game(final, float(np.median(final)), missed)
                games[result.parameters["problem"], about["seat"]] = game
    return [[games[k, seat] for seat in range(len(players))] for k in range(len(problems))]


def _replications(question: Question, player: Candidate, games: int) -> int:
    """As many as fit into an equal share of the budget: policies with large sets get fewer.

    They need fewer as well: whether a small set holds a best arm is luck, a large set does. MOSS
    on a huge set takes longest and varies least: twice tells.
    """
    cost = _LARGE if player.arms > _LARGE_SET else _SMALL
    budget = min(_BUDGET / games, _FOR_ONE)
    pairs = int(budget / (2 * cost * question.horizon))  # two for two processors
    fewest = _FEWEST // 2 if player.is_moss and player.arms > _HUGE_SET else _FEWEST
    return min(max(2 * pairs, fewest), _MOST)


def _skipped(question: Question, player: Candidate, problem: Problem) -> Game | None:
    """Return the game if it is known without playing: no arm is pulled twice, or all are best.

    Then every pull loses what a random arm loses on average.
    """
    n, m, horizon = question.n, int(problem.m), question.horizon
    if m == n:
        return Game(np.zeros(1), 0.0, 0.0, exact=True)
    long = horizon >= _WORTH_SKIPPING or horizon == 1
    if not long or not player.only_explores(question):
        return None
    gaps = question.gaps(problem)
    mean = horizon * math.fsum(size * gap for size, gap in gaps) / n
    # of one pull the middle arm's; of a sum of so many, within a reward of the mean
    below = zip(itertools.accumulate(size for size, _ in gaps), gaps, strict=True)
    median = next(gap for arms, (_, gap) in below if 2 * arms >= n) if horizon == 1 else mean
    certain = m * horizon / n > 50.0  # e^-50: the product that gives it may be long
    missed = 0.0 if certain else miss_probability(n, m, horizon)
    return Game(np.array([mean]), median, missed, exact=True)
