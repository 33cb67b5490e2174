"""The commands: options and body side by side. Each one imports what it needs when it runs."""

from __future__ import annotations

from typing import Any, Literal

import click

from manyarms import __version__
from manyarms.cli.completion import complete_policies
from manyarms.cli.data import data
from manyarms.cli.serve import serve, token
from manyarms.cli.upkeep import backup, check
from manyarms.cli.warm import warm

Objective = Literal["earn", "find"]

_horizon = click.option("--horizon", type=int, required=True, help="The number of pulls.")
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_json = click.option(
    "--json", "json_path", help="Write JSON to this file; - means standard output."
)
_objective = click.option(
    "--objective",
    type=click.Choice(("earn", "find")),
    default="earn",
    help="What to judge policies by: earn means little regret on the way, find means a good arm "
    "in the end.",
)
_seed = click.option("--seed", type=int, default=0, help="The seed of all random numbers.")
_threads = click.option(
    "--workers", type=int, help="The number of threads (default: all processors)."
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
    objective: Objective,
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
            objective=objective,
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
    objective: Objective,
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
        write_json(json_rows(result, wanted, objective), json_path)


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
app.add_command(token)
app.add_command(backup)
app.add_command(check)
