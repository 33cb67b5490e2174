"""Play every candidate at every hardness, and choose the one that is never far behind the best.

The measure is the excess: how much more a policy loses than the best candidate does at the same
hardness, as a share of the horizon. Ratios would let the easiest problems decide, where everyone
loses little and one policy may still lose ten times as little as another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.advice.question import Candidate, Question
from manyarms.lab.experiment import Experiment, Player, cell
from manyarms.lab.progress import ProgressCallback
from manyarms.lab.simulate import run_in_memory
from manyarms.theory import Problem, miss_probability

__all__ = ["ALIKE", "Choice", "Game", "choose", "play"]

ALIKE = 0.005  # of the horizon: policies whose worst excesses differ by less do alike
_RESAMPLES = 500
_BUDGET = 16e9  # nanoseconds of one processor, for all games together
_FOR_ONE = 0.5e9  # and for one of them
_FEWEST, _MOST = 4, 200  # replications
_LARGE_SET, _HUGE_SET = 1 << 14, 1 << 17  # arms; a policy's tables outgrow one cache, then all
_SMALL, _LARGE = 40.0, 150.0  # nanoseconds per pull with small and large sets, measured
_WORTH_SKIPPING = 10_000  # pulls; shorter games are played even if their mean is known

Numbers = NDArray[np.float64]


class Game(NamedTuple):
    """A candidate on a problem: its regret in every replication, and how often it missed."""

    regrets: Numbers  # their mean where it is known without playing
    median: float
    miss_rate: float
    exact: bool = False


def play(
    question: Question,
    players: Sequence[Candidate],
    replications: int | None,
    *,
    seed: int,
    workers: int | None,
    progress: bool | ProgressCallback | None,
) -> list[list[Game]]:
    """Return the games by problem and candidate."""
    problems = question.problems()
    games: dict[tuple[int, int], Game] = {}
    cells = []
    for k, problem in enumerate(problems):
        known = {seat: _known(question, player, problem) for seat, player in enumerate(players)}
        games |= {(k, seat): game for seat, game in known.items() if game is not None}
        seats = [
            Player(
                player.policy,
                f"player {seat}",
                replications or _replications(question, player, len(problems) * len(players)),
                {"seat": seat},
            )
            for seat, player in enumerate(players)
            if known[seat] is None
        ]
        if seats:
            arms, horizon = question.instance(problem), question.horizon
            here = {"problem": k}
            cells.append(cell(seats, arms, horizon=horizon, checkpoints=1, parameters=here))
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


def _known(question: Question, player: Candidate, problem: Problem) -> Game | None:
    """Return the game if it is known without playing: no arm is pulled twice, or all are best.

    Then every pull loses what a random arm loses on average.
    """
    n, m, horizon = question.n, int(problem.m), question.horizon
    if m == n:
        return Game(np.zeros(1), 0.0, 0.0, exact=True)
    long = horizon >= _WORTH_SKIPPING and player.is_moss and player.arms >= horizon
    if not long and horizon > 1:
        return None
    world = question.instance(problem).world(horizon)
    gaps, sizes = question.best - np.array(world.values), np.diff(world.ends, prepend=0)
    mean = horizon * math.fsum(gaps * sizes) / n
    # of one pull the middle arm's; of a sum of so many, within a reward of the mean
    order = gaps.argsort()
    middle = order[np.searchsorted(2 * sizes[order].cumsum(), n)]
    median = float(gaps[middle]) if horizon == 1 else mean
    certain = m * horizon / n > 50.0  # e^-50: the product that gives it may be long
    missed = 0.0 if certain else miss_probability(n, m, horizon)
    return Game(np.array([mean]), median, missed, exact=True)


@dataclass(frozen=True, eq=False)
class Choice:
    """The choice, and how sure it is."""

    winner: int  # the number of the candidate to take
    shares: Numbers  # by problem and candidate: mean regret as a share of the horizon
    excesses: Numbers  # likewise: the share less the lowest one on the problem
    wins: Numbers  # by candidate: the share of bootstrap samples of the runs that choose it

    @property
    def worst(self) -> Numbers:
        """By candidate: its largest excess."""
        return np.asarray(self.excesses.max(axis=0))


def choose(games: Sequence[Sequence[Game]], horizon: int) -> Choice:
    """Choose by the means, and bootstrap the choice over the runs.

    >>> fast = Game(np.array([10.0, 12.0, 11.0]), median=11.0, miss_rate=0.0)
    >>> slow = Game(np.array([30.0, 35.0, 31.0]), median=31.0, miss_rate=0.0)
    >>> choice = choose([[slow, fast]], horizon=100)
    >>> choice.winner, choice.wins.tolist(), choice.worst.round(2).tolist()
    (1, [0.0, 1.0], [0.21, 0.0])
    """
    shares = np.array([[game.regrets.mean() / horizon for game in row] for row in games])
    excesses = _excesses(shares)
    again = _choose(_excesses(_resampled(games) / horizon).max(axis=1))
    wins = np.bincount(again, minlength=shares.shape[1]) / _RESAMPLES
    return Choice(int(_choose(excesses.max(axis=0)[None])[0]), shares, excesses, wins)


def _excesses(shares: Numbers) -> Numbers:
    """By (…, problem, candidate): what is lost beyond the best candidate."""
    return np.asarray(shares - shares.min(axis=-1, keepdims=True))


def _choose(worst: Numbers) -> NDArray[np.int64]:
    """By sample: the first, and so the simplest, of the candidates that do as well as any."""
    return np.asarray((worst <= worst.min(axis=1, keepdims=True) + ALIKE).argmax(axis=1))


def _resampled(games: Sequence[Sequence[Game]]) -> Numbers:
    """Mean regrets of runs drawn anew, by (sample, problem, candidate).

    Candidates that were played equally often keep their pairs: the same runs are drawn for all.
    """
    rng = np.random.default_rng(0)
    columns = []
    for row in games:
        weights = {
            count: rng.multinomial(count, np.full(count, 1 / count), size=_RESAMPLES) / count
            for count in sorted({len(game.regrets) for game in row})
        }
        columns.append(np.stack([weights[len(g.regrets)] @ g.regrets for g in row], axis=1))
    return np.stack(columns, axis=1)
