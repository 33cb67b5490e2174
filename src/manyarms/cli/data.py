"""`manyarms data`: the caption contests."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from manyarms.cli.screen import out
from manyarms.errors import ManyarmsError
from manyarms.instances import find_contest, local_contests, read_contest

__all__ = ["get_contests", "list_contests", "show_contest"]


def list_contests() -> None:
    """Print the contest files found on this machine."""
    found = local_contests()
    table = Table("contest", "captions", "best arms", "file", box=None, pad_edge=False)
    for name, path in found.items():
        facts = read_contest(path).info()
        table.add_row(name, str(facts["captions"]), str(facts["best_arms"]), str(path))
    if found:
        out.print(table)
    else:
        out.print(
            "No contest files here. Get one with `manyarms data get 652`, or set MANYARMS_DATA "
            "to a folder that holds some.",
            markup=False,
        )


def get_contests(contests: Sequence[str]) -> None:
    """Download contests into the cache; what is there already stays."""
    failures = []
    for contest in contests:
        try:
            out.print(f"{contest}: {find_contest(contest, download=True)}", markup=False)
        except ManyarmsError as error:
            failures.append(error)
            out.print(f"{contest}: {error}", markup=False)
    if failures:
        raise failures[-1]


def show_contest(contest: str) -> None:
    """Print what is known of one contest."""
    for key, value in read_contest(contest).info().items():
        out.print(f"{key.replace('_', ' '):<14} {value}", markup=False)
