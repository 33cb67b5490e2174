"""`manyarms reproduce contests`: the paper's policies on every caption contest that is found."""

from __future__ import annotations

import json
import time
from pathlib import Path

from rich.table import Table

from manyarms.cli.screen import OverallProgress
from manyarms.cli.screen import out as screen
from manyarms.core.checks import check_int
from manyarms.core.files import replace_file
from manyarms.engine import simulate
from manyarms.errors import ContestFileError, ContestNotFoundError
from manyarms.experiments.contests import THRESHOLDS, contest_setting
from manyarms.instances import Contest, local_contests, read_contest
from manyarms.report.contests import ContestResult, game_title, standings
from manyarms.report.contests_figure import contest_ranks
from manyarms.report.contests_tables import (
    contests_as_data,
    contests_as_markdown,
    interval_text,
)
from manyarms.report.saving import save_figure
from manyarms.report.style import policy_title

__all__ = ["reproduce_contests"]


def reproduce_contests(
    *, target: str, replications: int, seed: int, workers: int | None, out: Path
) -> None:
    """Play all contests, with the paper's thresholding and without; rank the policies."""
    check_int("replications", replications, at_least=1)
    begun = time.perf_counter()
    contests, left_out = _read_all()
    games: list[list[ContestResult]] = [[] for _ in THRESHOLDS]
    pulls = sum(contest_setting(contest).pulls for contest in contests[:1])
    options = {"replications": replications, "seed": seed, "workers": workers, "checkpoints": 1}
    with OverallProgress(pulls * len(contests) * len(games) * replications) as progress:
        for contest in contests:
            for threshold, results in zip(THRESHOLDS, games, strict=True):
                setting = contest_setting(contest, threshold=threshold)
                progress.begin(f"contest {setting.experiment}, {game_title(threshold)}")
                result = simulate(
                    setting.policies,
                    setting.instance,
                    horizon=setting.horizon,
                    progress=progress,
                    **options,  # type: ignore[arg-type]
                )
                best = setting.instance.n_best or 0
                results.append(
                    ContestResult(setting.experiment, threshold, best, setting.alpha, result)
                )
    left_out += _without_regret(games)
    if not games[0]:
        raise ContestNotFoundError(_NONE + "".join(f" {line}" for line in left_out))
    out.mkdir(parents=True, exist_ok=True)
    markdown, data = out / "contests.md", out / "contests.json"
    replace_file(markdown, (contests_as_markdown(games, left_out) + "\n").encode())
    content = json.dumps(contests_as_data(games, left_out), indent=1, allow_nan=False)
    replace_file(data, (content + "\n").encode())
    files = [markdown, data, *save_figure(contest_ranks(games), out / "contests")]
    for results in games:
        _print(results)
    for line in left_out:
        screen.print(f"left out: {line}", markup=False)
    seconds = time.perf_counter() - begun
    screen.print(f"\n{len(files)} files in {out}, {seconds:.1f} s", markup=False)


_NONE = (
    "`contests` needs contest files, got none that can be played. Get them with `manyarms data get "
    "--all`, or set MANYARMS_DATA to a folder that holds some."
)


def _read_all() -> tuple[list[Contest], list[str]]:
    """Return the contests on this machine, and why others cannot be played."""
    contests, left_out = [], []
    for path in local_contests().values():
        try:
            contest = read_contest(path)
            contest.means()  # refuses one without a funny caption
            contests.append(contest)
        except ContestFileError as error:
            left_out.append(str(error))
    if not contests:
        raise ContestNotFoundError(_NONE + "".join(f" {line}" for line in left_out))
    return contests, left_out


def _without_regret(games: list[list[ContestResult]]) -> list[str]:
    """Take out, of all games, contests on which some policy lost nothing: they have no ratio."""
    easy = {one.contest for results in games for one in results if one.regrets.min() <= 0.0}
    for results in games:
        results[:] = [one for one in results if one.contest not in easy]
    return [f"{contest}: a policy lost nothing on it, so there is no ratio." for contest in easy]


def _print(results: list[ContestResult]) -> None:
    table = Table("policy", "relative regret", "wins", "rank", "missed", box=None, pad_edge=False)
    for row in sorted(standings(results), key=lambda row: row.relative.estimate):
        table.add_row(
            policy_title(row.policy),
            interval_text(row.relative),
            str(row.wins),
            interval_text(row.rank),
            f"{row.miss_rate:.0%}",
        )
    count = len(results)
    title = f"\n{count} contest{'' if count == 1 else 's'}; {game_title(results[0].threshold)}"
    screen.print(title, markup=False)
    screen.print(table)
