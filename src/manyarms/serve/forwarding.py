"""Requests that another node must answer are sent there, and its answer comes back."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from manyarms.serve.access import FORWARDED
from manyarms.serve.requests import Request, Response

if TYPE_CHECKING:
    import httpx

    from manyarms.serve.service import Service

__all__ = ["Forwarder"]

_PATIENCE = 2.0  # seconds; then it is looked who owns the experiment
_HOP = {b"host", b"connection", b"content-length", b"transfer-encoding", b"keep-alive", b"expect"}


def scope_asks(request: Request) -> bool:
    """Whether a request must not be applied twice: it may have to be sent again."""
    path: str = request.scope["path"]
    return path.endswith("/asks")


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
        if scope_asks(request) and b"idempotency-key" not in request.headers:
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
