"""Where the policies we stand for lose: computed from the numbers, and said first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from manyarms.core.statistics import mean_interval
from manyarms.report.leaderboard import CONFIDENCE, Cell, by_problem, ratio
from manyarms.report.style import policy_title

__all__ = ["STOOD_FOR", "Loss", "losses", "where_we_lose"]

STOOD_FOR = ("empmoss++", "hybrid-moss++", "patience")


class Loss(NamedTuple):
    """A problem on which a policy that knows no more has less regret."""

    problem: str
    family: str
    winner: str
    factor: float  # regret of the loser over that of the winner


def losses(cells: Iterable[Cell], policy: str) -> tuple[list[Loss], int]:
    """Return where a policy loses to one that knows no more, and on how many problems it played.

    The rival is the one of least mean regret. It wins if the paired interval says so at a
    confidence that allows for the choice among all rivals.
    """
    lost, played = [], 0
    for group in by_problem(cells):
        own = next((cell for cell in group if cell.policy == policy), None)
        if own is None:
            continue
        played += 1
        rivals = [c for c in group if c is not own and c.knowledge in ("none", own.knowledge)]
        if not rivals:
            continue
        best = min(rivals, key=lambda cell: float(cell.regret.mean()))
        common = min(len(best.regret), len(own.regret))
        confidence = 1 - (1 - CONFIDENCE) / len(rivals)
        gap = mean_interval(own.regret[:common] - best.regret[:common], confidence=confidence)
        if gap.low > 0:
            factor = ratio(float(own.regret.mean()), float(best.regret.mean()))
            lost.append(Loss(own.problem, own.family, best.policy, factor))
    return lost, played


def where_we_lose(cells: Sequence[Cell]) -> str:
    """Say on how many problems, and on which, empMOSS++ and our own policies are beaten."""
    families = Counter(group[0].family for group in by_problem(cells))
    sentences = []
    for policy in STOOD_FOR:
        lost, played = losses(cells, policy)
        title = f"**{policy_title(policy)}**"
        if played == 0:
            continue
        if not lost:
            sentences.append(f"{title} loses on none of its {played} problems.")
            continue
        worst = max(lost, key=lambda loss: loss.factor)
        counts = Counter(loss.family for loss in lost)
        where = ", ".join(
            f"{family} {counts[family]} of {size}"
            for family, size in families.items()
            if counts[family]
        )
        winners = Counter(loss.winner for loss in lost).most_common(2)
        by = " and ".join(f"{policy_title(name)} ({times})" for name, times in winners)
        sentences.append(
            f"{title} loses on {len(lost)} of {played} problems ({where}), most often to {by}; "
            f'worst on "{worst.problem}", with {worst.factor:.3g} times the regret of '
            f"{policy_title(worst.winner)}."
        )
    rule = (
        "A policy loses where one that is told no more has less mean regret, by a paired interval "
        f"at {100 * CONFIDENCE:g} % that allows for the choice among all rivals."
    )
    return " ".join(["Where we lose:", *sentences, rule])
