"""Names of policies for the shell: `manyarms simulate --policy mo<TAB>`."""

from __future__ import annotations

import click


def complete_policies(context: click.Context, option: click.Parameter, begun: str) -> list[str]:
    """Return the names that fit what was typed; after a comma another name begins."""
    from manyarms.protocol import policy_names

    before, comma, last = begun.rpartition(",")
    return [f"{before}{comma}{name}" for name in policy_names() if name.startswith(last)]
