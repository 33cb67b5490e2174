"""Sessions of browsers: a link that is good once, or a token in a form."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from manyarms.serve.access import COOKIE, Caller, digest_of, find_caller
from manyarms.serve.dashboard import error_page
from manyarms.serve.errors import RefusedError, refuse
from manyarms.serve.routes import may
from manyarms.serve.service import Service, headers_of

__all__ = ["refused", "routes"]

_MOST = 4096  # bytes of a form


def routes(service: Service) -> list[BaseRoute]:
    """Return `/login?code=…`, and the forms' ends."""

    async def by_link(request: Request) -> Response:
        caller = service.access.redeem(request.query_params.get("code", ""))
        if caller is None:
            return RedirectResponse(f"{service.root_path}/login?wrong=link", 303)
        return _begun(service, request, caller)

    async def by_token(request: Request) -> Response:
        body = await _limited(request)
        token = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
        digest = digest_of(token)
        caller = await service.node.read(lambda database: find_caller(database, digest))
        if caller is None or caller.expired or not may(caller.role, "view"):
            return RedirectResponse(f"{service.root_path}/login?wrong=token", 303)
        return _begun(service, request, caller)

    async def out(request: Request) -> Response:
        caller = service.access.session_in(headers_of(request.scope))
        service.check(caller, "view", caller and caller.experiment, request.scope)
        response = RedirectResponse(f"{service.root_path}/login", 303)
        response.delete_cookie(COOKIE, path=service.root_path or "/")
        return response

    class ByLink(Route):
        """Matches only with a code: without one it is the dashboard's page."""

        def matches(self, scope: Any) -> Any:
            from starlette.routing import Match

            match, child = super().matches(scope)
            has_code = b"code=" in scope.get("query_string", b"")
            return (match, child) if has_code else (Match.NONE, {})

    return [
        ByLink("/login", by_link, methods=["GET"]),
        Route("/login", by_token, methods=["POST"]),
        Route("/logout", out, methods=["POST"]),
    ]


async def _limited(request: Request) -> bytes:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _MOST:
            raise refuse(413, "too_large", "This form is too large.")
    return body


def _begun(service: Service, request: Request, caller: Caller) -> Response:
    response = RedirectResponse(f"{service.root_path}/", 303)
    secure = request.url.scheme == "https"
    path = service.root_path or "/"
    response.headers["set-cookie"] = service.access.session_cookie(caller, path=path, secure=secure)
    return response


async def refused(service: Service, request: Request, error: RefusedError) -> Response:
    """Answer a page that was refused: whoever is not known is led to the login."""
    status = error.failure.status or 400
    wants_page = "text/html" in request.headers.get("accept", "")
    if status == 401 and wants_page:
        return RedirectResponse(f"{service.root_path}/login", 303)
    if wants_page:
        return error_page(service.root_path, error)
    message = error.failure.message
    if status == 401:  # of a page: whoever asks has seen no documentation yet
        here = f"{str(request.base_url).rstrip('/')}{service.root_path}"
        message = (
            f"This is the dashboard of manyarms. In a browser, sign in at {here}/login, with the "
            f"link that `manyarms serve` printed, or with a token. Programs send a token to "
            f"{here}/v1/experiments as `Authorization: Bearer TOKEN`; {here}/openapi.json "
            f"describes all requests."
        )
    return JSONResponse({"code": error.failure.code, "message": message}, status)
