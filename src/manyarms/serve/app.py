"""The ASGI application: the API by hand, because it must be quick; pages by Starlette."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from manyarms.serve.access import FORWARDED
from manyarms.serve.api import HANDLERS
from manyarms.serve.errors import RefusedError, failed, refuse, unavailable, unknown
from manyarms.serve.messages import NAME
from manyarms.serve.requests import Request, Response, refused
from manyarms.serve.routes import ROUTES, Route
from manyarms.serve.service import ElsewhereError, Service

if TYPE_CHECKING:
    import httpx
    from starlette.applications import Starlette

_NAME = re.compile(NAME)
_PAGE = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_PATIENCE = 2.0  # seconds; then it is looked who owns the experiment
_HOP = {b"host", b"connection", b"content-length", b"transfer-encoding", b"keep-alive", b"expect"}
_SILENT = "The node that owns this experiment does not answer"
_STREAMED = {"add_arms"}  # bodies that cannot be sent twice


def _table() -> tuple[dict[tuple[str, str], Route], dict[tuple[str, str, bool], Route]]:
    """Return the routes by their whole path, and by what follows an experiment's name."""
    whole, of_experiment = {}, {}
    for route in ROUTES:
        head, _, tail = route.path.partition("/{experiment}")
        if head != route.path:
            part, _, key = tail[1:].partition("/")
            of_experiment[route.method, part, bool(key)] = route
        else:
            whole[route.method, route.path] = route
    return whole, of_experiment


_WHOLE, _OF_EXPERIMENT = _table()
_BEGINS = "/v1/experiments/"
_TOKENS = "/v1/tokens/"
_METHODS = frozenset(route.method for route in ROUTES)


def _found(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """Return the route of a method and a path, and what the path names."""
    if path.startswith(_BEGINS):
        name, _, tail = path[len(_BEGINS) :].partition("/")
        part, slash, key = tail.partition("/")
        route = _OF_EXPERIMENT.get((method, part, bool(slash)))
        return None if route is None else (route, {"experiment": name, "key": key})
    if path.startswith(_TOKENS):
        route = _WHOLE.get((method, "/v1/tokens/{token}"))
        return None if route is None else (route, {"token": path[len(_TOKENS) :]})
    route = _WHOLE.get((method, path))
    return None if route is None else (route, {})


class Forwarder:
    """Sends requests to other nodes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._client: httpx.AsyncClient | None = None

    async def close(self) -> None:
        """Let go of the connections to other nodes."""
        if self._client is not None:
            await self._client.aclose()

    async def send(self, request: Request, address: str, *, streamed: bool) -> Response | None:
        """Return the other node's answer; None if there is none, or it is not the owner."""
        import httpx

        if self._client is None:
            limits = httpx.Limits(max_connections=256, max_keepalive_connections=64)
            self._client = httpx.AsyncClient(limits=limits, trust_env=False)
        headers = [(k, v) for k, v in request.headers.items() if k not in (*_HOP, FORWARDED)]
        scope = request.scope
        proof = self._service.access.forwarding(scope["method"], scope["path"])
        headers.append((FORWARDED, proof.encode()))
        # an ask must not be applied twice, and it may have to be sent again
        if scope["path"].endswith("/asks") and b"idempotency-key" not in request.headers:
            request.made_key = request.made_key or f"~{secrets.token_hex(12)}"
            headers.append((b"idempotency-key", request.made_key.encode()))
        body: Any = request.pieces() if streamed else await request.body()
        query = scope["query_string"].decode("latin-1")
        raw = scope.get("raw_path") or scope["path"].encode()
        path = raw.decode("latin-1").partition("?")[0]
        root = self._service.root_path
        path = path[len(root) :] if root and path.startswith(root) else path
        url = httpx.URL(f"http://{address}{path}" + (f"?{query}" if query else ""))
        try:
            answer = await self._client.request(
                scope["method"],
                url,
                content=body,
                headers=headers,
                timeout=None if streamed else _PATIENCE,
            )
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            return None
        except (httpx.HTTPError, AttributeError):  # the latter: it died while we connected
            request.sent = True
            return None
        if answer.status_code == 503 and b'"not_owner"' in answer.content:
            return None
        kind = answer.headers.get("content-type", "application/json")
        kept = {k: answer.headers[k] for k in ("retry-after",) if k in answer.headers}
        return Response(answer.content, answer.status_code, kept, kind=kind)


class App:
    """Answers requests."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._forwarder = Forwarder(service)
        self._pages: Starlette | None = None
        self._root = service.root_path

    async def close(self) -> None:
        """Let go of other nodes."""
        await self._forwarder.close()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
            return
        path: str = scope["path"]
        if self._root and path.startswith(self._root):
            path = scope["path"] = path[len(self._root) :] or "/"
        begun = time.perf_counter()
        try:
            _check_text(path, scope["query_string"])
            found = self._route(scope["method"], path)
        except RefusedError as error:
            await refused(error).send(send)
            return
        if found is None:
            await self._page(scope, receive, send)
            return
        route, arguments = found
        request = Request(scope, receive, arguments)
        if FORWARDED in request.headers:
            access = self.service.access
            request.forwarded = access.is_forwarded(request.headers, scope["method"], path)
        response, more = await self._answer(route, request)
        await response.send(send, more, receive)
        self.service.metrics.count(route.name, response.status, time.perf_counter() - begun)

    def _route(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """Return the route of a request; None if it is a page's."""
        found = _found("GET" if method == "HEAD" else method, path)
        if found is not None:
            name = found[1].get("experiment", "a")
            if not _NAME.match(name):
                raise refuse(
                    422,
                    "name",
                    "A name has letters, digits, '.', '_' and '-', 100 at most, and begins with a "
                    f"letter or digit, got {name[:120]!r}.",
                )
            return found
        others = sorted(other for other in _METHODS if _found(other, path) is not None)
        if method == "OPTIONS" and "POST" in others:
            return _PREFLIGHT, {}
        if others:
            raise refuse(405, "method", f"{path[:200]} is for {', '.join(others)}, not {method}.")
        if path == "/v1" or path.startswith("/v1/"):
            raise refuse(404, "no_route", f"There is no {path[:200]}; see /openapi.json.")
        return None

    async def _answer(
        self, route: Route, request: Request
    ) -> tuple[Response, dict[str, str] | None]:
        """Return the answer to a request, and headers for pages of other origins."""
        if route is _PREFLIGHT:
            return await self._preflight(request)
        more: dict[str, str] | None = None
        try:
            if route.right != "public":
                request.caller = caller = await self.service.caller(request.scope)
                experiment = request.arguments.get("experiment")
                if caller is not None and route.name in ("list_all", "session"):
                    experiment = caller.experiment
                self.service.access.check(
                    caller, route.right, experiment, request.scope, forwarded=request.forwarded
                )
                if caller is not None and caller.role == "browser":
                    more = _allowed(request.headers[b"origin"].decode("latin-1"))
            return await self._handled(route, request), more
        except RefusedError as error:
            if request.sent and error.failure.code == "unavailable":
                error = unknown(_SILENT)
            return refused(error), more
        except Exception:
            return refused(failed(route.name)), {}

    async def _handled(self, route: Route, request: Request) -> Response:
        end = time.monotonic() + 12
        while True:
            try:
                return await HANDLERS[route.name](self.service, request)
            except ElsewhereError as other:
                if request.forwarded:
                    return refused(refuse(503, "not_owner", "Another node owns this experiment."))
                streamed = route.name in _STREAMED
                answer = await self._forwarder.send(request, other.address, streamed=streamed)
                if answer is not None:
                    if request.sent and answer.status == 503 and b'"unavailable"' in answer.body:
                        raise unknown(_SILENT) from None  # this time, but not before
                    return answer
                self.service.node.forget_elsewhere(request.experiment)
                if time.monotonic() > end or streamed:
                    raise unavailable(f"{_SILENT}. Send it again.") from None
                await asyncio.sleep(0.05)

    async def _preflight(self, request: Request) -> tuple[Response, dict[str, str]]:
        """Let pages of known origins ask: what they may do is seen when they do it."""
        origin = request.headers.get(b"origin", b"").decode("latin-1")
        origins = await self.service.origins()
        more = {}
        if origin in origins:
            more = _allowed(origin) | {
                "access-control-allow-methods": "POST",
                "access-control-allow-headers": "authorization, content-type, idempotency-key",
                "access-control-max-age": "600",
            }
        return Response(status=HTTPStatus.NO_CONTENT), more

    # Pages

    async def _page(self, scope: Any, receive: Any, send: Any) -> None:
        if self._pages is None:
            from manyarms.serve.dashboard.pages import pages_of

            self._pages = pages_of(self.service)

        from starlette.datastructures import MutableHeaders

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _PAGE.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._pages(scope, receive, with_headers)


_PREFLIGHT = Route("preflight", "OPTIONS", "", "public", None, None, "")


def _check_text(path: str, query: bytes) -> None:
    """Refuse NUL, which no database takes in a text."""
    if "\0" in path or b"%00" in query or b"\0" in query:
        raise refuse(400, "malformed", "A path and a query must not hold NUL.")


def _allowed(origin: str) -> dict[str, str]:
    return {"access-control-allow-origin": origin, "vary": "Origin"}
