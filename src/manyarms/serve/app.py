"""The ASGI application: the API by hand, because it must be quick; pages by Starlette."""

from __future__ import annotations

import asyncio
import functools
import re
import time
from typing import TYPE_CHECKING, Any

from manyarms.serve.access import check
from manyarms.serve.api import HANDLERS
from manyarms.serve.errors import RefusedError, failed, refuse, unknown
from manyarms.serve.messages import NAME
from manyarms.serve.requests import Request, Response, refused
from manyarms.serve.routes import ROUTES, Route
from manyarms.serve.service import Service

if TYPE_CHECKING:
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
_METHODS = frozenset(route.method for route in ROUTES)
_LONG = 300  # characters: such paths are not remembered
_NUL = "A path and a query must not hold NUL: no database takes it in a text."


def _found(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """Return the route of a method and a path, and what the path names."""
    if path.startswith(_BEGINS):
        name, _, tail = path[len(_BEGINS) :].partition("/")
        part, slash, key = tail.partition("/")
        route = _OF_EXPERIMENT.get((method, part, bool(slash)))
        return None if route is None else (route, {"experiment": name, "key": key})
    route = _WHOLE.get((method, path))
    return None if route is None else (route, {})


class App:
    """Answers requests."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._pages: Starlette | None = None
        self._root = service.root_path

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
            return
        begun = time.perf_counter()
        path: str = scope["path"]
        if self._root and path.startswith(self._root):
            path = scope["path"] = path[len(self._root) :] or "/"
        name = "refused"
        try:
            if scope["query_string"]:
                _check_query(scope["query_string"])
            route = _route if len(path) < _LONG else _route.__wrapped__
            found = route(scope["method"], path)
            request = Request(scope, receive, found[1] if found else {})
            if found is None:
                await self._page(request, send)
                return
            name = found[0].name
            response = await self._answer(found[0], request)
        except RefusedError as error:
            response = refused(error)
        except asyncio.CancelledError:
            if not self.service.ending:
                raise
            response = refused(unknown("This process ends"))
        except Exception:
            response = refused(failed(name))
        try:
            await response.send(send)
        except RuntimeError:  # uvloop's word for a connection that was cut off
            raise
        except Exception:
            failed(name)  # in the middle of an answer
            raise
        self.service.metrics.count(name, response.status, time.perf_counter() - begun)

    async def _answer(self, route: Route, request: Request) -> Response:
        if route.role != "public":
            self.service.leader.check_leads()
            caller = request.caller = await self.service.caller(request.headers)
            experiment = request.arguments.get("experiment")
            if caller is not None and route.name == "list_all":
                experiment = caller.experiment
            check(caller, route.role, experiment, request.scope)
        _check_parameters(route, request)
        return await HANDLERS[route.name](self.service, request)

    # Pages

    async def _page(self, request: Request, send: Any) -> None:
        if self._pages is None:
            from manyarms.serve.dashboard.pages import pages_of

            self._pages = pages_of(self.service)

        from starlette.datastructures import MutableHeaders

        gone: list[Any] = []  # messages that could not be sent

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _PAGE.items():
                    headers.setdefault(name, value)
            try:
                await send(message)
            except RuntimeError:  # as above
                gone.append(message)
                raise

        receive = await request.read_first()
        try:
            await self._pages(request.scope, receive, with_headers)
        except Exception:
            if not gone:
                failed(request.scope["path"])  # Starlette has answered


@functools.lru_cache(maxsize=1024)
def _route(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """Return the route of a request, None if it is a page's: most are like earlier ones."""
    if "\0" in path:
        raise refuse(400, "malformed", _NUL)
    found = _found("GET" if method == "HEAD" else method, path)
    if found is not None:
        name = found[1].get("experiment", "a")
        if not _NAME.fullmatch(name):
            raise refuse(
                422,
                "name",
                "A name has letters, digits, '.', '_' and '-', 100 at most, and begins with a "
                f"letter or digit, got {name[:120]!r}.",
            )
        return found
    others = sorted(other for other in _METHODS if _found(other, path) is not None)
    if others:
        raise refuse(405, "method", f"{path[:200]} is for {', '.join(others)}, not {method}.")
    if path == "/v1" or path.startswith("/v1/"):
        raise refuse(404, "no_route", f"There is no {path[:200]}; see /openapi.json.")
    return None


def _check_parameters(route: Route, request: Request) -> None:
    """Refuse a question that would be answered as if it were another one."""
    if not request.scope["query_string"] or not route.path.startswith("/v1/"):
        return
    for name in request.query:
        if name not in route.parameters:
            known = ", ".join(route.parameters) or "none"
            raise refuse(
                422, "parameter", f"There is no parameter `{name[:100]}`. Known here: {known}."
            )


def _check_query(query: bytes) -> None:
    if b"%00" in query or b"\0" in query:
        raise refuse(400, "malformed", _NUL)
