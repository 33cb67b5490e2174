"""The ASGI application, which answers all requests to the API and the pages."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from urllib.parse import quote

from manyarms.serve.access import check
from manyarms.serve.dashboard.pages import PAGES, refused_page
from manyarms.serve.errors import RefusedError, failed, refuse, unknown
from manyarms.serve.queries import NoQuery
from manyarms.serve.requests import Request, Response, refused
from manyarms.serve.routes import ROUTES, Finder, Route
from manyarms.serve.service import Service

_PAGE = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'"
    ),
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
find = Finder((*ROUTES, *PAGES))


class App:
    """The ASGI application."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._root = service.root_path

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
            return
        begun = time.perf_counter()
        path = _path_of(scope)
        if self._root and f"{path}/".startswith(f"{self._root}/"):
            path = path[len(self._root) :] or "/"
        request, route = Request(scope, receive), None
        name = "refused"
        try:
            route, request.arguments = find(scope["method"], path)
            name = route.name
            response = await self._answer(route, request)
        except RefusedError as error:
            response = self._refused(path, request, error)
        except asyncio.CancelledError:
            if not self.service.ending:
                raise
            response = refused(unknown("This process is ending"))
        except Exception:
            response = self._refused(path, request, failed(name))
        if not _is_api(path):
            response.headers = _PAGE | response.headers
        try:
            await response.send(send)
        except RuntimeError:  # uvloop raises this if the connection was cut off
            raise
        except Exception:
            failed(name)  # while the answer was being sent
            raise
        self.service.metrics.count(name, response.status, time.perf_counter() - begun)

    async def _answer(self, route: Route, request: Request) -> Response:
        """Check the token of a request, read the request, and call its handler."""
        query = request.scope["query_string"]
        if b"%00" in query or b"\0" in query:
            raise refuse(400, "malformed", "A query must not contain NUL.")
        if route.role != "public":
            self.service.leader.check_leads()
            caller = request.caller = await self.service.caller(request.headers)
            check(caller, route.role, request.scope)
        if query or route.query is not NoQuery:
            request.query = request.read_query(route.query)
        if route.request is not None:
            request.body = await request.read(route.request)
        return await route.handler(self.service, request)

    def _refused(self, path: str, request: Request, error: RefusedError) -> Response:
        return refused(error) if _is_api(path) else refused_page(self.service, request, error)


def _path_of(scope: Any) -> str:
    """Return the percent-encoded path, as it was sent: a name may contain a slash."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    return raw.partition(b"?")[0].decode("latin-1")


def _is_api(path: str) -> bool:
    return path == "/v1" or path.startswith("/v1/")
