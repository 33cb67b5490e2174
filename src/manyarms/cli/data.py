"""`manyarms data`: the caption contests."""

from __future__ import annotations

import click


@click.group()
def data() -> None:
    """Find, download and describe caption contests.

    Example: manyarms data info 652
    """


@data.command("list")
def list_contests() -> None:
    """List the contest files on this machine.

    Example: manyarms data list
    """
    from manyarms.cli.screen import show, show_table
    from manyarms.instances import local_contests, read_contest

    rows, folders = [], set[str]()
    for name, path in local_contests().items():
        facts = read_contest(path).info()
        rows.append([name, str(facts["captions"]), str(facts["best_arms"])])
        folders.add(str(path.parent))
    if rows:
        show_table(["contest", "captions", "best arms"], rows)
        show(f"in {', '.join(sorted(folders))}")
    else:
        show(
            "No contest files were found. Get one with `manyarms data get 652`, or set "
            "MANYARMS_DATA to a folder that contains some."
        )


@data.command("get")
@click.argument("contests", nargs=-1)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Download every published contest. To resume, run it again.",
)
def get_contests(contests: tuple[str, ...], every: bool) -> None:
    """Download contests into the cache, and verify them.

    CONTESTS are numbers or names. Those in the cache already are only verified.

    Example: manyarms data get 652 660, or manyarms data get --all
    """
    from manyarms.cli.screen import show
    from manyarms.errors import ManyarmsError
    from manyarms.instances import find_contest

    if every == bool(contests):
        raise click.UsageError("Give contests such as 652, or --all, but not both.")
    if every:
        _get_all()
        return
    failures = []
    for contest in contests:
        try:
            show(f"{contest}: {find_contest(contest, download=True)}")
        except ManyarmsError as error:
            failures.append(error)
            show(f"{contest}: {error}")
    if failures:
        raise failures[-1]


def _get_all() -> None:
    """Download every published contest, and verify those in the cache."""
    import sys
    from collections import Counter

    from manyarms.cli.screen import show
    from manyarms.errors import DownloadError
    from manyarms.instances.contests import contest_cache, get_every_contest, published_contests

    published = published_contests()
    count: Counter[str] = Counter()
    notes = []
    with click.progressbar(
        get_every_contest(published),
        length=len(published),
        label="verifying and downloading contests",
        file=sys.stderr,
    ) as tried:
        for one in tried:
            count[one.state] += 1
            if one.state in ("failed", "other"):
                kept = "the file in MANYARMS_DATA is not the published one, and was kept"
                notes.append(f"{one.name}: {one.why or kept}")
    for note in notes:
        show(note)
    show(
        f"{len(published)} published: {count['there']} already here, {count['downloaded']} "
        f"downloaded, {count['other']} of your own, {count['failed']} failed, "
        f"{len(published) - count.total()} not tried. Cache: {contest_cache()}"
    )
    if count["failed"]:
        raise DownloadError("Some contests could not be downloaded. Run the same command again.")


@data.command("info")
@click.argument("contest")
def show_contest(contest: str) -> None:
    """Describe a contest: a number, a name, or a file.

    Example: manyarms data info 652
    """
    from manyarms.cli.screen import show
    from manyarms.instances import read_contest

    for key, value in read_contest(contest).info().items():
        shown = f"{value:.4f}" if isinstance(value, float) else value
        show(f"{key.replace('_', ' '):<14} {shown}")
    show(
        "A caption is uneven if its votes of the three kinds do not add up to all its votes, and "
        "unrated if it got no votes. Unrated captions are left out."
    )
