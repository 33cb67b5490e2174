"""What both clients are: where a request is sent, when it is sent again, what its answer means.

Neither sockets nor waiting are here: a client is told what to send where, and how long to wait.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from typing import Any, Generic, NamedTuple, NoReturn, Self, TypeVar
from urllib.parse import urlsplit

from manyarms.client.answers import Answer, error_of
from manyarms.client.calls import Call, Calls, Plan
from manyarms.client.fallback import Fallback
from manyarms.core.checks import check_number
from manyarms.errors import ManyarmsError, ParameterError, ServiceError

T = TypeVar("T")
_AGAIN = frozenset({429, 502, 503, 504})  # answers after which a request is sent again
_FOR_GOOD = frozenset({"replay", "policy"})  # reasons of a 503 that do not pass


class Address(NamedTuple):
    """Where a process of a service answers."""

    url: str  # as it was given
    scheme: str
    host: str  # with the port
    prefix: str  # of all paths


class Addresses:
    """The addresses of a service, of which one process leads.

    Attributes
    ----------
    all
        In the order in which they are tried.
    at
        The place of the one that answered last.
    """

    def __init__(self, url: str | Iterable[str]) -> None:
        several = isinstance(url, Iterable) and not isinstance(url, str)
        given = list(url) if several else [url]
        self.all = [_address(one) for one in given]
        self.at = 0
        if not given:
            raise _no_address(url)


def _address(url: Any) -> Address:
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        _ = parts.port  # which raises where it is no number
    except ValueError:
        raise _no_address(url) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _no_address(url)
    return Address(url, parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"))


def _no_address(url: Any) -> ParameterError:
    return ParameterError(
        f"`url` must be the address of a service, such as 'http://127.0.0.1:8765', or a list of "
        f"addresses, got {url!r}."
    )


class Lost(NamedTuple):
    """No answer came."""

    why: str
    sent: bool  # whether the request may have arrived
    stale: bool = False  # whether an idle connection had been closed, most likely


class Run(Generic[T]):
    """A plan that is carried out: iterating says what to send, or how many seconds to wait.

    Attributes
    ----------
    at
        The place of the address to which the request is to be sent.
    came
        What came of the request that was said last; whoever iterates sets it.
    result
        What the plan returned, at the end.
    """

    at: int
    came: Answer | Lost
    result: T

    def __init__(self, plan: Plan[T], addresses: Addresses, patience: float) -> None:
        self._plan, self._addresses, self._patience = plan, addresses, patience

    def __iter__(self) -> Iterator[Call | float]:
        answer: Answer | None = None
        while True:
            try:
                call = next(self._plan) if answer is None else self._plan.send(answer)
            except StopIteration as done:
                self.result = done.value
                return
            except ManyarmsError:
                raise
            except (LookupError, TypeError):
                if answer is None:
                    raise
                raise ServiceError(
                    "What answers at this address is not a manyarms service, or a much newer one.",
                    status=answer.status,
                    code="foreign",
                ) from None
            try:
                answer = yield from self._answered(call)
            except ManyarmsError as error:
                self._plan.throw(error)  # which may say more
                raise

    def _answered(self, call: Call) -> Generator[Call | float, None, Answer]:
        """Let a request be sent until it is answered, or raise.

        Addresses are tried in turn; after each round there is a pause.
        """
        end, count, tried = time.monotonic() + self._patience, 0, 0
        addresses, first = self._addresses, self._addresses.at
        failures: dict[int, Answer | Lost] = {}  # the last one of each address
        doubt = False  # whether it may have been done
        while True:
            self.at = (first + tried) % len(addresses.all)
            yield call
            came, count = self.came, count + 1
            pause: float = min(2.0, 0.05 * 2 ** min(count, 10)) * random.uniform(0.5, 1.0)
            if isinstance(came, Lost):
                code, unsure = "", came.sent
                elsewhere = not came.stale or count > 1
                pause = 0.0 if count == 1 else pause
            elif came.status not in _AGAIN:
                addresses.at = self.at
                if came.status < 300:
                    return replace(came, repeated=doubt)
                raise error_of(came)
            else:
                code, elsewhere = came.body.get("code", ""), came.status != 429
                unsure = code != "unavailable" and elsewhere
                pause = max(pause, _seconds(came.body.get("retry_after")))
            if elsewhere:
                tried += 1
                pause = 0.0 if tried % len(addresses.all) else pause
            failures[self.at] = came
            doubt = doubt or unsure
            for_good = code in _FOR_GOOD or (call.once and unsure)
            if for_good or time.monotonic() + pause > end:
                raise self._failed(failures, count, doubt and call.method != "GET")
            yield pause

    def _failed(self, failures: dict[int, Answer | Lost], count: int, doubt: bool) -> ServiceError:
        times = f" after {count} attempts" if count > 1 else ""
        said = [f"The service did not answer{times}."]
        for at, came in failures.items():
            why = came.why if isinstance(came, Lost) else _message(came)
            said.append(f"At {self._addresses.all[at].url}: {why.rstrip('.')}.")
        if doubt:
            said.append("It may have been done or not.")
        last = failures[self.at]
        if isinstance(last, Answer):
            status, code = last.status, str(last.body.get("code", ""))
        else:
            status, code = 0, "unreachable"
            said.append("Is it running, and is its address right?")
        return ServiceError(" ".join(said), status=status, code=code)


def _message(answer: Answer) -> str:
    return str(answer.body.get("message") or f"HTTP {answer.status}")


def _seconds(text: Any) -> float:
    try:
        return min(60.0, max(0.0, float(text)))
    except (TypeError, ValueError):
        return 0.0


class Client:
    """One experiment of a service; how requests are sent is up to its subclasses."""

    def __init__(
        self,
        url: str | Iterable[str],
        experiment: str,
        *,
        token: str | None = None,
        timeout: float = 30.0,
        patience: float = 60.0,
    ) -> None:
        check_number("timeout", timeout, above=0)
        check_number("patience", patience, at_least=0)
        self.experiment = experiment
        self._addresses = Addresses(url)
        self._calls = Calls(experiment)
        self._given: dict[str, Any] = {
            "token": token,
            "timeout": timeout,
            "patience": patience,
        }
        token = token or os.environ.get("MANYARMS_TOKEN")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout, self._patience = timeout, patience
        self._fallback = Fallback()
        self._open()

    def _attempt_within(self, end: float | None) -> float:
        """Return the seconds that an attempt may take if all must be done at a time."""
        if end is None:
            return self._timeout
        return min(self._timeout, max(0.001, end - time.monotonic()))

    def _open(self) -> None:
        """Make what connections need."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        """The address that answered last; the first one if none has answered yet."""
        return self._addresses.all[self._addresses.at].url

    def _beside(self, experiment: str) -> Self:
        """Return another experiment of the same service."""
        urls = [address.url for address in self._addresses.all]
        return type(self)(urls, experiment, **self._given)

    def save(self, path: str | os.PathLike[str]) -> NoReturn:
        """Raise `ServiceError`: the service keeps everything in its database."""
        raise ServiceError(
            "`save` is not served: the service keeps everything in its database. Back it up, or "
            "read the events: GET /v1/experiments/NAME/events.",
            code="not_served",
        )

    def __repr__(self) -> str:
        where = ", ".join(address.url for address in self._addresses.all)
        return f"<{type(self).__name__} {self.experiment!r} at {where}>"
