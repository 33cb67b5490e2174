"""`manyarms serve` and `manyarms token`."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

_store = click.option(
    "--store",
    default="sqlite:///manyarms.db",
    envvar="MANYARMS_STORE",
    help="sqlite:///FILE, or postgresql://USER@HOST/DATABASE.",
)
_text = functools.partial(click.option, default="", show_default=False)


def _needs_extra() -> None:
    from manyarms.core.optional import need

    for package in ("msgspec", "uvicorn"):
        need(package, "to serve", "serve")


@contextmanager
def _opened(store: str, *, new: bool = False) -> Iterator[Any]:
    """Open the database of a service, for a moment; a file that is not there is made if `new`."""
    _needs_extra()
    from manyarms.errors import PathNotFoundError
    from manyarms.live.databases import database_of
    from manyarms.serve.tables import opened

    path = getattr(database_of(store), "path", None)  # of SQLite
    missing = path is not None and not Path(path).exists()
    if missing and not new:
        fix = "Name the service's own with `--store`."
        raise PathNotFoundError(f"There is no database {store}. {fix}")
    database = opened(store)
    if missing:
        click.echo(f"manyarms: made a new database, {path}", err=True)
    try:
        yield database
    finally:
        database.close()


@click.command()
@_store
@click.option("--host", default="127.0.0.1", help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, help="The port; 0 chooses a free one."
)
@_text(
    "--root-path",
    help="The path under which a proxy serves it, such as /arms.",
)
@_text(
    "--trusted-proxies",
    help="Addresses of proxies whose X-Forwarded headers count, separated by commas.",
)
@click.option(
    "--connections",
    type=click.IntRange(1),
    default=10_000,
    help="The largest number of connections; requests beyond get status 503.",
)
@click.option(
    "--idle-seconds",
    type=click.IntRange(1),
    default=75,
    help="How long a connection is kept between two requests.",
)
@click.option("--quiet", is_flag=True, help="Log warnings only.")
def serve(root_path: str, trusted_proxies: str, quiet: bool, **given: Any) -> None:
    """Serve experiments over HTTP, with a page to watch them.

    Example: manyarms serve --store sqlite:///shop.db --port 8765
    """
    _needs_extra()
    from manyarms.serve.server import run
    from manyarms.serve.service import Settings

    proxies = tuple(filter(None, trusted_proxies.split(",")))
    settings = Settings(root_path=root_path.rstrip("/"), trusted_proxies=proxies, **given)
    run(settings, click.echo, quiet=quiet)


@click.group()
def token() -> None:
    """Make, list and revoke tokens, directly in the database.

    Example: manyarms token add shop --role client
    """


@token.command("add")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(("admin", "client", "viewer")),
    required=True,
    help="What the token may do.",
)
@click.option("--experiment", help="The experiment that it is for (default: all).")
@click.option(
    "--days", type=float, help="The number of days after which it expires (default: never)."
)
@_store
def add(store: str, days: float | None, **given: Any) -> None:
    """Make a token and print it. It is not shown again.

    Example: manyarms token add shop --role client --experiment buttons
    """
    _needs_extra()
    import msgspec

    from manyarms.errors import DuplicateNameError, ParameterError
    from manyarms.serve.access import NewToken, add_token, new_token
    from manyarms.serve.errors import failure_of_body

    given |= {"expires": None if days is None else days * 86400}
    try:
        new = msgspec.convert(given, NewToken)
    except msgspec.ValidationError as error:
        raise ParameterError(failure_of_body(error, NewToken).message) from error
    made = new_token()
    with _opened(store, new=True) as database, database.transaction():
        if not add_token(database, new, made):
            raise DuplicateNameError(f"There is a token {new.name!r}. Choose another name.")
    click.echo(made)


@token.command("list")
@_store
def list_tokens(store: str) -> None:
    """List tokens: names, roles, experiments.

    Example: manyarms token list
    """
    with _opened(store) as database:
        rows = database.run("SELECT name, role, experiment FROM tokens ORDER BY name")
    for name, role, experiment in rows:
        click.echo(f"{name:24} {role:9} {experiment or 'all experiments'}")


@token.command("drop")
@click.argument("name")
@_store
def drop(name: str, store: str) -> None:
    """Revoke a token. The service refuses it after two seconds.

    Example: manyarms token drop shop
    """
    from manyarms.errors import UnknownNameError
    from manyarms.serve.local_token import NAME, drop_token, token_file

    with _opened(store) as database, database.transaction():
        if not drop_token(database, name):
            known = [row[0] for row in database.run("SELECT name FROM tokens")]
            raise UnknownNameError("token", name, known)
        file = token_file(database)
    kept = f" {file} is removed, and no start makes another." if name == NAME and file else ""
    click.echo(f"{name} is revoked. The service refuses it after two seconds.{kept}")
