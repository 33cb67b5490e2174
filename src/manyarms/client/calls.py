"""The requests of the clients' methods."""

from __future__ import annotations

import json
import numbers
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict, TypeVar
from urllib.parse import quote, urlencode

from manyarms.client.answers import Answer, read_arm
from manyarms.errors import ParameterError
from manyarms.inference.estimates import ArmEstimate
from manyarms.live.calls import nothing_to_recommend
from manyarms.protocol.policy import Policy, layers
from manyarms.protocol.registry import name_of

T = TypeVar("T")
_ALL = "/v1/experiments"
PAGE = 1000  # arms in a page


@dataclass(frozen=True)
class Call:
    """One request, with its default limits."""

    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    once: bool = False  # not sent again if it may have arrived
    reads: bool = False  # changes nothing
    timeout: float = 5.0  # seconds
    retry_for: float = 10.0  # seconds


Plan = Generator[Call, Answer, T]  # yields requests, receives their answers, returns the result


class Limits(TypedDict, total=False):
    """Parameters of every method of a client (seconds; default: the client's setting)."""

    timeout: float | None
    retry_for: float | None


class Calls:
    """Make the requests of one experiment."""

    def __init__(self, experiment: str) -> None:
        if not isinstance(experiment, str) or not experiment:
            raise ParameterError(
                f"`experiment` must be the name of an experiment, got {experiment!r}."
            )
        self._path = f"{_ALL}/{quote(experiment, safe='')}"

    def get(self, path: str, **query: Any) -> Call:
        """Return a request that changes nothing."""
        return Call("GET", f"{self._path}{path}{_query(query)}", reads=True)

    def send(self, method: str, path: str, content: Any, **how: Any) -> Call:
        """Return a request with a JSON body."""
        body = json.dumps(content, default=_plain).encode()
        headers = {"Content-Type": "application/json"}
        return Call(method, self._path + path, body, headers, **how)

    def send_names(self, method: str, names: Iterable[str]) -> Call:
        """Return a request with names of arms, with a long timeout: 10^6 names take seconds."""
        body = "".join(f"{json.dumps(name)}\n" for name in names).encode()
        headers = {"Content-Type": "application/x-ndjson"}
        return Call(method, f"{self._path}/arms", body, headers, timeout=60.0)

    def arms(self) -> Plan[list[ArmEstimate]]:
        """Read the estimates of all arms with pulls or observed rewards."""
        query = {"sort": "pulls", "limit": PAGE}
        seen = yield from _pages(f"{self._path}/arms", "arms", query)
        return [read_arm(arm) for arm in seen]

    def leaders(self, k: int, **how: Any) -> Plan[list[ArmEstimate]]:
        """Read the estimates of the `k` best arms."""
        seen = (yield replace(self.get("/leaders", k=k), **how)).body["arms"]
        if not seen:
            raise nothing_to_recommend()
        return [read_arm(arm) for arm in seen]


def experiments() -> Plan[list[dict[str, Any]]]:
    """Read all pages of experiments."""
    return (yield from _pages(_ALL, "experiments", {}))


def _pages(path: str, what: str, query: dict[str, Any]) -> Plan[list[dict[str, Any]]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (yield Call("GET", f"{path}{_query(query | {'cursor': cursor})}", reads=True)).body
        found += page[what]
        cursor = page["cursor"]
    return found


def _plain(value: Any) -> Any:
    """Convert a NumPy number; return other objects as text, which the service refuses."""
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if isinstance(value, numbers.Real) else repr(value)


def _query(given: dict[str, Any]) -> str:
    return f"?{urlencode(given)}" if given else ""


def spec_of(policy: Policy | str, n_arms: int | None, **others: Any) -> dict[str, Any]:
    """Return an experiment's settings as JSON."""
    if isinstance(policy, Policy) and not all(name_of(type(one)) for one in layers(policy)):
        raise ParameterError(
            f"`policy` must be one that the service knows by name, got {policy}. Register it "
            f"in the service, and pass its name."
        )
    return {"policy": str(policy), "n_arms": n_arms} | others
