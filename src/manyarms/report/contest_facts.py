"""Claim 10: what the paper says of contest 652 itself, where no chance is involved."""

from __future__ import annotations

import math

from manyarms.core.statistics import median_ratio_interval, ratio_interval
from manyarms.instances import Instance
from manyarms.report.paper_results import final
from manyarms.report.verdicts import Part, exactly
from manyarms.results import Result

__all__ = ["contest_facts", "contest_ratios"]

_HORIZON = 100_000


def contest_facts(contest: Instance) -> tuple[Part, ...]:
    """Check the numbers; nothing can be told from a stand-in, which was made to match them."""
    if "stand-in" in contest.label:
        return ()
    means = [contest.mean(arm) for arm in range(contest.n_arms)]
    others = [mean for mean in means if mean < contest.best_mean]
    alpha = contest.problem(_HORIZON).alpha
    return (
        exactly("arms", contest.n_arms, "= 10025", contest.n_arms == 10025),
        exactly("best arms", contest.n_best or math.nan, "= 54", contest.n_best == 54),
        exactly("largest other mean", max(others), "<= 0.8", max(others) <= 0.8),
        exactly("smallest other mean", min(others), ">= 0", min(others) >= 0.0),
        exactly("hardness", alpha, "0.43 to two digits", round(alpha, 2) == 0.43),
    )


def contest_ratios(result: Result) -> list[str]:
    """Say how many times empMOSS++'s regret others have, by means and by medians."""
    under = final(result, "empmoss++")
    lines = []
    for policy in ("moss", "quantile"):
        over = final(result, policy)
        means, medians = ratio_interval(over, under), median_ratio_interval(over, under)
        lines.append(
            f"On {result.instance}, {policy} / empmoss++: means {means.estimate:.2f} "
            f"[{means.low:.2f}, {means.high:.2f}], medians {medians.estimate:.2f} "
            f"[{medians.low:.2f}, {medians.high:.2f}]."
        )
    return lines
