"""`manyarms backup` and `manyarms check`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("store")
@click.argument("file", type=click.Path(path_type=Path))
def backup(store: str, file: Path) -> None:
    """Copy an SQLite database to a new FILE, while the service runs.

    The copy is one consistent state of the database. For PostgreSQL, use pg_dump.

    Example: manyarms backup sqlite:///shop.db shop-monday.db
    """
    from manyarms.core.optional import need

    need("msgspec", "to back up a service", "serve")
    from manyarms.serve.upkeep import back_up

    click.echo(f"copying {store} ...", err=True)
    size = back_up(store, file)
    click.echo(f"{file} is a copy of {store}, {size / 1e6:.1f} MB. It contains secrets.")


@click.command()
@click.argument("store")
def check(store: str) -> None:
    """Replay the logs of a service, and compare every arm.

    It says whether this version of manyarms chooses the arms that were recorded, so it can go on
    where the last one ended. Of an SQLite file, a copy is checked.

    Example: manyarms check sqlite:///shop.db
    """
    from manyarms.core.optional import need

    need("msgspec", "to check a service", "serve")
    from manyarms.serve.upkeep import check_logs

    wrong = 0
    for one in check_logs(store):
        wrong += bool(one.trouble)
        said = one.trouble or one.skipped or "every arm is the one that was recorded"
        click.echo(f"{one.name}: {one.events} events; {said}")
    if wrong:
        click.echo(f"{wrong} of the experiments cannot go on with this version.", err=True)
        raise SystemExit(1)
