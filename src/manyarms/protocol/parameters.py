"""Types of parameters with bounds, which `Policy` checks.

beta: Annotated[float, number(at_least=0.5, at_most=1.0)] = 0.5
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, get_args

from manyarms.core.checks import check_choice, check_flag, check_int, check_number

Check: TypeAlias = Callable[[str, Any], Any]  # (name, value) -> the value to keep, or an error


def number(**bounds: Any) -> Check:
    """Return the check of a finite number; for the bounds see `check_number`."""
    return functools.partial(check_number, **bounds)


def whole(**bounds: Any) -> Check:
    """Return the check of an integer; for the bounds see `check_int`."""
    return functools.partial(check_int, **bounds)


def choice(*choices: str) -> Check:
    """Return the check of a string that is one of `choices`."""
    return functools.partial(check_choice, choices=choices)


Number: TypeAlias = Annotated[float, number()]
Positive: TypeAlias = Annotated[float, number(above=0.0, at_most=1e100)]
Probability: TypeAlias = Annotated[float, number(at_least=0.0, at_most=1.0)]
Share: TypeAlias = Annotated[float, number(above=0.0, at_most=1.0)]
Count: TypeAlias = Annotated[int, whole(at_least=1, at_most=1 << 50)]
Flag: TypeAlias = Annotated[bool, check_flag]


@functools.cache
def checks_of(kind: type) -> dict[str, tuple[Check, bool]]:
    """Return the check of each parameter of a class, and whether it may be None."""
    found: dict[str, tuple[Check, bool]] = {}
    for base in reversed(kind.__mro__):
        for name, hint in _annotations(base).items():
            types = (hint, *get_args(hint))  # includes the parts of `Positive | None`
            for annotated in types:
                for check in filter(callable, getattr(annotated, "__metadata__", ())):
                    found[name] = (check, type(None) in types)
    return found


def _annotations(base: type) -> dict[str, Any]:
    try:
        return inspect.get_annotations(base, eval_str=True)
    except NameError:  # a class defined in a function: its annotations cannot be evaluated
        return {}
