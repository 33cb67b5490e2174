"""`manyarms reproduce leaderboard`: every policy on every problem, and the page about it.

The runs of a problem are written when it is done; a run that is stopped goes on from there. What
is kept is used again only if the policy, the problem, the seed and the compiled sources are the
same.
"""

from __future__ import annotations

import hashlib
import io
import platform
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from manyarms import __version__
from manyarms.cli.screen import OverallProgress
from manyarms.cli.screen import out as screen
from manyarms.core.checks import check_int
from manyarms.core.compile_cache import digest
from manyarms.core.files import replace_file
from manyarms.engine import simulate
from manyarms.experiments.leaderboard import contest_matches, leaderboard
from manyarms.experiments.leaderboard_players import Match, Player
from manyarms.instances import Instance, captions, local_contests, stand_in_652
from manyarms.report.leaderboard import Cell, Standing, rows, standings
from manyarms.report.leaderboard_blocks import as_html, as_markdown
from manyarms.report.leaderboard_figure import profiles
from manyarms.report.leaderboard_page import leaderboard_csv, leaderboard_page
from manyarms.report.saving import save_figure

__all__ = ["reproduce_leaderboard"]

_RUNS = "leaderboard_runs"  # the folder of what was played so far
_FIGURE = "figures/leaderboard"

Kept = dict[str, NDArray[Any]]


def reproduce_leaderboard(
    *, target: str, replications: int, seed: int, workers: int | None, out: Path
) -> None:
    """Play what is not played yet, then rank and write."""
    check_int("replications", replications, at_least=2)
    begun = time.perf_counter()
    matches = leaderboard(most_runs=replications)
    matches += contest_matches(contests(), most_runs=replications)
    cells: list[Cell] = []
    with OverallProgress(sum(match.pulls for match in matches)) as progress:
        for match in matches:
            progress.begin(match.name)
            cells += _play(match, out / _RUNS, seed=seed, workers=workers, progress=progress)
    written = write_leaderboard(cells, out, seed=seed, replications=replications)
    _print_standings(standings(cells))
    text = f"\n{len(written)} files in {out}, {time.perf_counter() - begun:.1f} s"
    screen.print(text, markup=False)


def contests() -> dict[str, Instance]:
    """Return the contests on this machine as the paper has them; contest 652 in other forms too."""
    found: dict[str, Instance] = {}
    for stem, path in local_contests().items():
        number = stem.partition("_")[0]
        name = f"contest {number}" if f"contest {number}" not in found else f"contest {stem}"
        found[name] = captions(path)
        if name == "contest 652":
            found["contest 652, no threshold"] = captions(path, threshold=None)
            found["contest 652, shares as voted"] = captions(path, scaled=False)
    if "contest 652" not in found:
        found["contest 652 (stand-in)"] = stand_in_652()
    return found


def write_leaderboard(
    cells: list[Cell], folder: Path, *, seed: int, replications: int
) -> list[Path]:
    """Write the figure, the page as HTML and as Markdown, and the table as CSV."""
    table, order = rows(cells), standings(cells)
    written = save_figure(profiles(table, order), folder / _FIGURE)
    command = f"manyarms reproduce leaderboard --replications {replications} --seed {seed}"
    provenance = {
        "command": command,
        "manyarms": __version__,
        "compiled sources": digest("leaderboard", ()),
        "seed": seed,
        "runs": f"at most {replications} of each policy on each problem",
        "problems": len({cell.problem for cell in cells}),
        "policies": len({cell.policy for cell in cells}),
        "python": platform.python_version(),
    }
    svg = (folder / f"{_FIGURE}.svg").read_text(encoding="utf-8")
    page = leaderboard_page(
        cells, table, order, svg=svg, picture=f"{_FIGURE}.svg", provenance=provenance
    )
    texts = {
        "leaderboard.html": as_html(page, title="The leaderboard of manyarms"),
        "leaderboard.md": as_markdown(page),
        "leaderboard.csv": leaderboard_csv(table, provenance),
    }
    for name, text in texts.items():
        replace_file(folder / name, text.encode())
        written.append(folder / name)
    return written


def _play(
    match: Match, folder: Path, *, seed: int, workers: int | None, progress: OverallProgress
) -> list[Cell]:
    path = folder / (re.sub(r"[^a-z0-9.]+", "-", match.name.lower()).strip("-") + ".npz")
    kept, fresh = _read(path), False
    now: Kept = {}
    cells = []
    for player in match.players:
        key = _key(match, player, seed)
        pulls = player.runs * match.horizon
        if f"{key} regret" in kept:
            regret, missed = kept[f"{key} regret"], kept[f"{key} missed"]
            progress(pulls, pulls, "")
        else:
            result = simulate(
                player.policy,
                match.instance,
                horizon=match.horizon,
                replications=player.runs,
                seed=seed,
                workers=workers,
                checkpoints=1,
                progress=progress,
            )
            regret, missed, fresh = result.regret[0, :, -1], result.best_pulls[0] == 0, True
        now |= {f"{key} regret": regret, f"{key} missed": missed}
        cells.append(Cell(match.name, match.family, player.label, player.knowledge, regret, missed))
    if fresh:
        _write(path, now)
    return cells


def _key(match: Match, player: Player, seed: int) -> str:
    instance = match.instance
    what = (
        digest("leaderboard", ()),
        repr(player.policy),
        player.runs,
        seed,
        match.name,
        match.horizon,
        (instance.label, instance.n_arms, instance.n_best, instance.best_mean, instance.epsilon),
        repr(instance.rewards),
    )
    return hashlib.sha256(repr(what).encode()).hexdigest()[:24]


def _read(path: Path) -> Mapping[str, NDArray[Any]]:
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _write(path: Path, kept: Kept) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    memory = io.BytesIO()
    np.savez(memory, **kept)  # type: ignore[arg-type]  # its stub takes the names for options
    replace_file(path, memory.getvalue())


def _print_standings(order: list[Standing]) -> None:
    table = Table(
        "policy",
        "told",
        "problems",
        "relative regret\namong equals",
        "among all",
        "mean rank\namong equals",
        "among all",
        box=None,
        pad_edge=False,
    )
    for kind in ("none", "m", "mu*"):
        for s in (s for s in order if s.knowledge == kind):
            table.add_row(
                s.policy,
                kind,
                str(s.problems),
                f"{s.relative_equal:.2f}",
                f"{s.relative:.2f}",
                f"{s.rank_equal.value:.1f}",
                f"{s.rank.value:.1f}",
            )
    screen.print(table)
