"""Starting a process of the service: `manyarms serve`."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import os
import secrets
import shlex
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import uvicorn

from manyarms.errors import ParameterError, PathError, StoreError
from manyarms.live.databases import Database, UnreachableError, database_of
from manyarms.live.databases.sqlite import SQLite
from manyarms.serve import local_token, tables
from manyarms.serve.access import (
    LONGEST_TOKEN,
    Caller,
    NewToken,
    add_token,
    digest_of,
    find_caller,
    new_token,
)
from manyarms.serve.app import App
from manyarms.serve.service import Service, Settings, is_wildcard, joined, local_host

_logger = logging.getLogger("manyarms.serve")
_STARTING = 30.0  # seconds that a database is waited for
_SPARE = 200  # files beside those of connections
_ACCEPTED = 16  # connections a turn of the loop
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class _Server(uvicorn.Server):
    """Leaves signals to us: a leader has to commit before it ends. Says when it listens."""

    listening: Callable[[], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def run(settings: Settings, say: Callable[[str], None], *, quiet: bool = False) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    logger = logging.getLogger("manyarms")
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
    # else whoever can reach us writes a line for each bad request; `App` logs what is our fault
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    gc.set_threshold(100_000, 50, 1000)  # full collections would stop everything for long
    gc.freeze()
    _raise_open_files(settings.connections)
    os.umask(0o077)  # databases are for their owner alone
    sys.setswitchinterval(0.001)  # so that no thread need wait for long, and few interrupt another
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(settings, say, secretly=not sys.stdout.isatty()))


def _raise_open_files(connections: int) -> None:
    """Let this process open a file for each connection: the usual limit is about a thousand."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has none; it is forbidden
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = connections + _SPARE
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes event loops: the quickest there is."""
    try:
        import uvloop
    except ImportError:  # Windows has none
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def serve(
    settings: Settings,
    say: Callable[[str], None],
    *,
    secretly: bool = False,
    ready: Callable[[Callable[[], None]], None] | None = None,
) -> None:
    """Serve until the process is told to end.

    What it says goes `secretly` without what lets others in, where logs keep it. `ready` is given a
    function that ends it, for whoever serves in a thread.
    """
    began = time.time()
    listener = _bound(settings.host, settings.port)
    settings = replace(settings, port=listener.getsockname()[1])
    try:
        entry = await _prepared(settings)
        service = Service(settings)
        server = _Server(config(App(service), settings))
        await service.start()
    except BaseException:
        listener.close()
        raise
    loop = asyncio.get_running_loop()
    try:  # from here on there are threads to be ended
        for number in (signal.SIGTERM, signal.SIGINT):
            # Windows has none, and only the main thread hears them
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, _end, server, service)

        def listening() -> None:
            why_not = service.not_ready()
            how = f"not ready: {why_not}" if why_not else f"ready in {time.time() - began:.2f} s"
            for line in _greeting(service, entry, how, secretly=secretly):
                say(line)
            if ready is not None:
                ready(lambda: loop.call_soon_threadsafe(_end, server, service))  # type: ignore[arg-type]

        server.listening = listening
        # uvloop accepts one connection a turn from each: a thousand that come at once would wait
        await server.serve(sockets=[listener, *(listener.dup() for _ in range(_ACCEPTED - 1))])
    finally:
        listener.close()
        await service.close()


def _end(server: uvicorn.Server, service: Service) -> None:
    if not service.ending:
        _logger.info("ending: requests under way are answered first")
    service.ending = True
    server.should_exit = True


def config(app: Any, settings: Settings) -> uvicorn.Config:
    """Return how the server is to be."""
    return uvicorn.Config(
        app,
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        http="httptools",
        ws="none",
        backlog=2048,
        limit_concurrency=settings.connections,
        timeout_keep_alive=settings.idle_seconds,
        timeout_graceful_shutdown=3,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies) or None,
    )


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise PathError(
            f"Cannot listen on {host}:{port}: {error.strerror}. Choose another --port."
        ) from error
    listener.setblocking(False)
    return listener  # it listens when the process is ready: until then connections are refused


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host in _LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Entry(NamedTuple):
    """How to get in: a token, its name, and the file that it lies in, if it does."""

    token: str | None = None
    name: str = ""
    file: Path | None = None
    dropped: bool = False  # whether somebody has dropped the one that lies in a file


async def _prepared(settings: Settings) -> _Entry:
    """Open the database, within half a minute; return how to get in.

    Refuses to be reached by everybody.
    """
    end, pause = time.monotonic() + _STARTING, 0.05
    while True:
        try:
            return await asyncio.to_thread(_prepare, settings)
        except UnreachableError as error:
            if time.monotonic() > end:
                raise StoreError(f"The database cannot be reached: {error}.") from error
            _logger.warning("waits for the database: %s", error)
            await asyncio.sleep(pause)
            pause = min(1.0, 2 * pause)


def _prepare(settings: Settings) -> _Entry:
    given = os.environ.get("MANYARMS_TOKEN", "")
    loopback = is_loopback(settings.host)
    here = f"local-{settings.port}"
    with contextlib.closing(tables.opened(settings.store)) as database:
        # those of earlier starts were for those starts
        lasting = "FROM tokens WHERE name NOT LIKE 'local-%' AND name <> 'environment'"
        if not loopback and not given and not database.first(f"SELECT count(*) {lasting}")[0]:
            raise ParameterError(
                f"`--host` {settings.host} can be reached by others, and there is no token. Set "
                f"MANYARMS_TOKEN to one for an admin, or make one with "
                f"`{_pasted('add me --role admin', settings.store)}`."
            )
        _check_token(given)
        dropped = local_token.dropped_digest(database)
        if given and dropped == digest_of(given):
            raise ParameterError(
                f"`MANYARMS_TOKEN` must not be the token {local_token.NAME!r}, which was dropped. "
                f"Unset it, or set another one."
            )
        path = local_token.token_file(database)
        if loopback and given and path is not None and local_token.read_token(path) == given:
            given = ""  # it was exported from an earlier start
        with database.transaction():
            database.run("DELETE FROM tokens WHERE name IN ('environment', :here)", here=here)
            if not loopback:
                database.run("DELETE FROM tokens WHERE name = :name", name=local_token.NAME)
            entry = _Entry(given, "environment") if given else _Entry()
            if loopback and not given:
                entry = _Entry(dropped=True) if dropped and path else _local(path, here)
            if entry.token:
                _keep(database, entry, settings.store)
        tables.setting(database, "identity", secrets.token_hex(16))  # of this database
        return entry


def _local(path: Path | None, here: str) -> _Entry:
    """Return the token that lies beside the database; where none can, one for this start."""
    if path is not None:
        try:
            return _Entry(local_token.kept_token(path), local_token.NAME, path)
        except OSError as error:
            _logger.warning(
                "%s cannot be written (%s): the token ends with this start", path, error
            )
    return _Entry(new_token(), here)


def _keep(database: Database, entry: _Entry, store: str) -> None:
    assert entry.token is not None
    holder = find_caller(database, entry.token)
    if holder is not None and holder.name == entry.name:
        return
    database.run("DELETE FROM tokens WHERE name = :name", name=entry.name)
    if not add_token(database, NewToken(entry.name, "admin"), entry.token):
        _refuse_if_taken(holder, entry.name, store)


def _greeting(service: Service, entry: _Entry, how: str, *, secretly: bool) -> list[str]:
    """Return where the service is, and how to get in."""
    settings, given = service.settings, entry.name == "environment"
    host = local_host(settings.host) if is_wildcard(settings.host) else settings.host
    url = f"http://{joined(host, settings.port)}{settings.root_path}"
    lines = [f"manyarms serves {database_of(settings.store)} at {url} ({how})"]
    login = f"  in a browser  {url}/login, with"
    if entry.dropped or entry.token is None or (secretly and not given and entry.file is None):
        made = _pasted("add me --role admin", settings.store)
        return [*lines, f"{login} a token", f"  make a token  {made}"]
    if given:
        lines += [f"{login} the token in MANYARMS_TOKEN, which has the role admin"]
        if not is_loopback(settings.host):
            said = f"others can reach {settings.host}; this token makes them admin"
            lines.append(f"                ({said})")
        return lines
    if secretly:
        why = "the token is not printed, because this is no terminal"
        return [*lines, f"{login} the token in {entry.file}", f"                ({why})"]
    until = f"it is kept in {entry.file}" if entry.file else "it is good until the next start"
    return [
        *lines,
        f"{login} the token",
        f"  for programs  export MANYARMS_TOKEN={entry.token}",
        f"                ({until})",
    ]


def _pasted(words: str, store: str) -> str:
    """Return a command about tokens of this store, to be pasted into a shell.

    >>> _pasted("drop me", "postgresql://ann@db/arms")
    'manyarms token drop me --store postgresql://ann@db/arms'
    >>> _pasted("drop me", "postgresql://ann:secret@db/arms")
    'manyarms token drop me --store "$MANYARMS_STORE"'
    """
    database = database_of(store)
    if isinstance(database, SQLite):
        store = f"sqlite:///{database.path}"
    has_password = "password=" in store or ":" in urlsplit(store).netloc.rpartition("@")[0]
    where = '"$MANYARMS_STORE"' if has_password else shlex.quote(store)
    return f"manyarms token {words} --store {where}"


def _refuse_if_taken(holder: Caller | None, name: str, store: str) -> None:
    """Refuse a token that has another name already."""
    if holder is not None and holder.name != name:
        raise ParameterError(
            f"`MANYARMS_TOKEN` must be a token of its own, and it is {holder.name!r} already, with "
            f"the role {holder.role}. Set another one, or unset it, or revoke that one with "
            f"`{_pasted(f'drop {holder.name}', store)}`."
        )


def _check_token(token: str) -> None:
    if token and len(token) < 16:
        raise ParameterError("`MANYARMS_TOKEN` must have at least 16 characters.")
    if len(token) > LONGEST_TOKEN:
        raise ParameterError(f"`MANYARMS_TOKEN` must have at most {LONGEST_TOKEN} characters.")
