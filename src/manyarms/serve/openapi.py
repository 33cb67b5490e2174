"""The OpenAPI description, `/openapi.json`, made from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from manyarms import __version__
from manyarms.serve import messages as m
from manyarms.serve.fields import LONGEST_KEY, NO_NUL
from manyarms.store import LONGEST_ARM_NAME, LONGEST_EXPERIMENT_NAME

if TYPE_CHECKING:
    from manyarms.serve.routes import Route

# a stream, or JSON; `Route.request` is None because the handlers read them
_LONGEST_IN_A_PATH = 5000  # characters of up to 12 bytes; a URL may have 65,535 bytes
_TEXT: dict[str, Any] = {"type": "string", "minLength": 1, "pattern": NO_NUL}
_NAME = _TEXT | {"maxLength": LONGEST_ARM_NAME}
_NAMES = {"type": "array", "items": {"anyOf": [_NAME, {"type": "integer"}]}}
_ARMS: dict[str, Any] = {
    "add_arms": {"names": _NAMES, "count": {"type": "integer", "minimum": 0}},
    "sync_arms": {"names": _NAMES | {"minItems": 1}},
}
_LINES = {"type": "string", "description": 'One name per line, such as "red" or 7.'}
_ALSO = {"put": "201", "readyz": "503"}  # further statuses of an answer
_BODY, _PATH = "$response.body#/", "$request.path."


def _link(operation: str, about: str, body: Any = None, **parameters: str) -> dict[str, Any]:
    link: dict[str, Any] = {"operationId": operation, "description": about}
    if parameters:
        link["parameters"] = parameters
    return link if body is None else link | {"requestBody": body}


_SAME = {"experiment": f"{_PATH}experiment"}
_LINKS: dict[str, dict[str, Any]] = {
    "list_all": {
        "more": _link("list_all", "The next page.", cursor=f"{_BODY}cursor"),
        "first": _link("get", "The first experiment.", experiment=f"{_BODY}experiments/0/name"),
    },
    "put": {
        "ask": _link("ask", "Ask for pulls.", **_SAME),
        "arms": _link("add_arms", "Add arms, if they have names.", **_SAME),
        "verdict": _link("verdict", "Whether to stop.", **_SAME),
        "stop": _link("stop", "Stop it.", **_SAME),
    },
    "ask": {
        "tell": _link(
            "tell",
            "Tell the reward of the first pull.",
            {"tells": [{"pull": f"{_BODY}pulls/0/pull", "reward": 1}]},
            **_SAME,
        ),
        "abandon": _link(
            "abandon", "Abandon the first pull.", {"pulls": [f"{_BODY}pulls/0/pull"]}, **_SAME
        ),
        "arm": _link("arm", "The arm of the first pull.", name=f"{_BODY}pulls/0/arm", **_SAME),
    },
    "retire": {"restore": _link("restore", "Restore it.", "$request.body#", **_SAME)},
    "arms": {"more": _link("arms", "The next page.", cursor=f"{_BODY}cursor", **_SAME)},
    "events": {"more": _link("events", "The next page.", after=f"{_BODY}after", **_SAME)},
    "stop": {"delete": _link("delete", "Delete it.", **_SAME)},
}


def described(routes: Sequence[Route], policies: Sequence[str]) -> bytes:
    """Return the description as JSON."""
    kinds = [kind for route in routes for kind in (route.request, route.answer) if kind is not None]
    kinds += [m.Failure, m.StoppedFailure, m.SyncPreview]
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
    found = [("path", name, _text(name)) for name in re.findall(r"{(\w+)}", route.path)]
    (query,) = msgspec.json.schema_components([route.query])[1].values()
    found += [("query", name, schema) for name, schema in query["properties"].items()]
    if route.name == "ask":
        found.append(("header", "Idempotency-Key", {"type": "string", "maxLength": LONGEST_KEY}))
    return [
        {"in": where, "name": name, "required": where == "path", "schema": schema}
        for where, name, schema in found
    ]


def _text(name: str) -> dict[str, Any]:
    if name == "experiment":
        return _TEXT | {"maxLength": LONGEST_EXPERIMENT_NAME, "examples": ["colours"]}
    return _TEXT | {"maxLength": _LONGEST_IN_A_PATH, "examples": ["red"]}


def _operation(route: Route, schemas: dict[Any, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.about,
        "parameters": _parameters(route),
        "responses": _responses(route, schemas),
        "x-role": route.role,
    }
    if route.role == "public":
        operation["security"] = []
    if route.request is not None:
        body = _json(schemas[route.request])
        operation["requestBody"] = {"content": body, "required": _is_required(route.request)}
    elif route.name in _ARMS:
        arms = {"type": "object", "properties": _ARMS[route.name], "additionalProperties": False}
        content = _json(arms) | {"application/x-ndjson": {"schema": _LINES}}
        operation["requestBody"] = {"content": content, "required": route.name == "sync_arms"}
    return operation


def _is_required(kind: Any) -> bool:
    """Return whether an empty body, which reads as {}, is refused."""
    return any(field.required for field in msgspec.structs.fields(kind))


def _responses(route: Route, schemas: dict[Any, Any]) -> dict[str, Any]:
    schema = schemas.get(route.answer, {})
    if route.name == "sync_arms":  # with `preview`
        schema = {"anyOf": [schema, schemas[m.SyncPreview]]}
    done = {"description": "Done.", "content": _json(schema)}
    if route.name == "metrics":
        done["content"] = {"text/plain": {"schema": {"type": "string"}}}
    if route.name in _LINKS:
        done["links"] = _LINKS[route.name]
    refused = {"description": "The request was refused; `code` has the reason."}
    responses = {"200": done, "default": refused | {"content": _json(schemas[m.Failure])}}
    if route.name in _ALSO:
        responses[_ALSO[route.name]] = done
    if route.name == "ask":
        either = {"anyOf": [schemas[m.StoppedFailure], schemas[m.Failure]]}
        responses["409"] = refused | {"content": _json(either)}
    return responses


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
