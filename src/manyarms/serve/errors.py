"""Why requests are refused: a code for programs, a sentence for people, a status for HTTP."""

from __future__ import annotations

import logging

from manyarms.errors import (
    ManyarmsError,
    ParameterError,
    TurnError,
    UnknownArmError,
    UnknownNameError,
)
from manyarms.serve.messages import Failure, Failures

__all__ = ["RefusedError", "failed", "failure_of", "refuse", "unknown_experiment"]

_logger = logging.getLogger("manyarms.serve")


class RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, failure: Failures, headers: dict[str, str] | None = None) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.headers = headers or {}


def refuse(status: int, code: str, message: str, *, parameter: str | None = None) -> RefusedError:
    """Return the error of a request that is refused.

    >>> refuse(404, "unknown_experiment", "There is no experiment 'x'.").failure.status
    404
    """
    return RefusedError(Failure(code, message, status, parameter))


def failed(what: str) -> RefusedError:
    """Log the exception that is being handled, a mistake of ours; return what to answer."""
    _logger.exception("%s failed", what)
    return refuse(500, "failed", "This failed; the log of the node says why.")


def unknown_experiment(name: str) -> RefusedError:
    """Return the refusal of an experiment that there is not."""
    return refuse(404, "unknown_experiment", f"There is no experiment {name!r}.")


def failure_of(error: ManyarmsError) -> Failure:
    """Return one of the package's errors as an answer."""
    if isinstance(error, UnknownArmError):
        return Failure("unknown_arm", str(error), 404)
    if isinstance(error, TurnError):
        return Failure("not_due", str(error), 409)
    if isinstance(error, ParameterError | UnknownNameError):
        return Failure("invalid", str(error), 422, error.parameter)
    return Failure("failed", str(error), 500)
