"""Start a process of the service: `manyarms serve`."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import os
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

from manyarms.errors import (
    DuplicateNameError,
    ParameterError,
    PathError,
    StoreUnavailableError,
)
from manyarms.serve import clock, local_token
from manyarms.serve.access import LONGEST_TOKEN, digest_of, new_token
from manyarms.serve.app import App
from manyarms.serve.service import ServerSettings, Service, is_wildcard, joined, local_host
from manyarms.store import EventStore, Token, open_store

_logger = logging.getLogger("manyarms.serve")
_STARTING = 30.0  # seconds that a start waits for the database
_SPARE = 200  # open files that are not connections
_ACCEPTED = 16  # connections per turn of the event loop
_ENVIRONMENT = "environment"  # the name of the token in MANYARMS_TOKEN
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class _Server(uvicorn.Server):
    """A server that calls `listening` when it listens, and leaves signals to `serve`."""

    listening: Callable[[], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _JsonLines(logging.Formatter):
    """Formats a record as one line of JSON."""

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


def run(settings: ServerSettings, say: Callable[[str], None], *, quiet: bool = False) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    logger = logging.getLogger("manyarms")
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
    # uvicorn would log every malformed request; `App` logs bugs of the service
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    gc.set_threshold(100_000, 50, 1000)  # full collections take long
    gc.freeze()
    _raise_open_files(settings.connections)
    os.umask(0o077)  # only the owner can read the files of a store
    sys.setswitchinterval(0.001)  # the event loop waits less for other threads
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(settings, say, secretly=not sys.stdout.isatty()))


def _raise_open_files(connections: int) -> None:
    """Raise the limit of open files if that is allowed: each connection needs one."""
    # Windows has no such limit; elsewhere, the change may not be allowed
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = connections + _SPARE
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory of uvloop's event loop; None if uvloop is not installed."""
    try:
        import uvloop
    except ImportError:  # Windows has none
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def serve(
    settings: ServerSettings,
    say: Callable[[str], None],
    *,
    secretly: bool = False,
    ready: Callable[[Callable[[], None]], None] | None = None,
) -> None:
    """Serve until a signal, or the function passed to `ready`, ends the service.

    Parameters
    ----------
    settings
        The settings of the process.
    say
        Is called with each line that says where the service is.
    secretly
        Whether these lines leave out tokens, because logs may keep them.
    ready
        Is called with a function that ends the service, once it listens; for use in a thread.
    """
    began = time.time()
    listener = _bound(settings.host, settings.port)
    settings = replace(settings, port=listener.getsockname()[1])
    try:
        store, entry = await _prepared(settings)
        service = Service(settings, store)
        server = _Server(config(App(service), settings))
        await service.start()
    except BaseException:
        listener.close()
        raise
    loop = asyncio.get_running_loop()
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            # Windows has no such handlers, and only the main thread can set them
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
        # uvloop accepts one connection per turn from each socket, so many at once would wait
        await server.serve(sockets=[listener, *(listener.dup() for _ in range(_ACCEPTED - 1))])
    finally:
        listener.close()
        await service.close()


def _end(server: uvicorn.Server, service: Service) -> None:
    if not service.ending:
        _logger.info("shutting down; finishing open requests first")
    service.ending = True
    server.should_exit = True


def config(app: Any, settings: ServerSettings) -> uvicorn.Config:
    """Return the configuration of uvicorn."""
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
    return listener  # connections are refused until the process is ready and listens


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host in _LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Entry(NamedTuple):
    """How to sign in: a token, its name, and the file that keeps it."""

    token: str = ""  # empty if there is none to show
    name: str = ""
    file: Path | None = None


async def _prepared(settings: ServerSettings) -> tuple[EventStore, _Entry]:
    """Open the store, and wait up to 30 seconds for it; return it, and how to sign in."""
    end, pause, said = time.monotonic() + _STARTING, 0.05, ""
    while True:
        try:
            return await asyncio.to_thread(_prepare, settings)
        except StoreUnavailableError as error:
            if time.monotonic() > end:
                raise
            if str(error) != said:
                said = str(error)
                _logger.warning("waiting up to %g s for the store: %s", _STARTING, error)
            await asyncio.sleep(pause)
            pause = min(1.0, 2 * pause)


def _prepare(settings: ServerSettings) -> tuple[EventStore, _Entry]:
    """Open the store, and store the token of this start."""
    given = os.environ.get("MANYARMS_TOKEN", "")
    _check_token(given)
    store = open_store(settings.store, durable="power")
    try:
        loopback = is_loopback(settings.host)
        tokens = {one.name: one for one in store.tokens()}
        if not loopback and not given and not _lasting(tokens):
            raise ParameterError(
                f"`--host` {settings.host} can be reached by others, but there is no token. Set "
                f"MANYARMS_TOKEN, which gets the role admin, or make a token with "
                f"`{_pasted('add me --role admin', settings.store)}`."
            )
        entry = _Entry(given, _ENVIRONMENT) if given else _Entry()
        file = local_token.token_file(store)
        if loopback and not given:
            entry = _local(file, f"{local_token.NAME}-{settings.port}")
        elif loopback and file is not None and _digest_at(tokens) == digest_of(given):
            entry = _Entry(given, local_token.NAME, file)  # it was exported from an earlier start
        _keep(store, tokens, entry, loopback=loopback, store_url=settings.store)
    except BaseException:
        store.close()
        raise
    return store, entry


def _lasting(tokens: dict[str, Token]) -> list[str]:
    """Return the names of the tokens that `manyarms token add` made."""
    return [
        name
        for name in tokens
        if name not in (_ENVIRONMENT, local_token.NAME)
        and not name.startswith(f"{local_token.NAME}-")
    ]


def _digest_at(tokens: dict[str, Token]) -> str:
    found = tokens.get(local_token.NAME)
    return "" if found is None else found.hash


def _local(file: Path | None, here: str) -> _Entry:
    """Return the token beside the store; if none can be stored there, one for this start."""
    if file is not None:
        try:
            token = local_token.kept_token(file)
            return _Entry(token, local_token.NAME, file) if token else _Entry()
        except OSError as error:
            _logger.warning(
                "%s cannot be written (%s): the token is valid until the next start", file, error
            )
    return _Entry(new_token(), here)


def _keep(
    store: EventStore, tokens: dict[str, Token], entry: _Entry, *, loopback: bool, store_url: str
) -> None:
    """Store the token of this start, and remove those of earlier starts."""
    digest = digest_of(entry.token) if entry.token else ""
    gone = {_ENVIRONMENT} if loopback else {_ENVIRONMENT, local_token.NAME}
    for name in (gone | {entry.name}) & tokens.keys():
        if name != entry.name or tokens[name].hash != digest:
            store.remove_token(name)
            del tokens[name]
    if entry.token and entry.name not in tokens:
        holder = next((one for one in tokens.values() if one.hash == digest), None)
        if holder is not None:
            raise ParameterError(
                f"`MANYARMS_TOKEN` must not be a stored token, got that of {holder.name!r}, which "
                f"has the role {holder.role}. Set another one, or unset it, or revoke that one "
                f"with `{_pasted(f'drop {holder.name}', store_url)}`."
            )
        try:
            store.add_token(Token(entry.name, "admin", digest, clock.now()))
        except DuplicateNameError:  # another process started at the same time
            if all((one.name, one.hash) != (entry.name, digest) for one in store.tokens()):
                raise


def _greeting(service: Service, entry: _Entry, how: str, *, secretly: bool) -> list[str]:
    """Return lines that say where the service is, and how to sign in."""
    settings, given = service.settings, entry.name == _ENVIRONMENT
    host = local_host(settings.host) if is_wildcard(settings.host) else settings.host
    url = f"http://{joined(host, settings.port)}{settings.root_path}"
    lines = [f"manyarms serves {service.store} at {url} ({how})"]
    login = f"  in a browser  {url}/login, with"
    if not entry.token or (secretly and not given and entry.file is None):
        made = _pasted("add me --role admin", settings.store)
        return [*lines, f"{login} a token", f"  make a token  {made}"]
    if given:
        lines += [f"{login} the token in MANYARMS_TOKEN, which has the role admin"]
        if not is_loopback(settings.host):
            said = f"others can reach {settings.host}; this token makes them admin"
            lines.append(f"                ({said})")
        return lines
    if secretly:
        why = "the token is printed only on a terminal"
        return [*lines, f"{login} the token in {entry.file}", f"                ({why})"]
    until = f"it is kept in {entry.file}" if entry.file else "it is valid until the next start"
    return [
        *lines,
        f"{login} the token",
        f"  for programs  export MANYARMS_TOKEN={entry.token}",
        f"                ({until})",
    ]


def _pasted(words: str, store: str) -> str:
    """Return a command about tokens of this store, quoted for a shell.

    >>> _pasted("drop me", "postgresql://ann@db/arms")
    'manyarms token drop me --store postgresql://ann@db/arms'
    >>> _pasted("drop me", "postgresql://ann:secret@db/arms")
    'manyarms token drop me --store "$MANYARMS_STORE"'
    """
    if not store.startswith("postgres"):
        path = store.removeprefix("sqlite:///")
        store = f"sqlite:///{Path(path).resolve()}"  # it can be pasted in any folder
    has_password = "password=" in store or ":" in urlsplit(store).netloc.rpartition("@")[0]
    where = '"$MANYARMS_STORE"' if has_password else shlex.quote(store)
    return f"manyarms token {words} --store {where}"


def _check_token(token: str) -> None:
    if token and len(token) < 16:
        raise ParameterError("`MANYARMS_TOKEN` must have at least 16 characters.")
    if len(token) > LONGEST_TOKEN:
        raise ParameterError(f"`MANYARMS_TOKEN` must have at most {LONGEST_TOKEN} characters.")
