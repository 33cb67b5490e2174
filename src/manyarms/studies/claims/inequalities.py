"""The fifteen claims of the paper's text, each as inequalities on our results.

The decision rules: "grows" is asked of every adjacent pair of hardnesses; "far from satisfying" and
"much worse" mean at least 2 times the better of MOSS++ and empMOSS++; "good" at most 1.5 times
MOSS++; "comparable" and "roughly" a ratio of means within [1/1.5, 1.5]; "flattens" that the last
fifth of the horizon adds less than 5 % of the final mean.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import (
    Interval,
    mean_interval,
    median_ratio_interval,
    ratio_interval,
)
from manyarms.instances import Instance
from manyarms.lab.results import Result
from manyarms.report.verdicts import Claim, Part, exactly, less, more, within
from manyarms.theory.schedules import subroutines, subset_size

__all__ = ["ADAPTIVE", "PaperResults", "contest_facts", "contest_ratios", "paper_claims"]

COMPARABLE = (1 / 1.5, 1.5)
MUCH_WORSE = 2.0
GOOD = 1.5
FLAT = 0.05
ADAPTIVE = ("moss++", "empmoss++")


@dataclass(frozen=True)
class PaperResults:
    """The results that the claims are about; mappings are by hardness."""

    fig2a: Mapping[float, Result]
    fig2b: Result
    fig3: Result
    larger_betas: Mapping[float, Result]
    oracle_sizes: Result
    quantile_as_moss: Mapping[float, Result]
    contest_facts: Sequence[Part]  # of claim 10; empty for a stand-in

    def first(self, replications: int) -> PaperResults:
        """Return the same, as if only so many replications had been played."""

        def cut(results: Mapping[float, Result]) -> dict[float, Result]:
            return {alpha: result.first(replications) for alpha, result in results.items()}

        return replace(
            self,
            fig2a=cut(self.fig2a),
            fig2b=self.fig2b.first(replications),
            fig3=self.fig3.first(replications),
            larger_betas=cut(self.larger_betas),
            oracle_sizes=self.oracle_sizes.first(replications),
            quantile_as_moss=cut(self.quantile_as_moss),
        )


def contest_facts(contest: Instance, horizon: int) -> list[Part]:
    """Check what the paper says of contest 652 itself, where no chance is involved."""
    means = [contest.mean(arm) for arm in range(contest.n_arms)]
    others = [mean for mean in means if mean < contest.best_mean]
    alpha = contest.problem(horizon).alpha
    return [
        exactly("arms", contest.n_arms, "= 10025", contest.n_arms == 10025),
        exactly("best arms", contest.n_best or math.nan, "= 54", contest.n_best == 54),
        exactly("largest other mean", max(others), "<= 0.8", max(others) <= 0.8),
        exactly("smallest other mean", min(others), ">= 0", min(others) >= 0.0),
        exactly("hardness", alpha, "0.43 to two digits", round(alpha, 2) == 0.43),
    ]


def contest_ratios(result: Result) -> list[str]:
    """Say how many times empMOSS++'s regret others have, by means and by medians."""
    under = _final(result, "empmoss++")
    lines = []
    for policy in ("moss", "quantile"):
        over = _final(result, policy)
        means, medians = ratio_interval(over, under), median_ratio_interval(over, under)
        lines.append(
            f"On {result.instance}, {policy} / empmoss++: means {means.estimate:.2f} "
            f"[{means.low:.2f}, {means.high:.2f}], medians {medians.estimate:.2f} "
            f"[{medians.low:.2f}, {medians.high:.2f}]."
        )
    return lines


def paper_claims(results: PaperResults) -> list[Claim]:
    """Decide all fifteen claims; those on a stand-in for the contest say so."""
    claims = []
    for number, (text, parts) in enumerate(_CLAIMS, 1):
        said = text
        if results.fig3.is_stand_in:
            said = re.sub("contest 652", r"\g<0> (stand-in)", text, flags=re.IGNORECASE)
        claims.append(Claim(number, said, tuple(parts(results)), results.fig2b.replications))
    return claims


def _final(result: Result, policy: str) -> NDArray[np.float64]:
    """Return the final regrets of a policy, by replication."""
    return np.asarray(result.of(policy)[:, -1])


def _beats(result: Result, better: str, worse: str, where: str) -> Part:
    """Ask that one policy has lower mean regret than another."""
    gap = mean_interval(_final(result, worse) - _final(result, better))
    return more(f"{where}: {worse} - {better}", gap)


def _ratio(result: Result, over: str, under: str) -> Interval:
    """Return the ratio of mean final regrets."""
    return ratio_interval(_final(result, over), _final(result, under))


def _better_adaptive(result: Result) -> str:
    """Return the better of MOSS++ and empMOSS++."""
    return min(ADAPTIVE, key=lambda policy: float(_final(result, policy).mean()))


def late_growth(result: Result, policy: str) -> Interval:
    """Return the share of the final mean that the last fifth of the horizon adds."""
    regret = result.of(policy)
    before = int(np.searchsorted(result.times, 0.8 * result.horizon))
    return ratio_interval(regret[:, -1] - regret[:, before], regret[:, -1])


def _grows(results: PaperResults) -> list[Part]:
    return [
        more(
            f"{policy}: alpha {high} - alpha {low}",
            mean_interval(_final(results.fig2a[high], policy) - _final(results.fig2a[low], policy)),
        )
        for policy in results.fig2b.policies
        for low, high in pairwise(sorted(results.fig2a))
    ]


def _moss_is_far(results: PaperResults) -> list[Part]:
    return [
        more(
            f"alpha {alpha}: moss / {_better_adaptive(result)}",
            _ratio(result, "moss", _better_adaptive(result)),
            MUCH_WORSE,
        )
        for alpha, result in results.fig2a.items()
    ]


def _quantile_good_then_bad(results: PaperResults) -> list[Part]:
    easiest = min(results.fig2a)
    parts = [
        less(
            f"alpha {easiest}: quantile / moss++",
            _ratio(results.fig2a[easiest], "quantile", "moss++"),
            GOOD,
        )
    ]
    for alpha, result in results.fig2a.items():
        if alpha > easiest:
            better = _better_adaptive(result)
            worse = _ratio(result, "quantile", better)
            parts.append(more(f"alpha {alpha}: quantile / {better}", worse, MUCH_WORSE))
    return parts


def _quantile_flattens_at_20000(results: PaperResults) -> list[Part]:
    level = results.fig2b.horizon * (0.9 - 0.5)
    return [
        within(
            f"alpha {alpha}: quantile / {level:.0f}",
            mean_interval(_final(result, "quantile") / level),
            *COMPARABLE,
        )
        for alpha, result in results.fig2a.items()
        if alpha >= 0.7
    ]


def _parallel_pays_for_all(results: PaperResults) -> list[Part]:
    q = subroutines(results.fig2b.horizon)
    facts = [exactly("number of subroutines", q, "= 11", q == 11)]
    return facts + [
        _beats(result, "moss-oracle", "parallel", f"alpha {alpha}")
        for alpha, result in results.fig2a.items()
    ]


def _emp_is_comparable_when_easy(results: PaperResults) -> list[Part]:
    return [
        within(
            f"alpha {alpha}: empmoss++ / moss-oracle",
            _ratio(result, "empmoss++", "moss-oracle"),
            *COMPARABLE,
        )
        for alpha, result in results.fig2a.items()
        if alpha < 0.3
    ]


def _emp_is_best_when_hard(results: PaperResults) -> list[Part]:
    return [
        _beats(result, "empmoss++", policy, f"alpha {alpha}")
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
            parts.append(_beats(result, "empmoss++", "moss-oracle", f"alpha {alpha}"))
    return parts


def _figure_2b(results: PaperResults) -> list[Part]:
    result = results.fig2b
    regrets = {policy: _final(result, policy) for policy in result.policies}
    oracle = regrets["moss-oracle"]
    parts = [_beats(result, p, "quantile", "final") for p in ("empmoss++", "moss++", "parallel")]
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
        more(f"{policy} / empmoss++", _ratio(result, policy, "empmoss++"), times)
        for policy, times in (("moss", 7.0), ("quantile", 9.0))
    ]
    return flat + ratios


def _emp_beats_oracle_on_the_contest(results: PaperResults) -> list[Part]:
    return [_beats(results.fig3, "empmoss++", "moss-oracle", "final")]


def _larger_beta(results: PaperResults) -> list[Part]:
    parts = []
    for alpha, result in results.larger_betas.items():
        for label, own in zip(result.policies, result.policy_parameters, strict=True):
            gap = mean_interval(_final(result, label) - _final(results.fig2a[alpha], own["name"]))
            what = f"alpha {alpha}, {own['name']}: beta {own['beta']} - beta 0.5"
            parts.append(more(what, gap) if alpha < 0.5 else less(what, gap))
    return parts


def _oracle_set_too_large(results: PaperResults) -> list[Part]:
    """Choose the best smaller size on one half of the runs, and test it on the other."""
    result = results.oracle_sizes
    half = result.replications // 2
    if half < 2:
        return []
    sizes = [own["size"] for own in result.policy_parameters]
    full = result.policies[sizes.index(max(sizes))]
    smaller = [policy for policy in result.policies if policy != full]
    best = min(smaller, key=lambda policy: float(_final(result, policy)[:half].mean()))
    gap = mean_interval(_final(result, full)[half:] - _final(result, best)[half:])
    return [more(f"{full} - {best}", gap)]


def _quantile_is_moss(results: PaperResults) -> list[Part]:
    return [
        within(
            f"alpha {alpha}: quantile / moss on random arms",
            ratio_interval(
                _final(results.fig2a[alpha], "quantile"), _final(result, result.policies[0])
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
