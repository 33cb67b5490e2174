"""The leaderboard's figure: performance profiles, one panel for each kind of knowledge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manyarms.report._matplotlib import Axes, Figure, FuncFormatter, look, settle
from manyarms.report.leaderboard import Floats, Row, Standing, profile
from manyarms.report.style import policy_styles, policy_title

__all__ = ["KNOWLEDGE", "profiles"]

KNOWLEDGE = {
    "none": "told nothing of the means",
    "m": "told how rare good arms are",
    "mu*": "told the best mean",
}
_ALWAYS_SHOWN = (
    "moss",
    "quantile",
    "moss++",
    "empmoss++",
    "hybrid-moss++",
    "parallel",
    "patience",
    "moss-oracle",
)
_SHOWN = 9  # lines with a colour in a panel; the others are grey
_FURTHEST = 100.0  # factor
_SIZE = (8.4, 5.4)  # inches


def profiles(table: Sequence[Row], order: Sequence[Standing]) -> Figure:
    """Draw, for each policy, the share of its problems within a factor of the best.

    The best is that among the policies of equal knowledge, who share a panel. The policies of the
    paper, our own and the best others have colours and names; the rest is grey.

    Parameters
    ----------
    table, order
        Of `rows` and `standings`.
    """
    kinds = [kind for kind in KNOWLEDGE if any(row.knowledge == kind for row in table)]
    with look():
        figure = Figure(figsize=_SIZE)
        for at, kind in enumerate(kinds):
            axes = figure.add_subplot(1, len(kinds), at + 1)
            members = [standing for standing in order if standing.knowledge == kind]
            _draw(axes, table, members)
            axes.set_title(KNOWLEDGE[kind])
            if at == 0:
                axes.set_ylabel("share of the problems played")
            else:
                axes.tick_params(labelleft=False)
        settle(figure)
    return figure


def _draw(axes: Axes, table: Sequence[Row], members: Sequence[Standing]) -> None:
    most = max(standing.problems for standing in members)
    shown = _chosen([standing.policy for standing in members])
    others: dict[str, Any] = {"color": "#CFCFCF", "linewidth": 0.7}
    for standing in members:
        if standing.policy not in shown:
            axes.step(*_steps(table, standing.policy), where="post", **others)
    problems = {standing.policy: standing.problems for standing in members}
    for policy, style in policy_styles(shown).items():
        few = f" ({problems[policy]} problems)" if problems[policy] < most else ""
        options = style.options() | {"marker": "", "label": policy_title(policy) + few}
        axes.step(*_steps(table, policy), where="post", **options)
    if len(members) > len(shown):
        axes.plot([], [], label=f"{len(members) - len(shown)} others", **others)
    axes.set_xscale("log")
    axes.set_xlim(1.0, _FURTHEST)
    axes.set_ylim(0.0, 1.02)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.set_xlabel("within this factor of the least regret")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17))


def _steps(table: Sequence[Row], policy: str) -> tuple[Floats, Floats]:
    """Return where a policy's profile rises, and its heights."""
    own = [row.relative_equal for row in table if row.policy == policy]
    inside = [factor for factor in own if factor < _FURTHEST]
    factors = np.unique(np.array([1.0, *inside, _FURTHEST]))
    return factors, profile(table, policy, factors)


def _chosen(policies: Sequence[str]) -> list[str]:
    """Choose whom to name: those we speak of, then the best; in the order given."""
    chosen = {policy for policy in policies if policy in _ALWAYS_SHOWN}
    for policy in policies:
        if len(chosen) < _SHOWN:
            chosen.add(policy)
    return [policy for policy in policies if policy in chosen]
