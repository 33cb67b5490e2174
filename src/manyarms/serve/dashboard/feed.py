"""Panels as they change: each is drawn once for all who look, and sent to them as events."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import msgspec

from manyarms.serve.errors import RefusedError

TICK = 2.0  # seconds
_FRESH = 0.5  # seconds that what was drawn is good for another reader
_GOOD = 10.0  # seconds that it is good for one who would have to wait
_PATIENCE = 0.1  # seconds
_LONGEST = 300.0  # seconds of a stream: then the browser comes again, and is checked again
_MOST_WAITING = 8  # events that a slow reader may be behind

_logger = logging.getLogger("manyarms.serve")

# gets a place to keep things in, and returns HTML by panel
Draw = Callable[[dict[str, Any]], Awaitable[dict[str, str]]]


class Channel:
    """The panels of one page; `kept` is what `draw` keeps."""

    def __init__(self, draw: Draw, *, tick: float = TICK) -> None:
        self._draw, self._seconds = draw, tick
        self.kept: dict[str, Any] = {}
        self._panels: dict[str, str] = {}
        self._sent: dict[str, str] = {}  # what all readers have; others may have it newer drawn
        self._drawn = -1e9
        self._turn = asyncio.Lock()
        self._readers: set[asyncio.Queue[bytes]] = set()
        self._ticking: asyncio.Task[None] | None = None
        self._drawing: set[asyncio.Future[dict[str, str]]] = set()  # nobody else holds them

    async def panels(self) -> dict[str, str]:
        """Return the panels as they are now."""
        async with self._turn:
            if time.monotonic() - self._drawn > _FRESH:
                self._panels = await self._draw(self.kept)
                self._drawn = time.monotonic()
            return self._panels

    async def soon(self) -> dict[str, str]:
        """Return the panels as they are now, or, if that takes long, as they were just now.

        A page is not kept waiting for a million arms: its stream brings the rest.
        """
        drawing = asyncio.ensure_future(self.panels())
        if time.monotonic() - self._drawn > _GOOD:
            return await drawing
        await asyncio.wait({drawing}, timeout=_PATIENCE)
        if drawing.done():
            return drawing.result()
        self._drawing.add(drawing)
        drawing.add_done_callback(self._drawing.discard)
        drawing.add_done_callback(lambda done: done.exception())  # which the next one meets
        return self._panels

    async def stream(self, ended: Callable[[], bool]) -> AsyncGenerator[bytes]:
        """Yield events: all panels first, then those that change."""
        waiting: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
        end = time.monotonic() + _LONGEST
        self._readers.add(waiting)
        if self._ticking is None:
            self._sent = self._panels
            self._ticking = asyncio.create_task(self._tick())
        try:
            yield _event("panels", self._panels)
            while time.monotonic() < end and not ended() and waiting in self._readers:
                try:
                    yield await asyncio.wait_for(waiting.get(), 0.5)
                except TimeoutError:
                    continue
        finally:
            self._readers.discard(waiting)

    async def _tick(self) -> None:
        while self._readers:
            try:
                now, before = await self.panels(), self._sent
                changed = {name: html for name, html in now.items() if before.get(name) != html}
                self._sent = now
                event = _event("panels", changed)
            except RefusedError as error:
                event = _event("trouble", error.failure.message)
            except Exception:
                _logger.exception("a page cannot be drawn")
                event = _event("trouble", "This page cannot be drawn now.")
            for reader in list(self._readers):
                try:
                    reader.put_nowait(event)
                except asyncio.QueueFull:  # its stream ends, and it comes again
                    self._readers.discard(reader)
            await asyncio.sleep(self._seconds)
        self._ticking = None

    @property
    def idle(self) -> bool:
        """Whether nobody looks."""
        return not self._readers and time.monotonic() - self._drawn > 60


def _event(kind: str, content: Any) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + msgspec.json.encode(content) + b"\n\n"
