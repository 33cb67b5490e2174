"""Which policy to take: the one that is never far behind the best candidate.

The measure is the excess: how much more a policy loses than the best candidate does at the same
hardness, as a share of the horizon. Ratios would let the easiest problems decide, where everyone
loses little and one policy may still lose ten times as little as another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyarms.advice.playing import Game

__all__ = ["ALIKE", "Choice", "choose"]

ALIKE = 0.005  # of the horizon: policies whose worst excesses differ by less do alike
_RESAMPLES = 500

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Choice:
    """The choice, and how sure it is.

    Attributes
    ----------
    winner
        The number of the candidate to take.
    shares
        By problem and candidate: mean regret as a share of the horizon.
    excesses
        By problem and candidate: the share less the lowest one on that problem.
    wins
        By candidate: the share of bootstrap samples of the runs in which it is the one to take.
    """

    winner: int
    shares: Numbers
    excesses: Numbers
    wins: Numbers

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
