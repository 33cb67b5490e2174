"""`manyarms warm`: compile now what would be compiled later."""

from __future__ import annotations

import time

import click

from manyarms.cli.completion import complete_policies


@click.command()
@click.option(
    "--policies",
    help="Compile these policies, such as moss,prospector (default: those of the paper).",
    shell_complete=complete_policies,
)
def warm(policies: str | None) -> None:
    """Compile policies now, so that no run waits.

    This is useful when you build a container image.

    Example: manyarms warm --policies prospector
    """
    from manyarms.cli.arguments import named_policies
    from manyarms.cli.screen import show, watching
    from manyarms.instances import planted
    from manyarms.policies import PAPER_POLICIES
    from manyarms.report.text import count_of
    from manyarms.simulation import simulate as play

    begun = time.perf_counter()
    chosen = named_policies(policies) if policies else PAPER_POLICIES
    with watching() as watch:
        for policy in chosen:
            heard = watch.begin(policy.label)
            play(policy, planted(n=10, m=1), horizon=1, replications=1, progress=heard)
    ready = count_of(len(chosen), "policy", "policies")
    show(f"{ready} ready, {time.perf_counter() - begun:.1f} s")
