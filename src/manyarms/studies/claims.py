"""The fifteen claims of the paper's text: what is played for them, and each as inequalities.

The decision rules: "grows" is asked of every adjacent pair of hardnesses; "far from satisfying" and
"much worse" mean at least 2 times the better of MOSS++ and empMOSS++; "good" at most 1.5 times
MOSS++; "comparable" and "roughly" a ratio of means within [1/1.5, 1.5]; "flattens" that the last
fifth of the horizon adds less than 5 % of the final mean.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import Interval, mean_interval, median_ratio_interval, ratio_interval
from manyarms.instances import Instance, contest_652
from manyarms.lab.experiment import Experiment, Player, cell
from manyarms.lab.results import Result
from manyarms.policies import EmpMOSSPlusPlus, MOSSOracle, MOSSPlusPlus
from manyarms.protocol import Policy
from manyarms.report.page.presentation import Presentation, Section
from manyarms.report.text import Table, write_json, write_text
from manyarms.report.verdicts import (
    Claim,
    Part,
    Verdict,
    claims_as_markdown,
    exactly,
    less,
    more,
    revisions,
    within,
)
from manyarms.studies import paper
from manyarms.studies.study import Report, Results, Study
from manyarms.theory.schedules import subroutines, subset_size

__all__ = ["CLAIMS", "Paper", "contest_facts", "contest_ratios", "experiments", "paper_claims"]

EASY_AND_HARD = (0.1, 0.6, 0.8)
OTHER_BETAS = (0.6, 0.75, 0.9)
COMPARABLE = (1 / 1.5, 1.5)
MUCH_WORSE = 2.0
GOOD = 1.5
FLAT = 0.05
ADAPTIVE = ("moss++", "empmoss++")

_FIGURES = ("fig2a", "fig2b", "fig3")
_SECTIONS = {
    "larger_betas": Section(
        "Claim 13",
        "Larger beta",
        "Beta decides how much is given up on easy problems to gain on hard ones.",
        beside={"fig2a": ADAPTIVE},
    ),
    "oracle_sizes": Section(
        "Claim 14",
        "Smaller sets for MOSS Oracle",
        "How many random arms MOSS Oracle should have kept on this contest.",
        against="size",
        line="moss-oracle",
        logarithmic=True,  # each size is half the one before
    ),
    "quantile_as_moss": Section(
        "Claim 15",
        "Quantile, and MOSS on few arms",
        "Is Quantile roughly MOSS on a fixed number of random arms?",
        beside={"fig2a": ("quantile",)},
    ),
}

Paper = Mapping[str, Mapping[float, Result]]  # by experiment and hardness


def experiments(replications: int, seed: int, size: paper.Size = paper.FULL) -> list[Experiment]:
    """Return the paper's experiments, and those that claims 13, 14 and 15 ask for."""

    def player(policy: Policy, **parameters: float) -> Player:
        # its name too: a beta is compared with the same policy's usual one
        return Player(policy, policy.label, replications, {"name": policy.name, **parameters})

    # 13: larger beta, on easy and on hard problems
    forms = (MOSSPlusPlus, EmpMOSSPlusPlus)
    larger = [player(form(beta=beta), beta=beta) for form in forms for beta in OTHER_BETAS]
    # 14: MOSS on smaller random sets than the Oracle's, on the contest
    contest, horizon = contest_652(), size.contest_horizon
    whole = subset_size(horizon, contest.problem(horizon).alpha, 2.0, contest.n_arms)
    sizes = [max(1, round(whole / 2**halvings)) for halvings in range(6)]
    smaller = [player(MOSSOracle(size=each), size=each) for each in sizes]
    # 15: MOSS on T^0.347 random arms, to be compared with Quantile
    few = math.ceil(size.horizon**0.347)
    as_moss = [player(MOSSOracle(size=few), size=few)]
    how = replications, seed, size
    return [
        *(*paper.fig2a(*how), *paper.fig2b(*how), *paper.fig3(*how)),
        paper.planted_cells("quantile_as_moss", paper.ALPHAS, lambda alpha: as_moss, *how),
        paper.planted_cells("larger_betas", EASY_AND_HARD, lambda alpha: larger, *how),
        Experiment("oracle_sizes", (cell(smaller, contest, horizon=horizon, checkpoints=1),), seed),
    ]


def report(results: Results, out: Path, few: int = paper.REPLICATIONS) -> Report:
    """Decide the claims, and say what the paper's number of replications would have said."""
    played = {name: paper.by_hardness(results[name]) for name in (*_FIGURES, *_SECTIONS)}
    contest = _only(played["fig3"])
    facts = [] if contest.is_stand_in else contest_facts(contest_652(), contest.horizon)
    claims, notes = paper_claims(played, facts), contest_ratios(contest)
    if contest.replications > few:
        cut = {name: {a: r.first(few) for a, r in own.items()} for name, own in played.items()}
        notes += revisions(paper_claims(cut, facts), claims)
    decided = [claim.as_dict() | {"seed": contest.seed} for claim in claims]
    files = [
        write_text(out / "claims.md", claims_as_markdown(claims, notes)),
        write_json(out / "claims.json", decided),
    ]
    table = Table(
        ["", "claim", "verdict", "parts: hold / fail / open"],
        [[f"{each.number}", each.text, each.verdict, each.counts()] for each in claims],
        f"The paper's claims, {claims[0].replications} replications",
    )
    verdicts = [claim.verdict for claim in claims]
    said = (
        f"Of its {len(claims)} claims {verdicts.count(Verdict.HOLDS)} hold, "
        f"{verdicts.count(Verdict.FAILS)} do not, and {verdicts.count(Verdict.OPEN)} are undecided."
    )
    page = paper.presentation(results, _FIGURES)
    page = page.merged(Presentation(lead=[said], sections=_SECTIONS, claims=decided))
    return Report(files, [table, *notes], page)


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


def paper_claims(played: Paper, facts: Sequence[Part]) -> list[Claim]:
    """Decide all fifteen claims; those on a stand-in for the contest say so.

    `facts` are what `contest_facts` found, and the parts of claim 10.
    """
    claims = []
    for number, (text, parts) in enumerate(_CLAIMS, 1):
        said = text
        if _only(played["fig3"]).is_stand_in:
            said = re.sub("contest 652", r"\g<0> (stand-in)", text, flags=re.IGNORECASE)
        decided = tuple(facts if parts is None else parts(played))
        claims.append(Claim(number, said, decided, _only(played["fig2b"]).replications))
    return claims


def _only(results: Mapping[float, Result]) -> Result:
    (result,) = results.values()
    return result


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
    return ratio_interval(regret[:, -1] - regret[:, _late(result)], regret[:, -1])


def _late(result: Result) -> int:
    """Return the checkpoint at which the last fifth of the horizon begins."""
    return int(np.searchsorted(result.times, 0.8 * result.horizon))


def _flat(result: Result, ask: Callable[..., Part], *policies: str) -> list[Part]:
    return [ask(f"{p}: late growth", late_growth(result, p), FLAT) for p in policies]


def _grows(played: Paper) -> Iterator[Part]:
    by_alpha = played["fig2a"]
    for policy in _only(played["fig2b"]).policies:
        for low, high in pairwise(sorted(by_alpha)):
            gap = _final(by_alpha[high], policy) - _final(by_alpha[low], policy)
            yield more(f"{policy}: alpha {high} - alpha {low}", mean_interval(gap))


def _moss_is_far(played: Paper) -> Iterator[Part]:
    for alpha, result in played["fig2a"].items():
        better = _better_adaptive(result)
        yield more(f"alpha {alpha}: moss / {better}", _ratio(result, "moss", better), MUCH_WORSE)


def _quantile_good_then_bad(played: Paper) -> Iterator[Part]:
    for alpha, result in played["fig2a"].items():
        easy = alpha == min(played["fig2a"])
        better = "moss++" if easy else _better_adaptive(result)
        what, ratio = f"alpha {alpha}: quantile / {better}", _ratio(result, "quantile", better)
        yield less(what, ratio, GOOD) if easy else more(what, ratio, MUCH_WORSE)


def _quantile_flattens_at_20000(played: Paper) -> Iterator[Part]:
    level = _only(played["fig2b"]).horizon * (0.9 - 0.5)
    for alpha, result in played["fig2a"].items():
        if alpha >= 0.7:
            share = mean_interval(_final(result, "quantile") / level)
            yield within(f"alpha {alpha}: quantile / {level:.0f}", share, *COMPARABLE)


def _parallel_pays_for_all(played: Paper) -> Iterator[Part]:
    q = subroutines(_only(played["fig2b"]).horizon)
    yield exactly("number of subroutines", q, "= 11", q == 11)
    for alpha, result in played["fig2a"].items():
        yield _beats(result, "moss-oracle", "parallel", f"alpha {alpha}")


def _emp_is_comparable_when_easy(played: Paper) -> Iterator[Part]:
    for alpha, result in played["fig2a"].items():
        if alpha < 0.3:
            ratio = _ratio(result, "empmoss++", "moss-oracle")
            yield within(f"alpha {alpha}: empmoss++ / moss-oracle", ratio, *COMPARABLE)


def _emp_is_best_when_hard(played: Paper) -> Iterator[Part]:
    for alpha, result in played["fig2a"].items():
        rivals = [p for p in result.policies if alpha >= 0.3 and p != "empmoss++"]
        yield from (_beats(result, "empmoss++", rival, f"alpha {alpha}") for rival in rivals)


def _oracle_explores_all_when_hard(played: Paper) -> Iterator[Part]:
    for alpha, result in played["fig2a"].items():
        if alpha >= 0.7:
            share = subset_size(result.horizon, alpha, 2.0, result.n_arms) / result.n_arms
            yield exactly(f"alpha {alpha}: share of arms in the set", share, "> 0.5", share > 0.5)
            yield _beats(result, "empmoss++", "moss-oracle", f"alpha {alpha}")


def _figure_2b(played: Paper) -> Iterator[Part]:
    result = _only(played["fig2b"])
    for policy in ("empmoss++", "moss++", "parallel"):
        yield _beats(result, policy, "quantile", "final")
    regrets = {policy: _final(result, policy) for policy in result.policies}

    def distance(policy: str) -> NDArray[np.float64]:
        gap = regrets[policy] - regrets["moss-oracle"]
        return np.asarray(np.sign(gap.mean()) * gap)

    for policy in ("moss", "quantile", "parallel", "moss++"):
        further = mean_interval(distance(policy) - distance("empmoss++"))
        yield more(f"distance to moss-oracle: {policy} - empmoss++", further)
    yield from _flat(result, less, "moss-oracle", "parallel", "empmoss++")
    yield from _flat(result, more, "moss++", "quantile")
    growth = result.of("quantile") - result.of("moss++")
    faster = mean_interval(growth[:, -1] - growth[:, _late(result)])
    yield more("growth in the last fifth: quantile - moss++", faster)
    spreads = [np.abs(regrets[p] - regrets[p].mean()) for p in ("quantile", "moss++")]
    varied = mean_interval(spreads[0] - spreads[1])
    yield more("mean absolute deviation: quantile - moss++", varied)


def _figure_3(played: Paper) -> Iterator[Part]:
    result = _only(played["fig3"])
    yield from _flat(result, less, "moss", "moss-oracle", "parallel", "empmoss++")
    for policy, times in (("moss", 7.0), ("quantile", 9.0)):
        yield more(f"{policy} / empmoss++", _ratio(result, policy, "empmoss++"), times)


def _emp_beats_oracle_on_the_contest(played: Paper) -> Iterator[Part]:
    yield _beats(_only(played["fig3"]), "empmoss++", "moss-oracle", "final")


def _larger_beta(played: Paper) -> Iterator[Part]:
    for alpha, result in played["larger_betas"].items():
        for label, own in zip(result.policies, result.policy_parameters, strict=True):
            usual = _final(played["fig2a"][alpha], own["name"])
            gap = mean_interval(_final(result, label) - usual)
            what = f"alpha {alpha}, {own['name']}: beta {own['beta']} - beta 0.5"
            yield more(what, gap) if alpha < 0.5 else less(what, gap)


def _oracle_set_too_large(played: Paper) -> Iterator[Part]:
    """Choose the best smaller size on one half of the runs, and test it on the other."""
    result = _only(played["oracle_sizes"])
    half = result.replications // 2
    if half >= 2:
        sizes = [own["size"] for own in result.policy_parameters]
        full = result.policies[sizes.index(max(sizes))]
        smaller = [policy for policy in result.policies if policy != full]
        best = min(smaller, key=lambda policy: float(_final(result, policy)[:half].mean()))
        gap = mean_interval(_final(result, full)[half:] - _final(result, best)[half:])
        yield more(f"{full} - {best}", gap)


def _quantile_is_moss(played: Paper) -> Iterator[Part]:
    for alpha, result in played["quantile_as_moss"].items():
        quantile, moss = _final(played["fig2a"][alpha], "quantile"), result.of(result.policies[0])
        what = f"alpha {alpha}: quantile / moss on random arms"
        yield within(what, ratio_interval(quantile, moss[:, -1]), *COMPARABLE)


_CLAIMS: tuple[tuple[str, Callable[[Paper], Iterator[Part]] | None], ...] = (
    ("Every policy's regret grows with the hardness.", _grows),
    ("MOSS is far from satisfying on n = 20000, T = 50000.", _moss_is_far),
    ("Quantile is good at hardness 0.1, and much worse beyond.", _quantile_good_then_bad),
    ("Quantile flattens at about 20000.", _quantile_flattens_at_20000),
    ("Parallel suffers the regret of its 11 subroutines.", _parallel_pays_for_all),
    ("empMOSS++ is comparable to MOSS Oracle on easy problems.", _emp_is_comparable_when_easy),
    ("empMOSS++ is best of all from hardness 0.3 on.", _emp_is_best_when_hard),
    ("From hardness 0.7 on MOSS Oracle explores most arms.", _oracle_explores_all_when_hard),
    ("At hardness 0.25: who beats whom, who flattens, who varies (Fig. 2b).", _figure_2b),
    ("Contest 652: n = 10025, m = 54, others in [0, 0.8], hardness 0.43.", None),  # the facts
    ("Contest 652: who flattens; MOSS 7 and Quantile 9 times empMOSS++.", _figure_3),
    ("Contest 652: empMOSS++ beats MOSS Oracle.", _emp_beats_oracle_on_the_contest),
    ("A larger beta is worse on easy problems, better on hard ones.", _larger_beta),
    ("MOSS Oracle's set is larger than contest 652 needs.", _oracle_set_too_large),
    ("Quantile is roughly MOSS on T^0.347 random arms.", _quantile_is_moss),
)

CLAIMS = Study("the fifteen claims of the paper's text", paper.REPLICATIONS, experiments, report)
