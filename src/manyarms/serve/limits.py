"""Limits of connections: how many, how long they may be silent, how large a head may be.

Bodies have their own limits in `requests`. Here little is done for each request: a sweep looks at
all connections once in a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from typing import Any, ClassVar

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from manyarms.serve.errors import unavailable
from manyarms.serve.messages import Failure
from manyarms.serve.requests import refused

_MOST_HEAD = 64 << 10  # bytes of a request line and its headers
_SPARE = 200  # connections beyond the limit that are told so, and files that a node needs
_READING = 30.0  # seconds that a client may take to read what was sent
_CODES = {400: "malformed", 408: "slow", 431: "large"}
_TOO_MANY = unavailable(
    "This node has as many connections as it may have. Nothing was done: send it again."
)


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed if its client is too slow, or if there are too many."""

    most: ClassVar[int]
    seconds: ClassVar[float]  # until a request must have come, since the connection or its begin

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._begun = 0  # requests
        self.in_head = False
        self._head = 0  # bytes of one that is not complete
        self._waits = 0, 0.0  # after how many requests, since when
        self._paused = 0.0  # since when the client does not read
        self._last = b""  # what is sent before the connection is closed

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for a new connection, or let it be told that there is none."""
        super().connection_made(transport)
        self._waits = 0, time.monotonic()
        if len(self.connections) > self.most + _SPARE:
            transport.abort()
        elif len(self.connections) > self.most and not self._made_room():
            self.app = _too_many
            self.limit_concurrency = sys.maxsize  # no short cut around the application

    def _made_room(self) -> bool:
        """Close a connection that nobody uses just now: its client opens a new one."""
        others: set[Any] = self.connections
        for other in others:
            if other.timeout_keep_alive_task is not None and not other.transport.is_closing():
                other.transport.close()
                return True
        return False

    def data_received(self, data: bytes) -> None:
        """Read on, unless the head of a request is too large."""
        super().data_received(data)
        if self.in_head:
            self._head += len(data)
            if self._head > _MOST_HEAD:
                self._end(431, f"The head of a request has more than {_MOST_HEAD} bytes.")

    def on_message_begin(self) -> None:
        """Note that a request begins."""
        self.begin_head()
        super().on_message_begin()

    def begin_head(self) -> None:
        """Count a request, and from now on the bytes of its head."""
        self._begun += 1
        self.in_head, self._head = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers, which come after the body, count for nothing."""
        if self.in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Note that a head is complete."""
        self.in_head = False
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Note that the client does not read."""
        self._paused = time.monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that it does."""
        self._paused = 0.0
        super().resume_writing()

    def look(self, now: float) -> None:
        """Close the connection if its client is too slow."""
        closing = self.transport.is_closing()
        if self._paused and now - self._paused > _READING:
            self.transport.abort()
            return
        answers = self.cycle is not None and not self.cycle.response_complete
        if not closing and (answers or self.timeout_keep_alive_task is not None):
            return  # its application, or the server's timer, looks after it
        begun, since = self._waits
        if begun != self._begun:
            self._waits = self._begun, now
        elif now - since > self.seconds:
            if closing:
                self.transport.abort()  # it does not take the rest
            else:
                self._end(408, f"No whole request came in {self.seconds:g} seconds.")

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._end(400, msg)

    def _end(self, status: int, message: str) -> None:
        """Refuse what comes, and close, after the answers to what came before."""
        if self._last or self.transport.is_closing():
            return
        body = msgspec.json.encode(Failure(_CODES[status], message, status))
        head = f"HTTP/1.1 {status} \r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self._last = head.encode() + body
        if self._answers_are_due():
            self.flow.pause_reading()
        else:
            self._send_last()

    def _answers_are_due(self) -> bool:
        """Whether requests that came whole are not answered yet; forget one that did not."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            return False
        if cycle.more_body and self.pipeline:
            self.pipeline.popleft()
            return True
        return not cycle.more_body

    def on_response_complete(self) -> None:
        """Go on with the next request, or close if what follows was refused."""
        is_last = not self.pipeline
        super().on_response_complete()
        if self._last and is_last:
            self._send_last()

    def _send_last(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(self._last)
            self.transport.close()


async def _too_many(scope: Any, receive: Any, send: Any) -> None:
    await refused(_TOO_MANY).send(send, {"connection": "close"})


async def look_at_all(connections: set[Any], seconds: float) -> None:
    """Close connections whose clients are too slow, as long as the server runs."""
    pause = min(1.0, seconds / 4)
    while True:
        await asyncio.sleep(pause)
        now = time.monotonic()
        for connection in list(connections):
            connection.look(now)


def raise_open_files(connections: int) -> None:
    """Let this process open a file for each connection: the usual limit is about a thousand."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has none; it is forbidden
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = connections + 2 * _SPARE
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
