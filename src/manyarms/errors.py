"""Every error that manyarms raises on purpose.

    ManyarmsError
    ├── ParameterError (ValueError)      a parameter breaks its rule
    ├── UnknownNameError (KeyError)      a name that is in no registry
    ├── DuplicateNameError (ValueError)  a name that is taken
    ├── TurnError (RuntimeError)         an ask or a tell that is not due now
    └── CompilationError (TypeError)     Numba cannot compile a policy

Messages name the parameter, the rule and the value, then the way out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "CompilationError",
    "DuplicateNameError",
    "ManyarmsError",
    "ParameterError",
    "TurnError",
    "UnknownNameError",
]


class ManyarmsError(Exception):
    """The root of all errors of this package."""


class ParameterError(ManyarmsError, ValueError):
    """A parameter breaks its rule; the message gives the rule, the value and the fix."""


class UnknownNameError(ManyarmsError, KeyError):
    """A name that is in no registry; the message suggests the nearest known one."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        self.message = f"Unknown {kind} {name!r}.{hint} Known: {', '.join(names)}."
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message  # KeyError would print its repr


class DuplicateNameError(ManyarmsError, ValueError):
    """A name that something else carries already."""


class CompilationError(ManyarmsError, TypeError):
    """Numba cannot compile a policy; the message gives its reason in one line."""


class TurnError(ManyarmsError, RuntimeError):
    """An ask or a tell that is not due now; nothing was changed."""
