"""The commands and their options. Each one imports what it needs when it runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from manyarms import __version__
from manyarms.cli.data_app import data

__all__ = ["app"]

F = TypeVar("F", bound=Callable[..., Any])

PAPER = ("fig1", "fig2a", "fig2b", "fig3", "claims", "all")
BEYOND = {  # what else can be reproduced: who does it, and the usual replications
    "rates": ("reproduce_theory", 300),
    "lower-bound": ("reproduce_theory", 24),
    "late": ("reproduce_late", 400),
    "best-mean": ("reproduce_late", 400),
    "contests": ("reproduce_contests", 20),
    "leaderboard": ("reproduce_leaderboard", 100),
}
REPLICATIONS = 100


def _how_often(replications: int | str) -> Callable[[F], F]:
    """Add the options that all simulating commands share; a rule in words has no default."""

    def add(command: F) -> F:
        for option in (
            click.option("--workers", type=int, help="Threads; all processors unless given."),
            click.option(
                "--seed", type=int, default=0, show_default=True, help="Decides everything random."
            ),
            click.option(
                "--replications",
                type=int,
                default=replications if isinstance(replications, int) else None,
                show_default=replications if isinstance(replications, str) else True,
                help="Independent repetitions.",
            ),
        ):
            command = option(command)
        return command

    return add


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="manyarms", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
def app(debug: bool) -> None:
    """Bandits with more arms than time."""


@app.command()
@click.argument("target", type=click.Choice((*PAPER, *BEYOND)), default="all")
@_how_often(f"{REPLICATIONS}; " + ", ".join(f"{t} {usual}" for t, (_, usual) in BEYOND.items()))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out/paper"),
    show_default=True,
    help="Folder for figures, tables and verdicts.",
)
def reproduce(**options: Any) -> None:
    """Play the paper's experiments; draw its figures; check every claim of its text.

    TARGET is a figure, the claims, or all of these. Beyond the paper, and not part of all, because
    they take minutes: rates (the exponents of Figure 1, measured), lower-bound (its problems, and
    the trade-off), late (what late rewards cost), best-mean (what a wrong best mean costs),
    contests (the policies on every caption contest that is found), leaderboard (every policy on a
    suite of problems; it resumes if it was stopped).

    Example: manyarms reproduce fig2a --replications 1000
    """
    name, usual = BEYOND.get(options["target"], ("reproduce_paper", REPLICATIONS))
    if options["replications"] is None:
        options["replications"] = usual
    getattr(importlib.import_module(f"manyarms.cli.{name}"), name)(**options)


@app.command()
@click.option("--n", type=int, required=True, help="Arms.")
@click.option("--horizon", type=int, required=True, help="Pulls.")
@click.option("--m-at-least", type=int, help="How many arms are best, at least.")
@click.option("--alpha-at-most", type=float, help="Its hardness at most, 0 (easy) to 1, instead.")
@click.option(
    "--best-mean", type=float, help="The best mean, rounded down; admits patience, parallel."
)
@click.option("--others", help="Means of the other arms to play on, such as 0.1,0.3,0.5.")
@click.option("--betas", help="Of moss++ and empmoss++, such as 0.5,0.6,0.75.")
@click.option("--replications", type=int, help="Runs of each; as many as fit unless given.")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides everything random.")
@click.option("--workers", type=int, help="Threads; all processors unless given.")
@click.option("--json", "json_path", help="Write JSON to this file; - is standard output.")
def advise(**options: Any) -> None:
    """Say how hard a problem is, what each policy would lose, and which one to take.

    Example: manyarms advise --n 1000000 --horizon 20000 --m-at-least 50
    """
    from manyarms.cli import advise as command

    command.print_advice(**options)


@app.command()
@click.option(
    "--policy",
    "policies",
    multiple=True,
    required=True,
    help="A name, or name:key=value,key=value. Repeatable.",
)
@click.option("--horizon", type=int, required=True, help="Pulls.")
@click.option(
    "--instance",
    default="planted",
    show_default=True,
    help="planted, or captions:CONTEST (a file or a number).",
)
@click.option("--n", type=int, help="Arms (planted).")
@click.option("--alpha", type=float, help="Hardness (planted).")
@click.option("--m", type=int, help="Best arms (planted), instead of alpha.")
@_how_often(REPLICATIONS)
@click.option("--checkpoints", help="Times to report regret at, such as 12500,25000.")
@click.option("--json", "json_path", help="Write JSON to this file; - is standard output.")
def simulate(**options: Any) -> None:
    """Play policies on one instance and print the summary.

    Example: manyarms simulate --policy moss++ --policy empmoss++ --n 20000 --alpha 0.4
    --horizon 50000
    """
    from manyarms.cli import simulate as command

    command.simulate_policies(**options)


@app.command()
@click.argument("spec", type=click.Path(path_type=Path))
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for the results: new, or that of the same spec.",
)
@click.option("--workers", type=int, help="Threads or processes; all processors unless given.")
@click.option(
    "--engine",
    type=click.Choice(("threads", "dask")),
    default="threads",
    show_default=True,
    help="Who plays: threads, or a Dask cluster, started here unless --scheduler is given.",
)
@click.option("--scheduler", help="Of a Dask cluster, such as tcp://10.0.0.5:8786.")
def run(**options: Any) -> None:
    """Run an experiment from a TOML file; call it again to resume one that was stopped.

    Example: manyarms run examples/beta_sweep.toml --out out/beta_sweep
    """
    from manyarms.cli import run as command

    command.run_spec(**options)


@app.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(**options: Any) -> None:
    """Print the summary of a finished run.

    Example: manyarms show out/beta_sweep
    """
    from manyarms.cli import run as command

    command.show_results(**options)


@app.command()
@click.argument("folder", type=click.Path(path_type=Path))
def plot(**options: Any) -> None:
    """Draw the figures of a finished run, without simulating.

    Example: manyarms plot out/beta_sweep
    """
    from manyarms.cli import run as command

    command.plot_results(**options)


@app.command()
@click.argument("folder", type=click.Path(path_type=Path))
def report(**options: Any) -> None:
    """Write report.html, one page to look at, into a folder of `run` or `reproduce`.

    Example: manyarms report out/beta_sweep
    """
    from manyarms.cli import report as command

    command.report_results(**options)


@app.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def policies(**options: Any) -> None:
    """List the policies: what they need to know, guarantee, cost, and what they are good at.

    Example: manyarms policies
    """
    from manyarms.cli import listing

    listing.list_policies(**options)


@app.command()
def warm() -> None:
    """Compile the paper's policies now, so that no later run waits for it.

    Example: manyarms warm (in the build of a container image)
    """
    from manyarms.cli import listing

    listing.warm_up()


app.add_command(data)
