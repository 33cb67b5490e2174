"""Convert the service's JSON answers to the values and errors of a handle."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from manyarms.errors import (
    DuplicateNameError,
    ManyarmsError,
    ParameterError,
    ServiceError,
    StoppedError,
    TurnError,
    UnknownArmError,
)
from manyarms.inference.estimates import ArmEstimate, Progress
from manyarms.inference.uplift import Uplift, nothing_to_compare
from manyarms.inference.verdict import StopVerdict
from manyarms.live.calls import OR_EXPIRED, already_ended
from manyarms.live.pulls import Pull

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    status: int
    body: Any
    repeated: bool = False  # an earlier attempt may have been carried out

    @classmethod
    def of(cls, status: int, data: bytes, retry_after: str | None) -> Answer:
        """Parse a body; one that is not a JSON object becomes {}."""
        try:
            body = json.loads(data) if data else {}
        except ValueError:
            body = {}
        body = body if isinstance(body, dict) else {}
        if retry_after:
            body.setdefault("retry_after", retry_after)
        return cls(status, body)


def pulls_in(seen: list[dict[str, Any]]) -> list[Pull]:
    """Return a list of pulls from JSON."""
    return [Pull(pull["arm"], pull["pull"]) for pull in seen]


def read_arm(seen: dict[str, Any]) -> ArmEstimate:
    """Return the estimate of an arm from JSON."""
    return _filled(
        ArmEstimate,
        seen,
        estimate=_or(seen["estimate"], math.nan),
        interval=_interval(seen["low"], seen["high"]),
    )


def read_progress(seen: dict[str, Any]) -> Progress:
    """Return an experiment's progress from its JSON summary."""
    return _filled(
        Progress,
        seen,
        mean_reward=_or(seen["mean_reward"], math.nan),
        reward_name=seen["spec"]["reward"] or "",
        control=seen["spec"]["control"],
        control_mean=_or(seen["control_mean"], math.nan),
    )


def read_verdict(seen: dict[str, Any]) -> StopVerdict:
    """Return a verdict from JSON."""
    return _filled(StopVerdict, seen, lower_bound=_or(seen["lower_bound"], -math.inf))


def read_uplift(seen: dict[str, Any]) -> Uplift:
    """Return an uplift from JSON; if there is nothing to compare yet, it says why."""
    if seen["missing"]:
        said = seen["control"], seen["control_told"], seen["confidence"], seen["missing"]
        return nothing_to_compare(*said)
    return _filled(
        Uplift,
        seen,
        interval=_interval(seen["low"], seen["high"]),
        ratio=_or(seen["ratio"], math.nan),
        ratio_interval=_interval(seen["ratio_low"], seen["ratio_high"]),
    )


def _filled(kind: type[T], seen: dict[str, Any], **others: Any) -> T:
    """Return a dataclass with fields from a JSON object and from `others`."""
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]  # all are dataclasses
    return kind(**{name: seen[name] for name in names & seen.keys()} | others)


def _or(value: float | None, missing: float) -> float:
    """Return a number; JSON has null for infinite or unknown numbers."""
    return missing if value is None else value


def _interval(low: float | None, high: float | None) -> tuple[float, float]:
    return _or(low, -math.inf), _or(high, math.inf)


def error_of(answer: Answer) -> ManyarmsError:
    """Return the error that a handle would raise."""
    body, status = answer.body, answer.status
    code, message = body.get("code", ""), str(body.get("message") or f"HTTP {status}.")
    if status == 413 and not code:
        return ServiceError(
            "A proxy in front of the service refused the request with HTTP 413: its body is "
            "larger than the proxy allows. Raise the proxy's limit (nginx: "
            "`client_max_body_size 64m;`), or send fewer arms or rewards at a time.",
            status=status,
            code="proxy_limit",
        )
    if not code:  # from a proxy; its errors say nothing about the call
        return ServiceError(f"The service did not answer: {message}", status=status, code="foreign")
    if "recommended" in body:
        return StoppedError(message, body["recommended"] and read_arm(body["recommended"]))
    if code == "unknown_arm":
        return UnknownArmError(message)
    if code == "exists":
        return DuplicateNameError(message)
    if status in (409, 410) or code == "unknown_pull":
        return TurnError(message)
    if status in (413, 422) or code == "malformed":
        return ParameterError(message, parameter=body.get("parameter"))
    return ServiceError(message, status=status, code=code)


def not_a_service() -> ServiceError:
    """Return the error for an answer that lacks expected fields."""
    said = (
        "The server at this address is not a manyarms service, or runs a much newer version. "
        "Check the address, or upgrade this client."
    )
    return ServiceError(said, status=200, code="foreign")


def refused_in(answer: Answer, verb: str, again: str) -> list[tuple[int, ManyarmsError]]:
    """Return the positions and errors of the tells or abandons that were refused."""
    found = []
    for place, result in enumerate(answer.body["results"]):
        code, pull = result.get("code", ""), result["pull"]
        if result["applied"] or (answer.repeated and not code):
            continue  # applied by this request, or by an attempt whose answer was lost
        if code and code not in ("told", "abandoned"):
            found.append((place, error_of(Answer(result["status"], result))))
        elif again == "refuse":
            gone = code == "abandoned" or (verb == "abandon" and not code)
            also = OR_EXPIRED if OR_EXPIRED in (result.get("message") or "") else ""
            found.append((place, already_ended(verb, pull, gone=gone, also=also)))
    return found


def refusals_in_words(tells: list[dict[str, Any]], wrong: list[tuple[int, ManyarmsError]]) -> str:
    """Return a message: how many tells were refused, and why the first one was."""
    place, first = wrong[0]
    return (
        f"rewards[{place}], of pull {tells[place]['pull']}: {first} In total, "
        f"{len(wrong)} of {len(tells)} rewards were refused; {len(tells) - len(wrong)} were told."
    )


def told_before(tells: list[dict[str, Any]], wrong: list[tuple[int, ManyarmsError]]) -> str:
    """Return a message about the tells that were answered before a request failed."""
    if not tells:
        return ""
    if not wrong:
        return f" The first {len(tells)} rewards had been told before."
    words = refusals_in_words(tells, wrong)
    return f" The first {len(tells)} rewards had been processed before. {words}"
