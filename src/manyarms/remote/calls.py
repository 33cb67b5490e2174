"""What both clients send and how they read the answers; neither sockets nor waiting are here."""

from __future__ import annotations

import json
import math
import random
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from manyarms.core.checks import check_choice, check_int, check_number
from manyarms.errors import (
    DuplicateNameError,
    ManyarmsError,
    ParameterError,
    ServiceError,
    StoppedError,
    TurnError,
    UnknownArmError,
)
from manyarms.live.estimates import ArmEstimate, Progress
from manyarms.live.game import Pull, check_reward, pairs_of
from manyarms.live.saving import described_policy
from manyarms.live.verdict import StopVerdict, check_question
from manyarms.protocol.policy import Policy

__all__ = ["MOST_PULLS", "Answer", "Attempts", "Call", "Calls", "base_of", "not_served", "spec_of"]

T = TypeVar("T")
MOST_PULLS = 10_000  # of one request
_PAGE = 1000  # arms of a page
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
_NDJSON = "application/x-ndjson"


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request. `read` gets the answer, and whether the request was sent before."""

    method: str
    path: str
    read: Callable[[Any, bool], T]
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    once: bool = False  # not to be sent again if it may have arrived


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    body: Any

    @classmethod
    def of(cls, status: int, data: bytes, retry_after: str | None) -> Answer:
        """Read a body; one that is not of the service is {}."""
        try:
            body = json.loads(data) if data else {}
        except ValueError:
            body = {}
        body = body if isinstance(body, dict) else {}
        if retry_after:
            body.setdefault("retry_after", retry_after)
        return cls(status, body)


class Attempts:
    """How often one request is sent, and how long to wait in between."""

    def __init__(self, patience: float) -> None:
        self._end = time.monotonic() + patience
        self.count = 0

    def settle(self, call: Call[T], answer: Answer | None, why: str, *, sent: bool) -> T | float:
        """Return what was asked for, or the seconds until it is sent again; or raise.

        Without an answer, `why` says what failed, and `sent` whether the request may have arrived.
        """
        self.count += 1
        if answer is not None and answer.status not in _AGAIN:
            if answer.status < 300:
                return _read(call, answer, self.count > 1)
            raise error_of(answer)
        code = "" if answer is None else answer.body.get("code", "")
        unsure = sent if answer is None else code != "unavailable" and answer.status != 429
        if code in _FOR_GOOD or (call.once and unsure):
            raise self._failed(call, answer, why)
        pause: float = min(2.0, 0.05 * 2 ** min(self.count, 10)) * random.uniform(0.5, 1.0)
        if answer is not None:
            pause = max(pause, _seconds(answer.body.get("retry_after")))
        elif self.count == 1:
            pause = 0.0  # an idle connection was closed, most likely
        if time.monotonic() + pause > self._end:
            raise self._failed(call, answer, why)
        return pause

    def _failed(self, call: Call[Any], answer: Answer | None, why: str) -> ServiceError:
        said = why if answer is None else str(answer.body.get("message") or f"HTTP {answer.status}")
        times = f" after {self.count} attempts" if self.count > 1 else ""
        unsure = "" if call.method == "GET" else " It may have been done or not."
        fix = " Is it running, and is its address right?" if answer is None else ""
        return ServiceError(
            f"The service did not answer{times}: {said.rstrip('.')}.{unsure}{fix}",
            status=0 if answer is None else answer.status,
            code="unreachable" if answer is None else str(answer.body.get("code", "")),
        )


def _read(call: Call[T], answer: Answer, repeated: bool) -> T:
    try:
        return call.read(answer.body, repeated)
    except ManyarmsError:
        raise
    except (LookupError, TypeError):
        raise ServiceError(
            "What answers at this address is not a manyarms service, or a much newer one.",
            status=answer.status,
            code="foreign",
        ) from None


def _seconds(text: Any) -> float:
    try:
        return min(60.0, max(0.0, float(text)))
    except (TypeError, ValueError):
        return 0.0


def error_of(answer: Answer) -> ManyarmsError:
    """Return the error that a handle would have raised."""
    body = answer.body
    code, message = body.get("code", ""), str(body.get("message") or f"HTTP {answer.status}.")
    if "recommended" in body:
        return StoppedError(message, body["recommended"] and arm_of(body["recommended"]))
    if code == "unknown_arm":
        return UnknownArmError(message)
    if code in ("exists", "key_exists"):
        return DuplicateNameError(message)
    if answer.status in (409, 410) or code == "unknown_pull":
        return TurnError(message)
    if answer.status in (400, 413, 422):
        return ParameterError(message, parameter=body.get("parameter"))
    return ServiceError(message, status=answer.status, code=code)


# From JSON to what handles return


def arm_of(seen: dict[str, Any]) -> ArmEstimate:
    """Return what is known of an arm."""
    low, high = seen["low"], seen["high"]
    return ArmEstimate(
        arm=seen["arm"],
        estimate=math.nan if seen["estimate"] is None else seen["estimate"],
        interval=(-math.inf if low is None else low, math.inf if high is None else high),
        pulls=seen["pulls"],
        told=seen["told"],
        retired=seen["retired"],
    )


def progress_of(summary: dict[str, Any]) -> Progress:
    """Return how far a game is."""
    names = ("pulls", "horizon", "told", "pending", "abandoned", "stage", "arms_touched", "n_arms")
    mean = summary["mean_reward"]
    return Progress(
        **{name: summary[name] for name in names},
        reward=summary["reward"],
        mean_reward=math.nan if mean is None else mean,
    )


def not_served(method: str) -> ServiceError:
    """Return the error of a method that handles have, and services have not."""
    why = _NOT_SERVED.get(method, _OBSERVED)
    return ServiceError(f"`{method}` is not served: {why}", code="not_served")


def base_of(url: str, timeout: float, patience: float) -> tuple[str, str, str]:
    """Return the scheme, the host with its port, and what stands before all paths."""
    check_number("timeout", timeout, above=0)
    check_number("patience", patience, at_least=0)
    parts = urlsplit(url if isinstance(url, str) else "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ParameterError(
            f"`url` must be the address of a service, such as 'http://127.0.0.1:8765', got {url!r}."
        )
    return parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/")


def spec_of(policy: Policy | str, n_arms: int | None, **others: Any) -> dict[str, Any]:
    """Return an experiment as the service reads it."""
    if isinstance(policy, Policy):
        described = described_policy(policy)
        if described["name"] is None:
            raise ParameterError(
                f"`policy` must be one that the service knows by name, got {policy.label}. "
                f"Register it there, and give its name."
            )
        return {"policy": _named(described), "n_arms": n_arms} | others
    return {"policy": policy, "n_arms": n_arms} | others


def _named(described: dict[str, Any]) -> dict[str, Any]:
    parameters = {
        name: _named(value) if isinstance(value, dict) else value
        for name, value in described["parameters"].items()
    }
    return {"name": described["name"], "parameters": parameters}


class Calls:
    """The requests of one experiment."""

    def __init__(self, prefix: str, experiment: str, worker: str | None) -> None:
        if not isinstance(experiment, str) or not experiment:
            raise ParameterError(f"`experiment` must be its name, got {experiment!r}.")
        self._all = f"{prefix}/v1/experiments"
        self.path = f"{self._all}/{quote(experiment, safe='')}"
        self._worker = worker

    def listing(self, cursor: str) -> Call[dict[str, Any]]:
        """Look at a page of the experiments."""
        query = f"?cursor={quote(cursor, safe='')}" if cursor else ""
        return Call("GET", f"{self._all}{query}", lambda answer, _: dict(answer))

    def create(self, spec: dict[str, Any]) -> Call[dict[str, Any]]:
        """Create the experiment."""
        return Call("PUT", self.path, lambda body, _: dict(body), *_json(spec))

    def ask(self, k: int | None) -> Call[list[Pull]]:
        """Ask; the key is the same however often this is sent."""
        fix = "Ask again for more."
        count = 1 if k is None else check_int("k", k, at_least=1, at_most=MOST_PULLS, fix=fix)
        body, headers = _json({"k": count} | ({"worker": self._worker} if self._worker else {}))
        headers["Idempotency-Key"] = secrets.token_hex(16)

        def read(answer: Any, again: bool) -> list[Pull]:
            return [Pull(pull["arm"], pull["pull"]) for pull in answer["pulls"]]

        return Call("POST", f"{self.path}/asks", read, body, headers)

    def tell(
        self, rewards: Iterable[tuple[Pull | int, float]], again: str, *, many: bool
    ) -> list[Call[None]]:
        """Tell rewards, in as many requests as they need."""
        check_choice("again", again, ("refuse", "ignore"))
        tells = [
            {"pull": _number(pull), "reward": check_reward(reward, None)}
            for pull, reward in pairs_of(rewards)
        ]
        return [
            self._results("tells", {"tells": some}, "tell", again, many=many)
            for some in _pieces(tells)
        ]

    def abandon(self, pull: Pull | int, again: str) -> Call[None]:
        """Abandon a pull."""
        check_choice("again", again, ("refuse", "ignore"))
        return self._results("abandons", {"pulls": [_number(pull)]}, "abandon", again, many=False)

    def _results(
        self, where: str, content: dict[str, Any], verb: str, again: str, *, many: bool
    ) -> Call[None]:
        def read(answer: Any, repeated: bool) -> None:
            results = answer["results"]
            wrong = [e for r in results if (e := _refused(r, verb, again, repeated)) is not None]
            if not wrong:
                return
            if many and len(results) > 1:
                told = len(results) - len(wrong)
                raise type(wrong[0])(
                    f"{wrong[0]} So {len(wrong)} of {len(results)} were refused; {told} were told."
                )
            raise wrong[0]

        return Call("POST", f"{self.path}/{where}", read, *_json(content))

    def add_arms(self, arms: int | Iterable[str | int]) -> Call[Sequence[Any]]:
        """Add arms. Sent twice it might add them twice, or refuse what was done."""
        names = None if isinstance(arms, int) else [str(arm) for arm in arms]
        body, headers = _json({"count": arms}) if names is None else _keys(names)

        def read(answer: Any, again: bool) -> Sequence[Any]:
            there, added = answer["n_arms"], answer["added"]
            return range(there - added, there) if names is None else names

        return Call("POST", f"{self.path}/arms", read, body, headers, once=True)

    def check_arms(self, arms: Iterable[str | int]) -> Call[list[str]]:
        """Raise unless an experiment has these arms; return its others.

        If it has more than a page of arms, nothing is checked.
        """
        wanted = [str(arm) for arm in arms]

        def read(answer: Any, again: bool) -> list[str]:
            if answer["cursor"] is not None:
                return []
            there = {arm["arm"]: arm["retired"] for arm in answer["arms"]}
            if unknown := [name for name in wanted if name not in there]:
                raise DuplicateNameError(
                    f"There is an experiment of this name with other arms: it has "
                    f"{len(there)}, and none is called {unknown[0][:100]!r}. Add it with "
                    f"`add_arms`, or choose another name."
                )
            given = set(wanted)
            return [name for name, retired in there.items() if name not in given and not retired]

        return Call("GET", f"{self.path}/arms?{urlencode({'sort': 'arm', 'limit': _PAGE})}", read)

    def retire(self, arm: str | int) -> Call[None]:
        """Retire an arm."""

        def read(answer: Any, again: bool) -> None:
            if not (answer["applied"] or again):
                raise TurnError(f"Cannot retire arm {arm!r}: it is retired already.")

        return Call("DELETE", f"{self.path}/arms/{quote(str(arm), safe='')}", read)

    def change(self, action: str, **content: Any) -> Call[None]:
        """Pause, resume or stop."""
        return Call("POST", f"{self.path}/{action}", lambda answer, _: None, *_json(content))

    def summary(self) -> Call[dict[str, Any]]:
        """Look at the experiment."""
        return Call("GET", self.path, lambda answer, _: dict(answer))

    def top(self, k: int) -> Call[list[ArmEstimate]]:
        """Look at the best arms."""
        check_int("k", k, at_least=1, at_most=_PAGE)

        def read(answer: Any, again: bool) -> list[ArmEstimate]:
            if not answer["arms"]:
                raise TurnError(
                    "Cannot recommend an arm: no reward has been told yet for any arm in play."
                )
            return [arm_of(seen) for seen in answer["arms"]]

        return Call("GET", f"{self.path}/leaders?k={k}", read)

    def verdict(self, epsilon: float, quantile: float, confidence: float) -> Call[StopVerdict]:
        """Look whether to stop."""
        asked = check_question(epsilon, quantile, confidence)
        query = urlencode(dict(zip(("epsilon", "quantile", "confidence"), asked, strict=True)))

        def read(answer: Any, again: bool) -> StopVerdict:
            known = {field.name: answer[field.name] for field in fields(StopVerdict)}
            limit = -math.inf if answer["limit"] is None else answer["limit"]
            return StopVerdict(**known | {"limit": limit})

        return Call("GET", f"{self.path}/verdict?{query}", read)

    def pending(self) -> Call[list[Pull]]:
        """Look at what is waited for."""

        def read(answer: Any, again: bool) -> list[Pull]:
            return [Pull(pull["arm"], pull["pull"]) for pull in answer["oldest"]]

        return Call("GET", f"{self.path}/in-flight?limit={MOST_PULLS}", read)

    def arms(self, cursor: str) -> Call[tuple[list[ArmEstimate], str | None]]:
        """Look at a page of the arms that were pulled."""
        query = urlencode({"sort": "pulls", "limit": _PAGE, "cursor": cursor})

        def read(answer: Any, again: bool) -> tuple[list[ArmEstimate], str | None]:
            return [arm_of(seen) for seen in answer["arms"]], answer["cursor"]

        return Call("GET", f"{self.path}/arms?{query}", read)


def _json(content: Any) -> tuple[bytes, dict[str, str]]:
    return json.dumps(content).encode(), {"Content-Type": "application/json"}


def _keys(names: Iterable[str]) -> tuple[bytes, dict[str, str]]:
    lines = "".join(f"{json.dumps(name)}\n" for name in names)
    return lines.encode(), {"Content-Type": _NDJSON}


def _pieces(tells: list[Any]) -> Iterable[list[Any]]:
    return (tells[k : k + MOST_PULLS] for k in range(0, len(tells), MOST_PULLS))


def _number(pull: Pull | int) -> int:
    number = pull.id if isinstance(pull, Pull) else pull
    return check_int("pull", number, fix="Pass what ask() returned, or its id.")


def _refused(result: Any, verb: str, again: str, repeated: bool) -> ManyarmsError | None:
    """Return why a tell or an abandon was refused; None if it was not."""
    code, pull = result.get("code", ""), result["pull"]
    if result["applied"] or (repeated and not code):
        return None  # done by this request, or by one whose answer was lost
    if not code or code in ("told", "abandoned"):
        if again == "ignore":
            return None
        done = "its reward was told already" if code == "told" or verb == "tell" else ""
        done = "it was abandoned" if code == "abandoned" or not done else done
        return TurnError(f"Cannot {verb} pull {pull}: {done}. Pass again='ignore' if you retry.")
    return error_of(Answer(result["status"], result))
