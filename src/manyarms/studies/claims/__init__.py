"""The fifteen claims of the paper's text: what is played for them, and what is said of them."""

from __future__ import annotations

import math
from pathlib import Path

from manyarms.instances import contest_652
from manyarms.lab.experiment import Experiment, Player, cell
from manyarms.policies import EmpMOSSPlusPlus, MOSSOracle, MOSSPlusPlus
from manyarms.protocol import Policy
from manyarms.report.markdown import Table
from manyarms.report.page.presentation import Presentation, Section
from manyarms.report.verdicts import Verdict, claims_as_markdown, revisions
from manyarms.studies.claims.inequalities import (
    ADAPTIVE,
    PaperResults,
    contest_facts,
    contest_ratios,
    paper_claims,
)
from manyarms.studies.paper import (
    ALPHAS,
    FULL,
    REPLICATIONS,
    Size,
    by_hardness,
    fig2a,
    fig2b,
    fig3,
    planted_cells,
    presentation,
)
from manyarms.studies.study import Report, Results, Study, write_json, write_text
from manyarms.theory.schedules import subset_size

__all__ = ["CLAIMS", "experiments", "report"]

EASY_AND_HARD = (0.1, 0.6, 0.8)
OTHER_BETAS = (0.6, 0.75, 0.9)


def experiments(replications: int, seed: int, size: Size = FULL) -> list[Experiment]:
    """Return the paper's experiments, and those that claims 13, 14 and 15 ask for."""
    return [
        experiment
        for make in (fig2a, fig2b, fig3, _quantile_as_moss, _larger_betas, _oracle_sizes)
        for experiment in make(replications, seed, size)
    ]


def _larger_betas(replications: int, seed: int, size: Size) -> list[Experiment]:
    """Claim 13: larger beta, on easy and on hard problems."""
    players = [
        _player(form(beta=beta), replications, beta=beta)
        for form in (MOSSPlusPlus, EmpMOSSPlusPlus)
        for beta in OTHER_BETAS
    ]
    made = planted_cells(
        "larger_betas", EASY_AND_HARD, lambda alpha: players, replications, seed, size
    )
    return [made]


def _oracle_sizes(replications: int, seed: int, size: Size) -> list[Experiment]:
    """Claim 14: MOSS on smaller random sets than the Oracle's, on the contest."""
    contest, horizon = contest_652(), size.contest_horizon
    full = subset_size(horizon, contest.problem(horizon).alpha, 2.0, contest.n_arms)
    sizes = [max(1, round(full / 2**halvings)) for halvings in range(6)]
    players = [_player(MOSSOracle(size=each), replications, size=each) for each in sizes]
    made = cell(players, contest, horizon=horizon, checkpoints=1)
    return [Experiment("oracle_sizes", (made,), seed)]


def _quantile_as_moss(replications: int, seed: int, size: Size) -> list[Experiment]:
    """Claim 15: MOSS on T^0.347 random arms, to be compared with Quantile."""
    few = math.ceil(size.horizon**0.347)
    player = _player(MOSSOracle(size=few), replications, size=few)
    return [
        planted_cells("quantile_as_moss", ALPHAS, lambda alpha: [player], replications, seed, size)
    ]


def _player(policy: Policy, replications: int, **parameters: float) -> Player:
    # its name too: a beta is compared with the same policy's usual one
    return Player(policy, policy.label, replications, {"name": policy.name, **parameters})


def report(results: Results, out: Path, few: int = REPLICATIONS) -> Report:
    """Decide the claims, and say what the paper's number of replications would have said."""
    contest = results["fig3"].cells[0]
    paper = PaperResults(
        fig2a=by_hardness(results["fig2a"]),
        fig2b=results["fig2b"].cells[0],
        fig3=contest,
        larger_betas=by_hardness(results["larger_betas"]),
        oracle_sizes=results["oracle_sizes"].cells[0],
        quantile_as_moss=by_hardness(results["quantile_as_moss"]),
        contest_facts=() if contest.is_stand_in else contest_facts(contest_652(), contest.horizon),
    )
    claims, notes = paper_claims(paper), contest_ratios(contest)
    if contest.replications > few:
        notes += revisions(paper_claims(paper.first(few)), claims)
    decided = [claim.as_dict() | {"seed": contest.seed} for claim in claims]
    files = [
        write_text(out / "claims.md", claims_as_markdown(claims, notes)),
        write_json(out / "claims.json", decided),
    ]
    table = Table(
        ["", "claim", "verdict", "parts: hold / fail / open"],
        [
            [f"{claim.number}", claim.text, claim.verdict, " / ".join(map(str, claim.counts()))]
            for claim in claims
        ],
        f"The paper's claims, {claims[0].replications} replications",
    )
    verdicts = [claim.verdict for claim in claims]
    said = (
        f"Of its {len(claims)} claims {verdicts.count(Verdict.HOLDS)} hold, "
        f"{verdicts.count(Verdict.FAILS)} do not, and {verdicts.count(Verdict.OPEN)} are undecided."
    )
    page = presentation(results, ["fig2a", "fig2b", "fig3"])
    page = page.merged(Presentation(lead=[said], sections=_SECTIONS, claims=decided))
    return Report(files, [table, *notes], page)


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


CLAIMS = Study("the fifteen claims of the paper's text", REPLICATIONS, experiments, report)
