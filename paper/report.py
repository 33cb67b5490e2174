"""The output of `python -m paper`: figures, verdicts as CSV, a page, and a summary."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from manyarms.core.tabular import TextTable
from manyarms.report import Section, figure_1, regret_against_hardness, regret_over_time
from manyarms.report.style import ALPHA, HARDNESS, PAPER_BAND, policy_title
from manyarms.report.text import count_of, write_text
from manyarms.simulation import Result
from paper.verdicts import Claim, Verdict, counted


def _download() -> str:
    """Return the command that downloads the contest, for the current folder."""
    python, here = Path(sys.executable), Path.cwd()
    python = python.relative_to(here) if python.is_relative_to(here) else python
    return f"{python} -m manyarms data get 652"


TITLE = "On Regret with Multiple Best Arms"
STAND_IN = (
    "The file of contest 652 is not on this machine, so Figure 3 shows a stand-in for it. Set "
    "MANYARMS_DATA to its folder, or download it:"
)
DOWNLOAD = _download()
_SHOWN = 6  # parts of a claim that the page lists
_TITLES = {  # of the summary, by verdict
    "holds": "Holds",
    "fails": "Fails, in at least one of its parts",
    "undecided": "Undecided, because a confidence interval contains the bound",
    "not checked": "Not checked, because its data are not on this machine",
}

ByHardness = Mapping[float, Result]


def by_hardness(cells: Sequence[Result]) -> dict[float, Result]:
    """Return results by hardness, which is nan where none is stated."""
    return {each.parameters.get("alpha", math.nan): each for each in cells}


def _rates(played: ByHardness) -> Section:
    text = (
        f"Regret grows as T to the power θ({ALPHA}). The lines of MOSS++ are Pareto optimal: no "
        f"policy is better than one of them at some hardness and nowhere worse."
    )
    return Section("Figure 1: rates", [text], [figure_1()])


def _against_hardness(played: ByHardness) -> Section:
    first = next(iter(played.values()))
    rows = [[f"{alpha}", *map(_mean, _finals(result))] for alpha, result in played.items()]
    head = [HARDNESS, *map(policy_title, first.policies)]
    table = TextTable(head, rows, "Mean final regret ± its standard error")
    text = _played(first)
    figure = regret_against_hardness(played, band=PAPER_BAND)
    return Section("Figure 2(a): regret against hardness", [text], [figure], [table])


def _over_time(title: str) -> Callable[[ByHardness], Section]:
    def made(played: ByHardness) -> Section:
        (result,) = played.values()
        table = TextTable(
            ["policy", "mean final regret ± its standard error", "median", "worst run"],
            [
                [policy_title(policy), _mean(own), f"{np.median(own):.0f}", f"{own.max():.0f}"]
                for policy, own in zip(result.policies, _finals(result), strict=True)
            ],
        )
        note = result.instance if result.is_stand_in else None
        figure = regret_over_time(result, band=PAPER_BAND, note=note)
        texts = [_played(result), *([f"{STAND_IN} {DOWNLOAD}"] if note else [])]
        return Section(title, texts, [figure], [table])

    return made


# by the name of the sweep, in the order of the page
FIGURES: dict[str, Callable[[ByHardness], Section]] = {
    "fig1": _rates,
    "fig2a": _against_hardness,
    "fig2b": _over_time("Figure 2(b): regret over time at hardness 0.25"),
    "fig3": _over_time("Figure 3: regret over time on a caption contest"),
}


def _finals(result: Result) -> list[np.ndarray]:
    return [result.of(policy)[:, -1] for policy in result.policies]


def _mean(values: np.ndarray) -> str:
    """Return a mean with its standard error.

    >>> _mean(np.array([90.0, 110.0]))
    '100 ± 10'
    """
    if len(values) == 1:
        return f"{values[0]:.0f}"
    return f"{values.mean():.0f} ± {values.std(ddof=1) / math.sqrt(len(values)):.0f}"


def _played(result: Result) -> str:
    runs = sorted({len(rows) for rows in result.rows})
    several = count_of(runs[-1], "run")
    return (
        f"{several if len(runs) == 1 else f'{runs[0]} to {several}'} of each policy, "
        f"{count_of(result.horizon, 'pull')}, seed {result.seed}."
    )


def claims_csv(path: Path, claims: Sequence[Claim]) -> Path:
    """Write a row for each part of each claim."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(
        ["claim", "sentence", "verdict", "part", "rule", "estimate", "low", "high", "part_verdict"]
    )
    for claim in claims:
        about = [claim.number, claim.text, claim.said]
        for part in claim.parts:
            ends = ["" if math.isnan(end) else f"{end:.6g}" for end in part.interval]
            verdict = claim.said if claim.stand_in else str(part.verdict)
            rows.writerow([*about, part.what, part.rule, *ends, verdict])
    return write_text(path, text.getvalue())


def claims_section(claims: Sequence[Claim]) -> Section:
    """Return the claims as a section of the page, with the numbers that decide them."""
    rows = []
    for claim in claims:
        why = [str(part) for part in claim.deciding[:_SHOWN]]
        if len(claim.deciding) > _SHOWN:
            why.append(f"and {len(claim.deciding) - _SHOWN} more")
        said = "\n".join(filter(None, (claim.said, claim.counts)))
        sentence = f"{claim.text}\n{claim.reading}"
        rows.append([str(claim.number), sentence, said, "\n".join([*why, *claim.notes])])
    how = (
        "A claim is a list of inequalities, its parts. A part holds if the confidence interval of "
        "what was measured lies entirely on the claimed side of the bound, fails if it lies "
        "entirely on the other side, and is undecided otherwise. A claim holds if all its parts "
        "hold, and fails if some part fails. All intervals of a claim hold together with 95 % "
        "confidence (proved if regret takes only two values). They allow for rare, costly runs "
        "that were not seen. All parts are in claims.csv."
    )
    head = ["", "claim, and how it is read", "verdict", "the parts that decide"]
    return Section("The claims", [how], tables=[TextTable(head, rows)])


def overall(claims: Sequence[Claim]) -> str:
    """Count the verdicts in a sentence.

    >>> overall([Claim(1, "", "", ()), Claim(2, "", "", (), stand_in=True)])
    'Of 2 claims, 0 hold, 0 fail in part, 1 is undecided. 1 was not checked.'
    """
    checked = [claim for claim in claims if not claim.stand_in]
    verdicts = counted((claim.verdict for claim in checked), fails="in part")
    said = f"Of {len(claims)} claims, {verdicts}."
    if apart := len(claims) - len(checked):
        said += f" {apart} {'was' if apart == 1 else 'were'} not checked."
    if parts := [part.verdict for claim in checked for part in claim.parts]:
        said += f" Of the {len(parts)} inequalities that were checked, {counted(parts)}."
    return said


def last_lines(claims: Sequence[Claim], minutes: float | None) -> list[str]:
    """Return a summary: which claims hold, fail or are undecided, and how to decide more.

    Parameters
    ----------
    claims
        All claims.
    minutes
        How long `--full` would take; None if this was it.
    """
    lines = []
    for said, title in _TITLES.items():
        group = [claim for claim in claims if claim.said == said]
        lines += [f"{title}:"] if group else []
        for claim in group:
            counts = f" ({claim.counts})" if claim.counts else ""
            lines.append(f"  {claim.number:>2}  {claim.text}{counts}")
    lines += ["", overall(claims)]
    if any(claim.stand_in for claim in claims):
        lines += [STAND_IN, f"  {DOWNLOAD}"]
    if any(claim.said == Verdict.OPEN for claim in claims):
        if minutes is None:
            lines.append("More runs (--replications) make the intervals narrower.")
        else:
            time = f"about {count_of(max(1, math.ceil(minutes)), 'minute')}"
            lines.append(f"To decide more of them, with more runs for close comparisons ({time}):")
            lines.append("  make claims")
    return lines
