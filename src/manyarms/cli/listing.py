"""`manyarms policies`, and the tables of docs/policies/index.md.

`python -m manyarms.cli.listing docs/policies/index.md` updates the tables of that page.
"""

from __future__ import annotations

import inspect
import json
import sys
import textwrap
from pathlib import Path

from manyarms.cli.screen import WIDTH, show
from manyarms.core.tabular import markdown_table
from manyarms.errors import ParameterError
from manyarms.policies import CATALOGUE
from manyarms.policies.catalogue import Entry
from manyarms.protocol import policy_names
from manyarms.protocol.loading import load_installed
from manyarms.protocol.registry import makers_of, parameters_of

BEGIN = "<!-- made by `python -m manyarms.cli.listing docs/policies/index.md` -->"
END = "<!-- end of what is made -->"

_TITLES = {"paper": "The paper's", "ours": "Our own", "field": "The field"}


def list_policies(*, as_json: bool = False) -> None:
    """Print what each policy is good at, what it needs to know, its guarantee and its cost."""
    load_installed()
    others = [name for name in policy_names() if name not in CATALOGUE]  # registered by users
    if as_json:
        facts = {name: one._asdict() for name, one in CATALOGUE.items()} | {
            name: {} for name in others
        }
        rows = [{"name": n, **known, "parameters": _parameters(n)} for n, known in facts.items()]
        sys.stdout.write(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
        return
    for name, one in CATALOGUE.items():
        show(name)
        for title, text in (
            ("good at", one.good_at),
            ("needs", _needs(one)),
            ("guarantee", one.guarantee),
            ("cost", f"grows with {one.scaling}" if one.scaling != "constant" else "constant"),
        ):
            show(_item(title, text))
    for name in others:
        show(name)
        if line := (inspect.getdoc(makers_of(name)[0]) or "").split("\n")[0]:
            show(_item("about", line))


def _item(title: str, text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=f"    {title:<11}", subsequent_indent=" " * 15)


def policies_as_markdown() -> str:
    """Return one Markdown table for each kind of policy."""
    parts = []
    for kind, title in _TITLES.items():
        rows = [
            [
                f"[`{name}`]({about.page.removeprefix('docs/policies/')})",
                _needs(about),
                about.guarantee,
                about.good_at,
            ]
            for name, about in CATALOGUE.items()
            if about.kind == kind
        ]
        head = ["policy", "needs to know", "guarantee", "good at"]
        parts.append(f"## {title}\n\n{markdown_table(head, rows)}")
    return "\n\n".join(parts)


def with_table(page: str) -> str:
    """Return a page with new tables between the two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ParameterError(f"The page must contain the two lines {BEGIN!r} and {END!r}.")
    return f"{before}{BEGIN}\n\n{policies_as_markdown()}\n\n{END}{after}"


def _needs(about: Entry) -> str:
    return about.needs + (" (rewards in [0, 1])" if about.rewards != "any" else "")


def _parameters(name: str) -> dict[str, str]:
    """Return a policy's parameters with their defaults; "…" stands for one that has none."""
    known = parameters_of(name).values()
    return {p.name: "…" if p.default is p.empty else repr(p.default) for p in known}


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")
