"""The common part of both clients: addresses, retries and errors.

Each client sends the attempts and waits in its own way.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import random
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import Any, ClassVar, Concatenate, NamedTuple, ParamSpec, TypeVar
from urllib.parse import urlsplit

from manyarms.client.answers import Answer, error_of, not_a_service
from manyarms.client.calls import Call, Calls, Limits, Plan
from manyarms.client.fallback import Fallback
from manyarms.core.checks import check_number
from manyarms.errors import ManyarmsError, ParameterError, ServiceError, UnknownNameError

P = ParamSpec("P")
T = TypeVar("T")
_NAMES = ("timeout", "retry_for")
_RETRIED = frozenset({429, 502, 503, 504})  # statuses after which a request is retried


class Address(NamedTuple):
    """The address of a process of the service."""

    url: str  # as passed by the user
    scheme: str
    host: str  # with the port
    prefix: str  # of all paths


def _address(url: Any) -> Address:
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        _ = parts.port  # raises if it is not a number
    except ValueError:
        raise _invalid_address(url) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _invalid_address(url)
    return Address(url, parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"))


def _invalid_address(url: Any) -> ParameterError:
    return ParameterError(
        f"`url` must be the address of a service, such as 'http://127.0.0.1:8765', or a list of "
        f"addresses, got {url!r}."
    )


class Attempt(NamedTuple):
    """One attempt to send a request."""

    call: Call
    to: Address
    timeout: float  # seconds


class NoAnswer(NamedTuple):
    """The outcome of an attempt that got no answer."""

    why: str
    sent: bool  # the request may have arrived
    stale: bool = False  # probably because the service had closed an idle connection


# yields attempts, whose outcome it receives, and pauses (seconds)
Steps = Generator[Attempt | float, Any, T]


class Client:
    """One experiment of a service: the base class of both clients.

    Subclasses carry out the steps of a plan in `_run`, and open connections in `_open`.
    """

    _clock: ClassVar[Any] = staticmethod(time.monotonic)
    _sleep: ClassVar[Any]

    def __init__(
        self,
        url: str | Iterable[str],
        experiment: str,
        *,
        token: str | None = None,
        timeout: float | None = None,
        retry_for: float | None = None,
    ) -> None:
        self.experiment = experiment
        given = list(url) if isinstance(url, Iterable) and not isinstance(url, str) else [url]
        if not given:
            raise _invalid_address(url)
        self._addresses = [_address(one) for one in given]
        self._at = 0  # position of the address that the next request is sent to first
        self._calls = Calls(experiment)
        self._limits = _checked({"timeout": timeout, "retry_for": retry_for})
        self._fallback = Fallback(self._clock)
        self._token = token or os.environ.get("MANYARMS_TOKEN")
        self._open({"Authorization": f"Bearer {self._token}"} if self._token else {})

    def _open(self, headers: dict[str, str]) -> None:
        raise NotImplementedError

    def _run(self, plan: Plan[Any], limits: Limits) -> Any:
        raise NotImplementedError

    @property
    def url(self) -> str:
        """The address that the next request is sent to first: the one that answered last."""
        return self._addresses[self._at].url

    def __repr__(self) -> str:
        where = ", ".join(address.url for address in self._addresses)
        return f"<{type(self).__name__} {self.experiment!r} at {where}>"

    def _steps(self, plan: Plan[T], given: Limits) -> Steps[T]:
        """Yield the steps of a plan, and return its result."""
        limits = self._limits | _checked(given)
        outcome: Answer | ManyarmsError | None = None
        while True:
            try:
                if isinstance(outcome, ManyarmsError):
                    call = plan.throw(outcome)  # the plan may add to the message, or continue
                else:
                    call = next(plan) if outcome is None else plan.send(outcome)
            except StopIteration as done:
                result: T = done.value
                return result
            except ManyarmsError:
                raise
            except (LookupError, TypeError):
                if outcome is None:
                    raise
                raise not_a_service() from None
            try:
                outcome = yield from self._answered(replace(call, **limits))
            except ManyarmsError as error:
                outcome = error

    def _answered(self, call: Call) -> Steps[Answer]:
        """Attempt a request until it is answered, or raise an error.

        Addresses are tried in turn, with a pause after each round.
        """
        addresses, at = self._addresses, self._at
        count, turns, end = 0, 0, math.inf
        failures: dict[str, Answer | NoAnswer] = {}  # the last one of each address
        doubt = False  # whether the request may have been carried out
        while True:
            to = addresses[at]
            outcome: Answer | NoAnswer = yield Attempt(call, to, call.timeout)
            if isinstance(outcome, Answer) and outcome.status not in _RETRIED:
                self._at = at
                if outcome.status < 300:
                    return replace(outcome, repeated=doubt)
                raise error_of(outcome)
            count += 1
            failures[to.url] = outcome
            end = min(end, self._clock() + call.retry_for)
            pause: float = min(2.0, 0.05 * 2 ** min(count, 10)) * random.uniform(0.5, 1.0)
            if isinstance(outcome, NoAnswer):
                unsure, elsewhere, final = outcome.sent, not outcome.stale or count > 1, False
                pause = 0.0 if count == 1 else pause
            else:
                code, elsewhere = outcome.body.get("code", ""), outcome.status != 429
                unsure, final = code != "unavailable" and elsewhere, code == "replay"
                pause = max(pause, _seconds(outcome.body.get("retry_after")))
            doubt = doubt or unsure
            if elsewhere:
                self._at = at = (at + 1) % len(addresses)
                turns += 1
                pause = 0.0 if turns % len(addresses) else pause
            elif isinstance(outcome, NoAnswer) and not call.once:
                continue  # no retry yet: the service had closed an idle connection
            if final or (call.once and unsure) or self._clock() + pause >= end:
                raise _failed(outcome, failures, count, doubt and not call.reads)
            yield pause


def carried_out(
    plan: Callable[Concatenate[Client, P], Plan[T]],
) -> Callable[Concatenate[Client, P], T]:
    """Turn a plan into a method that carries it out, within `timeout` and `retry_for`.

    The first parameter of a plan is a `Client`, so that both clients can use it.
    """
    known = inspect.signature(plan).parameters

    def method(self: Client, /, *values: P.args, **given: P.kwargs) -> T:
        limits: Any = {name: given.pop(name) for name in _NAMES if name in given}
        for name in given.keys() - known.keys() if "limits" in known else ():
            names = [*[*known][1:-1], *_NAMES]
            raise UnknownNameError(f"parameter of `{plan.__name__.strip('_')}`:", name, names)
        result: T = self._run(plan(self, *values, **given), limits)
        return result

    return functools.update_wrapper(method, plan)


def _failed(
    last: Answer | NoAnswer, failures: dict[str, Answer | NoAnswer], count: int, doubt: bool
) -> ServiceError:
    times = f" after {count} attempts" if count > 1 else ""
    said = [f"The service did not answer{times}."]
    for url, outcome in failures.items():
        why = outcome.why if isinstance(outcome, NoAnswer) else _message(outcome)
        said.append(f"At {url}: {why.rstrip('.')}.")
    if doubt:
        said.append("The request may or may not have been carried out.")
    if isinstance(last, Answer):
        status, code = last.status, str(last.body.get("code", ""))
    else:
        status, code = 0, "unreachable"
        said.append("Check that the service is running and that the address is right.")
    return ServiceError(" ".join(said), status=status, code=code)


def _checked(limits: Limits) -> dict[str, Any]:
    """Return the limits that are not None, or raise."""
    known = {name: value for name, value in limits.items() if value is not None}
    if "timeout" in known:
        check_number("timeout", known["timeout"], above=0)
    if "retry_for" in known:
        check_number("retry_for", known["retry_for"], at_least=0)
    return known


def _message(answer: Answer) -> str:
    return str(answer.body.get("message") or f"HTTP {answer.status}")


def _seconds(text: Any) -> float:
    try:
        return min(60.0, max(0.0, float(text)))
    except (TypeError, ValueError):
        return 0.0
