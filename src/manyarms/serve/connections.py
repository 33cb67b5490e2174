"""Connections that keep the service waiting are ended: no head comes, or no answer is taken.

uvicorn limits neither. This hears what asyncio and httptools tell every protocol of a connection.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any, cast

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from manyarms.serve.requests import WHOLE

SLOWEST_HEAD = 10.0  # seconds that the head of a request may take
SLOWEST_READER = 30.0  # seconds in which some of an answer must be taken
LEAST_READ = 30_000  # bytes: that much of it, or all
MOST_HEAD = 64 << 10  # bytes that may come without a whole head, or a piece of a body
MOST_AHEAD = 100  # requests that may be sent before the first of them is answered
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)


class Connections:
    """Those of one process. One timer looks at all of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: set[Connection] = set()
        self._looking = False
        # since when; those that have waited longest come first
        self.idle: dict[Connection, float] = {}  # no request is under way: a head may come
        self.blocked: dict[Connection, float] = {}  # for somebody to take the answer
        self._closing: dict[Connection, float] = {}  # for somebody to take the last of it

    def add(self, one: Connection) -> None:
        """Make room for a new one, if there is none left: who has waited longest has to go."""
        if len(self._open) >= self._most and self.idle:
            oldest = next(iter(self.idle))
            self.drop(oldest)
            oldest.transport.abort()
        self._open.add(one)
        self.wait(one)
        if not self._looking:
            self._look_later()

    def wait(self, one: Connection) -> None:
        """Begin to wait for the head of a request."""
        if one in self._open:
            self.idle.pop(one, None)
            self.idle[one] = time.monotonic()

    def drop(self, one: Connection) -> None:
        self._open.discard(one)
        for some in (self.idle, self.blocked, self._closing):
            some.pop(one, None)

    def _look_later(self) -> None:
        self._looking = bool(self._open)
        if self._looking:
            asyncio.get_running_loop().call_later(SLOWEST_HEAD / 4, self._look)

    def _look(self) -> None:
        now = time.monotonic()
        for one, since in list(self.idle.items()):
            if since + SLOWEST_HEAD < now and not one.idle:
                one.transport.close()
        for one in self._open:
            if one.transport.is_closing() and one not in self._closing:
                self._closing[one], one.left = now, one.transport.get_write_buffer_size()
        for some in (self.blocked, self._closing):
            for one, since in list(some.items()):
                left = one.transport.get_write_buffer_size()
                if left <= one.left - LEAST_READ:
                    some[one], one.left = now, left
                elif since + SLOWEST_READER < now:
                    one.transport.abort()
        self._look_later()


class Connection(HttpToolsProtocol):
    """One connection."""

    others: Connections
    idle = False  # between two requests: uvicorn ends that
    left = sys.maxsize  # bytes that its reader had to take when that was last noted
    _came = 0  # bytes, since there was a head, or a piece of a body
    _under_way = 0  # requests whose heads came, and which are not answered

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.others.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.others.drop(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.idle:
            self.idle = False
            self.others.wait(self)
        self._came += len(data)
        super().data_received(data)
        if self._came > MOST_HEAD and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_headers_complete(self) -> None:
        self._came = 0
        self._under_way += 1
        if self._under_way > MOST_AHEAD:
            self.transport.abort()
            raise HttpParserError  # so that the rest of what came is not read
        self.others.idle.pop(self, None)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._came = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._came = 0
        cast("dict[str, Any]", self.scope)[WHOLE] = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self.idle = True
            self.others.wait(self)
        super().on_response_complete()

    def pause_writing(self) -> None:
        self.others.blocked[self] = time.monotonic()
        self.left = self.transport.get_write_buffer_size()
        super().pause_writing()

    def resume_writing(self) -> None:
        self.others.blocked.pop(self, None)
        super().resume_writing()


def protocol_of(most: int) -> type[asyncio.Protocol]:
    """Return what uvicorn makes of each connection of a process, which may have so many."""

    class Limited(Connection):
        others = Connections(most)

    return Limited
