"""One request of HTTP, with no more than the API needs."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from manyarms.serve.access import Caller
from manyarms.serve.errors import RefusedError, failure_of_body, refuse
from manyarms.serve.messages import Failure

if TYPE_CHECKING:
    from manyarms.serve.service import Service

MOST_BYTES = 2 << 20  # of a body that is no stream
SLOWEST = 30.0  # seconds until the next piece of a body must be there
_SLOWEST_RATE = 100  # bytes a second that a body must have after that time
_PIECE = 64 << 10  # bytes of a stream that are sent at a time


@functools.cache
def _decoder(kind: Any) -> Any:
    return msgspec.json.Decoder(kind)


ALWAYS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]


class Response:
    """A status, headers, and a body or the pieces of one."""

    __slots__ = ("body", "headers", "status", "stream")

    def __init__(
        self,
        body: bytes = b"",
        status: int = 200,
        headers: dict[str, str] | None = None,
        *,
        kind: str = "application/json",
        stream: AsyncGenerator[bytes] | None = None,
    ) -> None:
        self.body, self.status, self.stream = body, status, stream
        self.headers = {"content-type": kind} | (headers or {})

    async def send(
        self, send: Any, more: dict[str, str] | None = None, receive: Any = None
    ) -> None:
        """Send it all; `receive` says of a stream's reader that it has gone."""
        given = self.headers if more is None else self.headers | more
        headers = [(k.encode(), v.encode("latin-1")) for k, v in given.items()]
        headers += ALWAYS
        if self.stream is None:
            headers.append((b"content-length", b"%d" % len(self.body)))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        if self.stream is not None:
            await _send_stream(self.stream, send, receive)
        await send({"type": "http.response.body", "body": self.body})


async def _send_stream(stream: AsyncGenerator[bytes], send: Any, receive: Any) -> None:
    """Send pieces until their reader has gone; small ones, which a slow reader takes in time."""
    gone = asyncio.create_task(_until_gone(receive))
    try:
        async with contextlib.aclosing(stream):
            async for piece in stream:
                for at in range(0, len(piece), _PIECE):
                    some = piece[at : at + _PIECE]
                    await send({"type": "http.response.body", "body": some, "more_body": True})
                if gone.done():
                    return
    finally:
        gone.cancel()


async def _until_gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Request:
    """What came: `arguments` are those of the path."""

    __slots__ = (
        *("_body", "_receive", "arguments", "caller", "forwarded", "headers", "made_key"),
        *("scope", "sent"),
    )

    def __init__(self, scope: Any, receive: Any, arguments: dict[str, str]) -> None:
        self.scope = scope
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.arguments = arguments
        self.caller: Caller | None = None
        self.forwarded = False  # whether another node has sent it on
        self.sent = False  # whether another node may have done it, which did not answer
        self.made_key = ""  # of an ask that came without one
        self._receive = receive
        self._body: bytes | None = None

    @property
    def query(self) -> dict[str, str]:
        """What follows the path."""
        return dict(parse_qsl(self.scope["query_string"].decode("latin-1")))

    @property
    def experiment(self) -> str:
        """The experiment that the path names."""
        return self.arguments["experiment"]

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield a body as it comes."""
        if self._body is not None:
            yield self._body
            return
        more, end = True, time.monotonic() + SLOWEST
        while more:
            message = await self._next()
            if message["type"] == "http.disconnect":
                raise refuse(400, "gone", "The client has gone.")
            more = message.get("more_body", False)
            end += len(message.get("body", b"")) / _SLOWEST_RATE
            if more and time.monotonic() > end:
                raise refuse(408, "slow", f"The body came at less than {_SLOWEST_RATE} bytes/s.")
            if message.get("body"):
                yield message["body"]

    async def _next(self) -> Any:
        try:
            async with asyncio.timeout(SLOWEST):
                return await self._receive()
        except TimeoutError:
            raise refuse(408, "slow", f"No data came for {SLOWEST:g} seconds.") from None

    async def body(self) -> bytes:
        """Return the whole body, or refuse it if it is too large."""
        if self._body is None:
            self._check_length(int(self.headers.get(b"content-length", b"0") or 0))
            parts, length = [], 0
            async for piece in self.pieces():
                length += len(piece)
                self._check_length(length)
                parts.append(piece)
            self._body = b"".join(parts)
        return self._body

    def _check_length(self, length: int) -> None:
        if length > MOST_BYTES:
            raise refuse(
                413, "too_large", f"A body may have {MOST_BYTES} bytes, and this one has more."
            )

    async def read(self, kind: Any) -> Any:
        """Return the body as a type of `messages`; an empty one is {}."""
        try:
            return _decoder(kind).decode(await self.body() or b"{}")
        except msgspec.ValidationError as error:
            raise RefusedError(failure_of_body(error, kind)) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RefusedError(
                Failure("malformed", f"The body is not valid JSON: {error}.", 400)
            ) from error


Handler = Callable[["Service", Request], Awaitable[Response]]
_encode = msgspec.json.Encoder().encode


def answered(answer: Any, status: int = 200) -> Response:
    """Return an answer as JSON."""
    return Response(_encode(answer), status)


def refused(error: RefusedError) -> Response:
    """Return the answer to a request that is refused."""
    response = answered(error.failure, error.failure.status or 400)
    response.headers |= {name.lower(): value for name, value in error.headers.items()}
    return response
