"""Problems drawn at random: nobody chose them, and half of them were not used for tuning.

`manyarms reproduce random` plays policies that know at most the horizon, and nothing about the
means, and says which one loses least. Half of the problems may be looked at while a policy is
tuned. The other half only judges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import Interval, mean_interval
from manyarms.instances import BetaMeans, DiscreteMeans, UniformMeans, planted, reservoir
from manyarms.instances.reservoir import Distribution
from manyarms.protocol import described
from manyarms.protocol import policy as made
from manyarms.report.drawing import save_figure
from manyarms.report.style import policy_title
from manyarms.report.text import Block, Table, as_markdown, interval_text, write_text
from manyarms.simulation.experiment import Cell, Experiment
from manyarms.simulation.players import Player
from manyarms.studies.leaderboard.problems import SuiteProblem, affordable
from manyarms.studies.leaderboard.report import TAILS, as_csv, profiles, tails_table
from manyarms.studies.leaderboard.standings import Placing, geometric_mean, placings, standings
from manyarms.studies.study import Report, Results, Study

HALVES = {"tuned": 14_001, "held out": 14_002}  # the seeds that they are drawn by
_NAMES = {"tuned": "random_tuned", "held out": "random_held_out"}  # of experiments
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
    "moss++": ("moss++", {}),
    "anytime-moss++": ("anytime-moss++", {}),
    "quantile": ("quantile", {}),
}

_FIGURE = "figures/random"

_CAPTION = (
    "Performance profiles on the held-out problems: the share of problems on which a policy is "
    "within a factor of the least regret. Higher is better."
)
_HOW = (
    "All policies share the same luck. **Relative** regret is the mean regret of a policy divided "
    "by the least mean regret of all policies on the problem. The tables show its geometric mean "
    "over problems, with a 95 % interval for other problems that are drawn in the same way. "
    "**Joins alone** is the same number if the policy's other forms do not play: those with "
    "brackets, and the same policy with or without a guard. **Missed** is the share of runs that "
    "never pulled a best arm (if means are drawn: an arm within 1/√T of the supremum), as the mean "
    "over problems. The tuned half has a quarter of the runs, and slow policies have fewer."
)
_DRAWN = (
    "Two problems in five have planted best arms, whose mean is between 0.1 and 1. There are up to "
    "six kinds of other arms, which are 10 to 60 % lower or more; n is between 50 and 10^9, and "
    "the hardness between 0.05 and 0.75. The other problems have infinitely many arms. Their means "
    "are Beta-distributed (both shapes from 0.5 to 6), uniform (both ends in [0, 1]), or take one "
    "of up to six values; the chance of the best value is between 1/(2√T) and 0.3. T is "
    f"log-uniform from {SHORTEST:,} to {LONGEST:,}, and longer in one problem of 25. Rewards are 0 "
    "or 1. Seeds were fixed before anything was played."
)
_SPLIT = (
    "The *tuned* half may be looked at while constants are chosen. The *held-out* half only judges."
)


def experiments(replications: int, seed: int) -> list[Experiment]:
    """Return both halves, the one that judges first; the other is played a quarter as often.

    >>> held_out, tuned = experiments(10, seed=0)
    >>> held_out.name, len(held_out.cells), len(tuned.cells)
    ('random_held_out', 200, 200)
    """
    return [
        Experiment(
            _NAMES[half],
            tuple(entered(problem, max(2, runs)) for problem in random_problems(half)),
            seed,
        )
        for half, runs in (("held out", replications), ("tuned", replications // 4))
    ]


def entered(problem: SuiteProblem, replications: int) -> Cell:
    """Let every policy play on a problem; slow ones play less often."""
    said = described()
    players = []
    for label, (name, parameters) in ENTRANTS.items():
        runs = min(replications, max(FEWEST, affordable(said[name], problem.horizon, SECONDS)))
        players.append(Player(made(name, **parameters), label, runs, _TOLD))
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


class Score(NamedTuple):
    """A policy over the problems of one half."""

    policy: str
    relative: Interval  # geometric mean of relative regret
    alone: float  # the same if its other forms do not play
    first: int  # problems on which it has the least mean regret
    worst: Placing
    missed: float


def scores(table: Sequence[Placing]) -> list[Score]:
    """Return the policies' scores, least relative regret first."""
    by_problem: dict[str, dict[str, Placing]] = {}
    for placing in table:
        by_problem.setdefault(placing.problem, {})[placing.policy] = placing
    most, found = _most(table), []
    for policy in dict.fromkeys(placing.policy for placing in table):
        own = [players[policy] for players in by_problem.values()]
        logs = np.log([placing.relative for placing in own])
        found.append(
            Score(
                policy,
                _exp(mean_interval(logs, bounds=(0.0, most))),
                geometric_mean(_alone(policy, players) for players in by_problem.values()),
                sum(placing.rank.estimate == 1.0 for placing in own),
                max(own, key=lambda placing: placing.relative),
                float(np.mean([placing.summary.miss_rate for placing in own])),
            )
        )
    return sorted(found, key=lambda score: score.relative.estimate)


def _most(table: Sequence[Placing]) -> float:
    """Return the logarithm of the largest relative regret there could be, on any problem."""
    return max(math.log(p.largest / p.summary.mean * p.relative) for p in table)


def _alone(policy: str, players: Mapping[str, Placing]) -> float:
    """Return a policy's relative regret on a problem if its other forms do not play."""
    own = players[policy].summary.mean
    rivals = [p.summary.mean for name, p in players.items() if _family(name) != _family(policy)]
    return own / min(own, *rivals)


def _family(label: str) -> str:
    return label.partition("(")[0].removeprefix("guarded-")


def _exp(logs: Interval) -> Interval:
    return Interval(*(math.exp(end) for end in logs))


def times_less(table: Sequence[Placing], policy: str, than: str) -> Interval:
    """Return how many times less `policy` loses: the geometric mean over problems, paired."""
    logs: dict[str, NDArray[np.float64]] = {
        name: np.log([p.summary.mean for p in table if p.policy == name]) for name in (policy, than)
    }
    most = _most(table)
    return _exp(mean_interval(logs[than] - logs[policy], bounds=(-most, most)))


def report(results: Results, out: Path) -> Report:
    """Score the policies on both halves; draw the figure and write the page and the numbers."""
    tables = {
        half: [placing for cell in results[_NAMES[half]].cells for placing in placings(cell)]
        for half in HALVES
    }
    about = results[_NAMES["held out"]].provenance
    most, seed = about["replications"], about["seed"]
    command = f"manyarms reproduce random --replications {most} --seed {seed}"
    judged = tables["held out"]
    files = save_figure(profiles(judged, standings(judged)), out / _FIGURE)
    blocks = list(page(tables, f"{_FIGURE}.svg", command))
    files += [
        write_text(out / "random.md", as_markdown(blocks)),
        write_text(out / "random.csv", random_csv(tables, command)),
    ]
    return Report(files, [_scores_table(scores(judged), f"{len(judged)} placings, held out")])


def page(tables: Mapping[str, Sequence[Placing]], picture: str, command: str) -> Iterator[Block]:
    """Yield the page; the picture's path and the command come from outside."""
    judged = tables["held out"]
    order = scores(judged)
    yield from ("# Random problems", f"![{_CAPTION}]({picture})", in_short(judged, order))
    for half in reversed(HALVES):
        count = len({placing.problem for placing in tables[half]})
        yield f"## {count} problems, {half}"
        yield _scores_table(scores(tables[half]))
    yield from ("## Tails", TAILS, tails_table(judged), "## By kind, and by horizon")
    yield "Geometric means of relative regret on the held-out problems."
    yield _parts_table(judged, [score.policy for score in order])
    yield from ("## How problems are drawn", f"{_DRAWN} {_SPLIT}", "## How to read it", _HOW)
    yield "## Where this comes from"
    yield f"`{command}`. Mean regrets of all policies on all problems are in `random.csv`."


def in_short(table: Sequence[Placing], order: Sequence[Score]) -> str:
    """Say in three sentences who loses least, by how much, and where the best one is far off."""
    best, count = order[0], len({placing.problem for placing in table})
    rival = next(score for score in order if _family(score.policy) != _family(best.policy))
    less = times_less(table, best.policy, rival.policy)
    doubt = ", so on other problems drawn in the same way it might be first" * (less.low < 1.0)
    title = policy_title(best.policy)
    return (
        f"On {count} random problems that no constant was tuned on, **{title}** loses least of "
        f"{len(order)} policies that know nothing about the means: "
        f"{interval_text(best.relative, 2)} times the least regret on each (geometric mean), and "
        f"{best.alone:.2f} times if its other forms do not play. The next policy of another "
        f"kind is {policy_title(rival.policy)}, with {interval_text(rival.relative, 2)}. It loses "
        f"{interval_text(less, 2)} times as much{doubt}. The worst problem for {title} is "
        f"{best.worst.problem}; there it has {best.worst.relative:.3g} times the least regret."
    )


def _scores_table(order: Sequence[Score], title: str = "") -> Table:
    head = ["policy", "relative regret (geometric mean)", "joins alone", "first on", "missed"]
    rows = [
        [
            score.policy,
            interval_text(score.relative, 2),
            f"{score.alone:.2f}",
            f"{score.first}",
            f"{score.missed:.0%}",
            f"{score.worst.relative:.3g}",
            score.worst.problem,
        ]
        for score in order
    ]
    return Table([*head, "worst", "where"], rows, title)


def _parts_table(table: Sequence[Placing], policies: Sequence[str]) -> Table:
    parts: dict[str, list[Placing]] = {}
    for placing in table:
        parts.setdefault(placing.family, []).append(placing)
    for placing in table:
        parts.setdefault(_length(placing), []).append(placing)
    columns = sorted(part for part in parts if part.startswith("T"))
    columns = [*(part for part in parts if part not in columns), *columns]
    sizes = [len({placing.problem for placing in parts[part]}) for part in columns]
    rows = []
    for policy in policies:
        means = [
            geometric_mean(p.relative for p in parts[part] if p.policy == policy)
            for part in columns
        ]
        rows.append([policy, *(f"{mean:.2f}" for mean in means)])
    return Table(["policy", *(f"{c} ({n})" for c, n in zip(columns, sizes, strict=True))], rows)


def _length(placing: Placing) -> str:
    digits = len(placing.problem.rpartition(" ")[2])
    return f"T from 10^{digits - 1} on"


def random_csv(tables: Mapping[str, Sequence[Placing]], command: str) -> str:
    """Return the mean regret of every policy on every problem as CSV."""
    policies = sorted({placing.policy for placing in tables["held out"]})
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for half, table in tables.items():
        for p in table:
            found.setdefault((half, p.family, p.problem), {})[p.policy] = f"{p.summary.mean:.4g}"
    rows = [[*place, *(means[policy] for policy in policies)] for place, means in found.items()]
    return as_csv([["half", "family", "problem", *policies], *rows], {"command": command})


RANDOM = Study(50, experiments, report, fewest=2)
