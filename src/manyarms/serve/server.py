"""Starting a node: `manyarms serve`."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec
import uvicorn

from manyarms.errors import ParameterError, PathError
from manyarms.live.databases import Database
from manyarms.serve.access import (
    LONGEST_TOKEN,
    Caller,
    add_token,
    digest_of,
    find_caller,
    mark_of,
    new_token,
)
from manyarms.serve.app import App
from manyarms.serve.limits import LimitedProtocol, look_at_all, raise_open_files
from manyarms.serve.messages import NewToken
from manyarms.serve.quick import QuickProtocol
from manyarms.serve.service import Service, Settings, is_wildcard, joined, local_host

_logger = logging.getLogger("manyarms.serve")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class _Server(uvicorn.Server):
    """Leaves signals to us: a node has to hand over before it ends. Says when it listens."""

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
    gc.set_threshold(100_000, 50, 1000)  # full collections would stop everything for long
    gc.freeze()
    raise_open_files(settings.connections)
    os.umask(0o077)  # a database has the secret that signs sessions
    sys.setswitchinterval(0.001)  # so that no thread need wait for long, and few interrupt another
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(settings, say))


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
    ready: Callable[[Callable[[], None]], None] | None = None,
) -> None:
    """Serve until the process is told to end.

    `ready` is given a function that ends it, for whoever serves in a thread.
    """
    _check_address(settings)
    listener = _bound(settings.host, settings.port)
    port = listener.getsockname()[1]
    settings = replace(settings, port=port)
    service = Service(settings)
    app = App(service)
    server = _Server(_config(app, settings, service))
    try:
        await service.start()
    except BaseException:
        listener.close()
        raise
    loop = asyncio.get_running_loop()
    looking: asyncio.Task[None] | None = None
    try:  # from here on there are threads and a process to be ended
        for number in (signal.SIGTERM, signal.SIGINT):
            # Windows has none, and only the main thread hears them
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, _end, server, service)
        lines = await _greeting(service, settings)

        def end() -> None:
            loop.call_soon_threadsafe(_end, server, service)

        def listening() -> None:
            took = time.time() - service.began
            for line in lines:
                say(line.replace("(ready)", f"(ready in {took:.2f} s)"))
            if ready is not None:
                ready(end)

        server.listening = listening
        connections = server.server_state.connections
        looking = asyncio.create_task(look_at_all(connections, settings.request_seconds))
        await server.serve(sockets=[listener])
    finally:
        if looking is not None:
            looking.cancel()
        listener.close()
        await service.close()
        await app.close()


def _end(server: uvicorn.Server, service: Service) -> None:
    if not service.ending:
        _logger.info("ending: requests under way are answered first")
    service.ending = True  # pages that follow let go
    server.should_exit = True


def _config(app: Any, settings: Settings, service: Service | None = None) -> uvicorn.Config:
    protocol = LimitedProtocol if service is None else QuickProtocol
    limits = {"most": settings.connections, "seconds": settings.request_seconds}
    return uvicorn.Config(
        app,
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        http=type("Protocol", (protocol,), limits | {"service": service}),
        ws="none",
        backlog=2048,
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
    return listener  # it listens when the node is ready: until then connections are refused


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host in _LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_address(settings: Settings) -> None:
    """Refuse an address that other nodes cannot reach."""
    shared = not settings.store.startswith("sqlite:")
    if shared and is_wildcard(settings.host) and not settings.address:
        raise ParameterError(
            f"`--address` must be given with `--host` {settings.host}: other nodes send requests "
            f"to this one, and cannot send them to {settings.host}. Give the name or address at "
            f"which they reach it, such as --address 10.0.0.5:{settings.port}."
        )


async def _greeting(service: Service, settings: Settings) -> list[str]:
    """Refuse to be reached by everybody; return where the service is, and how to get in."""
    given = os.environ.get("MANYARMS_TOKEN", "")
    host = local_host(settings.host) if is_wildcard(settings.host) else settings.host
    url = f"http://{joined(host, settings.port)}{settings.root_path}"
    loopback = is_loopback(settings.host)
    store = service.node.committer
    # Those of earlier starts were for those starts.
    lasting = "FROM tokens WHERE name NOT LIKE 'local-%' AND name <> 'environment'"
    tokens = await store.insist(lambda db: db.run(f"SELECT count(*) {lasting}"))
    if not loopback and not given and not tokens[0][0]:
        raise ParameterError(
            f"`--host` {settings.host} can be reached by others, and there is no token. Set "
            f"MANYARMS_TOKEN to one for an admin, or make one with `manyarms token add`."
        )
    token = (given or new_token()) if loopback or given else None
    _check_token(token)
    new = NewToken("environment" if given else f"local-{settings.port}", "admin")

    def renew(database: Database) -> None:
        with database.transaction():
            database.run(
                "DELETE FROM tokens WHERE name IN ('environment', :here)",
                here=f"local-{settings.port}",
            )
            if token is not None and not add_token(database, new, token):
                _refuse_if_taken(find_caller(database, "sha256", digest_of(token)), new.name)

    await store.insist(renew)
    lines = [f"manyarms serves {service.node.committer.database} at {url} (ready)"]
    if token is None:
        return lines
    code = service.access.login_code(Caller(new.name, "admin", mark=mark_of(digest_of(token))))
    lines.append(f"  in a browser  {url}/login?code={code}")
    lines.append("                (this link works once, within ten minutes)")
    if not given:
        lines.append(f"  for programs  export MANYARMS_TOKEN={token}")
        lines.append("                (this token is good until the next start)")
    else:
        lines.append("  for programs  the token in MANYARMS_TOKEN, which has the role admin")
        if not loopback:
            lines.append(
                f"                (others can reach {settings.host}; this token makes them admin)"
            )
    return lines


def _refuse_if_taken(holder: Caller | None, name: str) -> None:
    """Refuse a token that has another name already; of two nodes that start, one is the first."""
    if holder is not None and holder.name != name:
        raise ParameterError(
            f"`MANYARMS_TOKEN` must be a token of its own, and it is {holder.name!r} already, with "
            f"the role {holder.role}. Set another one, or unset it, or take that back with "
            f"`manyarms token drop {holder.name}`."
        )


def _check_token(token: str | None) -> None:
    if token is not None and len(token) < 16:
        raise ParameterError("`MANYARMS_TOKEN` must have at least 16 characters.")
    if token is not None and len(token) > LONGEST_TOKEN:
        raise ParameterError(f"`MANYARMS_TOKEN` must have at most {LONGEST_TOKEN} characters.")
