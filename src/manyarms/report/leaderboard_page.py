"""The leaderboard's page and table: the numbers, how to read them, where they come from."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from manyarms.protocol import described
from manyarms.report.leaderboard import Cell, Rank, Row, Standing
from manyarms.report.leaderboard_blocks import Block, Details, Heading, Picture, Table, Text
from manyarms.report.leaderboard_losses import where_we_lose

__all__ = ["leaderboard_csv", "leaderboard_page"]

_KNOWS = {"none": "nothing", "m": "m", "mu*": "μ*"}
_TITLES = {
    "none": "Told nothing of the means",
    "m": "Told how rare good arms are (m, the hardness, or the shape of the means)",
    "mu*": "Told the best mean",
}
_PERFECT = "Made for a best mean of 1, and played only where it is (ranks are among all told μ*)"
_HOT = 100.0  # the relative regret that gets the warmest colour

_HOW = (
    "Every policy plays the same luck: the k-th reward of an arm is the same whoever pulls it. "
    "**Relative** regret is mean regret over the least mean regret on the problem, of all policies "
    "or of the **equals**, which are told the same. **Missed** is the share of runs that never "
    "pulled a best arm (in a reservoir: one within epsilon of the supremum). **Ranks** are by mean "
    "regret; intervals hold 95 % of 500 bootstrap draws of the runs, the same draws for all "
    "policies. Slow policies have fewer runs; the table says how many. A policy is left out where "
    "it does not apply: rewards outside [0, 1] for those made for [0, 1], and a best mean below 1 "
    "for those that take 1 for granted; their standing is over fewer and easier problems. "
    "Everybody may know the horizon; where means are drawn, `cbt`, `two-target`, `ucb-f` and "
    "`ucb-air` are told the shape of their distribution too. `best`, which knows a best arm, has "
    "no regret and is not listed."
)
_THRESHOLD = (
    "**On the contests.** The paper divides every caption's share of votes by the largest and "
    "raises all from 0.8 on to 1. That makes μ* = 1 exactly: best arms never fail, and every rule "
    "that drops an arm at its first failure, or assumes μ* = 1, is flattered. So contest 652 is "
    "played in two more forms: without the threshold, where a single arm of mean 1 is left by the "
    "division, and with the shares as voted, where the best mean is well below 1 and such rules "
    "do not apply."
)


def leaderboard_page(
    cells: Sequence[Cell],
    table: Sequence[Row],
    order: Sequence[Standing],
    *,
    svg: str,
    picture: str,
    provenance: Mapping[str, Any],
) -> list[Block]:
    """Return the page as blocks.

    Parameters
    ----------
    cells, table, order
        The runs, and what `rows` and `standings` make of them.
    svg, picture
        The figure, and its path as seen from the Markdown page.
    provenance
        What made the numbers: version, seed and the like.
    """
    caption = (
        "Performance profiles: the share of problems on which a policy is within a factor of the "
        "least regret among those told the same. Higher is better."
    )
    blocks: list[Block] = [
        Heading("The leaderboard", 1),
        Text(where_we_lose(cells)),
        Text(_HOW),
    ]
    if any("contest" in cell.problem for cell in cells):
        blocks.append(Text(_THRESHOLD))
    blocks += [Picture(svg, picture, caption), Heading("Standings")]
    for kind, title in _TITLES.items():
        members = [standing for standing in order if standing.knowledge == kind]
        perfect = [standing for standing in members if _needs_perfect_best(standing.policy)]
        others = [standing for standing in members if standing not in perfect]
        for heading, part in ((title, others), (_PERFECT, perfect)):
            if part:
                blocks += [Heading(heading, 3), _standings_table(part)]
    blocks += [
        Heading("Problem by problem"),
        Text("Relative regret among all policies, and in brackets the share of runs that missed."),
    ]
    for family in dict.fromkeys(row.family for row in table):
        within = [row for row in table if row.family == family]
        blocks += [Heading(family, 3), _family_table(within, order)]
        for problem in dict.fromkeys(row.problem for row in within):
            full = _problem_table([row for row in within if row.problem == problem])
            blocks.append(Details(f"{problem}: all numbers", full))
    facts = dict(provenance)
    command = facts.pop("command", "manyarms reproduce leaderboard")
    said = "; ".join(f"{key} {value}" for key, value in facts.items())
    source = f"`{command}`: {said}. All numbers are in `leaderboard.csv`."
    return [*blocks, Heading("Where this comes from"), Text(source)]


def _needs_perfect_best(policy: str) -> bool:
    entry = described().get(policy.partition("(")[0])
    return entry is not None and entry.perfect_best


def _standings_table(members: Sequence[Standing]) -> Table:
    head = (
        "policy",
        "problems",
        "runs of each, at least",
        "relative regret among equals (geometric mean)",
        "among all",
        "mean rank among equals",
        "among all",
        "worst among equals",
        "where",
    )
    return Table(
        head,
        tuple(
            (
                s.policy,
                f"{s.problems}",
                f"{s.runs}",
                _factor(s.relative_equal),
                _factor(s.relative),
                _one_digit(s.rank_equal),
                _one_digit(s.rank),
                _factor(s.worst),
                s.worst_at,
            )
            for s in members
        ),
        tuple(
            (None, None, None, _warmth(s.relative_equal), _warmth(s.relative), *(None,) * 4)
            for s in members
        ),
    )


def _family_table(table: Sequence[Row], order: Sequence[Standing]) -> Table:
    problems = list(dict.fromkeys(row.problem for row in table))
    found = {(row.policy, row.problem): row for row in table}
    rows, heat = [], []
    for kind in _TITLES:
        for standing in (s for s in order if s.knowledge == kind):
            own = [found.get((standing.policy, problem)) for problem in problems]
            if any(own):
                numbers = (
                    "-" if row is None else f"{_factor(row.relative)} ({row.miss_rate:.0%})"
                    for row in own
                )
                rows.append((standing.policy, _KNOWS[kind], *numbers))
                heat.append(
                    (None, None, *(None if r is None else _warmth(r.relative) for r in own))
                )
    return Table(("policy", "told", *problems), tuple(rows), tuple(heat))


def _problem_table(table: Sequence[Row]) -> Table:
    head = ("policy", "told", "runs", "mean", "± se", "median", "missed", "relative")
    return Table(
        (*head, "among equals", "rank", "among equals"),
        tuple(
            (
                row.policy,
                _KNOWS[row.knowledge],
                f"{row.runs}",
                f"{row.mean:.0f}",
                "-" if math.isnan(row.se) else f"{row.se:.0f}",
                f"{row.median:.0f}",
                f"{row.miss_rate:.0%}",
                _factor(row.relative),
                _factor(row.relative_equal),
                str(row.rank),
                str(row.rank_equal),
            )
            for row in table
        ),
    )


def leaderboard_csv(table: Sequence[Row], provenance: Mapping[str, Any]) -> str:
    """Return all rows as CSV, with the provenance in comment lines above."""
    text = io.StringIO()
    for key, value in provenance.items():
        text.write(f"# {key}: {value}\n")
    writer = csv.writer(text, lineterminator="\n")
    plain = Row._fields[: Row._fields.index("rank")]
    ranks = [f"{which}{end}" for which in ("rank", "rank_equal") for end in ("", "_low", "_high")]
    writer.writerow([*plain, *ranks])
    for row in table:
        numbers = [_short(value) for value in row[: len(plain)]]
        writer.writerow([*numbers, *(f"{x:g}" for x in (*row.rank, *row.rank_equal))])
    return text.getvalue()


def _short(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _factor(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _one_digit(rank: Rank) -> str:
    return f"{rank.value:.1f} [{rank.low:.1f}, {rank.high:.1f}]"


def _warmth(relative: float) -> float:
    return min(1.0, math.log(relative) / math.log(_HOT)) if math.isfinite(relative) else 1.0
