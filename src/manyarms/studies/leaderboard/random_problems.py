"""Problems drawn at random: nobody chose them, and half of them were not used for tuning.

`manyarms reproduce random` plays policies that know at most the horizon, and nothing about the
means. Half of the problems may be looked at while a policy is tuned. The other half only judges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from manyarms.instances import BetaMeans, DiscreteMeans, UniformMeans, planted, reservoir
from manyarms.instances.reservoir import Distribution
from manyarms.lab.experiment import Cell, Experiment, Player
from manyarms.protocol import described, policy
from manyarms.studies.leaderboard.problems import SuiteProblem, affordable

__all__ = ["HALVES", "experiment", "experiments", "random_problems"]

HALVES = {"tuned": 14_001, "held out": 14_002}  # the seeds that they are drawn by
COUNT = 200  # problems in each half
SHORTEST, LONGEST, LONGEST_OF_ALL = 1_000, 200_000, 5_000_000  # pulls
EVERY = 25  # one problem in 25 is longer than LONGEST
FEWEST_ARMS, MOST_ARMS = 50, 10**9
KINDS = ("planted", "planted", "Beta", "uniform", "discrete")  # planted ones twice as often

SECONDS, FEWEST = 1.5, 10  # of one core for one policy on one problem; runs, however slow

_TOLD: dict[str, str | int] = {"knowledge": "none", "perfect_best": 0}
# label -> (name, parameters): they know nothing about the means. Policies that must try every arm
# are not here: they lose most wherever arms are many. The others are compared with the first.
ENTRANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "prospector": ("prospector", {}),
    "prospector(bold)": ("prospector", {"bold": True}),
    "prospector(no horizon)": ("prospector", {"guess_horizon": True}),
    "guarded-ss-greedy": ("guarded-ss-greedy", {}),
    "guarded-empmoss++": ("guarded-empmoss++", {}),
    "ss-greedy": ("ss-greedy", {}),
    "ss-greedy(T^2/3)": ("ss-greedy", {"exponent": 2 / 3}),
    "empirical-cbt": ("empirical-cbt", {}),
    "empmoss++": ("empmoss++", {}),
    "hybrid-moss++": ("hybrid-moss++", {}),
    "hybrid-moss++(kl)": ("hybrid-moss++", {"index": "kl"}),
    "corral-igw": ("corral-igw", {}),
    "moss++": ("moss++", {}),
    "anytime-moss++": ("anytime-moss++", {}),
    "ss-moss": ("ss-moss", {}),
    "quantile": ("quantile", {}),
}


def experiments(replications: int, seed: int) -> list[Experiment]:
    """Return both halves, the one that judges first; the other is played a quarter as often.

    >>> held_out, tuned = experiments(10, seed=0)
    >>> held_out.name, len(held_out.cells), len(tuned.cells)
    ('random_held_out', 200, 200)
    """
    return [
        Experiment(
            experiment(half),
            tuple(entered(problem, max(2, runs)) for problem in random_problems(half)),
            seed,
        )
        for half, runs in (("held out", replications), ("tuned", replications // 4))
    ]


def experiment(half: str) -> str:
    """Return the name of a half's experiment."""
    return f"random_{half.replace(' ', '_')}"


def entered(problem: SuiteProblem, replications: int) -> Cell:
    """Let every policy play on a problem; slow ones play less often."""
    said = described()
    players = []
    for label, (name, parameters) in ENTRANTS.items():
        runs = min(replications, max(FEWEST, affordable(said[name], problem.horizon, SECONDS)))
        players.append(Player(policy(name, **parameters), label, runs, _TOLD))
    return problem.cell(players)


def random_problems(half: str, count: int = COUNT) -> Iterator[SuiteProblem]:
    """Yield the problems of a half; a larger `count` begins with the same ones.

    >>> next(random_problems("held out")).name
    '1: ...'
    """
    luck = np.random.default_rng(HALVES[half])
    for number in range(1, count + 1):
        horizon = round(_log_uniform(luck, SHORTEST, LONGEST))
        if number % EVERY == 0:
            horizon = round(_log_uniform(luck, LONGEST, LONGEST_OF_ALL))
        kind = str(luck.choice(KINDS))
        yield _DRAW[kind](luck, number, horizon)


def _log_uniform(luck: np.random.Generator, low: float, high: float) -> float:
    return math.exp(luck.uniform(math.log(low), math.log(high)))


def _planted(luck: np.random.Generator, number: int, horizon: int) -> SuiteProblem:
    """Draw best arms with a mean of 0.1 or more, and up to six kinds of arms clearly below."""
    n, alpha = round(_log_uniform(luck, FEWEST_ARMS, MOST_ARMS)), luck.uniform(0.05, 0.75)
    best = luck.uniform(0.1, 1.0)
    below = best * luck.uniform(0.4, 0.9)
    others = sorted(float(mean) for mean in luck.uniform(0.0, below, size=luck.integers(1, 7)))
    arms = planted(n=n, alpha=alpha, horizon=horizon, best=float(best), others=others)
    words = f"{best:.2f} over at most {others[-1]:.2f}, n = {n}, alpha {alpha:.2f}"
    return SuiteProblem("planted", _name(number, words, horizon), arms, horizon)


def _beta(luck: np.random.Generator, number: int, horizon: int) -> SuiteProblem:
    a, b = (_log_uniform(luck, 0.5, 6.0) for _ in range(2))
    return _drawn("Beta", number, f"Beta({a:.2f}, {b:.2f})", BetaMeans(a, b), horizon)


def _uniform(luck: np.random.Generator, number: int, horizon: int) -> SuiteProblem:
    low, high = sorted(float(mean) for mean in luck.uniform(0.0, 1.0, size=2))
    words = f"uniform from {low:.2f} to {high:.2f}"
    return _drawn("uniform", number, words, UniformMeans(low, high), horizon)


def _discrete(luck: np.random.Generator, number: int, horizon: int) -> SuiteProblem:
    """Draw up to six means; the chance of the best one is between 1/(2 sqrt(T)) and 0.3."""
    values = sorted((float(mean) for mean in luck.uniform(size=luck.integers(2, 7))), reverse=True)
    best = _log_uniform(luck, 0.5 / math.sqrt(horizon), 0.3)
    rest = luck.dirichlet(np.ones(len(values) - 1)) + 1e-9
    chances = [best, *((1.0 - best) * rest / rest.sum()).tolist()]
    words = f"{values[0]:.2f} with chance {best:.3g}, next {values[1]:.2f}"
    return _drawn("discrete", number, words, DiscreteMeans(values, chances), horizon)


def _drawn(family: str, number: int, words: str, means: Distribution, horizon: int) -> SuiteProblem:
    return SuiteProblem(family, _name(number, words, horizon), reservoir(means), horizon)


def _name(number: int, words: str, horizon: int) -> str:
    return f"{number}: {words}, T = {horizon}"


_DRAW = {"planted": _planted, "Beta": _beta, "uniform": _uniform, "discrete": _discrete}
