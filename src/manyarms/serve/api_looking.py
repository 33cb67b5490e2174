"""Functions of routes that only look, and of those that are about tokens and the node."""

from __future__ import annotations

import json

from manyarms.protocol.registry import policy_names
from manyarms.serve import messages as m
from manyarms.serve.access import add_token as keep_token
from manyarms.serve.access import new_token
from manyarms.serve.errors import refuse
from manyarms.serve.importing import unknown_arm
from manyarms.serve.openapi import description
from manyarms.serve.requests import Handler, Request, Response, answered
from manyarms.serve.service import Service

__all__ = ["LOOKING"]

_SORTS = ("low", "estimate", "pulls", "told", "arm")


# Views


def _chosen(request: Request, name: str, default: int, most: int) -> int:
    text = request.query.get(name, str(default))
    if not text.isdecimal() or len(text) > 18 or not 1 <= int(text) <= most:
        text = text[:100]
        raise refuse(422, "invalid", f"`{name}` must be an integer from 1 to {most}, got {text!r}.")
    return int(text)


async def arms(service: Service, request: Request) -> Response:
    """Return a page of arms."""
    sort = request.query.get("sort", "low")
    if sort not in _SORTS:
        raise refuse(422, "invalid", f"`sort` must be one of {', '.join(_SORTS)}, got {sort!r}.")
    cursor, search = request.query.get("cursor", ""), request.query.get("search", "")
    return answered(
        await service.view(
            "arms",
            request.experiment,
            search=search[:1000],
            sort=sort,
            cursor=cursor,
            limit=_chosen(request, "limit", 50, 1000),
        )
    )


async def arm(service: Service, request: Request) -> Response:
    """Return one arm."""
    found = await service.view("arm", request.experiment, key=request.arguments["key"])
    if found is None:
        raise unknown_arm(request.arguments["key"])
    return answered(found)


async def leaders(service: Service, request: Request) -> Response:
    """Return the best arms."""
    k = _chosen(request, "k", 20, 1000)
    return answered(await service.view("leaders", request.experiment, k=k))


async def verdict(service: Service, request: Request) -> Response:
    """Return whether the recommended arm is good enough."""
    query, asked = request.query, {}
    for name in query.keys() & {"epsilon", "quantile", "confidence"}:
        try:
            asked[name] = float(query[name])
        except ValueError:
            text = query[name][:100]
            raise refuse(422, "invalid", f"`{name}` must be a number, got {text!r}.") from None
    return answered(await service.view("verdict", request.experiment, **asked))


async def in_flight(service: Service, request: Request) -> Response:
    """Return what is waited for, the oldest pulls among it."""
    limit = _chosen(request, "limit", 20, m.MOST_PULLS)
    return answered(await service.view("in_flight", request.experiment, limit=limit))


def _view(what: str) -> Handler:
    async def handler(service: Service, request: Request) -> Response:
        return answered(await service.view(what, request.experiment))

    return handler


async def health(service: Service, request: Request) -> Response:
    """Return how it is doing."""
    return answered(await service.health(request.experiment))


# Tokens, and the node itself


async def list_tokens(service: Service, request: Request) -> Response:
    """Return all tokens, without the tokens."""
    rows = await service.node.read(
        lambda database: database.run(
            "SELECT name, role, experiment, origins, rate, expires FROM tokens ORDER BY name"
        )
    )
    return answered(
        m.TokenList([m.Token(n, r, x, json.loads(o), q, e) for n, r, x, o, q, e in rows])
    )


async def add_token(service: Service, request: Request) -> Response:
    """Make a token."""
    wanted: m.NewToken = await request.read(m.NewToken)
    token = new_token()
    if not await service.node.write(lambda database: keep_token(database, wanted, token)):
        raise refuse(409, "exists", f"There is a token {wanted.name!r}. Choose another name.")
    service.access.forget()
    await service.note(request.caller, wanted.experiment, f"add token {wanted.name}")
    return answered(m.AddedToken(wanted.name, token), 201)


async def drop_token(service: Service, request: Request) -> Response:
    """Revoke a token."""
    name = request.arguments["token"]
    rows = await service.node.write(
        lambda database: database.run(
            "DELETE FROM tokens WHERE name = :name RETURNING name", name=name
        )
    )
    service.access.forget()
    if not rows:
        raise refuse(404, "unknown_token", f"There is no token {name!r}.")
    await service.note(request.caller, None, f"drop token {name}")
    return answered(m.Done(name, "stopped"))


async def session(service: Service, request: Request) -> Response:
    """Say who is asking."""
    caller = request.caller
    assert caller is not None
    return answered(m.Session(caller.name, caller.role, caller.experiment))  # type: ignore[arg-type]


async def healthz(service: Service, request: Request) -> Response:
    """Say that the process runs."""
    return answered(m.Ready(ready=True))


async def readyz(service: Service, request: Request) -> Response:
    """Say whether requests are answered."""
    why = service.not_ready()
    return answered(m.Ready(not why, why), 503 if why else 200)


async def metrics(service: Service, request: Request) -> Response:
    """Return numbers for Prometheus."""
    return Response(service.metrics.text(), kind="text/plain; version=0.0.4; charset=utf-8")


async def openapi(service: Service, request: Request) -> Response:
    """Return the description of all routes."""
    return Response(description(tuple(policy_names())))


LOOKING: dict[str, Handler] = {
    "arms": arms,
    "arm": arm,
    "leaders": leaders,
    "verdict": verdict,
    "minutes": _view("minutes"),
    "in_flight": in_flight,
    "exploring": _view("exploring"),
    "health": health,
    "list_tokens": list_tokens,
    "add_token": add_token,
    "drop_token": drop_token,
    "session": session,
    "healthz": healthz,
    "readyz": readyz,
    "metrics": metrics,
    "openapi": openapi,
}
