"""Errors as answers: a code for programs, a message for people, and an HTTP status."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from manyarms.errors import (
    ManyarmsError,
    ParameterError,
    TurnError,
    UnknownArmError,
    UnknownNameError,
    nearest,
)
from manyarms.live.calls import OR_EXPIRED
from manyarms.serve.messages import Failure, Failures, StoppedFailure, Told

_logger = logging.getLogger("manyarms.serve")
_JSON = {"None": "null", "True": "true", "False": "false"}
_VALUE = re.compile(r"\b(is|and|got) (None|True|False)\b")

ABANDONED_PULL = object()  # instead of a reward: the pull was abandoned


class BrokenError(Exception):
    """The policy failed during a change: the experiment must be dropped and loaded again."""


class LostError(Exception):
    """Uncommitted changes are lost: the store failed, or this process no longer leads."""


class RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, failure: Failures, headers: dict[str, str] | None = None) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.headers = headers or {}


def refuse(status: int, code: str, message: str, *, parameter: str | None = None) -> RefusedError:
    """Return an error that refuses a request.

    >>> refuse(404, "unknown_experiment", "There is no experiment 'x'.").failure.status
    404
    """
    return RefusedError(Failure(code, _in_json(message), status, parameter))


def refuse_method(method: str, path: str, allowed: str) -> RefusedError:
    """Return the error for a method that a path does not have."""
    message = f"{path[:200]} accepts {allowed}, not {method[:100]}."
    return RefusedError(Failure("method", message, 405), {"allow": allowed})


def invalid(message: str) -> RefusedError:
    """Return the error for an invalid value."""
    return refuse(422, "invalid", message)


def failed(what: str) -> RefusedError:
    """Log the current exception, which is a bug; return the error to answer with."""
    _logger.exception("%s failed", what)
    return refuse(500, "failed", "The request failed. The log of the service has the reason.")


def unknown_experiment(name: str) -> RefusedError:
    """Return the error for an unknown experiment."""
    return refuse(
        404,
        "unknown_experiment",
        f"There is no experiment {name!r}: GET /v1/experiments lists all.",
    )


def out_of_pulls(pulls: int) -> RefusedError:
    """Return the error for an ask after the last pull of the horizon."""
    said = (
        f"All {pulls} pulls of the horizon are made. Deploy the recommended arm. For more pulls, "
        f"start a season; the policy prospector needs no horizon."
    )
    return RefusedError(StoppedFailure("horizon", said, None))


def unavailable(message: str, *, code: str = "unavailable") -> RefusedError:
    """Return an error of status 503, after which the request can be sent again."""
    return RefusedError(Failure(code, message, 503), {"Retry-After": "1"})


def unreachable(why: object) -> RefusedError:
    """Return the error if the database cannot be reached."""
    return unavailable(f"The database cannot be reached: {why}")


def unknown(why: str) -> RefusedError:
    """Return the error for a request that may have been carried out."""
    return unavailable(
        f"{why}. The request may have been carried out. Send it again, an ask with the same "
        "Idempotency-Key. But if it adds a number of arms, observes rewards or begins a "
        "season, first check whether it took effect: repeated, it would count twice.",
        code="unknown",
    )


@contextlib.contextmanager
def as_refusals() -> Iterator[None]:
    """Turn errors of the package into answers."""
    try:
        yield
    except ManyarmsError as error:
        raise RefusedError(failure_of(error)) from error


def failure_of(error: ManyarmsError) -> Failure:
    """Return the answer for an error of the package."""
    said = _in_json(str(error))
    if isinstance(error, UnknownArmError):
        return Failure("unknown_arm", said, 404)
    if isinstance(error, TurnError):
        code = "not_due" if error.reason in ("", "horizon") else error.reason.replace(" ", "_")
        return Failure(code, said, 409)
    if isinstance(error, ParameterError | UnknownNameError):
        return Failure("invalid", said, 422, error.parameter)
    return Failure("failed", said, 500)


def _in_json(text: str) -> str:
    """Replace None, True and False in a message by their JSON names.

    >>> _in_json("`hold` is True in the store, and False was given: choose 'None'.")
    "`hold` is true in the store, and false was given: choose 'None'."
    """
    return _VALUE.sub(lambda found: f"{found[1]} {_JSON[found[2]]}", text)


# Errors in bodies and queries

_WORDS = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_WHERE = re.compile(r" - at `\$(.*)`$")
_EXPECTED = re.compile(r"Expected (.*?)(?:, got (.*))?$")
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*)`$", re.DOTALL)


def failure_of_body(error: msgspec.ValidationError, kind: Any, part: str = "field") -> Failure:
    """Return the answer for a body or a query that does not have the type `kind`.

    `part` is what the message calls its members: "field" or "parameter".

    >>> from manyarms.serve.messages import Spec
    >>> try:
    ...     msgspec.json.decode(b'{"horizn": 9}', type=Spec)
    ... except msgspec.ValidationError as error:
    ...     print(failure_of_body(error, Spec).message)
    There is no field `horizn`. Did you mean 'horizon'? Known: control, epsilon, hold, horizon, \
missing, n_arms, policy, reward, reward_range, seed, share, target, window.
    """
    text = str(error)
    found = _WHERE.search(text)
    path = found[1] if found else ""
    said = text[: found.start()] if found else text
    node = _node(inspect.type_info(kind), path)
    name = path.removeprefix(".")
    field = _FIELD.match(said)
    if field is not None and isinstance(node, inspect.StructType):
        known = [one.encode_name for one in node.fields]
        return _of_field(field[1], field[2], name, known, part)
    what = f"`{name}`" if name else "The body"
    expected = _EXPECTED.match(said)
    choices = _choices(node)
    if choices and (expected is not None or "enum" in said):
        said = f"{what} must be {_either(choices)}."
    elif expected is not None:
        got = f", got {_in_words(expected[2])}" if expected[2] else ""
        said = f"{what} must be {_in_words(expected[1])}{got}."
    elif name:
        said = f"{what}: {said}."
    else:  # a rule about several fields
        said = f"{said[0].upper()}{said[1:]}."
    return Failure("invalid", said, 422, name or None)


def _in_words(text: str) -> str:
    def words(found: re.Match[str]) -> str:
        return _either([_WORDS.get(one, one) for one in found[1].split(" | ")])

    return re.sub(r"`([^`]*)`", words, text)


def _either(choices: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))


def _of_field(how: str, field: str, where: str, known: list[str], part: str) -> Failure:
    inside = f" in `{where}`" if where else ""
    listed = f"Known: {', '.join(sorted(known)) or 'none'}."
    if how.startswith("missing"):
        return Failure("invalid", f"The {part} `{field}` is missing{inside}. {listed}", 422, field)
    meant = nearest(field, known)
    more = "" if meant.startswith("Known") else f" {listed}"
    said = f"There is no {part} `{field[:100]}`{inside}. {meant}{more}"
    return Failure("invalid", said, 422, field[:100])


def _node(node: Any, path: str) -> Any:
    """Return the type at a path such as `.tells[...].reward`."""
    for step in re.findall(r"\.(\w+)|(\[[^\]]*\])", path):
        kinds = node.types if isinstance(node, inspect.UnionType) else (node,)
        node = next((found for k in kinds if (found := _step(k, step[0])) is not None), None)
    if isinstance(node, inspect.UnionType):
        structs = [kind for kind in node.types if isinstance(kind, inspect.StructType)]
        return structs[0] if structs else node
    return node


def _step(kind: Any, name: str) -> Any:
    if isinstance(kind, inspect.StructType) and name:
        return next((one.type for one in kind.fields if one.encode_name == name), None)
    return kind.item_type if isinstance(kind, inspect.ListType) and not name else None


def _choices(node: Any) -> list[str]:
    """Return the values of a field of type Literal, and "a number" if it may also be one."""
    kinds = node.types if isinstance(node, inspect.UnionType) else (node,)
    literal = [kind for kind in kinds if isinstance(kind, inspect.LiteralType)]
    if not literal:
        return []
    others = ["a number" for kind in kinds if isinstance(kind, inspect.FloatType)]
    return [*(repr(value) for value in sorted(map(str, literal[0].values))), *others]


def ended_before(pull: int, was: Any, reward: float | None, *, window: bool) -> Told:
    """Return the answer to a tell (or an abandon: no reward) of a pull that has ended.

    `was` is its reward, `ABANDONED_PULL`, or None if it ended so long ago that this is unknown.
    `window` is whether pulls have a window.
    """
    or_expired = OR_EXPIRED if window else ""
    if was is ABANDONED_PULL:
        if reward is None:
            return Told(pull, applied=False)
        said = f"Pull {pull} was abandoned{or_expired}. The reward does not count."
        return refused_tell(pull, Failure("abandoned", said, 410))
    if was is None:
        said = f"Pull {pull} has ended: its reward was told{or_expired}."
        return refused_tell(pull, Failure("told", said, 409))
    if reward is None:
        said = f"Pull {pull} cannot be abandoned: its reward {was:g} has been told."
        return refused_tell(pull, Failure("told", said, 409))
    if reward == was:
        return Told(pull, applied=False)
    return refused_tell(pull, other_reward(pull, was, or_expired))


def other_reward(pull: int, was: float, or_expired: str = "") -> Failure:
    """Return the answer to a tell of a pull that was told with another reward."""
    said = f"Pull {pull} was already told with the reward {was:g}{or_expired}."
    return Failure("told", said, 409)


def refused_tell(pull: int, failure: Failures) -> Told:
    """Return the result of a refused tell or abandon."""
    return Told(
        pull, applied=False, status=failure.status, code=failure.code, message=failure.message
    )
