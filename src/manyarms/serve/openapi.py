"""The page `/openapi.json`, made from the routes and their types."""

from __future__ import annotations

import functools
import re
from typing import Any

import msgspec

from manyarms import __version__
from manyarms.serve import messages as m
from manyarms.serve.routes import ROUTES, Route

__all__ = ["description"]

_STREAMS = {
    "add_arms": ("application/x-ndjson", "text/csv", "application/json"),
    "export": ("application/x-ndjson", "text/csv", "application/vnd.apache.parquet"),
    "metrics": ("text/plain",),
}


@functools.cache
def description(policies: tuple[str, ...]) -> bytes:
    """Return the page."""
    kinds = [kind for route in ROUTES for kind in (route.request, route.answer) if kind is not None]
    kinds += [m.Failure, m.StoppedFailure, m.TooMany]
    unique = list(dict.fromkeys(kinds))
    schemas, parts = msgspec.json.schema_components(
        unique, ref_template="#/components/schemas/{name}"
    )
    by_kind = dict(zip(unique, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
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


def _operation(route: Route, schemas: dict[Any, Any]) -> dict[str, Any]:
    names = [("path", name) for name in re.findall(r"{(\w+)}", route.path)]
    names += [("query", name) for name in route.parameters]
    parameters = [
        {"in": where, "name": name, "required": where == "path", "schema": {"type": "string"}}
        for where, name in names
    ]
    if route.name == "ask":
        parameters.append(
            {"in": "header", "name": "Idempotency-Key", "required": False,
             "schema": {"type": "string", "maxLength": 200}}
        )  # fmt: skip
    streams = _STREAMS.get(route.name, ())
    plain = {kind: {"schema": {"type": "string"}} for kind in streams}
    content: Any = {"application/json": {"schema": schemas.get(route.answer, {})}}
    if route.answer is None:
        content = plain
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.about,
        "parameters": parameters,
        "responses": {
            "200": {"description": "Done.", "content": content},
            "default": {
                "description": "Refused: `code` says why.",
                "content": {"application/json": {"schema": schemas[m.Failure]}},
            },
        },
        "x-right": route.right,
    }
    if route.right == "public":
        operation["security"] = []
    if route.request is not None:
        body = {"application/json": {"schema": schemas[route.request]}}
        operation["requestBody"] = {"content": body}
    elif streams and route.method == "POST":
        operation["requestBody"] = {"content": plain}
    return operation
