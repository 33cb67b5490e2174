"""The commands of `manyarms data`, and their options."""

from __future__ import annotations

import click

__all__ = ["data"]


@click.group()
def data() -> None:
    """Find, download and describe caption contests.

    Example: manyarms data info 652
    """


@data.command("list")
def data_list() -> None:
    """List the contest files on this machine.

    Example: manyarms data list
    """
    from manyarms.cli import data as command

    command.list_contests()


@data.command("get")
@click.argument("contests", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every published contest; resumes.")
def data_get(contests: tuple[str, ...], every: bool) -> None:
    """Download contests, by number or name, into the cache; those that are there are verified.

    Example: manyarms data get 652 660, or manyarms data get --all
    """
    from manyarms.cli import data as command

    if every == bool(contests):
        raise click.UsageError("Give contests such as 652, or --all, and not both.")
    if every:
        command.get_all_contests()
    else:
        command.get_contests(contests)


@data.command("info")
@click.argument("contest")
def data_info(contest: str) -> None:
    """Describe a contest: a number, a name, or a file.

    Example: manyarms data info 652
    """
    from manyarms.cli import data as command

    command.show_contest(contest)
