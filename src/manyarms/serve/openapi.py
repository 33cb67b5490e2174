"""The OpenAPI description, `/openapi.json`, made from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from manyarms import __version__
from manyarms.serve import messages as m

if TYPE_CHECKING:
    from manyarms.serve.routes import Route

_STREAMS = {
    "add_arms": ("application/x-ndjson", "application/json"),
    "sync_arms": ("application/x-ndjson", "application/json"),
    "metrics": ("text/plain",),
}


def described(routes: Sequence[Route], policies: Sequence[str]) -> bytes:
    """Return the description as JSON."""
    kinds = [kind for route in routes for kind in (route.request, route.answer) if kind is not None]
    kinds += [m.Failure, m.StoppedFailure]
    unique = list(dict.fromkeys(kinds))
    schemas, parts = msgspec.json.schema_components(
        unique, ref_template="#/components/schemas/{name}"
    )
    by_kind = dict(zip(unique, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_kind)
    page = {
        "openapi": "3.1.0",
        "info": {
            "title": "manyarms",
            "version": __version__,
            "description": "Bandits with more arms than time. Policies: " + ", ".join(policies),
        },
        "paths": paths,
        "components": {
            "schemas": parts,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }
    return msgspec.json.encode(page)


def _parameters(route: Route) -> list[dict[str, Any]]:
    found: list[tuple[str, str, Any]]
    found = [("path", name, {"type": "string"}) for name in re.findall(r"{(\w+)}", route.path)]
    (query,) = msgspec.json.schema_components([route.query])[1].values()
    found += [("query", name, schema) for name, schema in query["properties"].items()]
    if route.name == "ask":
        found.append(("header", "Idempotency-Key", {"type": "string", "maxLength": 200}))
    return [
        {"in": where, "name": name, "required": where == "path", "schema": schema}
        for where, name, schema in found
    ]


def _operation(route: Route, schemas: dict[Any, Any]) -> dict[str, Any]:
    streams = _STREAMS.get(route.name, ())
    plain = {kind: {"schema": {"type": "string"}} for kind in streams}
    content: Any = {"application/json": {"schema": schemas.get(route.answer, {})}}
    if route.answer is None:
        content = plain
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.about,
        "parameters": _parameters(route),
        "responses": {
            "200": {"description": "Done.", "content": content},
            "default": {
                "description": "The request was refused; `code` has the reason.",
                "content": {"application/json": {"schema": schemas[m.Failure]}},
            },
        },
        "x-role": route.role,
    }
    if route.role == "public":
        operation["security"] = []
    if route.request is not None:
        body = {"application/json": {"schema": schemas[route.request]}}
        operation["requestBody"] = {"content": body}
    elif streams and route.method in ("POST", "PUT"):
        operation["requestBody"] = {"content": plain}
    return operation
