"""What both clients are: how a request is sent again, and what its answer means.

Neither sockets nor waiting are here: a client is told what to send, and how long to wait.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar
from urllib.parse import urlsplit

from manyarms.core.checks import check_number
from manyarms.errors import ManyarmsError, ParameterError, ServiceError
from manyarms.remote.calls import Answer, Call, Calls, Plan, error_of

T = TypeVar("T")
_AGAIN = frozenset({429, 502, 503, 504})  # answers after which a request is sent again
_FOR_GOOD = frozenset({"replay", "policy"})  # reasons of a 503 that do not pass
_OBSERVED = (
    "a service counts the rewards of pulls that it gave out, each once, and an observed reward "
    "belongs to none of them. Play such a game with a handle that is recorded in a database, "
    "ma.recorded('sqlite:///shop.db', live), or create a new experiment, which tries its arms anew."
)
_NOT_SERVED = {
    "restore": "a service retires arms for good. Add the arm under another name with `add_arms`; "
    "it is then tried anew.",
    "save": "the service keeps everything in its database. Make a backup of that, or export the "
    "events: GET /v1/experiments/NAME/export.",
}


class Lost(NamedTuple):
    """No answer came: why, and whether the request may have arrived."""

    why: str
    sent: bool


class Run(Generic[T]):
    """A plan that is carried out: iterating says what to send, or how many seconds to wait.

    Attributes
    ----------
    came
        What came of the request that was said last; whoever iterates sets it.
    result
        What the plan returned, at the end.
    """

    came: Answer | Lost
    result: T

    def __init__(self, plan: Plan[T], patience: float) -> None:
        self._plan, self._patience = plan, patience

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
            answer = yield from self._answered(call)

    def _answered(self, call: Call) -> Generator[Call | float, None, Answer]:
        """Let a request be sent until it is answered, or raise."""
        end, count = time.monotonic() + self._patience, 0
        while True:
            yield call
            came, count = self.came, count + 1
            pause: float = min(2.0, 0.05 * 2 ** min(count, 10)) * random.uniform(0.5, 1.0)
            if isinstance(came, Lost):
                code, unsure = "", came.sent
                pause = 0.0 if count == 1 else pause  # an idle connection was closed, most likely
            elif came.status < 300:
                return replace(came, repeated=count > 1)
            elif came.status not in _AGAIN:
                raise error_of(came)
            else:
                code = came.body.get("code", "")
                unsure = code != "unavailable" and came.status != 429
                pause = max(pause, _seconds(came.body.get("retry_after")))
            for_good = code in _FOR_GOOD or (call.once and unsure)
            if for_good or time.monotonic() + pause > end:
                raise _failed(call, came, count)
            yield pause


def _failed(call: Call, came: Answer | Lost, count: int) -> ServiceError:
    times = f" after {count} attempts" if count > 1 else ""
    unsure = "" if call.method == "GET" else " It may have been done or not."
    if isinstance(came, Answer):
        why, fix = str(came.body.get("message") or f"HTTP {came.status}"), ""
        status, code = came.status, str(came.body.get("code", ""))
    else:
        why, fix = came.why, " Is it running, and is its address right?"
        status, code = 0, "unreachable"
    said = f"The service did not answer{times}: {why.rstrip('.')}.{unsure}{fix}"
    return ServiceError(said, status=status, code=code)


def _seconds(text: Any) -> float:
    try:
        return min(60.0, max(0.0, float(text)))
    except (TypeError, ValueError):
        return 0.0


class Client:
    """One experiment of a service; how requests are sent is up to its subclasses."""

    def __init__(
        self,
        url: str,
        experiment: str,
        *,
        token: str | None = None,
        worker: str | None = None,
        timeout: float = 30.0,
        patience: float = 60.0,
    ) -> None:
        check_number("timeout", timeout, above=0)
        check_number("patience", patience, at_least=0)
        parts = urlsplit(url if isinstance(url, str) else "")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ParameterError(
                f"`url` must be the address of a service, such as 'http://127.0.0.1:8765', got "
                f"{url!r}."
            )
        self.url, self.experiment = url, experiment
        self._calls = Calls(parts.path.rstrip("/"), experiment, worker)
        token = token or os.environ.get("MANYARMS_TOKEN")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout, self._patience = timeout, patience
        self._open(parts.scheme, parts.netloc.rpartition("@")[2])

    def _open(self, scheme: str, host: str) -> None:
        """Make what connections need."""
        raise NotImplementedError

    def observe(self, arm: str | int, rewards: float | Iterable[float]) -> NoReturn:
        """Raise `ServiceError`: only a handle can observe rewards that no pull earned."""
        raise _not_served("observe")

    def season(self, **asked: Any) -> NoReturn:
        """Raise `ServiceError`: only a handle can begin a game with what another one knows."""
        raise _not_served("season")

    def restore(self, arm: str | int) -> NoReturn:
        """Raise `ServiceError`: a service retires arms for good."""
        raise _not_served("restore")

    def save(self, path: str | os.PathLike[str]) -> NoReturn:
        """Raise `ServiceError`: the service keeps everything in its database."""
        raise _not_served("save")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.experiment!r} at {self.url}>"


def _not_served(method: str) -> ServiceError:
    why = _NOT_SERVED.get(method, _OBSERVED)
    return ServiceError(f"`{method}` is not served: {why}", code="not_served")
