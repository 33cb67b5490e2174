"""`manyarms warm`: compile policies before they are needed."""

from __future__ import annotations

import time

import click

from manyarms.cli.arguments import complete_policies


@click.command()
@click.option(
    "--policies",
    help="Compile these policies, such as moss,prospector (default: those of the paper).",
    shell_complete=complete_policies,
)
def warm(policies: str | None) -> None:
    """Compile policies now, so that no run waits for it.

    This is useful when you build a container image.

    Example: manyarms warm --policies prospector
    """
    from manyarms.cli.arguments import named_policies
    from manyarms.cli.screen import show
    from manyarms.instances import planted
    from manyarms.policies import PAPER_POLICIES
    from manyarms.simulation import simulate as play

    begun = time.perf_counter()
    chosen = named_policies(policies) if policies else PAPER_POLICIES
    play(chosen, planted(n=10, m=1), horizon=1, replications=1)
    show(f"{len(chosen)} policies compiled, {time.perf_counter() - begun:.1f} s")
