"""Requests for pages, and what they are answered; sessions of browsers."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

import manyarms
from manyarms.core import theme
from manyarms.protocol.colours import page_css
from manyarms.protocol.registry import policy_names
from manyarms.serve import messages as m
from manyarms.serve.access import (
    COOKIE,
    Caller,
    check_same_origin,
    digest_of,
    find_caller,
    tokens_in,
)
from manyarms.serve.dashboard import panels
from manyarms.serve.dashboard.feed import Channel, Draw
from manyarms.serve.errors import RefusedError, invalid, refuse, unknown_arm
from manyarms.serve.routes import may

if TYPE_CHECKING:
    from manyarms.serve.service import Service

_PACKAGE = Path(manyarms.__file__).parent
_STYLES = Path(__file__).parent / "static" / "page.css"
_CLIENT = _PACKAGE / "remote" / "manyarms.js"
_MOST_STREAMS = 1000  # pages that follow, of all
_MOST_OF_ONE = 50  # of one token
_SHARE = 0.5  # of all connections: the others are for asks


class _Stream(StreamingResponse):
    """Events; says when they end, also if they never began because the reader has gone."""

    def __init__(self, events: AsyncGenerator[bytes], closed: Callable[[], None]) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._closed = closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them all."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._closed()


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
        self._channels: dict[str, Channel] = {}  # of pages that somebody looks at
        self._most = min(_MOST_STREAMS, int(_SHARE * service.settings.connections))
        self._streams: Counter[str] = Counter()  # by the name of their token

    def routes(self) -> list[BaseRoute]:
        """Return all pages."""
        x = "/experiments/{experiment}"
        return [
            Route("/", self.list_page),
            Route("/events", self.list_events),
            Route("/login", self.login_page),
            Route("/login", self.login, methods=["POST"]),
            Route("/logout", self.logout, methods=["POST"]),
            Route("/new", self.new_page),
            Route("/tokens", self.tokens_page),
            Route(x, self.experiment_page),
            Route(f"{x}/events", self.experiment_events),
            Route(f"{x}/arms", self.arms_fragment),
            Route(f"{x}/arms/{{number}}", self.arm_page),
            Route("/static/page.css", self.shared_styles),
            Route("/static/icon.svg", self.icon),
            Route("/manyarms.js", self.client),
            Mount("/static", _Files(directory=panels.HERE / "static")),
        ]

    async def _caller(
        self, request: Request, right: str = "view", experiment: str | None = None
    ) -> Caller:
        self._service.leader.check_leads()
        caller = await self._service.caller(request.scope)
        # pages for admins show all experiments: an admin of one may not see them
        if experiment is None and caller is not None and right != "administer":
            experiment = caller.experiment
        self._service.access.check(caller, right, experiment, request.scope)
        assert caller is not None
        return caller

    def _page(self, name: str, caller: Caller | None, **content: Any) -> HTMLResponse:
        role = "viewer" if caller is None else caller.role
        shown = {
            "root": self._service.root_path,
            "caller": caller,
            "images": self._service.settings.images,
            "may_operate": may(role, "operate"),
            "may_administer": may(role, "administer") and not (caller and caller.experiment),
            "version": manyarms.__version__,
        }
        page = HTMLResponse(panels.template(name, **shown | content))
        page.headers["cache-control"] = "no-store"
        return page

    # The list

    def _list_channel(self, caller: Caller, cursor: str) -> Channel:
        only = caller.experiment

        async def draw(kept: dict[str, Any]) -> dict[str, str]:
            return await panels.draw_list(self._service, caller._replace(experiment=only), cursor)

        return self._channel(f"list of {only or 'all'} after {cursor}", draw)

    def _channel(self, page: str, draw: Draw) -> Channel:
        if page not in self._channels:
            alive = {name: one for name, one in self._channels.items() if not one.idle}
            self._channels = alive | {page: Channel(draw)}
        return self._channels[page]

    async def list_page(self, request: Request) -> Response:
        """Show a page of the experiments."""
        caller = await self._caller(request)
        cursor = _cursor(request)
        drawn = await self._list_channel(caller, cursor).soon()
        return self._page("list", caller, panels=drawn, cursor=cursor)

    async def list_events(self, request: Request) -> Response:
        """Send the list whenever it changes."""
        caller = await self._caller(request)
        return await self._stream(caller, self._list_channel(caller, _cursor(request)))

    # An experiment

    def _experiment_channel(self, name: str) -> Channel:
        async def draw(kept: dict[str, Any]) -> dict[str, str]:
            return await panels.draw_experiment(self._service, name, kept)

        return self._channel(f"experiment {name}", draw)

    async def experiment_page(self, request: Request) -> Response:
        """Show an experiment."""
        name = request.path_params["experiment"]
        caller = await self._caller(request, "view", name)
        channel = self._experiment_channel(name)
        drawn = await channel.soon()
        summary: m.ExperimentSummary = channel.kept["summary"]
        arms = await self._arms(request, name, caller)
        shown = {"panels": drawn, "arms": arms, "summary": summary, "policies": policy_names()}
        return self._page("experiment", caller, **shown)

    async def _arms(self, request: Request, name: str, caller: Caller) -> str:
        return await panels.arms_panel(
            self._service,
            name,
            dict(request.query_params),
            may_retire=may(caller.role, "operate"),
        )

    async def arms_fragment(self, request: Request) -> Response:
        """Show the panel of arms alone, for the page's script."""
        name = request.path_params["experiment"]
        caller = await self._caller(request, "view", name)
        return HTMLResponse(await self._arms(request, name, caller))

    async def experiment_events(self, request: Request) -> Response:
        """Send panels whenever they change."""
        name = request.path_params["experiment"]
        caller = await self._caller(request, "view", name)
        return await self._stream(caller, self._experiment_channel(name))

    async def _stream(self, caller: Caller, channel: Channel) -> Response:
        await channel.panels()
        open_now, who = self._streams, caller.name
        if open_now[who] >= _MOST_OF_ONE:
            said = f"{_MOST_OF_ONE} pages follow with the token {who!r}. Close some."
            raise refuse(429, "streams", said)
        if open_now.total() >= self._most:
            raise refuse(503, "unavailable", "Too many pages are open.")
        open_now[who] += 1  # nothing waits from here until the response is sent

        def closed() -> None:
            open_now[who] -= 1
            if not open_now[who]:
                del open_now[who]

        return _Stream(channel.stream(lambda: self._service.ending), closed)

    async def arm_page(self, request: Request) -> Response:
        """Show one arm, by its number: keys may hold anything."""
        name, text = request.path_params["experiment"], request.path_params["number"]
        caller = await self._caller(request, "view", name)
        arm: m.ArmView | None = None
        if text.isdecimal() and len(text) < 19:
            arm = await self._service.view("arm_at", name, number=int(text))
        if arm is None:
            raise unknown_arm(text)
        summary: m.ExperimentSummary = await self._service.view("summary", name)
        best = summary.recommended
        compared = [arm] if best is None or best.number == arm.number else [arm, best]
        scale = panels.common_scale(compared)
        return self._page(
            "arm", caller, arm=arm, summary=summary, best=best, scale=scale, compared=compared
        )

    # Sessions

    async def login_page(self, request: Request) -> Response:
        """Ask for a token; with the code of a link, which is good once, begin a session."""
        query = request.query_params
        if "code" not in query or request.method == "HEAD":  # some look at links before people do
            return self._page("login", None, wrong=query.get("wrong", ""))
        return self._session(request, self._service.access.redeem(query["code"]), "link")

    async def login(self, request: Request) -> Response:
        """Begin a session with the token of the form."""
        if "origin" in request.headers:  # a page elsewhere could sign its visitors in, as itself
            check_same_origin(request.headers["origin"], request.scope)
        body = await request.body()
        token = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
        digest = digest_of(token)
        caller = await self._service.leader.read(lambda db: find_caller(db, "sha256", digest))
        good = caller is not None and not caller.expired and may(caller.role, "view")
        return self._session(request, caller if good else None, "token")

    def _session(self, request: Request, caller: Caller | None, by: str) -> Response:
        service, root = self._service, self._service.root_path
        if caller is None:
            return RedirectResponse(f"{root}/login?wrong={by}", 303)
        secure = request.url.scheme == "https"
        response = RedirectResponse(f"{root}/", 303)
        response.headers["set-cookie"] = service.access.session_cookie(
            caller, path=root or "/", secure=secure
        )
        return response

    async def logout(self, request: Request) -> Response:
        """End a session."""
        service = self._service
        caller = service.access.session_in(dict(request.scope["headers"]))
        service.access.check(caller, "view", caller and caller.experiment, request.scope)
        if caller is not None:
            await service.end_session(caller)
        response = RedirectResponse(f"{service.root_path}/login", 303)
        response.delete_cookie(COOKIE, path=service.root_path or "/")
        return response

    async def refused(self, request: Request, error: RefusedError) -> Response:
        """Answer a page that was refused: whoever is not known is led to the login."""
        root, message = self._service.root_path, error.failure.message
        status = error.failure.status or 400
        wants_page = "text/html" in request.headers.get("accept", "")
        if status == 401 and wants_page:
            return RedirectResponse(f"{root}/login", 303)
        if wants_page:
            shown = {"root": root, "caller": None, "may_administer": False, "version": ""}
            page = panels.template("error", status=status, message=message, **shown)
            return HTMLResponse(page, status)
        if status == 401:  # of a page: whoever asks has seen no documentation yet
            here = f"{str(request.base_url).rstrip('/')}{root}"
            message = (
                f"This is the dashboard of manyarms. In a browser, sign in at {here}/login, with "
                f"the link that `manyarms serve` printed, or with a token. Programs send a token "
                f"to {here}/v1/experiments as `Authorization: Bearer TOKEN`; {here}/openapi.json "
                f"describes all requests."
            )
        return JSONResponse({"code": error.failure.code, "message": message}, status)

    # Forms; what they do is done by the API

    async def new_page(self, request: Request) -> Response:
        """Ask for an experiment; `like` names one whose settings are shown."""
        caller = await self._caller(request, "administer")
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

    async def tokens_page(self, request: Request) -> Response:
        """Show tokens, and let an admin make and revoke some."""
        caller = await self._caller(request, "administer")
        tokens = await self._service.leader.read(tokens_in)
        return self._page("tokens", caller, tokens=tokens)

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

    async def client(self, request: Request) -> Response:
        """Send the client for pages of others."""
        return Response(
            _CLIENT.read_bytes(),
            media_type="text/javascript",
            headers={
                "cross-origin-resource-policy": "cross-origin",
                "cache-control": "max-age=3600",
            },
        )


def _cursor(request: Request) -> str:
    """Return the cursor of a page of the list: a name, and thus no longer than one."""
    return request.query_params.get("cursor", "")[:100]


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise invalid(f"`hold` must be a number > 0, got {text[:100]!r}.")
