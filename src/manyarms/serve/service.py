"""What requests and pages are given: experiments, views, callers."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import logging
import secrets
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from manyarms.serve import messages as m
from manyarms.serve.access import LONGEST_TOKEN, Access, Caller, Headers, digest_of, find_caller
from manyarms.serve.committer import Answers
from manyarms.serve.errors import (
    BrokenError,
    LostError,
    RefusedError,
    unavailable,
    unknown,
    unknown_experiment,
)
from manyarms.serve.metrics import Metrics
from manyarms.serve.node import ServiceNode
from manyarms.serve.owned import Owned
from manyarms.serve.scribe import ScribeLink

if TYPE_CHECKING:
    from manyarms.serve.requests import Request

_LOOK = 1.0  # seconds between looks at the scribe
_LISTED = 50  # experiments of a page of the listing
_logger = logging.getLogger("manyarms.serve")


@dataclass(frozen=True)
class Settings:
    """How a node is started.

    Attributes
    ----------
    store
        The database's address.
    host, port
        Where it listens.
    address
        Where other nodes reach it (default: host and port, or this machine if the host is a
        wildcard such as 0.0.0.0).
    root_path
        What a proxy puts before all paths.
    trusted_proxies
        Addresses whose X-Forwarded headers count.
    connections
        The largest number of connections.
    idle_seconds
        How long a connection is kept between two requests.
    request_seconds
        How long the head of a request may take.
    restored
        Whether the database was restored from a backup since it was last served.
    """

    store: str = "sqlite:///manyarms.db"
    host: str = "127.0.0.1"
    port: int = 8765
    address: str = ""
    root_path: str = ""
    trusted_proxies: tuple[str, ...] = field(default=())
    connections: int = 1000
    idle_seconds: int = 75
    request_seconds: float = 10.0
    restored: bool = False

    @property
    def reached_at(self) -> str:
        """Where other nodes reach it."""
        # a wildcard is for SQLite only, where all nodes are on this machine
        host = local_host(self.host) if is_wildcard(self.host) else self.host
        return self.address or joined(host, self.port)


def is_wildcard(host: str) -> bool:
    """Whether a host stands for all addresses of a machine.

    >>> [is_wildcard(host) for host in ("0.0.0.0", "::", "127.0.0.1", "node-1")]
    [True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host or "0.0.0.0").is_unspecified
    except ValueError:
        return False


def local_host(wildcard: str) -> str:
    """Return the address of this machine that a wildcard stands for, among others."""
    return "::1" if ":" in wildcard else "127.0.0.1"


def joined(host: str, port: int) -> str:
    """Return a host and a port as they stand in addresses.

    >>> joined("::1", 8765)
    '[::1]:8765'
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class ElsewhereError(Exception):
    """Another node owns the experiment: send the request there."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


def not_known(error: BaseException) -> RefusedError:
    """Return the refusal of a request of which nobody knows whether it was done."""
    if isinstance(error, LostError):
        return unknown("Another node has taken over")
    if isinstance(error, asyncio.CancelledError):
        return unknown("This node is about to end")
    return unknown("The database does not answer")


class Service:
    """One node with its scribe and its rules of access."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.root_path = settings.root_path
        self.node = ServiceNode(settings.store, settings.reached_at)
        self.scribe = ScribeLink(settings.store, self.node.owner)
        self.metrics = Metrics(self)
        self.access: Access
        self.began = time.time()
        self.ending = False
        self.exports = 0  # that are being made
        self._watch: asyncio.Task[None] | None = None
        self._origins: tuple[float, set[str]] = (0.0, set())

    async def start(self) -> None:
        """Connect; start the scribe."""
        await self.node.start()
        fresh = secrets.token_hex(32)
        store = self.node.committer
        self.access = Access(await store.insist(lambda database: database.setting("secret", fresh)))
        if self.settings.restored:
            await store.insist(lambda database: database.after_restore())
            await self.note(None, None, "restored from a backup: raised all generations")
        await self.scribe.start()
        self._watch = asyncio.create_task(self._look_after())

    async def close(self) -> None:
        """Commit, make snapshots, release."""
        if self._watch is not None:
            self._watch.cancel()
        await self.scribe.close()
        await self.node.close()

    async def _look_after(self) -> None:
        """Stop serving what the scribe cannot play again."""
        while True:
            await asyncio.sleep(_LOOK)
            await self.scribe.look()
            for name, state in (self.scribe.status or {}).items():
                owned = self.node.owned.get(name)
                if state["alarm"] and owned is not None and owned.trouble is None:
                    _logger.error("replay differs: %s", state["alarm"])
                    owned.trouble = m.Failure("replay", state["alarm"], 503)

    # Who

    async def caller(self, scope: Any) -> Caller | None:
        """Return who sends a request; None if that is not known."""
        headers: Headers = dict(scope["headers"])
        token = self.access.token_in(headers, scope["query_string"])
        if token is None:
            return await self._of_session(headers)
        if len(token) > LONGEST_TOKEN:
            return None
        header = headers.get(b"authorization", b"")
        known = await self._known("sha256", digest_of(token), header)
        # addresses are written down in many places: only pages' tokens may be there
        if known is not None and b"authorization" not in headers and known.role != "browser":
            return None
        return known

    async def _known(
        self, column: Literal["sha256", "name"], value: str, header: bytes = b""
    ) -> Caller | None:
        known = self.access.remembered(column, value)
        if isinstance(known, bool):
            known = await self.node.read(lambda database: find_caller(database, column, value))
            self.access.remember(column, value, known, header)
        return known

    async def _of_session(self, headers: Headers) -> Caller | None:
        """Return whose session it is, if the token that began it is still good."""
        session = self.access.session_in(headers)
        if session is None:
            return None
        known = await self._known("name", session.name)
        if known is None or known.mark != session.mark or known[1:3] != session[1:3]:
            return None  # it was revoked, or another one has its name
        ends = [end for end in (session.expires, known.expires) if end is not None]
        return known._replace(cookie=True, expires=min(ends))

    async def origins(self) -> set[str]:
        """Return the origins of all pages that have a token."""
        until, known = self._origins
        if until < time.monotonic():
            rows = await self.node.read(
                lambda database: database.run("SELECT origins FROM tokens WHERE role = 'browser'")
            )
            known = {origin for (text,) in rows for origin in json.loads(text)}
            self._origins = time.monotonic() + 2, known
        return known

    # What

    async def apply(
        self,
        request: Request,
        change: Callable[[Owned], Any],
        *,
        once: bool = False,
    ) -> tuple[Owned, Any, Answers]:
        """Let a request change its experiment; return when that is committed.

        Returns the experiment, what `change` returned, and what the database said. Raises
        `ElsewhereError` if another node owns it. What must not be done twice is done `once`: if
        another node takes over meanwhile, nobody knows. Even a refusal waits for a commit: a node
        that is the owner no longer must not say anything.
        """
        for _ in range(8):
            owned = await self.node.find(request.experiment, forwarded=request.forwarded)
            if isinstance(owned, str):
                raise ElsewhereError(owned)
            refusal: RefusedError | None = None
            result: Any = None
            try:
                try:
                    result = change(owned)
                    if asyncio.iscoroutine(result):
                        result = await result
                except RefusedError as error:
                    refusal = error
                # many wait for one commit: that one of them is cancelled, concerns no other
                answers = await asyncio.shield(owned.touch().done)
            except BrokenError as error:
                raise self.node.broke(owned, error) from error
            except LostError as error:
                if once:
                    raise not_known(error) from None
                continue
            except (TimeoutError, asyncio.CancelledError) as error:
                raise not_known(error) from None
            if refusal is not None:
                raise refusal
            return owned, result, answers
        raise unavailable(f"Several nodes want to own {request.experiment!r}.")

    async def listing(self, caller: Caller, cursor: str = "") -> m.Listing:
        """Return a page of the experiments that a caller may see: those after a cursor, a name."""
        rows = await self.node.read(lambda database: database.experiments())
        names = sorted(  # databases may order letters in ways of their own
            row.name
            for row in rows
            if row.spec != "null" and row.name > cursor and caller.experiment in (None, row.name)
        )
        page, found = names[:_LISTED], []
        for name in page:
            with contextlib.suppress(RefusedError):
                found.append(await self.scribe.view("summary", name))
        return m.Listing(found, page[-1] if len(names) > _LISTED else None)

    async def health(self, experiment: str) -> m.Health:
        """Return how the service is doing with an experiment."""
        row, saved, audit = await self.node.read(
            lambda database: (
                database.find(experiment),
                database.run(
                    f"SELECT s.seq, {database.now} - s.at FROM snapshots s JOIN experiments e ON "
                    "e.id = s.experiment WHERE e.name = :name ORDER BY s.seq DESC LIMIT 1",
                    name=experiment,
                ),
                database.run(
                    "SELECT at, token, action FROM audit WHERE experiment = :name "
                    "ORDER BY id DESC LIMIT 20",
                    name=experiment,
                ),
            )
        )
        if row is None:
            raise unknown_experiment(experiment)
        committer, status = self.node.committer, self.scribe.status or {}
        seen = status.get(row.name)
        return m.Health(
            owner=row.owner,
            epoch=row.epoch,
            head=row.head,
            commit_p50=1000 * committer.took(0.5),
            commit_p99=1000 * committer.took(0.99),
            group_size=statistics.fmean(committer.sizes or [0]),
            scribe_lag=None if seen is None else max(0, row.head - seen["head"]),
            snapshot_age=saved[0][1] if saved else None,
            snapshot_head=saved[0][0] if saved else None,
            replay="ok" if seen is None or not seen["alarm"] else seen["alarm"],
            audit=[m.AuditLine(*line) for line in audit],
        )

    def not_ready(self) -> str:
        """Return why requests are not answered here; empty if they are."""
        if self.node.closing:
            return "this node is about to end"
        return (
            f"the database is away: {self.node.committer.away}" if self.node.committer.away else ""
        )

    async def note(self, caller: Caller | None, experiment: str | None, action: Any) -> None:
        """Write down who did what. It is done: if this fails, the answer is the same."""
        text = action if isinstance(action, str) else json.dumps(action)
        who = "" if caller is None else caller.name
        _logger.info("audit: %s %s %s", who, experiment or "-", text)
        try:
            await self.node.write(lambda database: database.note(who, experiment, text[:500]))
        except RefusedError as error:
            _logger.error("not in the audit: %s %s %s: %s", who, experiment or "-", text, error)
