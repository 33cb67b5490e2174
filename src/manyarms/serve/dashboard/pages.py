"""Pages of the dashboard, and the sign-in that puts a token into a cookie."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

import manyarms
from manyarms.core import theme
from manyarms.protocol.colours import page_css
from manyarms.protocol.registry import policy_names
from manyarms.serve import messages as m
from manyarms.serve.access import (
    COOKIE,
    Caller,
    check,
    check_same_origin,
    cookie_of,
    find_caller,
)
from manyarms.serve.dashboard import panels
from manyarms.serve.errors import RefusedError, invalid
from manyarms.serve.routes import may

if TYPE_CHECKING:
    from manyarms.serve.service import Service

_STYLES = Path(__file__).parent / "static" / "page.css"
_FRESH = 1.0  # seconds for which panels are not drawn again
_UNUSED = 60.0  # seconds after which panels that nobody asks for are forgotten

Draw = Callable[[dict[str, Any]], Awaitable[dict[str, str]]]  # gets `kept`; returns HTML by panel


class _Panels:
    """The panels of one page, drawn once for all who look; `kept` is what `draw` keeps."""

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


class _Files(StaticFiles):
    """Files that browsers ask for again, so that those of an older version are not kept."""

    def file_response(self, *arguments: Any, **named: Any) -> Response:
        """Return a file, or that it has not changed."""
        response = super().file_response(*arguments, **named)
        response.headers["cache-control"] = "no-cache"
        return response


def pages_of(service: Service) -> Starlette:
    """Return the pages of a service as an application."""
    pages = Pages(service)
    handlers: Any = {RefusedError: pages.refused}
    return Starlette(routes=pages.routes(), exception_handlers=handlers)


class Pages:
    """The pages of one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._panels: dict[str, _Panels] = {}  # of pages that somebody looks at

    def routes(self) -> list[BaseRoute]:
        """Return all pages."""
        x = "/experiments/{experiment}"
        return [
            Route("/", self.list_page),
            Route("/panels", self.list_panels),
            Route("/login", self.login_page),
            Route("/login", self.login, methods=["POST"]),
            Route("/logout", self.logout, methods=["POST"]),
            Route("/new", self.new_page),
            Route(x, self.experiment_page),
            Route(f"{x}/panels", self.experiment_panels),
            Route(f"{x}/arms", self.arms_fragment),
            Route("/static/page.css", self.shared_styles),
            Route("/static/icon.svg", self.icon),
            Mount("/static", _Files(directory=panels.HERE / "static")),
        ]

    async def _caller(
        self, request: Request, role: str = "viewer", experiment: str | None = None
    ) -> Caller:
        self._service.leader.check_leads()
        caller = await self._service.caller(dict(request.scope["headers"]))
        # pages for admins show all experiments: an admin of one may not see them
        if experiment is None and caller is not None and role != "admin":
            experiment = caller.experiment
        check(caller, role, experiment, request.scope)
        assert caller is not None
        return caller

    def _page(self, name: str, caller: Caller | None, **content: Any) -> HTMLResponse:
        role = "viewer" if caller is None else caller.role
        shown = {
            "root": self._service.root_path,
            "caller": caller,
            "may_operate": may(role, "admin"),
            "may_create": may(role, "admin") and not (caller and caller.experiment),
            "version": manyarms.__version__,
        }
        page = HTMLResponse(panels.template(name, **shown | content))
        page.headers["cache-control"] = "no-store"
        return page

    # The list

    def _panels_of(self, page: str, draw: Draw) -> _Panels:
        if page not in self._panels:
            since = time.monotonic() - _UNUSED
            used = {name: one for name, one in self._panels.items() if one.at > since}
            self._panels = used | {page: _Panels(draw)}
        return self._panels[page]

    def _list_panels(self, request: Request, caller: Caller) -> tuple[_Panels, str]:
        only, cursor = caller.experiment, request.query_params.get("cursor", "")[:100]

        async def draw(kept: dict[str, Any]) -> dict[str, str]:
            return await panels.draw_list(self._service, caller._replace(experiment=only), cursor)

        return self._panels_of(f"list of {only or 'all'} after {cursor}", draw), cursor

    async def list_page(self, request: Request) -> Response:
        """Show a page of the experiments."""
        caller = await self._caller(request)
        shown, cursor = self._list_panels(request, caller)
        return self._page("list", caller, panels=await shown.now(), cursor=cursor)

    async def list_panels(self, request: Request) -> Response:
        """Return the list as it is now, for the page's script."""
        caller = await self._caller(request)
        return _json(await self._list_panels(request, caller)[0].now())

    # An experiment

    def _experiment_panels(self, name: str) -> _Panels:
        async def draw(kept: dict[str, Any]) -> dict[str, str]:
            return await panels.draw_experiment(self._service, name, kept)

        return self._panels_of(f"experiment {name}", draw)

    async def experiment_page(self, request: Request) -> Response:
        """Show an experiment."""
        name = request.path_params["experiment"]
        caller = await self._caller(request, "viewer", name)
        drawn = self._experiment_panels(name)
        shown = {"panels": await drawn.now(), "policies": policy_names()}
        summary: m.ExperimentSummary = drawn.kept["summary"]
        arms = await self._arms(request, name, caller)
        return self._page("experiment", caller, summary=summary, arms=arms, **shown)

    async def experiment_panels(self, request: Request) -> Response:
        """Return the panels of an experiment as they are now, for the page's script."""
        name = request.path_params["experiment"]
        await self._caller(request, "viewer", name)
        return _json(await self._experiment_panels(name).now())

    async def _arms(self, request: Request, name: str, caller: Caller) -> str:
        return await panels.arms_panel(
            self._service,
            name,
            dict(request.query_params),
            may_retire=may(caller.role, "admin"),
        )

    async def arms_fragment(self, request: Request) -> Response:
        """Show the panel of arms alone, for the page's script."""
        name = request.path_params["experiment"]
        caller = await self._caller(request, "viewer", name)
        return HTMLResponse(await self._arms(request, name, caller))

    # Signing in

    async def login_page(self, request: Request) -> Response:
        """Ask for a token."""
        return self._page("login", None, wrong=request.query_params.get("wrong", ""))

    async def login(self, request: Request) -> Response:
        """Put the token of the form into a cookie, if it is good."""
        if "origin" in request.headers:  # a page elsewhere could sign its visitors in, as itself
            check_same_origin(request.scope)
        root = self._service.root_path
        body = await request.body()
        token = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
        caller = await self._service.leader.read(lambda db: find_caller(db, token))
        if caller is None or caller.expired:
            return RedirectResponse(f"{root}/login?wrong=token", 303)
        response = RedirectResponse(f"{root}/", 303)
        secure = request.url.scheme == "https"
        response.headers["set-cookie"] = cookie_of(token, path=root or "/", secure=secure)
        return response

    async def logout(self, request: Request) -> Response:
        """Delete the cookie."""
        check_same_origin(request.scope)
        root = self._service.root_path
        response = RedirectResponse(f"{root}/login", 303)
        response.delete_cookie(COOKIE, path=root or "/")
        return response

    async def refused(self, request: Request, error: RefusedError) -> Response:
        """Answer a page that was refused; without a token, lead to the sign-in."""
        root, message = self._service.root_path, error.failure.message
        status = error.failure.status or 400
        wants_page = "text/html" in request.headers.get("accept", "")
        if status == 401 and wants_page:
            return RedirectResponse(f"{root}/login", 303)
        if wants_page:
            shown = {"root": root, "caller": None, "version": ""}
            page = panels.template("error", status=status, message=message, **shown)
            return HTMLResponse(page, status)
        if status == 401:  # of a page: whoever asks has seen no documentation yet
            here = f"{str(request.base_url).rstrip('/')}{root}"
            message = (
                f"This is the dashboard of manyarms. In a browser, sign in with a token at "
                f"{here}/login. Programs send a token to {here}/v1/experiments as `Authorization: "
                f"Bearer TOKEN`; {here}/openapi.json describes all requests."
            )
        return JSONResponse({"code": error.failure.code, "message": message}, status)

    # Forms; what they do is done by the API

    async def new_page(self, request: Request) -> Response:
        """Ask for an experiment; `like` names one whose settings are shown."""
        caller = await self._caller(request, "admin")
        like = request.query_params.get("like")
        spec = m.Spec()
        if like:
            spec = (await self._service.view("summary", like)).spec
        if request.query_params.get("hold"):
            spec = msgspec.structs.replace(
                spec, early="hold", window=_seconds(request.query_params["hold"])
            )
        policy = spec.policy if isinstance(spec.policy, str) else spec.policy.name
        return self._page(
            "new", caller, spec=spec, policy=policy, policies=policy_names(), like=like or ""
        )

    # Files

    async def shared_styles(self, request: Request) -> Response:
        """Send the styles that the report has, too."""
        return Response(
            page_css().encode() + _STYLES.read_bytes(),
            media_type="text/css",
            headers={"cache-control": "no-cache"},
        )

    async def icon(self, request: Request) -> Response:
        """Send the icon of the project."""
        return Response(theme.ICON, media_type="image/svg+xml")


def _json(content: Any) -> Response:
    headers = {"cache-control": "no-store"}
    return Response(msgspec.json.encode(content), media_type="application/json", headers=headers)


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise invalid(f"`hold` must be a number > 0, got {text[:100]!r}.")
