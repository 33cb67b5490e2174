"""The ranks of policies over many contests, with intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manyarms.report._matplotlib import Axes, Figure, MultipleLocator, look, settle
from manyarms.report.contests import ContestResult, Standing, game_title, standings
from manyarms.report.style import NOTE_SIZE, policy_styles, policy_title

__all__ = ["contest_ranks"]

_PANEL = (3.1, 2.6)  # inches


def contest_ranks(games: Sequence[Sequence[ContestResult]]) -> Figure:
    """Draw each policy's mean rank over all contests, one panel for each threshold.

    Parameters
    ----------
    games
        As for `contests_as_markdown`: for each threshold, the contests.

    Examples
    --------
    >>> import manyarms as ma
    >>> instance = ma.instances.planted(n=500, m=50)
    >>> policies = [ma.MOSS(), ma.Quantile()]
    >>> result = ma.simulate(policies, instance, horizon=500, replications=3)
    >>> figure = contest_ranks([[ContestResult("a contest", 0.8, 50, 0.37, result)]])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['Quantile', 'MOSS']
    """
    tables = [standings(results) for results in games]
    order = [row.policy for row in sorted(tables[0], key=lambda row: row.rank.estimate)]
    with look():
        figure = Figure(figsize=(_PANEL[0] * len(games), _PANEL[1]))
        panels = figure.subplots(1, len(games), sharey=True, squeeze=False)[0]
        for axes, results, rows in zip(panels, games, tables, strict=True):
            _draw(axes, {row.policy: row for row in rows}, order)
            axes.set_title(game_title(results[0].threshold))
            axes.set_xlabel(f"mean rank over {_contests(len(results))}")
        panels[0].set_yticks(range(len(order)), [policy_title(policy) for policy in order])
        panels[0].invert_yaxis()  # the best on top
        first = games[0][0].result
        note = (
            f"bars: 95 % intervals over contests; dots: single ranks; {first.horizon:,} pulls, "
            f"{first.replications} replications"
        )
        figure.supxlabel(note, fontsize=NOTE_SIZE)
        for axes, results in zip(panels, games, strict=True):
            _single_ranks(axes, results, order)
        settle(figure)
    return figure


def _draw(axes: Axes, rows: dict[str, Standing], order: list[str]) -> None:
    most = len(order)
    for place, (policy, style) in enumerate(policy_styles(order).items()):
        rank = rows[policy].rank
        if np.isfinite(rank.low):  # a single contest has none
            axes.plot([rank.low, rank.high], [place, place], color=style.colour, linewidth=1.6)
        options = style.options() | {"linestyle": "", "markersize": style.size + 1.5}
        axes.plot([rank.estimate], [place], **options, zorder=3)
    axes.set_xlim(0.6, most + 0.4)
    axes.xaxis.set_major_locator(MultipleLocator(1))


def _single_ranks(axes: Axes, results: Sequence[ContestResult], order: list[str]) -> None:
    """Draw the rank on each contest as a small dot; those that coincide spread below."""
    ranks = np.array([one.ranks for one in results])
    names = results[0].result.policies
    for place, policy in enumerate(order):
        column = ranks[:, names.index(policy)]
        for rank in np.unique(column):
            count = int((column == rank).sum())
            x = rank + (np.arange(count) - (count - 1) / 2) * min(0.08, 0.7 / count)
            y = np.full(count, place + 0.3)
            axes.plot(x, y, linestyle="", marker=".", markersize=2.5, color="#999999", zorder=1)


def _contests(count: int) -> str:
    return f"{count} contest{'' if count == 1 else 's'}"
