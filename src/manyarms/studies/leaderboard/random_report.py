"""The page of random problems: which policy loses least on problems that nobody chose."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import Interval, mean_interval
from manyarms.report.drawing import save_figure
from manyarms.report.style import policy_title
from manyarms.report.text import Block, Table, as_markdown, interval_text, write_text
from manyarms.studies.leaderboard.random_problems import (
    HALVES,
    LONGEST,
    SHORTEST,
    experiment,
    experiments,
)
from manyarms.studies.leaderboard.report import as_csv, profiles
from manyarms.studies.leaderboard.standings import Placing, geometric_mean, placings, standings
from manyarms.studies.study import Report, Results, Study

__all__ = ["RANDOM", "Score", "scores"]

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
        half: [placing for cell in results[experiment(half)].cells for placing in placings(cell)]
        for half in HALVES
    }
    about = results[experiment("held out")].provenance
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
    yield "## By kind, and by horizon"
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


RANDOM = Study("policies that know nothing, on random problems", 50, experiments, report, fewest=2)
