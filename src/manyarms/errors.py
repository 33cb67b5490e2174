"""The errors and warnings of manyarms.

    ManyarmsError
    ├── ParameterError (ValueError)      an invalid parameter
    ├── UnknownNameError (KeyError)      a name that is not known
    ├── DuplicateNameError (ValueError)  a name that is taken
    ├── UnknownArmError (KeyError)       an arm that a live handle does not have
    ├── TurnError (RuntimeError)         a call that the experiment does not allow now
    │   └── StoppedError                 a service's experiment has ended; has the arm to deploy
    ├── ServiceError (OSError)           a service cannot be reached, refuses, or fails
    ├── SavedFileError (ValueError)      not a store or saved state, or a damaged or newer one
    ├── StoreError (RuntimeError)        a store that is in use, closed, or cannot be written
    │   ├── StoreUnavailableError        busy, full or unreachable: trying again later may help
    │   ├── StoreDamagedError            a row or a file that was changed outside manyarms
    │   └── WriteConflictError           another process is writing the same experiment
    ├── PathError (OSError)              a file cannot be read or written
    │   └── PathNotFoundError (FileNotFoundError)
    ├── CopyError (TypeError)            a handle that cannot be copied
    ├── FolderError (OSError)            results cannot be written to a folder
    ├── ResultsError (ValueError)        a folder holds no results, or damaged ones
    ├── ExecutorError (RuntimeError)     a worker of an executor has different code
    ├── DeviceError (RuntimeError)       a GPU cannot be used
    ├── CompilationError (TypeError)     Numba cannot compile a policy
    ├── MissingExtraError (ImportError)  a package of an optional part is not installed
    ├── ContestNotFoundError (FileNotFoundError)  no such contest file
    ├── ContestFileError (ValueError)    not a contest file, or a damaged one
    └── DownloadError (OSError)          a contest file could not be downloaded

    CacheWarning (UserWarning)           compiled code cannot be cached
    OldResultsWarning (UserWarning)      results of an earlier version of the code
    RewardWarning (UserWarning)          only the best rewards seem to be told

Messages name the parameter, the rule and the value, and say how to fix it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Self


def nearest(name: object, known: Iterable[str], listed: Iterable[str] | None = None) -> str:
    """Return "Did you mean …?" with the nearest known name; if none is near, list the names.

    `listed` are the names to list (default: all that are known).

    >>> nearest("betta", ["beta", "sigma"]), nearest("x", ["beta"], ["beta", "name"])
    ("Did you mean 'beta'?", 'Known: beta, name.')
    """
    names = sorted(known)
    near = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=0.5)
    shown = names if listed is None else sorted(listed)
    return f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(shown) or 'none'}."


def how_to_install(extra: str) -> str:
    """Return the commands that install an extra, from a package index and in a checkout.

    >>> how_to_install("sim")
    'Install the extra `sim`: pip install "manyarms[sim]", or in a checkout pip install ".[sim]".'
    """
    index, checkout = f'pip install "manyarms[{extra}]"', f'pip install ".[{extra}]"'
    return f"Install the extra `{extra}`: {index}, or in a checkout {checkout}."


class ManyarmsError(Exception):
    """The base class of all errors of this package.

    Attributes
    ----------
    parameter
        The name of the invalid parameter, if any.
    """

    parameter: str | None = None
    _message = ""  # (default: the first argument)
    _before = _after = ""

    def __str__(self) -> str:
        message = self._message or "".join(map(str, self.args[:1]))  # KeyError would print a repr
        return f"{self._before}{message}{self._after}"

    def framed(self, before: str, after: str) -> Self:
        """Return this error with text before and after its message."""
        self._before, self._after = before, after
        return self


class ParameterError(ManyarmsError, ValueError):
    """A parameter is invalid; the message gives the rule, the value and the fix."""

    def __init__(self, message: str, *, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter


class UnknownNameError(ManyarmsError, KeyError):
    """A name that is not known; the message suggests the nearest known one."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        names = sorted(known)
        super().__init__(kind, name, names)  # so that it can be pickled
        self._message = f"Unknown {kind} {name!r}. {nearest(name, names)}"


class DuplicateNameError(ManyarmsError, ValueError):
    """A name that is already taken."""


class CompilationError(ManyarmsError, TypeError):
    """Numba cannot compile a policy; the message gives its reason in one line."""


class UnknownArmError(ManyarmsError, KeyError):
    """An arm that a live handle does not have."""


class TurnError(ManyarmsError, RuntimeError):
    """A call that the experiment does not allow now; nothing was changed.

    Attributes
    ----------
    reason
        Why, for programs: "horizon" (fewer pulls are left), "paused", "stopped", "no arms",
        "unknown pull", "told", "abandoned", "twice" (in one list), "other arm" (the pull is of
        another), "retired", "not retired" or "last arm"; empty for all other reasons.
    pull, arm
        The pull's id and the arm, if the error concerns one.
    left
        The number of pulls that are left, if the reason is "horizon".
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        pull: int | None = None,
        arm: Any = None,
        left: int | None = None,
    ) -> None:
        super().__init__(message)
        self.reason, self.pull, self.arm, self.left = reason, pull, arm, left


class StoppedError(TurnError):
    """A service has no pull left, or the experiment was stopped.

    Attributes
    ----------
    recommended
        The arm to deploy, as `recommend()` returns it; None if nothing is known.
    """

    def __init__(self, message: str, recommended: Any = None) -> None:
        super().__init__(message)
        self.args = (message, recommended)  # so that it can be pickled
        self.recommended = recommended


class ServiceError(ManyarmsError, OSError):
    """A service cannot be reached, refuses a request, or fails; the message says why.

    Attributes
    ----------
    status
        The HTTP status; 0 if there was no answer.
    code
        The reason, for programs.
    """

    def __init__(self, message: str, *, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code


class SavedFileError(ManyarmsError, ValueError):
    """Not a store or saved state, or a damaged or newer one; the file is not changed."""


class StoreError(ManyarmsError, RuntimeError):
    """A store that is in use elsewhere, closed, or cannot be written."""


class StoreUnavailableError(StoreError):
    """A store is busy, full or cannot be reached now; trying again later may help.

    If the connection to a server was lost during a commit, the commit may have succeeded.
    """


class StoreDamagedError(StoreError):
    """A store has a row that was changed or removed outside manyarms, or is not a store."""


class WriteConflictError(StoreError):
    """Another process has written events to the same experiment; nothing was written.

    Attributes
    ----------
    experiment
        The number of the experiment.
    """

    def __init__(self, message: str, experiment: int) -> None:
        super().__init__(message)
        self.args = (message, experiment)  # so that it can be pickled
        self.experiment = experiment


class PathError(ManyarmsError, OSError):
    """A file cannot be read or written; the message says why, and what to do."""


class PathNotFoundError(PathError, FileNotFoundError):
    """No such file, or no folder for it."""


class CopyError(ManyarmsError, TypeError):
    """A handle that cannot be copied or pickled; the message says how to make a second one."""


class FolderError(ManyarmsError, OSError):
    """Results cannot be written to a folder; earlier results in it are kept."""


class ResultsError(ManyarmsError, ValueError):
    """A folder holds no results, or damaged ones."""


class ExecutorError(ManyarmsError, RuntimeError):
    """A worker of an executor has different code from the process that started the run."""


class DeviceError(ManyarmsError, RuntimeError):
    """A GPU cannot be used; the message says why, and what to do."""


class MissingExtraError(ManyarmsError, ImportError):
    """A package of an optional part of manyarms is not installed."""

    def __init__(self, package: str, purpose: str, extra: str | None = "sim") -> None:
        super().__init__(package, purpose, extra)  # so that it can be pickled
        how = how_to_install(extra) if extra else f"Run `pip install {package.partition(' ')[0]}`."
        self.msg = self._message = f"{package} must be installed {purpose}, but it is not. {how}"


class ContestNotFoundError(ManyarmsError, FileNotFoundError):
    """No such contest file, neither by path nor in the folders that are searched."""

    parameter = "contest"


class ContestFileError(ManyarmsError, ValueError):
    """Not a contest file, or a damaged one; the message says where."""

    parameter = "contest"


class DownloadError(ManyarmsError, OSError):
    """A contest file could not be downloaded; nothing was stored."""


class RewardWarning(UserWarning):
    """Only the best rewards seem to be told, so the policy cannot learn."""


class CacheWarning(UserWarning):
    """Compiled code cannot be cached; the message says why. Shown once per process."""


class OldResultsWarning(UserWarning):
    """A folder holds results of an earlier version of the code; nothing was simulated."""
