"""The routes of the API; those of the pages are in `dashboard.pages`."""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from manyarms.protocol.registry import policy_names
from manyarms.serve import api
from manyarms.serve import messages as m
from manyarms.serve import queries as q
from manyarms.serve.asks import abandon, ask, tell
from manyarms.serve.errors import as_refusals, refuse, refuse_method
from manyarms.serve.importing import add_arms, sync_arms
from manyarms.serve.openapi import described
from manyarms.serve.requests import Request, Response
from manyarms.serve.service import Service
from manyarms.store import LONGEST_EXPERIMENT_NAME, check_name

Handler = Callable[[Service, Request], Awaitable[Response]]
_LONG = 300  # characters: paths of this length or more are not cached


class Route(NamedTuple):
    """A method and a path, and the handler of such requests."""

    name: str
    method: str
    path: str
    role: str  # required; "public": no token is needed
    handler: Handler
    about: str = ""
    request: Any = None  # the type of the body; None if there is none, or a stream
    answer: Any = None
    query: Any = q.NoQuery


Found = tuple[Route, dict[str, str]]


class Finder:
    """Finds the route of a request, and decodes the names in its path."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = [(_pattern(route.path), route) for route in routes]
        self.remembered = functools.lru_cache(maxsize=1024)(self._find)

    def __call__(self, method: str, path: str) -> Found:
        """Return the route and the path parameters, or refuse."""
        return (self.remembered if len(path) < _LONG else self._find)(method, path)

    def _find(self, method: str, path: str) -> Found:
        if "%00" in path:
            raise refuse(400, "malformed", "A path must not contain NUL.")
        found = {}
        for pattern, route in self._routes:
            if (match := pattern.fullmatch(path)) is not None:
                found[route.method] = route, match.groupdict()
        if not found:
            raise refuse(404, "no_route", f"There is no path {path[:200]}. See /openapi.json.")
        chosen = found.get("GET" if method == "HEAD" else method)
        if chosen is None:
            allowed = sorted(found | ({"HEAD": None} if "GET" in found else {}))
            raise refuse_method(method, path, ", ".join(allowed))
        try:
            named = {what: _decoded(text) for what, text in chosen[1].items()}
        except UnicodeDecodeError as error:
            raise refuse(400, "malformed", "A path must be UTF-8, percent-encoded.") from error
        with as_refusals():
            check_name(named.get("experiment", "-"), LONGEST_EXPERIMENT_NAME, "experiment")
        return chosen[0], named


def _decoded(text: str) -> str:
    return unquote_to_bytes(text.encode("latin-1")).decode()


def _pattern(path: str) -> re.Pattern[str]:
    """Return a pattern for the paths of a route; only names of arms may contain slashes."""
    pattern = re.escape(path).replace(r"\{experiment\}", "(?P<experiment>[^/]*)")
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.*)", pattern), re.DOTALL)


async def openapi(service: Service, request: Request) -> Response:
    """Return the OpenAPI description of all routes."""
    return Response(_described())


@functools.cache
def _described() -> bytes:
    return described(ROUTES, policy_names())


_X = "/v1/experiments/{experiment}"

ROUTES: tuple[Route, ...] = (
    Route("list_all", "GET", "/v1/experiments", "viewer", api.list_all,
          "A page of experiments.", answer=m.Listing, query=q.ListQuery),
    Route("put", "PUT", _X, "admin", api.put,
          "Create an experiment.", m.Spec, m.ExperimentSummary),
    Route("change", "PATCH", _X, "admin", api.change,
          "Change settings: `epsilon`, `target`.", m.Changes, m.ExperimentSummary),
    Route("get", "GET", _X, "viewer", api.view("summary"),
          "A summary of an experiment.", answer=m.ExperimentSummary),
    Route("delete", "DELETE", _X, "admin", api.delete,
          "Delete a stopped experiment.", answer=m.Done),
    Route("ask", "POST", f"{_X}/asks", "client", ask, "Ask for pulls.", m.Ask, m.Asked),
    Route("tell", "POST", f"{_X}/tells", "client", tell, "Tell rewards.", m.Tells, m.ToldMany),
    Route("abandon", "POST", f"{_X}/abandons", "client", abandon,
          "Abandon pulls.", m.Abandons, m.ToldMany),
    Route("add_arms", "POST", f"{_X}/arms", "admin", add_arms,
          'Add arms: a stream of NDJSON with one name per line, {"names": [...]}, or {"count": n}. '
          "Existing names are skipped.", answer=m.AddedArms),
    Route("sync_arms", "PUT", f"{_X}/arms", "admin", sync_arms,
          "Add, restore and retire arms so that exactly these are available: a stream of NDJSON "
          'with one name per line, or {"names": [...]}. With `preview=true`, nothing '
          "changes, and the answer has three counts.", answer=m.SyncedArms, query=q.SyncQuery),
    Route("retire", "POST", f"{_X}/retirements", "admin", api.retire,
          "Retire an arm.", m.ArmName, m.ArmChange),
    Route("restore", "POST", f"{_X}/restores", "admin", api.restore,
          "Restore a retired arm.", m.ArmName, m.ArmChange),
    Route("observe", "POST", f"{_X}/observations", "admin", api.observe,
          "Import rewards from elsewhere: those of an arm, or numbers and sums of several arms.",
          m.Observe, m.Observed),
    Route("season", "POST", f"{_X}/season", "admin", api.season,
          "Continue with more pulls or another policy; all rewards are kept.",
          m.NewSeason, m.ExperimentSummary),
    Route("pause", "POST", f"{_X}/pause", "admin", api.set_state("pause", "paused"),
          "Refuse asks until the experiment is resumed.", answer=m.Done),
    Route("resume", "POST", f"{_X}/resume", "admin", api.set_state("resume", "running"),
          "Answer asks again.", answer=m.Done),
    Route("stop", "POST", f"{_X}/stop", "admin", api.set_state("stop", "stopped"),
          "Refuse asks from now on.", answer=m.Done),
    Route("events", "GET", f"{_X}/events", "viewer", api.events,
          "A page of events.", answer=m.EventPage, query=q.EventsQuery),
    Route("arms", "GET", f"{_X}/arms", "viewer", api.view("arms"),
          "A page of arms.", answer=m.ArmPage, query=q.ArmsQuery),
    Route("arm", "GET", f"{_X}/arms/{{name}}", "viewer", api.arm, "One arm.", answer=m.ArmView),
    Route("leaders", "GET", f"{_X}/leaders", "viewer", api.view("leaders"),
          "The best arms.", answer=m.Leaders, query=q.LeadersQuery),
    Route("verdict", "POST", f"{_X}/verdict", "viewer", api.verdict,
          "Whether the recommended arm is good enough to stop. Nothing is changed.",
          m.Question, m.VerdictView),
    Route("uplift", "GET", f"{_X}/uplift", "viewer", api.view("uplift"),
          "How much better the recommended arm is than the control.",
          answer=m.UpliftView, query=q.UpliftQuery),
    Route("course", "GET", f"{_X}/course", "viewer", api.view("course"),
          "Pulls and rewards over time.", answer=m.Course),
    Route("pending", "GET", f"{_X}/pending", "viewer", api.view("pending"),
          "Pending pulls, and how long rewards took.", answer=m.PendingView, query=q.PendingQuery),
    Route("healthz", "GET", "/healthz", "public", api.healthz,
          "Whether the process runs.", answer=m.Ready, query=q.AnyQuery),
    Route("readyz", "GET", "/readyz", "public", api.readyz,
          "Whether this process leads and answers requests.", answer=m.Ready, query=q.AnyQuery),
    Route("metrics", "GET", "/metrics", "public", api.metrics,
          "Metrics for Prometheus.", query=q.AnyQuery),
    Route("openapi", "GET", "/openapi.json", "public", openapi,
          "This description of the API.", query=q.AnyQuery),
)  # fmt: skip
