"""The leaderboard's suite: problems like the paper's and unlike them, and which policies play.

A policy joins if it is registered with an `about`. It is given what its `about` says it knows. It
is left out where it does not apply: if it is not made for the rewards, or if it assumes a best mean
of 1 and the best mean is lower. Empirical CBT expects a best mean of 1 but works without it, so it
plays everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from manyarms import instances
from manyarms.instances import BetaMeans, Instance, UniformMeans, captions, planted
from manyarms.protocol import About, described, policy
from manyarms.simulation.experiment import Cell, Experiment, cell
from manyarms.simulation.players import Player

N_ARMS, HORIZON, CONTEST_HORIZON = 20_000, 50_000, 100_000
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
EASY_AND_MIDDLE = (0.2, 0.4)
GAPS: dict[str, tuple[float, tuple[float, ...]]] = {
    "0.5 over 0.1 to 0.3": (0.5, (0.1, 0.2, 0.3)),
    "0.6 over 0.5": (0.6, (0.5,)),
    "0.55 over 0.5": (0.55, (0.5,)),
}
SHAPES = ((1.0, 1.0), (2.0, 0.5), (2.0, 2.0), (1.0, 3.0))  # of Beta-distributed means
CONTESTS = "caption contests"  # the family

SECONDS = 0.6  # of one core, for one policy on one problem
SCANNED = 2_000  # arms: UCB1, UCB, KL-UCB and Thompson sampling play on no more
FEWEST = 25  # runs, however slow: in fewer, one who misses now and then may seem never to miss


class SuiteProblem(NamedTuple):
    """A problem, its family, and what policies are given that know how rare good arms are."""

    family: str
    name: str
    instance: Instance
    horizon: int = HORIZON
    shape: tuple[float, float] | None = None  # (b, w): P(mean >= best - e) is about w e^b
    chance: float | None = None  # that an arm counts as best, where means are drawn

    @property
    def ratio(self) -> float:
        """n/m, or what stands for it where means are drawn."""
        return 1 / self.chance if self.chance else self.instance.problem(self.horizon).ratio

    def cell(self, players: Sequence[Player]) -> Cell:
        """Return the problem with its players."""
        where = {"problem": self.name, "family": self.family}
        return cell(players, self.instance, horizon=self.horizon, checkpoints=1, parameters=where)


def experiments(replications: int, seed: int) -> list[Experiment]:
    """Return the suite, with the contests of this machine.

    >>> (experiment,) = experiments(100, seed=0)
    >>> [player.policy.label for player in experiment.cells[3].players][:2]
    ['moss', 'moss-oracle(alpha=0.3999...)']
    """
    suite = [*problems(), *contests()]
    return [Experiment("leaderboard", tuple(entered(each, replications) for each in suite), seed)]


def entered(problem: SuiteProblem, replications: int) -> Cell:
    """Let every policy that applies play on a problem; slow ones play less often."""
    instance, players = problem.instance, []
    for label, name, about, parameters in _entrants():
        applies = about.rewards == "any" or instance.rewards.bounded
        applies &= about.scaling != "arms tried" or instance.n_arms <= SCANNED
        if applies and (instance.best_mean == 1.0 or not about.perfect_best):
            entrant = policy(name, **parameters, **_told(name, problem))
            runs = min(replications, max(FEWEST, affordable(about, problem.horizon, SECONDS)))
            facts = {"knowledge": about.knowledge, "perfect_best": int(about.perfect_best)}
            players.append(Player(entrant, label, runs, facts))
    return problem.cell(players)


def affordable(about: About, horizon: int, seconds: float) -> int:
    """Return how many runs of a policy fit into some seconds of one core."""
    return int(seconds * 1e9 / (pull_nanoseconds(about) * horizon))


def _entrants() -> Iterator[tuple[str, str, About, dict[str, Any]]]:
    """Yield the label, name, facts and parameters of every policy."""
    said = described()
    for name, about in said.items():
        if not about.finds:
            yield name, name, about, {}
    for name, about in said.items():
        for form in about.variants if not about.finds else ():
            yield form.label, name, replace(about, rewards=form.rewards), dict(form.parameters)


def _told(name: str, problem: SuiteProblem) -> dict[str, Any]:
    """Return what a policy knows; the simulator gives the best mean to those who ask for it."""
    ratio, horizon = problem.ratio, problem.horizon
    if name == "moss-oracle":
        return {"alpha": min(1.0, max(0.0, math.log(ratio / 2) / math.log(horizon)))}
    if problem.shape is None or name != "cbt":
        return {}
    b, weight = problem.shape
    return {"b": b, "weight": weight}


def problems() -> Iterator[SuiteProblem]:
    """Yield the suite without contests."""
    for alpha in ALPHAS:
        yield SuiteProblem("Figure 2(a)", f"Fig. 2(a), alpha {alpha}", _planted(alpha))
    for gap, (best, others) in GAPS.items():
        for alpha in EASY_AND_MIDDLE:
            coins = _planted(alpha, best=best, others=others)
            yield SuiteProblem("smaller gaps", f"{gap}, alpha {alpha}", coins)
    for alpha in EASY_AND_MIDDLE:
        normal = _planted(alpha, rewards=instances.Gaussian(0.5))
        yield SuiteProblem("Gaussian rewards", f"Gaussian, alpha {alpha}", normal)
    for alpha in EASY_AND_MIDDLE:  # T << n
        coins = planted(n=1_000_000, alpha=alpha, horizon=10_000)
        name = f"n = 1 000 000, T = 10 000, alpha {alpha}"
        yield SuiteProblem("extreme sizes", name, coins, 10_000)
    for m in (10, 1):  # n << T
        yield SuiteProblem("extreme sizes", f"n = 100, T = 50 000, m = {m}", planted(n=100, m=m))
    for a, b in SHAPES:  # P(mean >= 1 - e) = e^b / (b B(a, b)), and lower order
        beta = math.gamma(a) * math.gamma(b) / math.gamma(a + b)
        yield _drawn(f"Beta({a:g}, {b:g}) means", BetaMeans(a, b), b, 1 / (b * beta))
    yield _drawn("uniform means up to 0.8", UniformMeans(0.0, 0.8), 1.0, 1 / 0.8)


def _planted(alpha: float, **options: Any) -> Instance:
    return planted(n=N_ARMS, alpha=alpha, horizon=HORIZON, **options)


def _drawn(name: str, means: BetaMeans | UniformMeans, b: float, weight: float) -> SuiteProblem:
    # Nearer than T^(-1/(b+1)) no policy can expect to come: such arms are rarer than the pulls
    # that it takes to tell them.
    epsilon = max(HORIZON**-0.5, HORIZON ** (-1 / (b + 1)))
    arms, chance = instances.reservoir(means, epsilon=epsilon), min(1.0, weight * epsilon**b)
    return SuiteProblem("infinitely many arms", name, arms, HORIZON, (b, weight), chance)


def contests() -> list[SuiteProblem]:
    """Return the contests on this machine as the paper has them; contest 652 in other forms too."""
    found: dict[str, Instance] = {}
    for stem, path in instances.local_contests().items():
        number = stem.partition("_")[0]
        name = f"contest {number}" if f"contest {number}" not in found else f"contest {stem}"
        found[name] = captions(path)
        if name == "contest 652":
            found["contest 652, no threshold"] = captions(path, threshold=None)
            found["contest 652, shares as voted"] = captions(path, scaled=False)
    if "contest 652" not in found:
        found["contest 652 (stand-in)"] = instances.stand_in_652()
    return [SuiteProblem(CONTESTS, name, each, CONTEST_HORIZON) for name, each in found.items()]
