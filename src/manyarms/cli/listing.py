"""`manyarms policies`, and the table of docs/choosing.md.

`python -m manyarms.cli.listing docs/choosing.md` writes the table of that page anew.
"""

from __future__ import annotations

import inspect
import json
import sys
from dataclasses import asdict
from pathlib import Path

from manyarms.cli.screen import show
from manyarms.errors import ParameterError
from manyarms.protocol import About, described, policy_names
from manyarms.protocol.loading import load_installed
from manyarms.protocol.registry import maker
from manyarms.report.text import Table

BEGIN = "<!-- made by `python -m manyarms.cli.listing docs/choosing.md` -->"
END = "<!-- end of what is made -->"

_HEAD = ["name", "needs to know", "guarantee", "good at", "cost grows with"]
_TITLES = {"paper": "The paper's", "ours": "Our own", "field": "The field"}


def list_policies(*, as_json: bool = False) -> None:
    """Print what each policy needs to know, its guarantee, its cost, and what it is good at."""
    load_installed()
    said = described()
    others = [name for name in policy_names() if name not in said]  # registered by users
    if as_json:
        facts = {name: asdict(about) for name, about in said.items()} | {n: {} for n in others}
        listed = [{"name": n, **f, "parameters": _parameters(n)} for n, f in facts.items()]
        sys.stdout.write(json.dumps(listed, indent=1, ensure_ascii=False) + "\n")
        return
    rows = [
        [name, about.needs, about.guarantee, about.good_at, about.scaling]
        for name, about in said.items()
    ]
    first_lines = {name: (inspect.getdoc(maker(name)) or "").split("\n")[0] for name in others}
    rows += [[name, "", "", line, ""] for name, line in first_lines.items()]
    show(Table(_HEAD, rows, optional=_HEAD[:-2:-1]))


def policies_as_markdown() -> str:
    """Return what is said about policies as Markdown: a table for each kind."""
    head = ["policy", "needs to know", "guarantee", "good at", "cost grows with", "source"]
    parts = []
    for kind, title in _TITLES.items():
        rows = [_row(name, about) for name, about in described().items() if about.kind == kind]
        parts.append(f"### {title}\n\n{Table(head, rows).markdown()}")
    return "\n\n".join(parts)


def with_table(page: str) -> str:
    """Return a page with its table made anew, between the two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ParameterError(f"The page must contain the two lines {BEGIN!r} and {END!r}.")
    return f"{before}{BEGIN}\n\n{policies_as_markdown()}\n\n{END}{after}"


def _row(name: str, about: About) -> list[str]:
    needs = about.needs + (" (rewards in [0, 1])" if about.rewards != "any" else "")
    linked = f"[`{name}`]({about.page.removeprefix('docs/')})"
    return [linked, needs, about.guarantee, about.good_at, about.scaling, about.source]


def _parameters(name: str) -> dict[str, str]:
    """Return a policy's parameters with their defaults; "…" stands for one that has none."""
    known = inspect.signature(maker(name)).parameters.values()
    return {p.name: "…" if p.default is p.empty else repr(p.default) for p in known}


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")
