"""Every request there is: its method, its path, who may send it, and what it holds.

`api` has a function for each, by its name, and the page `/openapi.json` is made from the table.
`GET` pages of the dashboard are not in it.
"""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

import msgspec

from manyarms import __version__
from manyarms.serve import messages as m
from manyarms.serve.uplift import UpliftView

ROLES = ("viewer", "client", "admin")  # each may do what those before it may do, and more


class Route(NamedTuple):
    """One request."""

    name: str
    method: str
    path: str
    role: str  # that it needs; "public": no token
    request: Any  # the type of the body; None where there is none, or a stream
    answer: Any
    about: str
    parameters: tuple[str, ...] = ()  # of the query


def may(role: str, needed: str) -> bool:
    """Return whether a role may do what needs another one.

    >>> may("admin", "client"), may("viewer", "client")
    (True, False)
    """
    return needed == "public" or ROLES.index(role) >= ROLES.index(needed)


_X = "/v1/experiments/{experiment}"

ROUTES: tuple[Route, ...] = (
    Route("list_all", "GET", "/v1/experiments", "viewer", None, m.Listing,
          "A page of experiments.", ("cursor",)),
    Route("put", "PUT", _X, "admin", m.Spec, m.ExperimentSummary, "Create an experiment."),
    Route("change", "PATCH", _X, "admin", m.Changes, m.ExperimentSummary,
          "Change settings: `epsilon`, `target`."),
    Route("get", "GET", _X, "viewer", None, m.ExperimentSummary, "An experiment at a glance."),
    Route("delete", "DELETE", _X, "admin", None, m.Done, "Delete a stopped experiment."),
    Route("ask", "POST", f"{_X}/asks", "client", m.Ask, m.Asked, "Ask for pulls."),
    Route("tell", "POST", f"{_X}/tells", "client", m.Tells, m.ToldMany, "Tell rewards."),
    Route("abandon", "POST", f"{_X}/abandons", "client", m.Abandons, m.ToldMany, "Abandon pulls."),
    Route("add_arms", "POST", f"{_X}/arms", "admin", None, m.AddedArms,
          'Add arms: a stream of NDJSON with one name per line, {"keys": [...]}, or {"count": n}. '
          "Names that are there already are skipped."),
    Route("sync_arms", "PUT", f"{_X}/arms", "admin", None, m.SyncedKeys,
          "Add, restore and retire arms so that exactly these are in play: a stream of NDJSON with "
          'one name per line, or {"keys": [...]}.'),
    Route("retire", "DELETE", f"{_X}/arms/{{key}}", "admin", None, m.ComeOrGone,
          "Retire an arm."),
    Route("restore", "POST", f"{_X}/restores", "admin", m.Restore, m.ComeOrGone,
          "Let a retired arm come back."),
    Route("observe", "POST", f"{_X}/observations", "admin", m.Observe, m.Observed,
          "Keep rewards of an arm from before or elsewhere; its next pulls get them."),
    Route("season", "POST", f"{_X}/season", "admin", m.NewSeason, m.ExperimentSummary,
          "Create an experiment that remembers this one."),
    Route("pause", "POST", f"{_X}/pause", "admin", None, m.Done, "Answer no asks for a while."),
    Route("resume", "POST", f"{_X}/resume", "admin", None, m.Done, "Answer asks again."),
    Route("stop", "POST", f"{_X}/stop", "admin", None, m.Done, "Answer no asks any more."),
    Route("events", "GET", f"{_X}/events", "viewer", None, m.EventPage,
          "A page of events.", ("after", "limit")),
    Route("arms", "GET", f"{_X}/arms", "viewer", None, m.ArmPage,
          "A page of arms.", ("search", "sort", "cursor", "limit")),
    Route("arm", "GET", f"{_X}/arms/{{key}}", "viewer", None, m.ArmView, "One arm."),
    Route("leaders", "GET", f"{_X}/leaders", "viewer", None, m.Leaders, "The best arms.", ("k",)),
    Route("verdict", "GET", f"{_X}/verdict", "viewer", None, m.VerdictView,
          "Whether the recommended arm is good enough to stop.",
          ("epsilon", "quantile", "confidence", "target", "margin")),
    Route("uplift", "GET", f"{_X}/uplift", "viewer", None, UpliftView,
          "How much better the recommended arm is than the control.", ("confidence",)),
    Route("minutes", "GET", f"{_X}/minutes", "viewer", None, m.Minutes, "What happened when."),
    Route("in_flight", "GET", f"{_X}/in-flight", "viewer", None, m.InFlightView,
          "What is in flight.", ("limit",)),
    Route("healthz", "GET", "/healthz", "public", None, m.Ready, "Whether the process runs."),
    Route("readyz", "GET", "/readyz", "public", None, m.Ready,
          "Whether it leads, and answers requests."),
    Route("metrics", "GET", "/metrics", "public", None, None, "Numbers for Prometheus."),
    Route("openapi", "GET", "/openapi.json", "public", None, None, "This list."),
)  # fmt: skip


# The page


_STREAMS = {
    "add_arms": ("application/x-ndjson", "application/json"),
    "sync_arms": ("application/x-ndjson", "application/json"),
    "metrics": ("text/plain",),
}


@functools.cache
def description(policies: tuple[str, ...]) -> bytes:
    """Return the page `/openapi.json`."""
    kinds = [kind for route in ROUTES for kind in (route.request, route.answer) if kind is not None]
    kinds += [m.Failure, m.StoppedFailure]
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
