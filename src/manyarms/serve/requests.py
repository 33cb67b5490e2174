"""One request of HTTP, with no more than the service needs. Every body is read here."""

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
SLOWEST = 10.0  # seconds until the next piece of a body must be there
_SLOWEST_RATE = 1000  # bytes a second that a body must have after that time
WHOLE = "manyarms.whole"  # in the scope of a request all of which has come
_PIECE = 64 << 10  # bytes of a stream that are sent at a time


@functools.cache
def _decoder(kind: Any) -> Any:
    return msgspec.json.Decoder(kind)


_ALWAYS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
_JSON = [(b"content-type", b"application/json"), *_ALWAYS]


class Response:
    """A status, headers, and a body or the pieces of one."""

    __slots__ = ("body", "headers", "kind", "status", "stream")

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
        self.headers, self.kind = headers or {}, kind

    async def send(self, send: Any, receive: Any = None) -> None:
        """Send it all; `receive` says of a stream's reader that it has gone."""
        headers = _JSON
        if self.kind != "application/json":
            headers = [(b"content-type", self.kind.encode()), *_ALWAYS]
        if self.headers:
            more = [(k.lower().encode(), v.encode("latin-1")) for k, v in self.headers.items()]
            headers = headers + more
        if self.stream is None:
            headers = [*headers, (b"content-length", b"%d" % len(self.body))]
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


class BodyClock:
    """Ends the wait for bodies that do not come, and for the oldest if there are too many.

    One timer looks at all of them: one for each would cost an ask a tenth of its time.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._until: dict[asyncio.Task[Any], float] = {}  # who has waited longest comes first
        self._over: set[asyncio.Task[Any]] = set()
        self._looking = False

    async def wait(self, receive: Any) -> Any:
        """Return what comes next. Raises a `TimeoutError` if nothing does."""
        task = asyncio.current_task()
        assert task is not None
        if len(self._until) >= self._most:
            self._end(next(iter(self._until)))
        self._until[task] = time.monotonic() + SLOWEST
        if not self._looking:
            self._looking = True
            asyncio.get_running_loop().call_later(SLOWEST / 4, self._look)
        try:
            return await receive()
        except asyncio.CancelledError:
            if task not in self._over or task.uncancel():
                raise  # the process is about to end
            raise TimeoutError from None
        finally:
            self._until.pop(task, None)
            self._over.discard(task)

    def _end(self, task: asyncio.Task[Any]) -> None:
        del self._until[task]
        self._over.add(task)
        task.cancel()

    def _look(self) -> None:
        now, self._looking = time.monotonic(), bool(self._until)
        for task, until in list(self._until.items()):
            if until < now:
                self._end(task)
        if self._looking:
            asyncio.get_running_loop().call_later(SLOWEST / 4, self._look)


class Request:
    """What came: `arguments` are those of the path."""

    __slots__ = (
        *("_begun", "_came", "_clock", "_receive"),
        *("arguments", "caller", "headers", "scope"),
    )

    def __init__(
        self, scope: Any, receive: Any, arguments: dict[str, str], clock: BodyClock
    ) -> None:
        self.scope = scope
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.arguments = arguments
        self.caller: Caller | None = None
        self._receive, self._clock = receive, clock
        self._begun, self._came = time.monotonic(), 0  # seconds, and bytes of the body

    @property
    def query(self) -> dict[str, str]:
        """What follows the path."""
        return dict(parse_qsl(self.scope["query_string"].decode("latin-1")))

    @property
    def experiment(self) -> str:
        """The experiment that the path names."""
        return self.arguments["experiment"]

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield a body as it comes: in time, and no less of it than its head has promised."""
        more = True
        while more:
            piece, more = await self._next()
            yield piece

    async def _next(self) -> tuple[bytes, bool]:
        """Return the next piece of the body, and whether there are more."""
        try:
            if WHOLE in self.scope:
                message = await self._receive()
            else:
                message = await self._clock.wait(self._receive)
        except TimeoutError:
            raise _last(408, "slow", "The body did not come in time.") from None
        if message["type"] == "http.disconnect":
            raise _last(400, "gone", "The client has gone.")
        piece, more = message.get("body", b""), message.get("more_body", False)
        self._came += len(piece)
        if not more:
            self._check_whole()
        elif time.monotonic() > self._begun + SLOWEST + self._came / _SLOWEST_RATE:
            raise _last(408, "slow", f"The body came at less than {_SLOWEST_RATE} bytes/s.")
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
        body, more = await self._next()
        while more:
            piece, more = await self._next()
            body += piece
            self._check_length(len(body))
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
