"""The paper's policies on every caption contest that is found, with the threshold and without.

It says which policy loses least, how often, and how much more the others lose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import Interval, mean_interval, median_interval
from manyarms.core.theme import LIGHT
from manyarms.errors import ContestFileError, ContestNotFoundError
from manyarms.instances import captions, local_contests
from manyarms.report.drawing import Axes, Figure, MultipleLocator, drawing, save_figure
from manyarms.report.style import NOTE_SIZE, policy_styles, policy_title
from manyarms.report.text import Table, count_of, for_json, interval_text, write_json, write_text
from manyarms.simulation.experiment import Cell, Experiment, cell
from manyarms.simulation.results import Result, summaries
from manyarms.studies.paper import six_policies
from manyarms.studies.study import Report, Results, Study

HORIZON = 100_000
NO_THRESHOLD = "none"  # the threshold that leaves means as they are
THRESHOLDS: tuple[float | str, ...] = (0.8, NO_THRESHOLD)  # the paper's first

_NONE = (
    "`contests` needs contest files, got none that can be played. Get them with `manyarms data get "
    "--all`, or set MANYARMS_DATA to a folder that holds some."
)
_NOTES = """\
*Relative regret* is a policy's mean regret over that of the best policy of the same contest: 1 \
is the best. Shown is its median over contests. *Wins* are the contests on which it is the best, \
alone or not. *Rank* is its place among the {count} policies, on average over contests. Intervals \
have 95 % for contests like these, played as often, whatever their law: that of a median lies \
between two contests, and takes six of them; that of a rank knows that it is from 1 to {count}. \
*Missed* is the share of runs that never pulled a best caption. MOSS Oracle knows how many \
captions are best, and Parallel the best mean; the others neither."""
_PANEL = (3.1, 2.6)  # inches

Games = Mapping[float | str, Sequence[Result]]  # by threshold: what was measured on each contest


class ContestStanding(NamedTuple):
    """How one policy does over all contests."""

    policy: str
    relative_regret: Interval  # over that of the best policy of the contest: the median
    wins: int
    rank: Interval  # 1 is the best
    miss_rate: float


def experiments(replications: int, seed: int) -> list[Experiment]:
    """Return Figure 3's experiment, without the curve, for each contest and threshold."""
    readable, left_out = _contests()
    if not readable:
        raise ContestNotFoundError(" ".join([_NONE, *left_out]))
    cells = [contest_cell(each, t, replications) for each in readable for t in THRESHOLDS]
    return [Experiment("contests", tuple(cells), seed)]


def _contests(but: Sequence[str] = ()) -> tuple[list[Path], list[str]]:
    """Return the contests on this machine that can be played, and why others cannot."""
    readable, left_out = [], []
    for name, path in local_contests().items():
        if name not in but:
            try:
                captions(path)
                readable.append(path)
            except ContestFileError as error:
                left_out.append(str(error))
    return readable, left_out


def contest_cell(path: Path, threshold: float | str, replications: int) -> Cell:
    """Return the cell of Figure 3 for the contest of a file, without the curve."""
    instance = captions(path, threshold=None if isinstance(threshold, str) else threshold)
    alpha = instance.problem(HORIZON).alpha
    return cell(
        six_policies(alpha),
        instance,
        horizon=HORIZON,
        replications=replications,
        checkpoints=1,
        parameters={"contest": path.stem, "threshold": threshold, "alpha": alpha},
    )


def report(results: Results, out: Path) -> Report:
    """Compare the policies over contests; write tables and data, and draw their ranks."""
    cells = results["contests"].cells
    _, left_out = _contests(but=[each.parameters["contest"] for each in cells])
    # on which some policy lost nothing: they have no ratio
    easy = dict.fromkeys(each.parameters["contest"] for each in cells if _regrets(each).min() <= 0)
    left_out += [f"{name}: a policy lost nothing on it, so there is no ratio." for name in easy]
    games: dict[float | str, list[Result]] = {}
    for each in cells:
        if each.parameters["contest"] not in easy:
            games.setdefault(each.parameters["threshold"], []).append(each)
    if not games:
        raise ContestNotFoundError(" ".join([_NONE, *left_out]))
    tables = [_standings_table(threshold, played) for threshold, played in games.items()]
    files = [
        write_text(out / "contests.md", _markdown(games, left_out)),
        write_json(out / "contests.json", _data(games, left_out)),
        *save_figure(contest_ranks(games), out / "contests"),
    ]
    return Report(files, [*tables, *(f"left out: {line}" for line in left_out)])


def contest_standings(played: Sequence[Result]) -> list[ContestStanding]:
    """Compare policies over contests that were played alike, and on which every policy lost.

    >>> import manyarms as ma
    >>> coins, policies = ma.instances.planted(n=500, m=50), [ma.MOSS(), ma.Quantile()]
    >>> played = [ma.simulate(policies, coins, horizon=500, seed=seed) for seed in range(4)]
    >>> [(row.policy, row.wins, row.rank.estimate) for row in contest_standings(played)]
    [('moss', 0, 2.0), ('quantile', 4, 1.0)]
    """
    policies = played[0].policies
    regrets = np.array([_regrets(each) for each in played])
    best = regrets.min(axis=1, keepdims=True)
    relative: NDArray[np.float64] = regrets / best
    ranks = np.array([_ranks(each) for each in played])
    misses = np.array([(each.best_pulls == 0).mean(axis=1) for each in played])
    return [
        ContestStanding(
            policy,
            _median(relative[:, k]),
            int((regrets[:, k] == best[:, 0]).sum()),
            mean_interval(ranks[:, k], bounds=(1.0, float(len(policies)))),
            float(misses[:, k].mean()),
        )
        for k, policy in enumerate(policies)
    ]


def _regrets(result: Result) -> NDArray[np.float64]:
    """Return the mean final regret of each policy."""
    return np.asarray(result.regret[:, :, -1].mean(axis=1))


def _ranks(result: Result) -> NDArray[np.float64]:
    """Return each policy's place, 1 for the best; those that tie share the mean of their places.

    MOSS Oracle ties with MOSS if best captions are so rare that it keeps all captions.
    """
    row, column = _regrets(result)[:, None], _regrets(result)
    return np.asarray(0.5 + (column < row).sum(axis=1) + 0.5 * (column == row).sum(axis=1))


def _median(values: NDArray[np.float64]) -> Interval:
    """Return a median with its interval; with fewer than six contests there is no interval."""
    found = median_interval(values)
    return found if math.isfinite(found.low) else found._replace(low=math.nan, high=math.nan)


def _game_title(threshold: float | str) -> str:
    """Return in words how means were made of votes."""
    if threshold == NO_THRESHOLD:
        return "best: the funniest alone"
    return f"best: all within {threshold:g} of the funniest"


def _standings_table(threshold: float | str, played: Sequence[Result]) -> Table:
    rows = [
        [
            policy_title(row.policy),
            interval_text(row.relative_regret, 2),
            str(row.wins),
            interval_text(row.rank, 2),
            f"{row.miss_rate:.0%}",
        ]
        for row in sorted(
            contest_standings(played), key=lambda r: (r.relative_regret.estimate, r.rank.estimate)
        )
    ]
    title = f"{count_of(len(played), 'contest')}; {_game_title(threshold)}"
    return Table(
        ["policy", "relative regret (median)", "wins", "rank (mean)", "missed"], rows, title
    )


def _contests_table(played: Sequence[Result]) -> Table:
    rows = []
    for each in played:
        facts = [each.parameters["contest"], str(each.n_arms), str(each.n_best)]
        regrets = _regrets(each)
        means = [f"**{x:.0f}**" if x == regrets.min() else f"{x:.0f}" for x in regrets]
        rows.append([*facts, f"{each.parameters['alpha']:.2f}", *means])
    policies = [policy_title(policy) for policy in played[0].policies]
    return Table(["contest", "captions", "best", "hardness", *policies], rows)


def _markdown(games: Games, left_out: Sequence[str]) -> str:
    """Return the tables: over all contests, and contest by contest."""
    played = next(iter(games.values()))
    first = played[0]
    blocks = [
        f"# {count_of(len(played), 'caption contest')}, {first.horizon} pulls, "
        f"{first.replications} replications, seed {first.seed}"
    ]
    for threshold, results in games.items():
        blocks += [
            f"## {_game_title(threshold).capitalize()}",
            _standings_table(threshold, results).markdown(),
            "Mean regrets, that of the best policy in bold:",
            _contests_table(results).markdown(),
        ]
    blocks.append(_NOTES.format(count=len(first.policies)))
    if left_out:
        blocks += ["Left out:", "\n".join(f"- {line}" for line in left_out)]
    return "\n\n".join(blocks)


def _data(games: Games, left_out: Sequence[str]) -> dict[str, Any]:
    """Return the same as plain data."""
    first = next(iter(games.values()))[0]
    found = [
        {
            "threshold": None if threshold == NO_THRESHOLD else threshold,
            "policies": [
                row._asdict()
                | {"relative_regret": row.relative_regret._asdict(), "rank": row.rank._asdict()}
                for row in contest_standings(played)
            ],
            "contests": [_contest_data(each) for each in played],
        }
        for threshold, played in games.items()
    ]
    about = {key: getattr(first, key) for key in ("horizon", "replications", "seed")}
    return dict(for_json({**about, "games": found, "left_out": list(left_out)}))


def _contest_data(result: Result) -> dict[str, Any]:
    rows = summaries(result)
    return {
        "contest": result.parameters["contest"],
        "captions": result.n_arms,
        "best": result.n_best,
        "hardness": result.parameters["alpha"],
        "regret": {r.policy: {"mean": r.mean, "low": r.low, "high": r.high} for r in rows},
        "miss_rate": {row.policy: row.miss_rate for row in rows},
    }


def contest_ranks(games: Games) -> Figure:
    """Draw each policy's mean rank over all contests, one panel for each threshold.

    >>> import manyarms as ma
    >>> instance, policies = ma.instances.planted(n=500, m=50), [ma.MOSS(), ma.Quantile()]
    >>> result = ma.simulate(policies, instance, horizon=500, replications=3)
    >>> figure = contest_ranks({0.8: [result]})
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['Quantile', 'MOSS']
    """
    first = next(iter(games.values()))
    rows = sorted(contest_standings(first), key=lambda row: row.rank.estimate)
    order = [row.policy for row in rows]
    with drawing(_PANEL[0] * len(games), _PANEL[1]) as figure:
        panels = figure.subplots(1, len(games), sharey=True, squeeze=False)[0]
        for axes, (threshold, played) in zip(panels, games.items(), strict=True):
            _draw(axes, played, order)
            axes.set_title(_game_title(threshold))
            axes.set_xlabel(f"mean rank over {count_of(len(played), 'contest')}")
        panels[0].set_yticks(range(len(order)), [policy_title(policy) for policy in order])
        panels[0].invert_yaxis()  # the best on top
        note = (
            f"bars: 95 % intervals over contests; dots: single ranks; {first[0].horizon:,} pulls, "
            f"{first[0].replications} replications"
        )
        figure.supxlabel(note, fontsize=NOTE_SIZE)
    return figure


def _draw(axes: Axes, played: Sequence[Result], order: list[str]) -> None:
    """Draw mean ranks with their intervals, and the rank on each contest as a small dot."""
    rows = {row.policy: row for row in contest_standings(played)}
    ranks = np.array([_ranks(each) for each in played])
    for place, (policy, style) in enumerate(policy_styles(order).items()):
        rank = rows[policy].rank
        axes.plot([rank.low, rank.high], [place, place], color=style.colour, linewidth=1.6)
        options = style.options(linestyle="", markersize=style.size + 1.5)
        axes.plot([rank.estimate], [place], **options, zorder=3)
        column = ranks[:, played[0].policies.index(policy)]
        for own, count in zip(*np.unique(column, return_counts=True), strict=True):
            # those that coincide are spread
            x = own + (np.arange(count) - (count - 1) / 2) * min(0.08, 0.7 / count)
            y = np.full(count, place + 0.3)
            axes.plot(
                x, y, linestyle="", marker=".", markersize=2.5, color=LIGHT["faint"], zorder=1
            )
    axes.set_xlim(0.6, len(order) + 0.4)
    axes.xaxis.set_major_locator(MultipleLocator(1))


CONTESTS = Study(20, experiments, report)
