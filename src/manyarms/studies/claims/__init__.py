"""The fifteen claims of the paper's text: what is played for them, and the verdicts.

`sentences` has each claim as inequalities and the rules by which its words are read;
`manyarms.report.verdicts` says how they make one of four verdicts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from manyarms.core.statistics import median_ratio_interval
from manyarms.instances import contest_652
from manyarms.policies import EmpMOSSPlusPlus, MOSSOracle, MOSSPlusPlus
from manyarms.protocol import Policy
from manyarms.report.page.presentation import Presentation, Section
from manyarms.report.text import Table, interval_text, write_json, write_text
from manyarms.report.verdicts import (
    Claim,
    Part,
    claims_as_markdown,
    conclusion,
    decided,
    revisions,
    tally,
    why_undecided,
)
from manyarms.simulation.experiment import Cell, Experiment, cell
from manyarms.simulation.players import Player
from manyarms.simulation.results import Result
from manyarms.studies import paper
from manyarms.studies.claims.sentences import ADAPTIVE, SENTENCES, Paper, contest_facts, only
from manyarms.studies.study import Report, Results, Study
from manyarms.theory.schedules import subset_size

__all__ = ["CLAIMS", "contest_ratios", "experiments", "paper_claim", "paper_claims", "planned"]

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


# Replications of the default plan, by experiment, hardness and policy; all others have `_USUAL`.
# A miss costs up to 40000 here, so n runs without one leave room for a mean of 40000 log(1/p) / n
# more, where p is the error of a part: a difference of 234 (claim 1) needs thousands of runs, one
# of 10000 needs a hundred. Claims 1, 5, 6, 7, 9, 14 and 15 have such parts.
_USUAL = 500
_WHEN_EASY = {
    "empmoss++": 4000,
    "moss-oracle": 3000,
    "moss++": 1500,
    "quantile": 1500,
    "parallel": 1000,
}
_OFTEN: Mapping[tuple[str, Any], Mapping[str, int]] = {
    ("fig2a", 0.1): _WHEN_EASY,
    ("fig2a", 0.2): _WHEN_EASY,
    ("fig2a", 0.3): _WHEN_EASY,
    ("fig2a", 0.4): _WHEN_EASY,
    ("fig2a", 0.5): {"empmoss++": 1500, "moss-oracle": 1500},
    ("fig2a", 0.6): {"empmoss++": 1500, "moss-oracle": 1500},
    ("fig2a", 0.9): {"parallel": 4000, "moss-oracle": 4000},
    ("fig2b", 0.25): {"empmoss++": 6000, "moss-oracle": 6000},
    ("quantile_as_moss", 0.1): {"moss-oracle": 1500},
    ("quantile_as_moss", 0.2): {"moss-oracle": 1500},
    ("oracle_sizes", None): {"moss-oracle": 1500},
}


def planned(seed: int, size: paper.Size = paper.FULL) -> list[Experiment]:
    """Return what `manyarms reproduce` plays by default: the more runs, the closer a comparison.

    The plan is fixed. It does not look at the runs that it decides about, so that each interval
    holds as if there were one number of runs for all.
    """

    def often(experiment: str, game: Cell) -> Cell:
        runs = _OFTEN.get((experiment, game.parameters.get("alpha")), {})

        def player(one: Player) -> Player:
            return replace(one, replications=runs.get(one.policy.name, _USUAL))

        return replace(game, players=tuple(map(player, game.players)))

    return [
        replace(one, cells=tuple(often(one.name, game) for game in one.cells))
        for one in experiments(_USUAL, seed, size)
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
    spent = sum(float(each.provenance["seconds"]) for each in results.values())
    pulls = sum(int(each.provenance["pulls"]) for each in results.values())
    horizon = only(played["fig2b"]).horizon
    end = [*conclusion(claims, 2 * horizon * spent / pulls), _WHY_OTHERS_DIFFER]
    told = [claim.as_dict() | {"seed": contest.seed} for claim in claims]
    files = [
        write_text(out / "claims.md", claims_as_markdown(claims, [*end, *notes])),
        write_json(out / "claims.json", told),
    ]
    counted = [each for each in claims if not each.stand_in]
    table = Table(
        ["", "claim", "as the paper reads", "for sure", "parts: hold / fail / undecided"],
        [[f"{each.number}", each.text, each.reads, each.said, each.counts()] for each in counted],
        f"The paper's claims, up to {max(each.replications for each in claims)} replications",
    )
    apart = Table(
        ["", "claim", "verdict"],
        [[f"{each.number}", each.text, each.said] for each in claims if each.stand_in],
        "Claims about data that are not on this machine",
    )
    page = paper.presentation(results, _FIGURES)
    page = page.merged(
        Presentation(lead=[tally(claims), *why_undecided(claims)], sections=_SECTIONS, claims=told)
    )
    shown: list[Table | str] = [table, *([apart] if apart.rows else []), *notes, tally(claims)]
    return Report(files, [*shown, *end], page)


_WHY_OTHERS_DIFFER = (
    "README and docs/paper.md have the numbers of 1000 replications of everything, seed 0 and the "
    "real file of contest 652 (`manyarms reproduce claims --replications 1000`). Other numbers of "
    "runs, other seeds and the stand-in give other numbers, within the intervals."
)


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
    text, place, reading, ask, beside = SENTENCES[number - 1]
    said = text
    if only(played["fig3"]).is_stand_in:
        said = re.sub("contest 652", r"\g<0> (stand-in)", said, flags=re.IGNORECASE)
    return Claim(
        number,
        said,
        decided(facts if ask is None else ask(played)),
        max(each.replications for own in played.values() for each in own.values()),
        f"{place}. {reading}",
        () if beside is None else tuple(beside(played)),
        stand_in=said != text,
    )


CLAIMS = Study(paper.REPLICATIONS, experiments, report, plan=planned)
