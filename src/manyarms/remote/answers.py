"""What comes back from a service: from JSON to what handles return and raise."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from manyarms.errors import (
    DuplicateNameError,
    ManyarmsError,
    ParameterError,
    ServiceError,
    StoppedError,
    TurnError,
    UnknownArmError,
)
from manyarms.inference.estimates import ArmEstimate


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    body: Any
    repeated: bool = False  # whether the request was sent before, and that answer was lost

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
        rate=seen.get("rate", False),
    )


def limit_of(seen: float | None, endless: float) -> float:
    """Return a limit; JSON has none that is infinite."""
    return endless if seen is None else seen


def error_of(answer: Answer) -> ManyarmsError:
    """Return the error that a handle would have raised."""
    body = answer.body
    code, message = body.get("code", ""), str(body.get("message") or f"HTTP {answer.status}.")
    if "recommended" in body:
        return StoppedError(message, body["recommended"] and arm_of(body["recommended"]))
    if code == "unknown_arm":
        return UnknownArmError(message)
    if code in ("exists", "key_exists", "twice"):
        return DuplicateNameError(message)
    if answer.status in (409, 410) or code == "unknown_pull":
        return TurnError(message)
    if answer.status in (400, 413, 422):
        return ParameterError(message, parameter=body.get("parameter"))
    return ServiceError(message, status=answer.status, code=code)


def refused_in(answer: Answer, verb: str, again: str) -> list[tuple[int, ManyarmsError]]:
    """Return which tells or abandons were refused, by their place, and why."""
    found = []
    for place, result in enumerate(answer.body["results"]):
        code, pull = result.get("code", ""), result["pull"]
        if result["applied"] or (answer.repeated and not code):
            continue  # done by this request, or by one whose answer was lost
        if code and code not in ("told", "abandoned"):
            found.append((place, error_of(Answer(result["status"], result))))
        elif again == "refuse":
            told = code == "told" or (verb == "tell" and code != "abandoned")
            done = "its reward was told already" if told else "it was abandoned"
            said = f"Cannot {verb} pull {pull}: {done}. Pass again='ignore' if you retry."
            found.append((place, TurnError(said)))
    return found


def told_in_words(tells: list[dict[str, Any]], wrong: list[tuple[int, ManyarmsError]]) -> str:
    """Return how many tells were refused, and why the first was."""
    place, first = wrong[0]
    return (
        f"rewards[{place}], of pull {tells[place]['pull']}: {first} So {len(wrong)} of "
        f"{len(tells)} were refused; {len(tells) - len(wrong)} were told."
    )


def told_before(tells: list[dict[str, Any]], wrong: list[tuple[int, ManyarmsError]]) -> str:
    """Return what became of the tells that were answered before something failed."""
    if not tells:
        return ""
    if not wrong:
        return f" The first {len(tells)} rewards were told before."
    return f" The first {len(tells)} rewards were answered before. {told_in_words(tells, wrong)}"
