"""The fifteen claims of the paper's text, each as inequalities on our results.

The decision rules: "grows" is asked of every adjacent pair of hardnesses; "far from satisfying" and
"much worse" mean at least 2 times the better of MOSS++ and empMOSS++; "good" at most 1.5 times
MOSS++; "comparable" and "roughly" a ratio of means within [1/1.5, 1.5]; "flattens" that the last
fifth of the horizon adds less than 5 % of the final mean.
"""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from manyarms.core.statistics import mean_interval, ratio_interval
from manyarms.report.paper_results import (
    PaperResults,
    beats,
    better_adaptive,
    final,
    late_growth,
    ratio,
)
from manyarms.report.verdicts import Claim, Part, exactly, less, more, within
from manyarms.theory.schedules import subroutines, subset_size

__all__ = ["paper_claims"]

COMPARABLE = (1 / 1.5, 1.5)
MUCH_WORSE = 2.0
GOOD = 1.5
FLAT = 0.05


def paper_claims(results: PaperResults) -> list[Claim]:
    """Decide all fifteen claims; those on a stand-in for the contest say so."""
    claims = []
    for number, (text, parts) in enumerate(_CLAIMS, 1):
        said = text
        if "stand-in" in results.fig3.instance:
            said = re.sub("contest 652", r"\g<0> (stand-in)", text, flags=re.IGNORECASE)
        claims.append(Claim(number, said, tuple(parts(results)), results.fig2b.replications))
    return claims


def _grows(results: PaperResults) -> list[Part]:
    return [
        more(
            f"{policy}: alpha {high} - alpha {low}",
            mean_interval(final(results.fig2a[high], policy) - final(results.fig2a[low], policy)),
        )
        for policy in results.fig2b.policies
        for low, high in pairwise(sorted(results.fig2a))
    ]


def _moss_is_far(results: PaperResults) -> list[Part]:
    return [
        more(
            f"alpha {alpha}: moss / {better_adaptive(result)}",
            ratio(result, "moss", better_adaptive(result)),
            MUCH_WORSE,
        )
        for alpha, result in results.fig2a.items()
    ]


def _quantile_good_then_bad(results: PaperResults) -> list[Part]:
    easiest = min(results.fig2a)
    parts = [
        less(
            f"alpha {easiest}: quantile / moss++",
            ratio(results.fig2a[easiest], "quantile", "moss++"),
            GOOD,
        )
    ]
    for alpha, result in results.fig2a.items():
        if alpha > easiest:
            better = better_adaptive(result)
            worse = ratio(result, "quantile", better)
            parts.append(more(f"alpha {alpha}: quantile / {better}", worse, MUCH_WORSE))
    return parts


def _quantile_flattens_at_20000(results: PaperResults) -> list[Part]:
    level = results.fig2b.horizon * (0.9 - 0.5)
    return [
        within(
            f"alpha {alpha}: quantile / {level:.0f}",
            mean_interval(final(result, "quantile") / level),
            *COMPARABLE,
        )
        for alpha, result in results.fig2a.items()
        if alpha >= 0.7
    ]


def _parallel_pays_for_all(results: PaperResults) -> list[Part]:
    q = subroutines(results.fig2b.horizon)
    facts = [exactly("number of subroutines", q, "= 11", q == 11)]
    return facts + [
        beats(result, "moss-oracle", "parallel", f"alpha {alpha}")
        for alpha, result in results.fig2a.items()
    ]


def _emp_is_comparable_when_easy(results: PaperResults) -> list[Part]:
    return [
        within(
            f"alpha {alpha}: empmoss++ / moss-oracle",
            ratio(result, "empmoss++", "moss-oracle"),
            *COMPARABLE,
        )
        for alpha, result in results.fig2a.items()
        if alpha < 0.3
    ]


def _emp_is_best_when_hard(results: PaperResults) -> list[Part]:
    return [
        beats(result, "empmoss++", policy, f"alpha {alpha}")
        for alpha, result in results.fig2a.items()
        if alpha >= 0.3
        for policy in result.policies
        if policy != "empmoss++"
    ]


def _oracle_explores_all_when_hard(results: PaperResults) -> list[Part]:
    parts = []
    for alpha, result in results.fig2a.items():
        if alpha >= 0.7:
            share = subset_size(result.horizon, alpha, 2.0, result.n_arms) / result.n_arms
            what = f"alpha {alpha}: share of arms in the set"
            parts.append(exactly(what, share, "> 0.5", share > 0.5))
            parts.append(beats(result, "empmoss++", "moss-oracle", f"alpha {alpha}"))
    return parts


def _figure_2b(results: PaperResults) -> list[Part]:
    result = results.fig2b
    regrets = {policy: final(result, policy) for policy in result.policies}
    oracle = regrets["moss-oracle"]
    parts = [beats(result, p, "quantile", "final") for p in ("empmoss++", "moss++", "parallel")]
    side = np.sign((regrets["empmoss++"] - oracle).mean())
    for policy in ("moss", "quantile", "parallel", "moss++"):
        other_side = np.sign((regrets[policy] - oracle).mean())
        further = other_side * (regrets[policy] - oracle) - side * (regrets["empmoss++"] - oracle)
        what = f"distance to moss-oracle: {policy} - empmoss++"
        parts.append(more(what, mean_interval(further)))
    parts += [
        less(f"{policy}: late growth", late_growth(result, policy), FLAT)
        for policy in ("moss-oracle", "parallel", "empmoss++")
    ]
    parts += [
        more(f"{policy}: late growth", late_growth(result, policy), FLAT)
        for policy in ("moss++", "quantile")
    ]
    at = int(np.searchsorted(result.times, 0.8 * result.horizon))
    growth = result.of("quantile") - result.of("moss++")
    faster = mean_interval(growth[:, -1] - growth[:, at])
    parts.append(more("growth in the last fifth: quantile - moss++", faster))
    spreads = [np.abs(regrets[p] - regrets[p].mean()) for p in ("quantile", "moss++")]
    varied = mean_interval(spreads[0] - spreads[1])
    return [*parts, more("mean absolute deviation: quantile - moss++", varied)]


def _contest_facts(results: PaperResults) -> list[Part]:
    return list(results.contest_facts)


def _figure_3(results: PaperResults) -> list[Part]:
    result = results.fig3
    flat = [
        less(f"{policy}: late growth", late_growth(result, policy), FLAT)
        for policy in ("moss", "moss-oracle", "parallel", "empmoss++")
    ]
    ratios = [
        more(f"{policy} / empmoss++", ratio(result, policy, "empmoss++"), times)
        for policy, times in (("moss", 7.0), ("quantile", 9.0))
    ]
    return flat + ratios


def _emp_beats_oracle_on_the_contest(results: PaperResults) -> list[Part]:
    return [beats(results.fig3, "empmoss++", "moss-oracle", "final")]


def _larger_beta(results: PaperResults) -> list[Part]:
    parts = []
    for alpha, result in results.larger_betas.items():
        for label in result.policies:
            policy, beta = label.removesuffix(")").split("(beta=")
            gap = mean_interval(final(result, label) - final(results.fig2a[alpha], policy))
            what = f"alpha {alpha}, {policy}: beta {beta} - beta 0.5"
            parts.append(more(what, gap) if alpha < 0.5 else less(what, gap))
    return parts


def _oracle_set_too_large(results: PaperResults) -> list[Part]:
    """Choose the best smaller size on one half of the runs, and test it on the other."""
    result = results.oracle_sizes
    half = result.replications // 2
    if half < 2:
        return []
    full = result.policies[0]
    means = {p: float(final(result, p)[:half].mean()) for p in result.policies[1:]}
    best = min(means, key=lambda policy: means[policy])
    gap = mean_interval(final(result, full)[half:] - final(result, best)[half:])
    return [more(f"{full} - {best}", gap)]


def _quantile_is_moss(results: PaperResults) -> list[Part]:
    return [
        within(
            f"alpha {alpha}: quantile / moss on random arms",
            ratio_interval(
                final(results.fig2a[alpha], "quantile"), final(result, result.policies[0])
            ),
            *COMPARABLE,
        )
        for alpha, result in results.quantile_as_moss.items()
    ]


_CLAIMS = (
    ("Every policy's regret grows with the hardness.", _grows),
    ("MOSS is far from satisfying on n = 20000, T = 50000.", _moss_is_far),
    ("Quantile is good at hardness 0.1, and much worse beyond.", _quantile_good_then_bad),
    ("Quantile flattens at about 20000.", _quantile_flattens_at_20000),
    ("Parallel suffers the regret of its 11 subroutines.", _parallel_pays_for_all),
    ("empMOSS++ is comparable to MOSS Oracle on easy problems.", _emp_is_comparable_when_easy),
    ("empMOSS++ is best of all from hardness 0.3 on.", _emp_is_best_when_hard),
    ("From hardness 0.7 on MOSS Oracle explores most arms.", _oracle_explores_all_when_hard),
    ("At hardness 0.25: who beats whom, who flattens, who varies (Fig. 2b).", _figure_2b),
    ("Contest 652: n = 10025, m = 54, others in [0, 0.8], hardness 0.43.", _contest_facts),
    ("Contest 652: who flattens; MOSS 7 and Quantile 9 times empMOSS++.", _figure_3),
    ("Contest 652: empMOSS++ beats MOSS Oracle.", _emp_beats_oracle_on_the_contest),
    ("A larger beta is worse on easy problems, better on hard ones.", _larger_beta),
    ("MOSS Oracle's set is larger than contest 652 needs.", _oracle_set_too_large),
    ("Quantile is roughly MOSS on T^0.347 random arms.", _quantile_is_moss),
)
