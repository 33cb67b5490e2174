"""Requests and responses, and how bodies and queries are read."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from manyarms.serve.access import Caller
from manyarms.serve.errors import RefusedError, failure_of_body, refuse
from manyarms.serve.fields import MOST_PULLS
from manyarms.serve.messages import Failure

MOST_BYTES = 2 << 20  # of a body that is not a stream
_MOST_VALUES = 2 * MOST_PULLS  # in a body; a longer one is not searched for 119.0
DEADLINE = 30.0  # seconds for a body, or for the next part of a stream


@functools.cache
def _decoder(kind: Any) -> Any:
    return msgspec.json.Decoder(kind)


_TYPE = "application/json"
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_JSON = [(k.encode(), v.encode()) for k, v in {"content-type": _TYPE, **_HEADERS}.items()]


class Response:
    """A status, headers and a body."""

    __slots__ = ("body", "headers", "kind", "status")

    def __init__(
        self,
        body: bytes = b"",
        status: int = 200,
        headers: dict[str, str] | None = None,
        *,
        kind: str = _TYPE,
    ) -> None:
        self.body, self.status = body, status
        self.headers, self.kind = headers or {}, kind

    async def send(self, send: Any) -> None:
        """Send the response."""
        headers = _JSON
        if self.headers or self.kind != _TYPE:
            named = {"content-type": self.kind, **_HEADERS}
            named |= {name.lower(): value for name, value in self.headers.items()}
            headers = [(k.encode(), v.encode("latin-1")) for k, v in named.items()]
        headers = [*headers, (b"content-length", b"%d" % len(self.body))]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


class Request:
    """One request.

    Attributes
    ----------
    arguments
        The path parameters.
    body, query
        The body and the query, as the types that the route names.
    caller
        The owner of its token; None if the route is public.
    """

    __slots__ = ("_came", "_receive", "arguments", "body", "caller", "headers", "query", "scope")

    def __init__(self, scope: Any, receive: Any) -> None:
        self.scope = scope
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.arguments: dict[str, str] = {}
        self.caller: Caller | None = None
        self.body: Any = None
        self.query: Any = None
        self._receive, self._came = receive, 0  # bytes of the body

    @property
    def experiment(self) -> str:
        """The name of the experiment in the path."""
        return self.arguments["experiment"]

    def header(self, name: bytes) -> str:
        """Return a header; empty if it is missing."""
        return self.headers.get(name, b"").decode("latin-1")

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the parts of a stream; each must arrive within the deadline."""
        more = True
        while more:
            try:
                async with asyncio.timeout(DEADLINE):
                    piece, more = await self._next()
            except TimeoutError:
                raise _slow() from None
            yield piece

    async def _next(self) -> tuple[bytes, bool]:
        """Return the next part of the body, and whether more follow."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise _last(400, "gone", "The client has disconnected.")
        piece, more = message.get("body", b""), message.get("more_body", False)
        self._came += len(piece)
        if not more:
            self._check_whole()
        return piece, more

    def _check_whole(self) -> None:
        """Refuse a body that is too short: uvicorn drops bodies after the header `Upgrade`."""
        headers, said = self.headers, ""
        promised = headers.get(b"content-length")
        if promised is not None and self._came < int(promised):
            said = f"Content-Length is {int(promised)}, but {self._came} bytes arrived."
        elif not self._came and b"transfer-encoding" in headers and b"upgrade" in headers:
            said = "The chunked body is missing."
        if said:
            fix = "Send it without the header `Upgrade`, as HTTP/1.1."
            raise _last(400, "short", f"{said} Nothing was done. {fix}")

    async def whole_body(self, max_bytes: int = MOST_BYTES) -> bytes:
        """Return the whole body; refuse it if it is too large or too slow."""
        _check_length(int(self.headers.get(b"content-length", b"0") or 0), max_bytes)
        try:
            async with asyncio.timeout(DEADLINE):
                body, more = b"", True
                while more:
                    piece, more = await self._next()
                    body += piece
                    _check_length(len(body), max_bytes)
        except TimeoutError:
            raise _slow() from None
        return body

    async def read(self, kind: Any) -> Any:
        """Return the body as a type in `messages`; an empty body reads as {}."""
        body = await self.whole_body() or b"{}"
        try:
            try:
                return _decoder(kind).decode(body)
            except msgspec.ValidationError as error:
                if "got `float`" not in str(error) or body.count(b",") > _MOST_VALUES:
                    raise
                return msgspec.convert(_with_integers(msgspec.json.decode(body)), kind)
        except msgspec.ValidationError as error:
            raise RefusedError(failure_of_body(error, kind)) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise refuse(400, "malformed", f"The body is not valid JSON: {error}.") from error

    def read_query(self, kind: Any) -> Any:
        """Return the query as a type in `queries`."""
        try:
            query = self.scope["query_string"].decode()
            given = dict(parse_qsl(query, keep_blank_values=True, errors="strict"))
        except UnicodeDecodeError as error:
            raise refuse(400, "malformed", "A query must be UTF-8, percent-encoded.") from error
        try:
            return msgspec.convert(given, kind, strict=False)
        except msgspec.ValidationError as error:
            raise RefusedError(failure_of_body(error, kind, "parameter")) from error


def _with_integers(value: Any) -> Any:
    """Replace numbers such as 119.0, which are integers in JSON Schema."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_integers(part) for part in value]
    if isinstance(value, dict):
        return {name: _with_integers(part) for name, part in value.items()}
    return value


def _check_length(length: int, max_bytes: int) -> None:
    if length > max_bytes:
        raise refuse(
            413, "too_large", f"A body may have at most {max_bytes} bytes; this one has more."
        )


def _slow() -> RefusedError:
    return _last(408, "slow", f"The body did not arrive within {DEADLINE:g} seconds.")


def _last(status: int, code: str, message: str) -> RefusedError:
    """Return the error for a body that was not read to its end; it closes the connection."""
    return RefusedError(Failure(code, message, status), {"connection": "close"})


_encode = msgspec.json.Encoder().encode


def answered(answer: Any, status: int = 200) -> Response:
    """Return an answer as JSON."""
    return Response(_encode(answer), status)


def refused(error: RefusedError) -> Response:
    """Return an error as a response."""
    return Response(_encode(error.failure), error.failure.status or 400, error.headers)
