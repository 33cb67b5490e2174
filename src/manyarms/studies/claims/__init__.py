"""The fifteen claims of the paper's text: what is played for them, and the verdicts.

`sentences` has each claim as inequalities and the rules by which its words are read;
`manyarms.report.verdicts` says how they make one of four verdicts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

from manyarms.core.statistics import median_ratio_interval
from manyarms.instances import contest_652
from manyarms.lab.experiment import Experiment, cell
from manyarms.lab.players import Player
from manyarms.lab.results import Result
from manyarms.policies import EmpMOSSPlusPlus, MOSSOracle, MOSSPlusPlus
from manyarms.protocol import Policy
from manyarms.report.page.presentation import Presentation, Section
from manyarms.report.text import Table, interval_text, write_json, write_text
from manyarms.report.verdicts import (
    Claim,
    Part,
    claims_as_markdown,
    decided,
    revisions,
    tally,
    why_undecided,
)
from manyarms.studies import paper
from manyarms.studies.claims.sentences import ADAPTIVE, SENTENCES, Paper, contest_facts, only
from manyarms.studies.study import Report, Results, Study
from manyarms.theory.schedules import subset_size

__all__ = ["CLAIMS", "contest_ratios", "experiments", "paper_claim", "paper_claims"]

EASY_AND_HARD = (0.1, 0.6, 0.8)
OTHER_BETAS = (0.6, 0.75, 0.9)

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
    contest = only(played["fig3"])
    facts = [] if contest.is_stand_in else contest_facts(contest_652(), contest.horizon)
    claims = paper_claims(played, facts)
    notes = [*contest_ratios(contest), paper.about_intervals([contest])]
    if contest.replications > few:
        cut = {name: {a: r.first(few) for a, r in own.items()} for name, own in played.items()}
        notes += revisions(paper_claims(cut, facts), claims)
    told = [claim.as_dict() | {"seed": contest.seed} for claim in claims]
    files = [
        write_text(out / "claims.md", claims_as_markdown(claims, notes)),
        write_json(out / "claims.json", told),
    ]
    table = Table(
        ["", "claim", "verdict", "parts: hold / fail / undecided"],
        [[f"{each.number}", each.text, each.said, each.counts()] for each in claims],
        f"The paper's claims, {claims[0].replications} replications",
    )
    page = paper.presentation(results, _FIGURES)
    page = page.merged(
        Presentation(lead=[tally(claims), *why_undecided(claims)], sections=_SECTIONS, claims=told)
    )
    return Report(files, [table, tally(claims), *why_undecided(claims), *notes], page)


def contest_ratios(result: Result) -> list[str]:
    """Say how many times the regret of empMOSS++ the others have, by means and by medians."""
    lines = []
    for policy in ("moss", "quantile"):
        over, under = (result.of(name)[:, -1] for name in (policy, "empmoss++"))
        means = interval_text(result.ratio(policy, "empmoss++"), 2)
        medians = interval_text(median_ratio_interval(over, under), 2)
        lines.append(
            f"On {result.instance}, {policy} / empmoss++: means {means}, medians {medians}."
        )
    return lines


def paper_claims(played: Paper, facts: Sequence[Part]) -> list[Claim]:
    """Decide all fifteen claims; `facts` are what `contest_facts` found, the parts of claim 10."""
    return [paper_claim(number, played, facts) for number in range(1, len(SENTENCES) + 1)]


def paper_claim(number: int, played: Paper, facts: Sequence[Part]) -> Claim:
    """Decide one claim; if the contest is a stand-in, the claim says so."""
    text, reading, ask, beside = SENTENCES[number - 1]
    said = text
    if only(played["fig3"]).is_stand_in:
        said = re.sub("contest 652", r"\g<0> (stand-in)", said, flags=re.IGNORECASE)
    return Claim(
        number,
        said,
        decided(facts if ask is None else ask(played)),
        only(played["fig2b"]).replications,
        reading,
        () if beside is None else tuple(beside(played)),
        stand_in=said != text,
    )


CLAIMS = Study(paper.REPLICATIONS, experiments, report)
