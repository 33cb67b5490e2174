"""One request of HTTP, with no more than the service needs. Every body is read here."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from manyarms.serve.access import Caller
from manyarms.serve.errors import RefusedError, failure_of_body, refuse
from manyarms.serve.messages import Failure

if TYPE_CHECKING:
    from manyarms.serve.service import Service

MOST_BYTES = 2 << 20  # of a body that is no stream
DEADLINE = 30.0  # seconds for a body; of a stream, for its next piece


@functools.cache
def _decoder(kind: Any) -> Any:
    return msgspec.json.Decoder(kind)


_ALWAYS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
_JSON = [(b"content-type", b"application/json"), *_ALWAYS]


class Response:
    """A status, headers and a body."""

    __slots__ = ("body", "headers", "kind", "status")

    def __init__(
        self,
        body: bytes = b"",
        status: int = 200,
        headers: dict[str, str] | None = None,
        *,
        kind: str = "application/json",
    ) -> None:
        self.body, self.status = body, status
        self.headers, self.kind = headers or {}, kind

    async def send(self, send: Any) -> None:
        """Send it."""
        headers = _JSON
        if self.kind != "application/json":
            headers = [(b"content-type", self.kind.encode()), *_ALWAYS]
        if self.headers:
            more = [(k.lower().encode(), v.encode("latin-1")) for k, v in self.headers.items()]
            headers = headers + more
        headers = [*headers, (b"content-length", b"%d" % len(self.body))]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


class Request:
    """What came: `arguments` are those of the path."""

    __slots__ = ("_came", "_receive", "arguments", "caller", "headers", "scope")

    def __init__(self, scope: Any, receive: Any, arguments: dict[str, str]) -> None:
        self.scope = scope
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.arguments = arguments
        self.caller: Caller | None = None
        self._receive, self._came = receive, 0  # bytes of the body

    @property
    def query(self) -> dict[str, str]:
        """What follows the path."""
        return dict(parse_qsl(self.scope["query_string"].decode("latin-1")))

    @property
    def experiment(self) -> str:
        """The experiment that the path names."""
        return self.arguments["experiment"]

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the pieces of a stream, each within the deadline."""
        more = True
        while more:
            try:
                async with asyncio.timeout(DEADLINE):
                    piece, more = await self._next()
            except TimeoutError:
                raise _slow() from None
            yield piece

    async def _next(self) -> tuple[bytes, bool]:
        """Return the next piece of the body, and whether there are more."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise _last(400, "gone", "The client has gone.")
        piece, more = message.get("body", b""), message.get("more_body", False)
        self._came += len(piece)
        if not more:
            self._check_whole()
        return piece, more

    def _check_whole(self) -> None:
        """Refuse a body that is shorter than promised: an offer to upgrade swallows it."""
        headers, said = self.headers, ""
        promised = headers.get(b"content-length")
        if promised is not None and self._came < int(promised):
            said = f"Content-Length is {int(promised)}, and {self._came} bytes came."
        elif not self._came and b"transfer-encoding" in headers and b"upgrade" in headers:
            said = "A body was to come in pieces, and none came."
        if said:
            fix = "Send it without the header `Upgrade`, as HTTP/1.1."
            raise _last(400, "short", f"{said} Nothing was done. {fix}")

    async def body(self) -> bytes:
        """Return the whole body, or refuse it if it is too large."""
        self._check_length(int(self.headers.get(b"content-length", b"0") or 0))
        try:
            async with asyncio.timeout(DEADLINE):
                body, more = await self._next()
                while more:
                    piece, more = await self._next()
                    body += piece
                    self._check_length(len(body))
        except TimeoutError:
            raise _slow() from None
        return body

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
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RefusedError(
                Failure("malformed", f"The body is not valid JSON: {error}.", 400)
            ) from error

    async def read_first(self) -> Any:
        """Read the body now; return what another application receives it from."""
        body: bytes | None = await self.body()

        async def receive() -> Any:
            nonlocal body
            if body is None:
                return await self._receive()
            whole, body = body, None
            return {"type": "http.request", "body": whole, "more_body": False}

        return receive


def _slow() -> RefusedError:
    return _last(408, "slow", f"The body did not arrive within {DEADLINE:g} seconds.")


def _last(status: int, code: str, message: str) -> RefusedError:
    """Return the refusal of a body that is not read to its end: nothing follows on its way."""
    return RefusedError(Failure(code, message, status), {"connection": "close"})


Handler = Callable[["Service", Request], Awaitable[Response]]
_encode = msgspec.json.Encoder().encode


def answered(answer: Any, status: int = 200) -> Response:
    """Return an answer as JSON."""
    return Response(_encode(answer), status)


def refused(error: RefusedError) -> Response:
    """Return the answer to a request that is refused."""
    response = answered(error.failure, error.failure.status or 400)
    response.headers = dict(error.headers)
    return response
