"""What was measured on many contests, as Markdown and as plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from manyarms.core.statistics import Interval
from manyarms.report.contests import ContestResult, Standing, game_title, standings
from manyarms.report.style import policy_title

__all__ = ["contests_as_data", "contests_as_markdown", "interval_text"]

_NOTES = """\
*Relative regret* is a policy's mean regret over that of the best policy of the same contest: 1 is \
the best. *Wins* are the contests on which it is the best, alone or not. *Rank* is its place among \
the {count} policies. Ratios and ranks are means over contests, with 95 % intervals (Student's t) \
for a contest like these. *Missed* is the share of runs that never pulled a best caption. MOSS \
Oracle is told how many captions are best, and Parallel the best mean; the others neither."""


def contests_as_markdown(
    games: Sequence[Sequence[ContestResult]], left_out: Sequence[str] = ()
) -> str:
    """Return the tables: over all contests, and contest by contest.

    Parameters
    ----------
    games
        For each threshold, the contests, as for `standings`.
    left_out
        Lines about contests that could not be played.
    """
    first = games[0][0].result
    count = len(games[0])
    lines = [
        f"# {count} caption contest{'' if count == 1 else 's'}, {first.horizon} pulls, "
        f"{first.replications} replications, seed {first.seed}",
    ]
    for results in games:
        lines += ["", f"## {game_title(results[0].threshold).capitalize()}", ""]
        lines += _table(
            ["policy", "relative regret", "wins", "rank", "missed"],
            [
                [
                    policy_title(row.policy),
                    interval_text(row.relative),
                    str(row.wins),
                    interval_text(row.rank),
                    f"{row.miss_rate:.0%}",
                ]
                for row in sorted(standings(results), key=lambda row: row.relative.estimate)
            ],
        )
        lines += ["", "Mean regrets, that of the best policy in bold:", ""]
        policies = [policy_title(policy) for policy in first.policies]
        lines += _table(
            ["contest", "captions", "best", "hardness", *policies],
            [_contest_row(one) for one in results],
        )
    lines += ["", _NOTES.format(count=len(first.policies))]
    if left_out:
        lines += ["", "Left out:", "", *(f"- {line}" for line in left_out)]
    return "\n".join(lines)


def contests_as_data(
    games: Sequence[Sequence[ContestResult]], left_out: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the same as plain data."""
    first = games[0][0].result
    return {
        "horizon": first.horizon,
        "replications": first.replications,
        "seed": first.seed,
        "games": [
            {
                "threshold": results[0].threshold,
                "policies": [_standing_data(row) for row in standings(results)],
                "contests": [_contest_data(one) for one in results],
            }
            for results in games
        ],
        "left_out": list(left_out),
    }


def _standing_data(row: Standing) -> dict[str, Any]:
    return {
        "policy": row.policy,
        "relative_regret": _plain(row.relative),
        "wins": row.wins,
        "rank": _plain(row.rank),
        "miss_rate": row.miss_rate,
    }


def _contest_data(one: ContestResult) -> dict[str, Any]:
    rows = one.result.summary().policies
    errors = [None if math.isnan(row.se) else row.se for row in rows]
    regrets = zip(rows, errors, strict=True)
    return {
        "contest": one.contest,
        "captions": one.result.n_arms,
        "best": one.n_best,
        "hardness": one.alpha,
        "regret": {row.policy: {"mean": row.mean, "se": error} for row, error in regrets},
        "miss_rate": {row.policy: row.miss_rate for row in rows},
    }


def _contest_row(one: ContestResult) -> list[str]:
    best = one.regrets.min()
    cells = [f"**{regret:.0f}**" if regret == best else f"{regret:.0f}" for regret in one.regrets]
    facts = [one.contest, str(one.result.n_arms), str(one.n_best), f"{one.alpha:.2f}"]
    return [*facts, *cells]


def interval_text(interval: Interval) -> str:
    """Return an interval as it stands in tables.

    >>> interval_text(Interval(1.5, 1.25, 1.75)), interval_text(Interval(2, math.nan, math.nan))
    ('1.50 [1.25, 1.75]', '2.00')
    """
    ends = "" if math.isnan(interval.low) else f" [{interval.low:.2f}, {interval.high:.2f}]"
    return f"{interval.estimate:.2f}{ends}"


def _plain(interval: Interval) -> dict[str, float | None]:
    return {k: None if math.isnan(end) else end for k, end in interval._asdict().items()}


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]
