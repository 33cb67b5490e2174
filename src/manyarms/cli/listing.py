"""`manyarms policies`, and the table of docs/choosing.md.

`python -m manyarms.cli.listing docs/choosing.md` writes the table of that page anew.
"""

from __future__ import annotations

import inspect
import json
import sys
from dataclasses import asdict
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from manyarms.cli.printable import printable
from manyarms.cli.screen import out
from manyarms.errors import ParameterError
from manyarms.policies.catalogue import Entry, catalogue
from manyarms.protocol import policy_names
from manyarms.protocol.registry import maker

__all__ = ["list_policies", "policies_as_markdown", "with_table"]

BEGIN = "<!-- made by `python -m manyarms.cli.listing docs/choosing.md` from catalogue.toml -->"
END = "<!-- end of what is made -->"

_WIDTH = 100
_TITLES = {
    "paper": "The paper's",
    "ours": "Our own",
    "field": "The field",
}


def list_policies(*, as_json: bool = False) -> None:
    """Print what each policy needs to know, its guarantee, its cost, and what it is good at."""
    names = [name for name in catalogue() if name in policy_names()]
    others = [name for name in policy_names() if name not in catalogue()]  # registered by users
    if as_json:
        rows = [asdict(catalogue()[name]) | {"parameters": _parameters(name)} for name in names]
        rows += [{"name": name, "parameters": _parameters(name)} for name in others]
        sys.stdout.write(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, width=_WIDTH)
    table.add_column("name", no_wrap=True)
    table.add_column("needs to know", max_width=15)
    table.add_column("guarantee")
    table.add_column("ns", justify="right", no_wrap=True)
    table.add_column("grows with", max_width=18)
    table.add_column("good at")
    for name in names:
        entry = catalogue()[name]
        cost = (f"{entry.nanoseconds}", entry.scaling)
        table.add_row(name, entry.needs, entry.guarantee, *cost, entry.good_at)
    for name in others:
        about = (inspect.getdoc(maker(name)) or "").split("\n")[0]
        table.add_row(printable(name), "", "", "", "", printable(about))
    out.print(table)
    out.print("ns: of a pull at n = 20000, T = 50000, hardness 0.4. More with --json.")


def policies_as_markdown() -> str:
    """Return the catalogue as Markdown: a table for each kind of policy."""
    parts = []
    for kind, title in _TITLES.items():
        members = [entry for entry in catalogue().values() if entry.kind == kind]
        head = (
            "policy",
            "needs to know",
            "guarantee",
            "good at",
            "ns a pull",
            "grows with",
            "source",
        )
        lines = [head, ("---",) * len(head), *(_row(entry) for entry in members)]
        table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        parts.append(f"### {title}\n\n{table}")
    return "\n\n".join(parts)


def with_table(page: str) -> str:
    """Return a page with its table made anew, between the two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ParameterError(f"The page must hold the two lines {BEGIN!r} and {END!r}.")
    return f"{before}{BEGIN}\n\n{policies_as_markdown()}\n\n{END}{after}"


def _row(entry: Entry) -> tuple[str, ...]:
    only = " (rewards in [0, 1])" if entry.rewards != "any" else ""
    return (
        f"`{entry.name}`",
        entry.needs + only,
        entry.guarantee,
        entry.good_at,
        f"{entry.nanoseconds}",
        entry.scaling,
        entry.source,
    )


def _parameters(name: str) -> dict[str, str]:
    """Return a policy's parameters with their defaults; "…" stands for those that must be given."""
    known = inspect.signature(maker(name)).parameters.values()
    return {p.name: "…" if p.default is p.empty else repr(p.default) for p in known}


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")
