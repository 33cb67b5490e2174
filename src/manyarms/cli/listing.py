"""`manyarms policies` and `manyarms warm`."""

from __future__ import annotations

import inspect
import time

from rich.table import Table

from manyarms.cli.screen import OverallProgress, out
from manyarms.live import policy_names
from manyarms.live.registry import maker

__all__ = ["list_policies", "warm_up"]


def list_policies() -> None:
    """Print names, parameters with their defaults, and what each policy is."""
    table = Table("name", "parameters", "what it is", box=None, pad_edge=False)
    for name in policy_names():
        make = maker(name)
        parameters = ", ".join(
            f"{p.name}={'…' if p.default is p.empty else p.default!r}"
            for p in inspect.signature(make).parameters.values()
        )
        table.add_row(name, parameters, (inspect.getdoc(make) or "").split("\n")[0])
    out.print(table)


def warm_up() -> None:
    """Compile every policy of the package."""
    from manyarms.engine import simulate
    from manyarms.instances import planted
    from manyarms.policies import PAPER_POLICIES

    begun = time.perf_counter()
    with OverallProgress(len(PAPER_POLICIES)) as progress:
        for policy in PAPER_POLICIES:
            progress.begin(f"compiling {policy.label}")
            simulate(policy, planted(n=10, m=1), horizon=1, replications=1, progress=progress)
    out.print(f"{len(PAPER_POLICIES)} policies ready, {time.perf_counter() - begun:.1f} s")
