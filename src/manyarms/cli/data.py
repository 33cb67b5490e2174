"""`manyarms data`: the caption contests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.table import Table

from manyarms.cli.screen import counting, out
from manyarms.errors import DownloadError, ManyarmsError
from manyarms.instances import find_contest, local_contests, read_contest
from manyarms.instances.contest_list import Got, get_every_contest, published_contests
from manyarms.instances.contests import cache_folder

__all__ = ["get_all_contests", "get_contests", "list_contests", "show_contest"]


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


def get_all_contests() -> None:
    """Download every published contest; verify those that are there; go on where it stopped."""
    published = published_contests()
    got: list[Got] = []
    with counting(len(published)) as advance:
        for one in get_every_contest(published):
            got.append(one)
            advance(one.name)
            if one.state in ("failed", "other"):
                note = one.why or "the file in MANYARMS_DATA is not the published one; it is kept"
                out.print(f"{one.name}: {note}", markup=False)
    count = Counter(one.state for one in got)
    out.print(
        f"{len(published)} published: {count['there']} were here, {count['downloaded']} "
        f"downloaded, {count['other']} of your own, {count['failed']} failed, "
        f"{len(published) - len(got)} not tried. Cache: {cache_folder()}",
        markup=False,
    )
    if count["failed"]:
        raise DownloadError("Some contests could not be downloaded. Run the same again to go on.")


def show_contest(contest: str) -> None:
    """Print what is known of one contest."""
    for key, value in read_contest(contest).info().items():
        out.print(f"{key.replace('_', ' '):<14} {value}", markup=False)
