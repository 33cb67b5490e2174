"""The commands, each with its options. Each one imports what it needs when it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from manyarms import __version__
from manyarms.cli.arguments import (
    Objective,
    complete_policies,
    horizon_option,
    json_option,
    objective_option,
    seed_option,
    workers_option,
)
from manyarms.cli.data import data
from manyarms.cli.history import observe
from manyarms.cli.serve import serve, token
from manyarms.cli.upkeep import backup, check, copy, export
from manyarms.cli.warm import warm

if TYPE_CHECKING:
    from manyarms.simulation import Result, Summary

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}


@click.group(context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="manyarms", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
def app(debug: bool) -> None:
    """Bandits with more arms than time."""


@app.command()
@horizon_option
@click.option("--n", "n_arms", type=int, help="The number of arms.")
@click.option(
    "--instance",
    help="Data similar to yours, instead of --n: captions:CONTEST (a file or a number), "
    "means:FILE:COLUMN such as means:items.csv:clicks/views, or rewards:FILE:ARM,REWARD.",
)
@click.option("--m-at-least", type=int, help="At least this many arms are best.")
@click.option(
    "--best-mean",
    help="The best mean, rounded down; or two numbers that it lies between, such as 0.01,0.05.",
)
@click.option(
    "--pending",
    type=int,
    default=0,
    help="The number of further pulls made before the reward of a pull is known.",
)
@objective_option
@click.option(
    "--policies",
    help="Simulate these policies only, such as moss,my_module:Mine.",
    shell_complete=complete_policies,
)
@click.option(
    "--replications",
    type=int,
    help="Replications of each problem (default: as many as take about ten seconds on one core).",
)
@seed_option
@workers_option
@json_option
def advise(
    instance: str | None,
    best_mean: str | None,
    policies: str | None,
    json_path: str | None,
    **given: Any,
) -> None:
    """Recommend a policy for problems of your size.

    Six policies are simulated on problems with your numbers of arms and pulls. The first line of
    the output is the policy to use. The table shows the loss of each.

    Example: manyarms advise --n 1000000 --horizon 20000 --m-at-least 50
    """
    from manyarms.advice import advise as ask
    from manyarms.cli.arguments import instance_from, named_policies, numbers
    from manyarms.cli.screen import check_json_path, show, write_json

    check_json_path(json_path)
    means = numbers("best-mean", best_mean, "0.9 or 0.01,0.05", float)
    advice = ask(
        instance=None if instance is None else instance_from(instance),
        best_mean=means[0] if len(means) == 1 else means or None,
        policies=named_policies(policies) if policies else None,
        **given,
    )
    if json_path is None:
        show(str(advice))
    else:
        write_json(advice.to_json(), json_path)


@app.command()
@click.option(
    "--policy",
    "policies",
    multiple=True,
    required=True,
    help="A name, or name:key=value,key=value; module:Class for your own. Repeatable.",
    shell_complete=complete_policies,
)
@horizon_option
@click.option(
    "--instance",
    default="planted",
    help="planted, captions:CONTEST (a file or a number), means:FILE:COLUMN or "
    "rewards:FILE:ARM,REWARD (names of columns).",
)
@click.option("--n", type=int, help="The number of arms (planted).")
@click.option("--alpha", type=float, help="The hardness (planted).")
@click.option("--m", type=int, help="The number of best arms (planted), instead of alpha.")
@click.option("--replications", type=int, default=100, help="The number of replications.")
@seed_option
@workers_option
@click.option("--checkpoints", help="Also report regret at these times, such as 12500,25000.")
@objective_option
@json_option
def simulate(
    policies: tuple[str, ...],
    horizon: int,
    instance: str,
    n: int | None,
    alpha: float | None,
    m: int | None,
    checkpoints: str | None,
    objective: Objective,
    json_path: str | None,
    **given: Any,
) -> None:
    """Simulate policies on one instance and print a summary.

    Example: manyarms simulate --policy moss++ --n 20000 --m 132 --horizon 50000
    """
    from manyarms.cli.arguments import (
        instance_from,
        numbers,
        policy_from,
        refuse_beside_instance,
    )
    from manyarms.cli.screen import check_json_path, write_json
    from manyarms.errors import ParameterError
    from manyarms.instances import planted
    from manyarms.simulation import simulate as play

    check_json_path(json_path)
    if instance != "planted":
        arms = instance_from(instance)
        refuse_beside_instance(n=n, alpha=alpha, m=m)
    elif n is None:
        raise ParameterError("`--n` is required for planted arms.")
    else:
        arms = planted(n=n, alpha=alpha, horizon=horizon, m=m)
    chosen = [policy_from(text, arms, horizon, alpha) for text in policies]
    times = numbers("checkpoints", checkpoints, "12500,25000,50000", int)
    result = play(chosen, arms, horizon=horizon, checkpoints=times or 1, **given)
    rows = _json_rows(result, times, objective)
    if json_path is None:
        _show_summary(result.summary(objective=objective), rows if times else [])
    else:
        write_json(rows, json_path)


def _show_summary(summary: Summary, rows: list[dict[str, Any]]) -> None:
    """Print a summary, its paired differences, and the regret of `rows` at checkpoints."""
    from manyarms.cli.screen import show, show_table

    for which in ("policies", "pairs") if summary.pairs else ("policies",):
        table = summary.table(which)
        show(table.title)
        show_table(table.head, table.rows)
    if rows:
        show("mean regret at the checkpoints")
        means = [[row["policy"], *(f"{x:.1f}" for x in row["regret_at"].values())] for row in rows]
        show_table(["policy", *rows[0]["regret_at"]], means)


def _json_rows(result: Result, times: list[int], objective: Objective) -> list[dict[str, Any]]:
    """Return one object for each policy, with its regret at the times asked for."""
    rows = []
    for row in result.summary(objective=objective).policies:
        measured = {name: value for name, value in row._asdict().items() if value is not None}
        entry: dict[str, Any] = {**measured, "seconds": round(result.seconds[row.policy], 6)}
        if times:
            at = {time: result.summary(time=time)[row.policy].mean for time in times}
            entry["regret_at"] = {str(time): mean for time, mean in at.items()}
        rows.append(entry)
    return rows


@app.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def policies(as_json: bool) -> None:
    """List the policies and what is known about them.

    For each: what it is good at, what it needs to know, its guarantee and its cost.

    Example: manyarms policies
    """
    from manyarms.cli.listing import list_policies

    list_policies(as_json=as_json)


for command in (warm, data, serve, token, observe, backup, check, copy, export):
    app.add_command(command)
