"""The leaderboard's page, its table and its figure: the numbers, and how to read them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyarms.core.theme import LIGHT
from manyarms.report.drawing import Axes, Figure, drawing, save_figure
from manyarms.report.style import policy_styles, policy_title
from manyarms.report.text import Block, Table, as_markdown, write_text
from manyarms.studies.leaderboard import standings as statistics
from manyarms.studies.leaderboard.problems import CONTESTS, experiments
from manyarms.studies.leaderboard.standings import Placing, Standing
from manyarms.studies.study import Report, Results, Study

_FIGURE = "figures/leaderboard"
# The policies of the paper and our own have colours and names; so have the best others, as long
# as a panel has fewer than _NAMED of them. The rest is grey.
_ALWAYS_NAMED = {
    *("moss", "quantile", "moss++", "empmoss++", "parallel", "moss-oracle"),
    *("patience", "prospector"),
}
_NAMED = 9
_FURTHEST = 100.0  # factor
_SIZE = (8.4, 5.4)  # inches
KNOWLEDGE = {
    "none": "knows nothing about the means",
    "m": "knows how rare good arms are",
    "mu*": "knows the best mean",
}
_KNOWS = {"none": "nothing", "m": "m", "mu*": "μ*"}
_ALSO = {"m": " (m, the hardness, or the shape of the means)"}
_PERFECT = (
    "Made for a best mean of 1, and played only where it is (ranks are among all that know μ*)"
)

_HOW = (
    "All policies share the same luck: the k-th reward of an arm is the same for every policy. "
    "**Relative** regret is the mean regret of a policy divided by the least mean regret on the "
    "problem, either of all policies or of its **equals**, which know the same. **Missed** is the "
    "share of runs that never pulled a best arm (if means are drawn: an arm within epsilon of the "
    "supremum). **Ranks** are by mean regret. The brackets show which ranks a policy could have, "
    "with 95 % confidence, by its paired differences from all others; they allow for costly runs "
    "that were not seen. Slow policies have fewer runs, and the table says how many. A policy is "
    "left out where it does not apply: if it is made for rewards in [0, 1] and they are not, or if "
    "it assumes a best mean of 1 and the best mean is lower. Its standing is then over fewer and "
    "easier problems. `empirical-cbt` also expects a best mean of 1, but it knows only the horizon "
    "and plays wherever it runs. It does well on Figure 2(a), because 1 - μ* is only 0.1 there. "
    "Every policy may know the horizon. If means are drawn, `cbt` also knows the shape of "
    "their distribution. UCB1, UCB, KL-UCB and Thompson sampling look at all arms tried before "
    "every pull, and play on few arms only. Finders, which are made for keeping one arm, have a "
    "board of their own: `manyarms reproduce find`."
)
_THRESHOLD = (
    "**On the contests.** The paper divides the share of votes of each caption by the largest "
    "share, and raises all values of 0.8 or more to 1. So μ* is exactly 1, and best arms never "
    "fail. This favours every rule that drops an arm at its first failure, or that assumes "
    "μ* = 1. So contest 652 is played in two more forms. Without the threshold, the division "
    "leaves a single arm of mean 1. With the shares as voted, the best mean is well below 1, and "
    "such rules do not apply."
)
TAILS = (
    "A mean hides rare runs that go wrong. The table shows the mean regret, the 99 % quantile over "
    "the runs and the worst run, divided by the least mean regret on the problem (geometric means "
    "over problems). **Mostly missed** is the share of runs that gave best arms less than a tenth "
    "of their pulls (if means are drawn: arms within epsilon of the supremum): the mean over "
    "problems, and the largest. If there are only two means, these runs lose 90 % of all that can "
    "be lost. Of 100 runs, the 99 % quantile is nearly the worst."
)
_CAPTION = (
    "Performance profiles: the share of problems on which a policy is within a factor of the "
    "least regret among those that know the same. Higher is better."
)


def report(results: Results, out: Path) -> Report:
    """Rank the policies; draw the figure, and write the page and the CSV."""
    found, about = results["leaderboard"], results["leaderboard"].provenance
    table = [placing for cell in found.cells for placing in statistics.placings(cell)]
    order, most = statistics.standings(table), about["replications"]
    facts = {
        "command": f"manyarms reproduce leaderboard --replications {most} --seed {about['seed']}",
        "manyarms": about["versions"]["manyarms"],
        "experiment": about["hash"][:16],
        "seed": about["seed"],
        "runs": f"at most {most} of each policy on each problem",
        "problems": len(found.cells),
        "policies": len(order),
        "python": about["versions"]["python"],
    }
    files = save_figure(profiles(table, order), out / _FIGURE)
    said = "; ".join(f"{key} {value}" for key, value in list(facts.items())[1:])
    source = f"`{facts['command']}`: {said}. All numbers are in `leaderboard.csv`."
    blocks = list(page(table, order, f"{_FIGURE}.svg", source))
    files += [
        write_text(out / "leaderboard.md", as_markdown(blocks)),
        write_text(out / "leaderboard.csv", leaderboard_csv(table, facts)),
    ]
    shown: list[Table | str] = [
        Table(part.head[:-2], [row[:-2] for row in part.rows], title)
        for title, part in standings_tables(order).items()
    ]
    return Report(files, shown)


def leaderboard_csv(table: Sequence[Placing], facts: Mapping[str, Any]) -> str:
    """Return all numbers as CSV, with where they come from in comment lines above."""
    ranks = [f"{which}{end}" for which in ("rank", "rank_equal") for end in ("", "_low", "_high")]
    numbers = ["mean", "low", "high", "median", "q99", "worst", "miss_rate", "mostly_missed"]
    numbers += ["relative", "relative_equal", *ranks]
    rows = [["problem", "family", "policy", "knowledge", "runs", *numbers]]
    for p in table:
        s = p.summary
        values = [s.mean, s.low, s.high, s.median, s.q99, s.worst, s.miss_rate, s.mostly_missed]
        values += [p.relative, p.relative_equal, *p.rank, *p.rank_equal]
        names = [p.problem, p.family, p.policy, p.knowledge, f"{s.replications}"]
        rows.append([*names, *(f"{value:.5g}" for value in values)])
    return as_csv(rows, facts)


def as_csv(rows: Iterable[Sequence[str]], facts: Mapping[str, Any]) -> str:
    """Return rows as CSV, with facts in comment lines above."""
    text = io.StringIO()
    text.writelines(f"# {key}: {value}\n" for key, value in facts.items())
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def page(
    table: Sequence[Placing], order: Sequence[Standing], picture: str, source: str
) -> Iterator[Block]:
    """Yield the page; the picture's path and the source come from outside."""
    yield from ("# The leaderboard", f"![{_CAPTION}]({picture})", statistics.in_short(table, order))
    yield "## Standings"
    for title, part in standings_tables(order).items():
        yield from (f"### {title}", part)
    yield from ("## Tails", TAILS, tails_table(table), "## Problem by problem")
    yield "Relative regret among all policies, and in brackets the share of runs that missed."
    by_knowledge = sorted(order, key=lambda s: list(KNOWLEDGE).index(s.knowledge))
    for family in dict.fromkeys(placing.family for placing in table):
        within = [placing for placing in table if placing.family == family]
        yield from (f"### {family}", _family_table(within, by_knowledge))
    yield from ("## Where we lose", statistics.where_we_lose(table), "## How to read it", _HOW)
    if any(placing.family == CONTESTS for placing in table):
        yield _THRESHOLD
    yield from ("## Where this comes from", source)


def standings_tables(order: Sequence[Standing]) -> dict[str, Table]:
    """Return by title the standings of those that know the same."""
    regret = ("relative regret among equals (geometric mean)", "among all")
    rank = ("mean rank among equals", "among all", "worst among equals", "where")
    head = ("policy", "problems", "runs of each, at least", *regret, *rank)
    found: dict[str, list[list[str]]] = {}
    for s in sorted(order, key=lambda s: (list(KNOWLEDGE).index(s.knowledge), s.perfect_best)):
        knows = KNOWLEDGE[s.knowledge].capitalize() + _ALSO.get(s.knowledge, "")
        cells = [s.policy, f"{s.problems}", f"{s.runs}"]
        cells += [_factor(x) for x in (s.relative_equal, s.relative)]
        cells += [f"{s.rank_equal:.1f}", f"{s.rank:.1f}"]
        cells += [_factor(s.worst.relative_equal), s.worst.problem]
        found.setdefault(_PERFECT if s.perfect_best else knows, []).append(cells)
    return {title: Table(head, rows) for title, rows in found.items()}


def tails_table(table: Sequence[Placing]) -> Table:
    """Return what the bad runs of each policy cost, over all problems."""
    head = ("policy", "mean", "99 % quantile", "worst run", "mostly missed", "at most", "where")
    rows = [
        [
            tail.policy,
            *(_factor(x) for x in (tail.mean, tail.q99, tail.worst)),
            f"{tail.missed:.1%}",
            f"{tail.most_missed.summary.mostly_missed:.0%}",
            tail.most_missed.problem if tail.missed > 0.0 else "-",
        ]
        for tail in statistics.tails(table)
    ]
    return Table(head, rows)


def _family_table(table: Sequence[Placing], order: Sequence[Standing]) -> Table:
    cells: dict[str, dict[str, str]] = {}
    for p in table:
        shown = f"{_factor(p.relative)} ({p.summary.miss_rate:.0%})"
        cells.setdefault(p.policy, {})[p.problem] = shown
    problems = list(dict.fromkeys(p.problem for p in table))
    rows = [
        [s.policy, _KNOWS[s.knowledge], *(cells[s.policy].get(name, "-") for name in problems)]
        for s in order
        if s.policy in cells
    ]
    return Table(("policy", "knows", *problems), rows)


def _factor(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def profiles(table: Sequence[Placing], order: Sequence[Standing]) -> Figure:
    """Draw, for each policy, the share of its problems within a factor of the best.

    The best is the best of the policies with the same knowledge, which share a panel.
    """
    kinds = [kind for kind in KNOWLEDGE if any(placing.knowledge == kind for placing in table)]
    with drawing(*_SIZE) as figure:
        for at, kind in enumerate(kinds):
            axes = figure.add_subplot(1, len(kinds), at + 1)
            _draw(axes, table, [standing for standing in order if standing.knowledge == kind])
            axes.set_title(KNOWLEDGE[kind])
            if at == 0:
                axes.set_ylabel("share of the problems played")
            else:
                axes.tick_params(labelleft=False)
    return figure


def _draw(axes: Axes, table: Sequence[Placing], members: Sequence[Standing]) -> None:
    problems = {standing.policy: standing.problems for standing in members}
    named = {policy for policy in problems if policy in _ALWAYS_NAMED}
    for policy in problems:  # the best first
        if len(named) < _NAMED:
            named.add(policy)
    grey: dict[str, Any] = {"color": LIGHT["rule"], "linewidth": 0.7}
    for policy in problems:
        if policy not in named:
            axes.step(*_profile(table, policy), where="post", **grey)
    for policy, style in policy_styles(p for p in problems if p in named).items():
        few = problems[policy] < max(problems.values())
        label = policy_title(policy) + (f" ({problems[policy]} problems)" if few else "")
        options = style.options(marker="", label=label)
        axes.step(*_profile(table, policy), where="post", **options)
    if len(problems) > len(named):
        rest = len(problems) - len(named)
        axes.plot([], [], label=f"{rest} other{'s' * (rest > 1)}", **grey)
    axes.set_xscale("log")
    axes.set_xlim(1.0, _FURTHEST)
    axes.set_ylim(0.0, 1.02)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_xlabel("within this factor of the least regret")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17))


def _profile(table: Sequence[Placing], policy: str) -> tuple[Any, Any]:
    """Return where a policy's profile rises, and its heights."""
    own = np.array([placing.relative_equal for placing in table if placing.policy == policy])
    factors = np.unique([1.0, *own[own < _FURTHEST], _FURTHEST])
    return factors, (own[:, None] <= factors * (1 + 1e-12)).mean(axis=0)


LEADERBOARD = Study(100, experiments, report, fewest=2)
