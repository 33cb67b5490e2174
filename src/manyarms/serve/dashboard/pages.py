"""The handlers of the pages, and of the sign-in that puts a token into a cookie."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import math
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs

import msgspec
from msgspec import Meta, Struct

import manyarms
from manyarms.core import theme
from manyarms.protocol.colours import page_css
from manyarms.serve import messages as m
from manyarms.serve.access import (
    Caller,
    check_same_origin,
    cookie_of,
    may,
)
from manyarms.serve.dashboard import panels
from manyarms.serve.errors import RefusedError, refuse
from manyarms.serve.queries import AnyQuery
from manyarms.serve.requests import Request, Response, answered, refused
from manyarms.serve.routes import Route
from manyarms.serve.service import Service

_STYLES = Path(__file__).parent / "static" / "page.css"
_MOST_LOGIN = 2048  # bytes of the form; anybody may send it, and parsing holds the event loop
_FRESH = 1.0  # seconds that drawn panels are reused
_UNUSED = 60.0  # seconds without requests after which panels are dropped
_MOST_PAGES = 100  # whose panels are kept, about 50 kB for each
_HTML = "text/html; charset=utf-8"

Draw = Callable[[dict[str, Any]], Awaitable[dict[str, str]]]  # gets `kept`; returns HTML by panel


class CursorQuery(Struct):
    """Where a page of the list begins."""

    cursor: str = ""


class ArmsQuery(Struct):
    """Which arms to show."""

    search: str = ""
    sort: str = "low"
    cursor: str = ""


class LoginQuery(Struct):
    """Whether the last token was wrong."""

    wrong: str = ""


class NewQuery(Struct):
    """An experiment whose settings are copied, and a window (seconds) to use with `hold`."""

    like: str = ""
    hold: Annotated[float, Meta(gt=0, le=1e9)] | None = None


class PagePanels:
    """The panels of a page, drawn once for all viewers; `kept` is a cache for `draw`."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._turn = asyncio.Lock()
        self._drawn: dict[str, str] = {}
        self.at = -math.inf  # when they were drawn
        self.kept: dict[str, Any] = {}

    async def now(self) -> dict[str, str]:
        """Return the panels, at most a second old."""
        async with self._turn:
            if time.monotonic() - self.at > _FRESH:
                self._drawn = await self._draw(self.kept)
                self.at = time.monotonic()
            return self._drawn


def _panels_of(service: Service, page: str, draw: Draw) -> PagePanels:
    """Return the panels of a page; drop those of pages that were not requested lately."""
    pages: dict[str, PagePanels] = service.panels  # in the order of their last requests
    shown = pages.pop(page, None) or PagePanels(draw)
    pages[page] = shown
    since = time.monotonic() - _UNUSED
    for name in [*pages][: max(0, len(pages) - _MOST_PAGES)]:
        del pages[name]
    while (oldest := next(iter(pages))) != page and pages[oldest].at < since:
        del pages[oldest]
    return shown


def _page(service: Service, name: str, caller: Caller | None, **content: Any) -> Response:
    is_admin = caller is not None and may(caller.role, "admin")
    shown = {
        "root": service.root_path,
        "caller": caller,
        "may_operate": is_admin,
        "may_create": is_admin,
        "version": manyarms.__version__,
    }
    return Response(panels.template(name, **shown | content).encode(), kind=_HTML)


def _to(service: Service, path: str, cookie: str | None = None) -> Response:
    """Return a redirect to another page."""
    headers = {"location": f"{service.root_path}{path}"}
    if cookie is not None:
        headers["set-cookie"] = cookie
    return Response(b"", 303, headers)


def refused_page(service: Service, request: Request, error: RefusedError) -> Response:
    """Answer a refused request for a page; without a token, redirect to the sign-in."""
    status = error.failure.status or 400
    if "text/html" in request.header(b"accept"):
        if status == 401:
            return _to(service, "/login")
        page = _page(service, "error", None, status=status, message=error.failure.message)
        page.status = status
        return page
    if status == 401:  # sent by a program, which may have the wrong address
        here = f"{request.scope['scheme']}://{request.header(b'host')}{service.root_path}"
        error.failure.message = (
            f"This is the dashboard of manyarms. In a browser, sign in with a token at "
            f"{here}/login. Programs send a token to {here}/v1/experiments as `Authorization: "
            f"Bearer TOKEN`; {here}/openapi.json describes all requests."
        )
    return refused(error)


# The list


def _list_panels(service: Service, request: Request) -> PagePanels:
    cursor = request.query.cursor[:200]

    async def draw(kept: dict[str, Any]) -> dict[str, str]:
        return await panels.draw_list(service, cursor)

    return _panels_of(service, f"list after {cursor}", draw)


async def list_page(service: Service, request: Request) -> Response:
    """Show a page of the experiments."""
    shown = await _list_panels(service, request).now()
    return _page(service, "list", request.caller, panels=shown, cursor=request.query.cursor[:200])


async def list_panels(service: Service, request: Request) -> Response:
    """Return the current list, for the page's script."""
    return answered(await _list_panels(service, request).now())


# An experiment


async def _experiment_panels(service: Service, name: str) -> PagePanels:
    async def draw(kept: dict[str, Any]) -> dict[str, str]:
        return await panels.draw_experiment(service, name, kept)

    # another experiment may have had this name, and a takeover may have lost events
    number, term = (await service.leader.loader.find(name)).id, service.leader.terms
    return _panels_of(service, f"experiment {number} in term {term}", draw)


async def experiment_page(service: Service, request: Request) -> Response:
    """Show an experiment."""
    drawn = await _experiment_panels(service, request.experiment)
    shown = await drawn.now()
    summary: m.ExperimentSummary = drawn.kept["summary"]
    arms = await _arms(service, request)
    return _page(service, "experiment", request.caller, summary=summary, arms=arms, panels=shown)


async def experiment_panels(service: Service, request: Request) -> Response:
    """Return the current panels of an experiment, for the page's script."""
    return answered(await (await _experiment_panels(service, request.experiment)).now())


async def _arms(service: Service, request: Request) -> str:
    assert request.caller is not None
    chosen = msgspec.structs.asdict(request.query)
    may_retire = may(request.caller.role, "admin")
    return await panels.arms_panel(service, request.experiment, chosen, may_retire=may_retire)


async def arms_fragment(service: Service, request: Request) -> Response:
    """Return the panel of arms, for the page's script."""
    return Response((await _arms(service, request)).encode(), kind=_HTML)


async def new_page(service: Service, request: Request) -> Response:
    """Show the form for a new experiment."""
    query: NewQuery = request.query
    spec = m.Spec()
    if query.like:
        spec = (await service.view("summary", query.like)).spec
    if query.hold is not None:
        if math.isnan(query.hold):
            raise refuse(422, "invalid", "`hold` must be a number > 0, got nan.")
        spec = msgspec.structs.replace(spec, hold=True, window=query.hold)
    shown = {"spec": spec, "policy": spec.policy, "like": query.like}
    return _page(service, "new", request.caller, **shown)


# Signing in


async def login_page(service: Service, request: Request) -> Response:
    """Show the form for a token."""
    return _page(service, "login", None, wrong=request.query.wrong)


async def login(service: Service, request: Request) -> Response:
    """Put the token of the form into a cookie, if it is valid."""
    if b"origin" in request.headers:  # other sites must not sign users in with their own token
        check_same_origin(request.scope)
    body = await request.whole_body(_MOST_LOGIN)
    token = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
    caller = await service.access.owner(token)
    if caller is None or caller.expired:
        return _to(service, "/login?wrong=token")
    return _to(service, "/", cookie_of(token, service.root_path, request.scope))


async def logout(service: Service, request: Request) -> Response:
    """Delete the cookie."""
    check_same_origin(request.scope)
    return _to(service, "/login", cookie_of("", service.root_path, request.scope))


# Files


@functools.cache
def page_files() -> dict[str, tuple[bytes, str]]:
    """Return the static files with their media types."""
    here = panels.HERE / "static"
    return {
        "page.css": (page_css().encode() + _STYLES.read_bytes(), "text/css"),
        "dashboard.css": ((here / "dashboard.css").read_bytes(), "text/css"),
        "dashboard.js": ((here / "dashboard.js").read_bytes(), "text/javascript"),
        "icon.svg": (theme.ICON.encode(), "image/svg+xml"),
    }


async def static_file(service: Service, request: Request) -> Response:
    """Return a static file. Browsers revalidate it, so that they notice a new version."""
    name = request.arguments["file"]
    if name not in page_files():
        raise refuse(404, "no_route", f"There is no file {name[:100]!r}.")
    body, kind = page_files()[name]
    tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    headers = {"cache-control": "no-cache", "etag": tag}
    if request.header(b"if-none-match") == tag:
        return Response(b"", 304, headers, kind=kind)
    return Response(body, headers=headers, kind=f"{kind}; charset=utf-8")


_X = "/experiments/{experiment}"
_any = AnyQuery

PAGES: tuple[Route, ...] = (
    Route("list_page", "GET", "/", "viewer", list_page, query=CursorQuery),
    Route("list_panels", "GET", "/panels", "viewer", list_panels, query=CursorQuery),
    Route("login_page", "GET", "/login", "public", login_page, query=LoginQuery),
    Route("login", "POST", "/login", "public", login, query=_any),
    Route("logout", "POST", "/logout", "public", logout, query=_any),
    Route("new_page", "GET", "/new", "admin", new_page, query=NewQuery),
    Route("experiment_page", "GET", _X, "viewer", experiment_page, query=ArmsQuery),
    Route("experiment_panels", "GET", f"{_X}/panels", "viewer", experiment_panels, query=_any),
    Route("arms_fragment", "GET", f"{_X}/arms", "viewer", arms_fragment, query=ArmsQuery),
    Route("static_file", "GET", "/static/{file}", "public", static_file, query=_any),
)
