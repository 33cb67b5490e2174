"""The commands: options and body side by side. Each one imports what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from manyarms import __version__
from manyarms.cli.completion import complete_policies
from manyarms.cli.data import data
from manyarms.cli.serve import serve, token
from manyarms.cli.upkeep import backup, check
from manyarms.cli.warm import warm
from manyarms.cli.watch import watch

Objective = Literal["earn", "find"]

_path = click.Path(path_type=Path)
_folder = click.argument("folder", type=_path)
_horizon = click.option("--horizon", type=int, required=True, help="The number of pulls.")
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_json = click.option(
    "--json", "json_path", help="Write JSON to this file; - means standard output."
)
_objective = click.option(
    "--objective",
    type=click.Choice(("earn", "find")),
    help="What to judge policies by: earn means little regret on the way, find means a good arm "
    "in the end (default: earn, or as the spec says).",
)
_seed = click.option("--seed", type=int, default=0, help="The seed of all random numbers.")
_threads = click.option(
    "--workers", type=int, help="The number of threads (default: all processors)."
)
_workers = click.option(
    "--workers",
    type=int,
    help="The number of threads, or of processes of a local cluster (default: all processors).",
)
_scheduler = click.option("--scheduler", help="A Dask scheduler, such as tcp://10.0.0.5:8786.")
_engine = click.option(
    "--engine",
    type=click.Choice(("auto", "threads", "cuda", "dask")),
    help="Play in threads, on a GPU (cuda), or on a Dask cluster, which is started here unless "
    "--scheduler names one; auto takes the GPU if it pays (default: threads, or as the spec says).",
)


_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}


@click.group(context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="manyarms", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
def app(debug: bool) -> None:
    """Bandits with more arms than time."""


@app.command()
@_horizon
@click.option("--n", type=int, help="The number of arms.")
@click.option("--contest", help="Use the captions of this contest (a file or a number) as arms.")
@click.option(
    "--means",
    help="Use means of your own, from a CSV or Parquet file: FILE:COLUMN or FILE:COLUMN/COLUMN, "
    "such as items.csv:clicks/views (default column: mean).",
)
@click.option("--m-at-least", type=int, help="At least this many arms are best.")
@click.option(
    "--alpha-at-most",
    type=float,
    help="The largest hardness, from 0 (easy) to 1; instead of --m-at-least.",
)
@click.option("--best-mean", type=float, help="The best mean, if you know it; round it down.")
@click.option(
    "--best-between", help="The smallest and largest best mean you expect, such as 0.01,0.05."
)
@click.option("--others", help="Means of the other arms, such as 0.1,0.3,0.5.")
@click.option(
    "--in-flight",
    type=int,
    default=0,
    help="The number of pulls that wait for their reward.",
)
@_objective
@click.option(
    "--policies",
    help="Consider only these policies, such as moss,my_module:Mine.",
    shell_complete=complete_policies,
)
@click.option(
    "--replications",
    type=int,
    help="Runs of each finalist (default: as many as fit into about ten seconds).",
)
@click.option(
    "--why", is_flag=True, help="Show the table, all reasons, and what would change the advice."
)
@click.option(
    "--all",
    "everyone",
    is_flag=True,
    help="Play and show the whole catalogue. The first time, this takes a minute or two.",
)
@_seed
@_threads
@_json
def advise(
    horizon: int,
    contest: str | None,
    means: str | None,
    best_between: str | None,
    others: str | None,
    objective: Objective | None,
    policies: str | None,
    why: bool,
    everyone: bool,
    json_path: str | None,
    **given: Any,
) -> None:
    """Say which policy to take for your problem, and why.

    With --why it also says how hard the problem is, and what each policy would lose on it. Policies
    that need to know more than you do are left out.

    Example: manyarms advise --n 1000000 --horizon 20000 --m-at-least 50
    """
    from manyarms.advice import advise as ask
    from manyarms.cli.arguments import as_options, check_json_path, numbers, own_arms
    from manyarms.cli.screen import show, watching, write_json
    from manyarms.protocol.loading import load_policy

    check_json_path(json_path)
    chosen = [load_policy(name) for name in policies.split(",")] if policies else None
    with watching() as watch:
        advice = ask(
            horizon=horizon,
            instance=own_arms(contest, means),
            best_between=numbers("best-between", best_between, "0.01,0.05", float) or None,
            others=numbers("others", others, "0.1,0.3,0.5", float) or None,
            objective=objective or "earn",
            policies="all" if everyone and chosen is None else chosen,
            progress=watch.begin(f"candidates play games of {horizon} pulls"),
            **given,
        )
    if json_path is None:
        show(as_options(advice.text(why=why, everyone=everyone)))
        if not (why or everyone):
            show("\nThe same command with --why shows the table, and what would change the advice.")
    else:
        write_json(advice.to_json(), json_path)


@app.command()
@click.option(
    "--policy",
    "policies",
    multiple=True,
    required=True,
    help="A name, or name:key=value,key=value; module:Class is one of your own. Repeatable.",
    shell_complete=complete_policies,
)
@_horizon
@click.option(
    "--instance",
    default="planted",
    help="planted, captions:CONTEST (a file or a number), means:FILE:COLUMN or "
    "rewards:FILE:ARM,REWARD (names of columns).",
)
@click.option("--n", type=int, help="The number of arms (planted).")
@click.option("--alpha", type=float, help="The hardness (planted).")
@click.option("--m", type=int, help="The number of best arms (planted), instead of alpha.")
@click.option("--replications", type=int, default=100, help="Independent repetitions.")
@_seed
@_threads
@click.option("--checkpoints", help="Also report regret at these times, such as 12500,25000.")
@_objective
@_json
def simulate(
    policies: tuple[str, ...],
    horizon: int,
    instance: str,
    n: int | None,
    alpha: float | None,
    m: int | None,
    replications: int,
    seed: int,
    workers: int | None,
    checkpoints: str | None,
    objective: Objective | None,
    json_path: str | None,
) -> None:
    """Play policies on one instance and print the summary.

    Example: manyarms simulate --policy moss++ --n 20000 --m 132 --horizon 50000
    """
    from manyarms.cli.arguments import (
        check_json_path,
        instance_from,
        json_rows,
        numbers,
        policy_from,
    )
    from manyarms.cli.screen import show, summary_parts, watching, write_json
    from manyarms.simulation import simulate as play

    check_json_path(json_path)
    arms = instance_from(instance, n=n, alpha=alpha, m=m, horizon=horizon)
    chosen = [policy_from(text, arms, alpha) for text in policies]
    wanted = numbers("checkpoints", checkpoints or None, "12500,25000,50000", int)
    with watching() as watch:
        result = play(
            chosen,
            arms,
            horizon=horizon,
            replications=replications,
            seed=seed,
            workers=workers,
            checkpoints=wanted or 1,
            progress=watch.begin(f"{replications} replications on {arms.label}"),
        )
    if json_path is None:
        show(*summary_parts(result.summary(objective=objective)))
    else:
        write_json(json_rows(result, wanted, objective or "earn"), json_path)


@app.command()
@click.argument("spec", type=_path)
@click.option(
    "--out",
    "folder",
    type=_path,
    required=True,
    help="The folder for the results: a new one, or one of the same spec to resume.",
)
@_workers
@_engine
@_scheduler
def run(spec: Path, folder: Path, **given: Any) -> None:
    """Run an experiment that is described in a TOML file.

    If it is stopped, the same command resumes it.

    Example: manyarms run examples/beta_sweep.toml --out out/beta_sweep
    """
    from manyarms.cli.screen import duration, show, summary_table, watching, working
    from manyarms.errors import ResultsError
    from manyarms.report import write_report
    from manyarms.report.text import count_of
    from manyarms.simulation import load_spec
    from manyarms.simulation import run as play
    from manyarms.simulation.pace import estimated_seconds
    from manyarms.simulation.tables import REGRET, RUNS

    experiment = load_spec(spec)
    before = _changed(folder)
    runs = sum(player.replications for cell in experiment.cells for player in cell.players)
    with working("measuring"):
        seconds = estimated_seconds(experiment)
    show(
        f"{experiment.name}: {count_of(len(experiment.cells), 'problem')}, "
        f"{count_of(runs, 'run')}, {count_of(experiment.pulls, 'pull')}\n"
        f"{duration(seconds)} of one processor, into {folder}"
    )
    with watching() as watch:
        results = play(experiment, folder, progress=watch.begin(experiment.name), **given)
    if before is not None and before == _changed(folder):
        show("This run is finished already, so nothing was played.")
    show(summary_table(results), f"The tables are {folder / RUNS} and {folder / REGRET}.")
    try:
        show(f"Look at {write_report(folder)}")
    except ResultsError as error:  # too much for one page: the run is as good as ever
        show(f"No page was written: {error}")


def _changed(folder: Path) -> int | None:
    """Return when a run in this folder last began or ended; None if there is none."""
    from manyarms.simulation.tables import PROVENANCE

    note = folder / PROVENANCE
    return note.stat().st_mtime_ns if note.exists() else None


@app.command("show")
@_folder
@_objective
@_as_json
def show_results(folder: Path, objective: Objective | None, as_json: bool) -> None:
    """Print the summary of a finished run.

    Example: manyarms show out/beta_sweep
    """
    from manyarms.cli.screen import differences_table, show, summary_table, write_json
    from manyarms.simulation import read_results
    from manyarms.simulation.summary import SAYS

    results = read_results(folder)
    if as_json:
        write_json(results.summary_rows(objective or results.objective), "-")
    else:
        show(summary_table(results, objective))
        if (pairs := differences_table(results, objective)).rows:
            show("", pairs, *SAYS)


@app.command()
@_folder
def plot(folder: Path) -> None:
    """Draw the figures of a finished run, without simulating.

    Example: manyarms plot out/beta_sweep
    """
    from manyarms.cli.screen import show, working
    from manyarms.simulation import read_results

    with working("drawing figures"):
        from manyarms.report.figures import draw_cells

        files, left_out = draw_cells(read_results(folder), folder / "figures")
    if left_out:
        show(f"{left_out} further problems are not drawn over time.")
    show(f"{len(files)} files in {folder / 'figures'}")


@app.command()
@_folder
def report(folder: Path) -> None:
    """Write report.html, one page that shows the results.

    FOLDER is one that `run` wrote.

    Example: manyarms report out/beta_sweep
    """
    from manyarms.cli.screen import show, working
    from manyarms.report import write_report

    with working("writing the page"):
        page = write_report(folder)
    show(f"Look at {page}")


@app.command("replay")
@click.argument("log", type=_path)
@click.option(
    "--policies",
    required=True,
    help="The names of the policies, such as moss,prospector.",
    shell_complete=complete_policies,
)
@click.option("--arm", default="arm", help="The column of the arms.")
@click.option("--reward", default="reward", help="The column of the rewards.")
@click.option(
    "--horizon",
    type=int,
    help="The pulls of a game (default: one game, as long as the log allows).",
)
@click.option(
    "--n-arms", type=int, help="The number of arms there were (default: those in the log)."
)
@_seed
def replay_log(log: Path, policies: str, **given: Any) -> None:
    """Say what policies would have earned, from a log.

    LOG is a CSV or Parquet file with a row for each choice, in order. The choices must be uniformly
    random; if they cannot have been, the log is refused. Each policy plays as many games as the log
    has room for.

    Example: manyarms replay clicks.csv --policies moss,scout --reward clicked
    """
    from manyarms.cli.arguments import named_policies
    from manyarms.cli.screen import show, working
    from manyarms.simulation import replay

    with working("playing on the log"):
        result = replay(log, named_policies(policies), **given)
    show(str(result))


@app.command()
@_as_json
def policies(as_json: bool) -> None:
    """List the policies and what is known about them.

    For each: what it needs to know, its guarantee, its cost, and what it is good at.

    Example: manyarms policies
    """
    from manyarms.cli.listing import list_policies

    list_policies(as_json=as_json)


app.add_command(warm)
app.add_command(data)
app.add_command(serve)
app.add_command(watch)
app.add_command(token)
app.add_command(backup)
app.add_command(check)
