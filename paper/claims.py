"""Fifteen sentences of the paper, each written as inequalities.

The rules for words such as "comparable" are ours, not the authors':

- "Grows": from each hardness to the next, up to the plateau that the paper names, T (0.9 - 0.5),
  the regret of settling for the best of the other arms. A step without growth holds if it ends on
  the plateau, that is, at most 5 % below it.
- "Far from satisfying", "much worse": at least 2 times the better of MOSS++ and empMOSS++. "Good":
  at most 1.5 times MOSS++. "Comparable", "roughly", "about": a ratio of means in [1/1.5, 1.5].
- "Beats", "best": lower mean regret.
- "Easy", "small": hardness below 0.3, which includes Figure 2(b)'s 0.25. "Hard": 0.7 and above.
- "Flattens": the last fifth of the horizon adds less than 5 % of the final mean.
- A hypothesis that was found on some runs is tested on other runs.

All intervals are for mean regret, or for quantities computed from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from manyarms.instances import Instance, contest_652
from manyarms.policies.moss_oracle import subset_size
from manyarms.policies.parallel import subroutines
from manyarms.simulation import Result
from paper.verdicts import (
    Ask,
    Claim,
    Numbers,
    Part,
    Rule,
    Verdict,
    counted,
    decided,
    either,
    exactly,
    less,
    mean,
    more,
    ratio,
    within,
)

COMPARABLE = (1 / 1.5, 1.5)
MUCH_WORSE = 2.0
GOOD = 1.5
FLAT = 0.05
SMALL, HARD = 0.3, 0.7  # easy: below 0.3; hard: at least 0.7
ADAPTIVE = ("moss++", "empmoss++")
NEXT_BEST = 0.5  # of the paper's means: 0.1, …, 0.5 beside the best, 0.9

_FIG_2A, _FIG_2B, _FIG_3 = (f"The text on Figure {figure}" for figure in ("2(a)", "2(b)", "3"))

Paper = Mapping[str, Mapping[float, Result]]  # by sweep and hardness
Parts = Iterator[Part | Ask]


class _Sentence(NamedTuple):
    """A claim, its place in the paper, our interpretation, its parts, and other findings."""

    text: str
    place: str
    reading: str
    ask: Callable[[Paper], Parts] | None  # None: facts that need no runs
    beside: Callable[[Paper], Iterator[str]] | None = None


def contest_facts(contest: Instance, horizon: int) -> list[Part]:
    """Check what the paper says about contest 652 itself, which does not depend on chance."""
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


def _only(results: Mapping[float, Result]) -> Result:
    """Return the result of a sweep with a single cell."""
    (result,) = results.values()
    return result


def _final(result: Result, policy: str) -> Numbers:
    """Return the final regrets of a policy, by replication."""
    return np.asarray(result.of(policy)[:, -1])


def _largest(result: Result) -> float:
    return float(result.largest_regret[-1])


def _common(first: Numbers, second: Numbers) -> tuple[Numbers, Numbers]:
    """Return the runs that both have; policies may have different numbers of runs."""
    count = min(len(first), len(second))
    return first[:count], second[:count]


def _beats(result: Result, better: str, worse: str, where: str) -> Ask:
    """Require that one policy has lower mean regret than another."""
    lost, least = _common(_final(result, worse), _final(result, better))
    return mean(f"{where}: {worse} - {better}", lost - least, _largest(result), more)


def _ratio(
    result: Result, over: str, under: str, rule: Rule, *bounds: float, where: str = ""
) -> Ask:
    """Require a rule of the mean regret of one policy divided by that of another."""
    both, most = _common(_final(result, over), _final(result, under)), _largest(result)
    return ratio(f"{where}{over} / {under}", *both, (most, most), rule, *bounds)


def _late(result: Result) -> int:
    """Return the checkpoint at which the last fifth of the horizon begins."""
    return int(np.searchsorted(result.times, 0.8 * result.horizon))


def _flat(result: Result, rule: Rule, *policies: str) -> Parts:
    """Require a rule of the share of each policy's final mean that the last fifth adds."""
    largest, start = result.largest_regret, _late(result)
    most = float(largest[-1] - largest[start]), float(largest[-1])
    for policy in policies:
        regret = result.of(policy)
        added = regret[:, -1] - regret[:, start]
        yield ratio(f"{policy}: late growth", added, regret[:, -1], most, rule, FLAT)


def _plateau(result: Result) -> float:
    """Return the regret of settling for the best of the other arms."""
    return result.horizon * (0.9 - NEXT_BEST)


def _grows(played: Paper) -> Parts:
    by_alpha = played["fig2a"]
    for policy in _only(played["fig2b"]).policies:
        for low, high in pairwise(sorted(by_alpha)):
            result = by_alpha[high]
            later, before = _common(_final(result, policy), _final(by_alpha[low], policy))
            gap, level = later - before, _plateau(result)
            above = _final(result, policy) - (1 - FLAT) * level
            what = f"{policy}: alpha {high} - alpha {low}"
            settled = f"{policy}: alpha {high} - 0.95 plateau"
            most = _largest(result)
            yield either(mean(what, gap, most, more), mean(settled, above, most, more))


def _much_worse(result: Result, policy: str, where: str) -> Ask:
    """Require at least twice the regret of the better of MOSS++ and empMOSS++."""
    return either(*(_ratio(result, policy, p, more, MUCH_WORSE, where=where) for p in ADAPTIVE))


def _moss_is_far(played: Paper) -> Parts:
    for alpha, result in played["fig2a"].items():
        yield _much_worse(result, "moss", f"alpha {alpha}: ")


def _quantile_good_then_bad(played: Paper) -> Parts:
    for alpha, result in played["fig2a"].items():
        where = f"alpha {alpha}: "
        if alpha == min(played["fig2a"]):
            yield _ratio(result, "quantile", "moss++", less, GOOD, where=where)
        else:
            yield _much_worse(result, "quantile", where)


def _quantile_wins_when_hard(played: Paper) -> Iterator[str]:
    beyond = sorted(played["fig2a"])[1:]
    asked = (_beats(played["fig2a"][a], "quantile", "moss++", f"alpha {a}") for a in beyond)
    parts = zip(beyond, decided(asked), strict=True)
    won = [f"{alpha}" for alpha, part in parts if part.verdict == Verdict.HOLDS]
    if won:
        yield f"Not in the paper: Quantile beats MOSS++ at hardness {', '.join(won)}."


def _quantile_flattens_at_20000(played: Paper) -> Parts:
    for alpha, result in played["fig2a"].items():
        if alpha >= HARD:
            level = _plateau(result)
            what = f"alpha {alpha}: quantile / {level:.0f}"
            share = _final(result, "quantile") / level
            yield mean(what, share, _largest(result) / level, within, *COMPARABLE)


def _parallel_loses_to_its_best_subroutine(played: Paper) -> Parts:
    q = subroutines(_only(played["fig2b"]).horizon)
    yield exactly("number of subroutines", q, "= 11", q == 11)
    for alpha, result in played["fig2a"].items():
        yield _beats(result, "moss-oracle", "parallel", f"alpha {alpha}")


def _oracle_is_moss(played: Paper) -> Iterator[str]:
    all_arms = [alpha for alpha, result in played["fig2a"].items() if _share(alpha, result) == 1]
    if all_arms:
        yield (
            f"From hardness {min(all_arms)} on, the Oracle's set contains all arms: it is MOSS, "
            "not the best of the subroutines."
        )


def _share(alpha: float, result: Result) -> float:
    """Return the share of all arms that MOSS Oracle keeps."""
    return subset_size(result.horizon, alpha, 2.0, result.n_arms) / result.n_arms


def _emp_is_comparable_when_easy(played: Paper) -> Parts:
    for alpha, result in sorted([*played["fig2a"].items(), *played["fig2b"].items()]):
        if alpha < SMALL:
            where = f"alpha {alpha}: "
            yield _ratio(result, "empmoss++", "moss-oracle", within, *COMPARABLE, where=where)


def _ties(played: Paper) -> Iterator[str]:
    yield "Here empMOSS++ ranks equal arms at random; in the authors' code, the sort decides."


def _emp_is_best_when_hard(played: Paper, besides: tuple[str, ...] = ("empmoss++",)) -> Parts:
    for alpha, result in played["fig2a"].items():
        rivals = [p for p in result.policies if alpha >= SMALL and p not in besides]
        yield from (_beats(result, "empmoss++", rival, f"alpha {alpha}") for rival in rivals)


def _emp_among_those_without_hardness(played: Paper) -> Iterator[str]:
    parts = decided(_emp_is_best_when_hard(played, ("empmoss++", "moss-oracle")))
    said = counted(part.verdict for part in parts)
    yield f"As best of the policies that do not know the hardness: of {len(parts)} parts, {said}."
    yield from _ties(played)


def _oracle_explores_all_when_hard(played: Paper) -> Parts:
    for alpha, result in played["fig2a"].items():
        if alpha >= HARD:
            share = _share(alpha, result)
            yield exactly(f"alpha {alpha}: share of arms in the set", share, "> 0.5", share > 0.5)
            yield _beats(result, "empmoss++", "moss-oracle", f"alpha {alpha}")


def _figure_2b(played: Paper) -> Parts:
    result = _only(played["fig2b"])
    most = _largest(result)
    for policy in ("empmoss++", "moss++", "parallel"):
        yield _beats(result, policy, "quantile", "final")
    regrets = {policy: _final(result, policy) for policy in result.policies}

    def distance(policy: str) -> Numbers:
        own, oracle = _common(regrets[policy], regrets["moss-oracle"])
        return np.asarray(np.sign((own - oracle).mean()) * (own - oracle))

    for policy in ("moss", "quantile", "parallel", "moss++"):
        what = f"distance to moss-oracle: {policy} - empmoss++"
        far, near = _common(distance(policy), distance("empmoss++"))
        yield mean(what, far - near, 2 * most, more)
    yield from _flat(result, less, "moss-oracle", "parallel", "empmoss++")
    yield from _flat(result, more, "moss++", "quantile")
    quantile, moss = _common(result.of("quantile"), result.of("moss++"))
    growth, start = quantile - moss, _late(result)
    faster = growth[:, -1] - growth[:, start]
    late = most - float(result.largest_regret[start])
    yield mean("growth in the last fifth: quantile - moss++", faster, late, more)
    several = _common(regrets["quantile"], regrets["moss++"])
    spreads = [np.abs(each - each.mean()) for each in several]
    what = "mean absolute deviation: quantile - moss++"
    yield mean(what, spreads[0] - spreads[1], most, more)


def _figure_3(played: Paper) -> Parts:
    result = _only(played["fig3"])
    yield from _flat(result, less, "moss", "moss-oracle", "parallel", "empmoss++")
    for policy, times in (("moss", 7.0), ("quantile", 9.0)):
        yield _ratio(result, policy, "empmoss++", more, times)


def _authors_log(played: Paper) -> Iterator[str]:
    if not _only(played["fig3"]).is_stand_in:
        yield "In the authors' log of Figure 3, MOSS has 6.56 times the regret of empMOSS++."


def _emp_beats_oracle_on_the_contest(played: Paper) -> Parts:
    yield _beats(_only(played["fig3"]), "empmoss++", "moss-oracle", "final")


def _larger_beta(played: Paper) -> Parts:
    for alpha, result in played["larger_betas"].items():
        for label, own in zip(result.policies, result.policy_parameters, strict=True):
            usual = _final(played["fig2a"][alpha], own["name"])
            what = f"alpha {alpha}, {own['name']}: beta {own['beta']} - beta 0.5"
            larger, usual = _common(_final(result, label), usual)
            rule = more if alpha < 0.5 else less
            yield mean(what, larger - usual, _largest(result), rule)


def _oracle_set_too_large(played: Paper) -> Parts:
    """Choose the best smaller size on one half of the runs, and test it on the other."""
    result = _only(played["oracle_sizes"])
    half = min(map(len, result.rows)) // 2
    if half >= 1:
        sizes = [own["size"] for own in result.policy_parameters]
        full = result.policies[sizes.index(max(sizes))]
        smaller = [policy for policy in result.policies if policy != full]
        best = min(smaller, key=lambda policy: float(_final(result, policy)[:half].mean()))
        whole, part = _common(_final(result, full)[half:], _final(result, best)[half:])
        yield mean(f"{full} - {best}", whole - part, _largest(result), more)


def _quantile_is_moss(played: Paper) -> Parts:
    def roughly(alpha: float, result: Result) -> Ask:
        (moss,) = result.policies
        quantile, few = _final(played["fig2a"][alpha], "quantile"), _final(result, moss)
        what = f"alpha {alpha}: quantile / moss on random arms"
        both, most = _common(quantile, few), _largest(result)
        return ratio(what, *both, (most, most), within, *COMPARABLE)

    yield from (roughly(*cell) for cell in played["quantile_as_moss"].items())


_SENTENCES = (
    _Sentence(
        "Every policy's regret grows with the hardness.",
        _FIG_2A,
        "From each hardness to the next, up to the plateau of 20000 that the paper names.",
        _grows,
    ),
    _Sentence(
        "MOSS is far from satisfying on n = 20000, T = 50000.",
        _FIG_2A,
        "At least 2 times the better of MOSS++ and empMOSS++, at every hardness.",
        _moss_is_far,
    ),
    _Sentence(
        "Quantile is good at hardness 0.1 and much worse above.",
        _FIG_2A,
        "At most 1.5 times MOSS++ at 0.1; then 2 times the better of MOSS++ and empMOSS++.",
        _quantile_good_then_bad,
        _quantile_wins_when_hard,
    ),
    _Sentence(
        "Quantile flattens at about 20000.",
        _FIG_2A,
        "At hardness 0.7 and above, it is within a factor of 1.5.",
        _quantile_flattens_at_20000,
    ),
    _Sentence(
        "Parallel suffers the regret of its 11 subroutines.",
        _FIG_2A,
        "Tested: it loses to MOSS Oracle, which is its best subroutine alone.",
        _parallel_loses_to_its_best_subroutine,
        _oracle_is_moss,
    ),
    _Sentence(
        "empMOSS++ is comparable to MOSS Oracle on easy problems.",
        _FIG_2A,
        "Within 1.5 times at hardness 0.1, 0.2 and 0.25.",
        _emp_is_comparable_when_easy,
        _ties,
    ),
    _Sentence(
        "empMOSS++ is best of all from hardness 0.3 on.",
        _FIG_2A,
        "It has less regret than each of the other five, MOSS Oracle among them.",
        _emp_is_best_when_hard,
        _emp_among_those_without_hardness,
    ),
    _Sentence(
        "From hardness 0.7 on, MOSS Oracle explores most arms, which hurts it.",
        _FIG_2A,
        "Its set is more than half of the arms, and it loses to empMOSS++.",
        _oracle_explores_all_when_hard,
    ),
    _Sentence(
        "At hardness 0.25: order, flattening and variance of the policies (Fig. 2b).",
        _FIG_2B,
        "Flat: the last fifth of the horizon adds less than 5 %.",
        _figure_2b,
    ),
    _Sentence(
        "Contest 652: n = 10025, m = 54, others in [0, 0.8], hardness 0.43.",
        _FIG_3,
        "The hardness is computed by the paper's definition.",
        None,
    ),
    _Sentence(
        "Contest 652: which policies flatten; MOSS 7 and Quantile 9 times empMOSS++.",
        _FIG_3,
        "More than 7 and more than 9 times its mean regret.",
        _figure_3,
        _authors_log,
    ),
    _Sentence(
        "Contest 652: empMOSS++ beats MOSS Oracle.",
        _FIG_3,
        "It has less regret.",
        _emp_beats_oracle_on_the_contest,
    ),
    _Sentence(
        "A larger beta is worse on easy problems, better on hard ones.",
        "A footnote on beta",
        "Beta 0.6, 0.75 and 0.9, each compared with 0.5; the paper says “generally”.",
        _larger_beta,
    ),
    _Sentence(
        "MOSS Oracle's set is larger than contest 652 needs.",
        _FIG_3,
        "A smaller set, chosen on one half of the runs, has less regret on the other.",
        _oracle_set_too_large,
    ),
    _Sentence(
        "Quantile is roughly MOSS on T^0.347 random arms.",
        _FIG_2A,
        "Within 1.5 times at every hardness.",
        _quantile_is_moss,
    ),
)


def paper_claims(played: Paper) -> list[Claim]:
    """Decide all fifteen claims, given the results by sweep and hardness."""
    contest = _only(played["fig3"])
    facts = [] if contest.is_stand_in else contest_facts(contest_652(), contest.horizon)
    return [paper_claim(number, played, facts) for number in range(1, len(_SENTENCES) + 1)]


def paper_claim(number: int, played: Paper, facts: Sequence[Part]) -> Claim:
    """Decide one claim; `facts` are the parts of claim 10."""
    text, place, reading, ask, beside = _SENTENCES[number - 1]
    about_contest = "contest 652" in text.lower()
    return Claim(
        number,
        text,
        f"{place}. {reading}",
        decided(facts if ask is None else ask(played)),
        () if beside is None else tuple(beside(played)),
        stand_in=about_contest and _only(played["fig3"]).is_stand_in,
    )
