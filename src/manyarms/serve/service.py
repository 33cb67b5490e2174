"""What requests and pages are given: experiments, views, callers."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from manyarms.errors import ParameterError
from manyarms.live.databases import Database, ExperimentRow
from manyarms.serve import messages as m
from manyarms.serve import tables
from manyarms.serve.access import LONGEST_TOKEN, Access, Caller, Headers, find_caller, token_in
from manyarms.serve.batch import Batch, LostError
from manyarms.serve.errors import (
    BrokenError,
    RefusedError,
    failed,
    invalid,
    unknown,
)
from manyarms.serve.experiment import Experiment
from manyarms.serve.game import phase_of, policy_of
from manyarms.serve.leader import Leader
from manyarms.serve.look import MissingError
from manyarms.serve.metrics import Metrics
from manyarms.serve.views import VIEWS

R = TypeVar("R")
_LISTED = 50  # experiments of a page of the listing
_CATCHING_UP = 1.0  # seconds that the list waits for what it does not know yet
_logger = logging.getLogger("manyarms.serve")


@dataclass(frozen=True)
class Settings:
    """How a process is started.

    Attributes
    ----------
    store
        The database's address.
    host, port
        Where it listens.
    root_path
        What a proxy puts before all paths.
    trusted_proxies
        Addresses whose X-Forwarded headers count.
    connections
        The largest number of connections.
    idle_seconds
        How long a connection is kept between two requests.
    """

    store: str = "sqlite:///manyarms.db"
    host: str = "127.0.0.1"
    port: int = 8765
    root_path: str = ""
    trusted_proxies: tuple[str, ...] = field(default=())
    connections: int = 10_000
    idle_seconds: int = 75

    @property
    def name(self) -> str:
        """What others call this process."""
        return f"{socket.gethostname()}:{self.port}"


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


class Service:
    """One process of the service: it leads or stands by, and has rules of access."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.root_path = settings.root_path
        self.leader = Leader(settings.store, settings.name)
        self.leader.before_unloading = self.keep_summary
        self.metrics = Metrics(self)
        self.access = Access()
        self.ending = False
        self.making_seasons = asyncio.Lock()  # one at a time: each has a process
        self.panels: dict[str, Any] = {}  # of pages that somebody looks at
        self._summarising: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to lead, or to stand by; return when it is clear which."""
        self.leader.start()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.leader.settled.wait(), 5)

    async def close(self) -> None:
        """Commit, make snapshots, let others lead."""
        if self._summarising is not None:
            self._summarising.cancel()
        await self.leader.close()

    def not_ready(self) -> str:
        """Return why requests are not answered here; empty if they are."""
        if self.leader.closing or self.ending:
            return "this process is about to end"
        return "" if self.leader.leads else self.leader.why_not

    # Who

    async def caller(self, headers: Headers) -> Caller | None:
        """Return who sends a request; None if it has no token, or an unknown one."""
        token, in_cookie = token_in(headers)
        if token is None or len(token) > LONGEST_TOKEN:
            return None
        known = self.access.remembered(token)
        if known is not None:
            caller = known[1]
        else:
            caller = await self.leader.read(lambda database: find_caller(database, token))
            self.access.remember(token, caller)
        return caller._replace(cookie=True) if caller is not None and in_cookie else caller

    # What

    async def apply(
        self, name: str, change: Callable[[Experiment], R]
    ) -> tuple[Experiment, R, Batch]:
        """Let a request change its experiment; return when that is committed.

        Returns the experiment, what `change` returned, and the batch that holds it. Even a refusal
        waits for a commit: a process that leads no longer must not say anything.
        """
        experiment = self.leader.playing(name) or await self.leader.find(name)
        refusal: RefusedError | None = None
        try:
            try:
                result = change(experiment)
            except RefusedError as error:
                refusal = error
            batch = await experiment.committed()
        except BrokenError as error:
            raise self.leader.broke(experiment, error) from error
        except LostError as error:
            raise unknown(str(error)) from None
        if refusal is not None:
            raise refusal
        return experiment, result, batch

    async def view(self, what: str, name: str, **chosen: Any) -> Any:
        """Return a view of an experiment: a type of `messages`."""
        experiment = await self.leader.find(name)
        experiment.used = time.monotonic()
        return await self._view(experiment, what, **chosen)

    async def _view(self, experiment: Experiment, what: str, **chosen: Any) -> Any:
        look, answers = experiment.look, dict[str, Any]()
        while True:
            look.answers = answers  # no other view comes between, because views do not wait
            try:
                return VIEWS[what](look, **chosen)
            except MissingError as missing:
                answers[missing.key] = await self.leader.read(missing.function)
            except ParameterError as error:
                raise invalid(str(error)) from error
            except Exception:  # of one experiment: it hides no other
                raise failed(f"the view {what} of {experiment.name}") from None

    async def keep_summary(self, experiment: Experiment) -> None:
        """Keep what the list shows, because the experiment is about to be unloaded."""
        try:
            summary: m.ExperimentSummary = await self._view(experiment, "summary")
            text = msgspec.json.encode(summary).decode()
            x, head = experiment.id, summary.head
            await self.leader.store.write(
                lambda database: tables.keep_summary(database, x, head, text)
            )
        except (RefusedError, LostError) as error:
            _logger.warning("no summary of %s: %s", experiment.name, error)

    async def listing(self, caller: Caller, cursor: str = "") -> m.Listing:
        """Return a page of the experiments that a caller may see: those after a cursor, a name.

        Experiments that are not loaded are shown as they were when they were last unloaded. If they
        have gone on since, they are loaded in the background, and waited for, but not for long.
        """
        self.leader.check_leads()
        listing, behind = await self._listing(caller, cursor)
        if behind:
            if self._summarising is None or self._summarising.done():
                self._summarising = self.leader.in_background(self._summarise(behind))
            await asyncio.wait({self._summarising}, timeout=_CATCHING_UP)
            listing, _ = await self._listing(caller, cursor)
        return listing

    async def _listing(self, caller: Caller, cursor: str) -> tuple[m.Listing, list[str]]:
        """Return a page of the list, and the names of those that have gone on since."""
        rows, kept = await self.leader.read(lambda db: _listed(db, caller.experiment, cursor))
        page, found, behind = rows[:_LISTED], [], []
        for row in page:
            experiment = self.leader.games.get(row.name)
            with contextlib.suppress(RefusedError, msgspec.MsgspecError):
                if experiment is not None:
                    found.append(await self._view(experiment, "summary"))
                    continue
                summary, current = _unloaded(row, *kept.get(row.id, (None, None)))
                summary.alarm = self.leader.trouble(row.name)
                found.append(summary)
                if not current and not summary.alarm:
                    behind.append(row.name)
        return m.Listing(found, page[-1].name if len(rows) > _LISTED else None), behind

    async def _summarise(self, names: list[str]) -> None:
        for name in names:
            if name not in self.leader.games:
                with contextlib.suppress(RefusedError):
                    await self.leader.unload(await self.leader.find(name))

    def note(self, caller: Caller | None, experiment: str, action: str) -> None:
        """Log who changed an experiment."""
        who = "" if caller is None else caller.name
        _logger.info("%s: %s by %s", experiment, action[:500], who)


def _listed(
    database: Database, only: str | None, cursor: str
) -> tuple[list[ExperimentRow], dict[int, tuple[Any, Any]]]:
    """Return the experiments after a cursor, one more than a page has, and what is kept of each.

    That is its summary with the head it is of, and the sums of its minutes.
    """
    rows = sorted(  # databases may order letters in ways of their own
        (
            row
            for row in database.experiments()
            if row.spec != "null" and row.name > cursor and only in (None, row.name)
        ),
        key=lambda row: row.name,
    )[: _LISTED + 1]
    numbers = ", ".join(str(row.id) for row in rows) or "0"
    summaries = {
        x: (head, summary)
        for x, head, summary in database.run(
            f"SELECT experiment, head, summary FROM summaries WHERE experiment IN ({numbers})"
        )
    }
    sums = {
        x: counts
        for x, *counts in database.run(
            "SELECT experiment, sum(asked), sum(told), sum(abandoned), sum(reward), sum(fresh) "
            f"FROM minutes WHERE experiment IN ({numbers}) GROUP BY experiment"
        )
    }
    return rows, {row.id: (summaries.get(row.id), sums.get(row.id)) for row in rows}


def _unloaded(
    row: ExperimentRow, kept: tuple[int, str] | None, sums: Any
) -> tuple[m.ExperimentSummary, bool]:
    """Return what is known of an experiment that is not loaded, and whether that is all."""
    spec = msgspec.json.decode(row.spec, type=m.Spec)
    if kept is not None:
        summary = msgspec.json.decode(kept[1], type=m.ExperimentSummary)
    else:
        try:
            label = str(policy_of(spec.policy))
        except Exception:  # of one experiment: it hides no other
            label = "unknown"
        summary = m.ExperimentSummary(
            name=row.name, state="empty", policy=label, spec=spec, keyed=bool(row.keyed)
        )
    asked, told, abandoned, reward, fresh = sums or (0, 0, 0, 0.0, 0)
    summary = msgspec.structs.replace(
        summary,
        state=phase_of(row.state, int(asked), spec.horizon),
        spec=spec,
        horizon=spec.horizon,
        head=row.head,
        pulls=int(asked),
        told=int(told),
        abandoned=int(abandoned),
        pending=int(asked - told - abandoned),
        reward=float(reward),
        mean_reward=float(reward) / int(told) if told else None,
        arms_touched=int(fresh),
        last_hour=None,
    )
    if kept is None:
        summary.n_arms = row.n_arms
        summary.untried = max(0, row.n_arms - int(fresh))
    return summary, row.head == 0 or (kept is not None and kept[0] == row.head)
