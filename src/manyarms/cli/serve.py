"""`manyarms serve` and `manyarms token`."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
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
    """Open a store, and close it at the end; create it if it does not exist and `new` is set."""
    _needs_extra()
    from manyarms.store import open_store

    with open_store(store, create=new) as opened:
        yield opened


@click.command()
@_store
@click.option("--host", default="127.0.0.1", help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, help="The port; 0 chooses a free one."
)
@_text(
    "--root-path",
    help="The URL path under which a proxy serves the service, such as /arms.",
)
@_text(
    "--trusted-proxies",
    help="Addresses of proxies whose X-Forwarded headers are trusted, separated by commas.",
)
@click.option(
    "--connections",
    type=click.IntRange(1),
    default=10_000,
    help="The largest number of connections; further requests get status 503.",
)
@click.option(
    "--idle-seconds",
    type=click.IntRange(1),
    default=75,
    help="How long an idle connection is kept open.",
)
@click.option("--quiet", is_flag=True, help="Log warnings only.")
def serve(root_path: str, trusted_proxies: str, quiet: bool, **given: Any) -> None:
    """Serve experiments over HTTP, with a dashboard.

    Example: manyarms serve --store sqlite:///shop.db --port 8765
    """
    _needs_extra()
    from manyarms.serve.server import run
    from manyarms.serve.service import ServerSettings

    proxies = tuple(filter(None, trusted_proxies.split(",")))
    settings = ServerSettings(root_path=root_path.rstrip("/"), trusted_proxies=proxies, **given)
    run(settings, click.echo, quiet=quiet)


@click.group()
def token() -> None:
    """Create, list and revoke tokens directly in the store.

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
@click.option(
    "--days",
    type=click.FloatRange(0, 36_600, min_open=True),
    help="The number of days after which it expires (default: never).",
)
@_store
def add(name: str, role: str, store: str, days: float | None) -> None:
    """Create a token and print it. It is not shown again.

    Example: manyarms token add shop --role client
    """
    from manyarms.store import Token, check_name

    with _opened(store, new=True) as opened:
        from manyarms.serve import clock
        from manyarms.serve.access import digest_of, new_token

        check_name(name, 100, "owner of a token")
        made, now = new_token(), clock.now()
        expires = None if days is None else now + days * 86400
        opened.add_token(Token(name, role, digest_of(made), now, expires))
    click.echo(made)


@token.command("list")
@_store
def list_tokens(store: str) -> None:
    """List the names and roles of tokens.

    Example: manyarms token list
    """
    from datetime import UTC, datetime

    with _opened(store) as opened:
        for one in opened.tokens():
            until = ""
            if one.expires is not None:
                until = f"until {datetime.fromtimestamp(one.expires, UTC):%Y-%m-%d %H:%M} UTC"
            click.echo(f"{one.name:24} {one.role:9} {until}".rstrip())


@token.command("drop")
@click.argument("name")
@_store
def drop(name: str, store: str) -> None:
    """Revoke a token. The service refuses it within two seconds.

    Example: manyarms token drop shop
    """
    from manyarms.errors import UnknownNameError

    with _opened(store) as opened:
        from manyarms.serve.local_token import NAME, remove_token, token_file

        if not remove_token(opened, name):
            raise UnknownNameError("token", name, [one.name for one in opened.tokens()])
        file = token_file(opened)
    kept = (
        f" {file} is now empty, and the service creates no new token."
        if name == NAME and file
        else ""
    )
    click.echo(f"{name} is revoked. The service refuses it within two seconds.{kept}")
