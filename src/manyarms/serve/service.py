"""What handlers use: experiments, views and callers."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from manyarms.errors import ManyarmsError
from manyarms.serve import messages as m
from manyarms.serve.access import Access, Caller, Headers, token_in
from manyarms.serve.errors import (
    BrokenError,
    LostError,
    RefusedError,
    failed,
    failure_of,
    refuse,
    unavailable,
    unknown,
)
from manyarms.serve.experiment import ServedExperiment
from manyarms.serve.leader import Leader
from manyarms.serve.metrics import Metrics
from manyarms.serve.views import VIEWS, unloaded
from manyarms.store import EventStore

R = TypeVar("R")
_LISTED = 50  # experiments on one page of the list
_EVENT_PAGES = 2  # pages of events that are read at once
_LOADING = 1.0  # seconds that the list waits for experiments to load
_SETTLING = 5.0  # seconds that a start waits until it is known which process leads
_logger = logging.getLogger("manyarms.serve")


@dataclass(frozen=True)
class ServerSettings:
    """The settings of a process of the service.

    Attributes
    ----------
    store
        The address of the store.
    host, port
        The address to listen on.
    root_path
        The path of the service on the proxy.
    trusted_proxies
        Addresses whose X-Forwarded headers count.
    connections
        The largest number of connections.
    idle_seconds
        How long a connection is kept open between two requests.
    """

    store: str = "sqlite:///manyarms.db"
    host: str = "127.0.0.1"
    port: int = 8765
    root_path: str = ""
    trusted_proxies: tuple[str, ...] = field(default=())
    connections: int = 10_000
    idle_seconds: int = 75


def is_wildcard(host: str) -> bool:
    """Return whether a host stands for all addresses of a machine.

    >>> [is_wildcard(host) for host in ("0.0.0.0", "::", "127.0.0.1", "node-1")]
    [True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host or "0.0.0.0").is_unspecified
    except ValueError:
        return False


def local_host(wildcard: str) -> str:
    """Return the loopback address that a wildcard includes."""
    return "::1" if ":" in wildcard else "127.0.0.1"


def joined(host: str, port: int) -> str:
    """Return a host and a port as in a URL.

    >>> joined("::1", 8765)
    '[::1]:8765'
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Service:
    """A process of the service, which answers requests while it leads and otherwise stands by."""

    def __init__(self, settings: ServerSettings, store: EventStore) -> None:
        self.settings = settings
        self.root_path = settings.root_path
        self.store = store
        self.leader = Leader(store, settings.store)
        self.metrics = Metrics(self)
        self.access = Access(store.tokens)
        self.event_pages = asyncio.Semaphore(_EVENT_PAGES)
        self.ending = False
        self.panels: dict[str, Any] = {}  # of open pages

    async def start(self) -> None:
        """Start to lead or to stand by; wait up to five seconds until it is known which."""
        self.leader.start()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.leader.settled.wait(), _SETTLING)

    async def close(self) -> None:
        """Commit all changes, and give up the lead."""
        await self.leader.close()
        self.access.close()

    def not_ready(self) -> str:
        """Return why this process does not answer requests; empty if it does."""
        if self.leader.closing or self.ending:
            return "this process is ending"
        return "" if self.leader.leads else self.leader.why_not

    # Callers

    async def caller(self, headers: Headers) -> Caller | None:
        """Return the owner of a request's token; None if it has none, or an unknown one."""
        token, in_cookie = token_in(headers)
        caller = await self.access.owner(token)
        return caller._replace(cookie=True) if caller is not None and in_cookie else caller

    # Experiments

    async def apply(self, name: str, change: Callable[[ServedExperiment], R]) -> R:
        """Change an experiment; return the result after the commit.

        A refusal also waits for the commit, because it may depend on an uncommitted change.
        """
        one = self.leader.loaded(name) or await self.leader.loader.find(name)
        if one.preparing.locked():
            async with one.preparing:
                pass
        return await self._apply(one, lambda: change(one))

    async def ask(self, name: str, k: int, key: str | None) -> bytes:
        """Return the answer to an ask, after the commit."""
        one = self.leader.loaded(name) or await self.leader.loader.find(name)
        if not one.has_news and not one.preparing.locked():
            return await self._apply(one, lambda: one.ask(k, key))
        prepared = self.leader.in_background(one.prepared_ask(k, key))
        with contextlib.suppress(Exception):  # `result` raises it again
            await asyncio.shield(prepared)
        return await self._apply(one, prepared.result)

    async def _apply(self, one: ServedExperiment, change: Callable[[], R]) -> R:
        refusal: RefusedError | None = None
        try:
            try:
                result = change()
            except RefusedError as error:
                refusal = error
            await one.committed_all()
        except BrokenError as error:
            raise self.leader.broke(one, error) from error
        except LostError as error:
            raise unknown(str(error)) from None
        if refusal is not None:
            raise refusal
        return result

    async def set_status(self, name: str, **changes: Any) -> ServedExperiment:
        """Change the stored status of an experiment; requests do this one at a time."""
        one = await self.leader.loader.find(name)
        async with one.changing:
            if one.gone:
                raise unavailable(
                    f"Nothing was done: {name!r} was reloaded. Send the request again."
                )
            if one.state == "stopped" and changes.get("state", "stopped") != "stopped":
                raise refuse(409, "stopped", f"{name} was stopped and cannot be resumed.")
            one.status |= changes
            await self.leader.write(self.store.set_state, one.id, dict(one.status))
        return one

    async def view(self, what: str, name: str, **chosen: Any) -> Any:
        """Return a view of an experiment, a type in `messages`."""
        return self._view(await self.leader.loader.find(name), what, **chosen)

    def _view(self, one: ServedExperiment, what: str, **chosen: Any) -> Any:
        try:
            return VIEWS[what](one.view_data, **chosen)
        except ManyarmsError as error:
            raise RefusedError(failure_of(error)) from error
        except Exception:  # the list still shows the other experiments
            raise failed(f"the view {what} of {one.name}") from None

    async def listing(self, cursor: str = "") -> m.Listing:
        """Return a page of the experiments, sorted by name, that follow the name `cursor`.

        Experiments are loaded if necessary. If that takes longer than a second, the rest are shown
        without their numbers.
        """
        self.leader.check_leads()
        records = await self.leader.read(self.store.experiments)
        page = [record for record in records if record.name > cursor][: _LISTED + 1]
        more, page = len(page) > _LISTED, page[:_LISTED]
        names = [record.name for record in page]
        new = [name for name in names if self.leader.loaded(name) is None]
        if new:
            loading = self.leader.in_background(self.leader.loader.load_in_turn(new))
            await asyncio.wait({loading}, timeout=_LOADING)
        found = []
        for record in page:
            one = self.leader.loaded(record.name)
            with contextlib.suppress(RefusedError):
                if one is not None:
                    found.append(self._view(one, "summary"))
                else:
                    found.append(unloaded(record, self.leader.loader.trouble(record.name)))
        return m.Listing(found, names[-1] if more else None)

    def note(self, caller: Caller | None, experiment: str, action: str) -> None:
        """Log who changed an experiment."""
        who = "" if caller is None else caller.name
        _logger.info("%s: %s by %s", experiment, action[:500], who)
