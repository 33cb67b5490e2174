"""One request of HTTP, with no more than the API needs."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from manyarms.serve.access import Caller
from manyarms.serve.errors import RefusedError, refuse
from manyarms.serve.messages import Failure

__all__ = ["MOST_BYTES", "Request", "Response"]

MOST_BYTES = 2 << 20  # of a body that is no stream
SLOWEST = 30.0  # seconds until the next piece of a body must be there
FORWARDED = b"x-manyarms-forwarded"


@functools.cache
def _decoder(kind: Any) -> Any:
    return msgspec.json.Decoder(kind)


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
        stream: AsyncIterator[bytes] | None = None,
    ) -> None:
        self.body, self.status, self.stream = body, status, stream
        self.headers = {"content-type": kind} | (headers or {})

    async def send(self, send: Any, more: dict[str, str]) -> None:
        """Send it all."""
        headers = [(k.encode(), v.encode("latin-1")) for k, v in (self.headers | more).items()]
        if self.stream is None:
            headers.append((b"content-length", str(len(self.body)).encode()))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        if self.stream is not None:
            async for piece in self.stream:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": self.body})


class Request:
    """What came: `arguments` are those of the path."""

    __slots__ = (
        *("_body", "_receive", "arguments", "attempt", "caller", "headers", "made_key"),
        *("query", "scope"),
    )

    def __init__(self, scope: Any, receive: Any, arguments: dict[str, str]) -> None:
        self.scope = scope
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.arguments = arguments
        self.query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        self.caller: Caller | None = None
        self.attempt = 0
        self.made_key = ""  # of an ask that came without one
        self._receive = receive
        self._body: bytes | None = None

    @property
    def experiment(self) -> str:
        """The experiment that the path names."""
        return self.arguments["experiment"]

    @property
    def forwarded(self) -> bool:
        """Whether another node has sent it on."""
        return FORWARDED in self.headers

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield a body as it comes."""
        if self._body is not None:
            yield self._body
            return
        more = True
        while more:
            try:
                async with asyncio.timeout(SLOWEST):
                    message = await self._receive()
            except TimeoutError:
                raise refuse(408, "slow", f"No data came for {SLOWEST:g} seconds.") from None
            if message["type"] == "http.disconnect":
                raise refuse(400, "gone", "The client has gone.")
            more = message.get("more_body", False)
            if message.get("body"):
                yield message["body"]

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
            raise RefusedError(Failure("invalid", f"{error}.", 422)) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RefusedError(
                Failure("malformed", f"The body is no JSON: {error}.", 400)
            ) from error
