"""What is wrong with a spec: all of it at once, each problem with its place in the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from manyarms.core import checks
from manyarms.errors import ManyarmsError, nearest

__all__ = ["Problems", "shown"]

T = TypeVar("T")

_LONGEST = 60  # characters of a value that an error shows


class Problems:
    """Collects problems, so that a user need not fix them one by one.

    >>> import manyarms as ma
    >>> problems = Problems()
    >>> problems.made("policy[1]", ma.MOSSPlusPlus, {"beta": 2, "sigma": 0.5})
    >>> problems.lines
    ['policy[1].beta: must be a number >= 0.5 and <= 1, got 2.']
    """

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}  # a set in order
        self.count = 0  # with those that were noted before

    def add(self, place: str, text: str) -> None:
        """Note a problem; the cells of a sweep often share one."""
        self.count += 1
        self._lines[f"{place}: {text}"] = None

    @property
    def lines(self) -> list[str]:
        """The problems, each one once."""
        return list(self._lines)

    def made(
        self,
        place: str,
        make: Callable[..., T],
        arguments: Mapping[str, Any],
        *,
        only_named: bool = False,
    ) -> T | None:
        """Return what a constructor makes, or None and note everything it refuses.

        An error names the parameter that is at fault. That one is left out, and the rest tried
        again: so all wrong values are found, by the very checks that guard the constructor.
        `only_named` notes nothing else, for a table that is not complete.
        """
        arguments, refused = dict(arguments), only_named
        while True:
            try:
                made = make(**arguments)
            except (ManyarmsError, OSError) as error:
                name = getattr(error, "parameter", None)
                if name in arguments:
                    self.add(f"{place}.{name}", str(error).removeprefix(f"`{name}` "))
                    del arguments[name]
                    refused = True
                    continue
                if not refused:
                    self.add(place, str(error))
            except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
                # a user's own policy need not check its parameters as ours do; and a required
                # parameter may be among those left out
                if not refused:
                    self.add(place, f"cannot be made: {error}.")
            else:
                return None if refused else made
            return None

    def check_keys(
        self,
        place: str,
        table: Mapping[str, object],
        *,
        known: Iterable[str],
        required: Iterable[str] = (),
        elsewhere: Mapping[str, str] | None = None,
    ) -> bool:
        """Note unknown and missing keys; return whether none is missing."""
        known, required = list(known), list(required)
        for key in table:
            if key not in known:
                home = (elsewhere or {}).get(key)
                # a key that is there already is not what was meant
                near = nearest(key, [one for one in known if one not in table], known)
                hint = f"It belongs in {home}." if home else near
                self.add(f"{place}.{key}" if place else key, f"unknown key. {hint}")
        for key in required:
            if key not in table:
                self.add(f"{place}.{key}" if place else key, "is required.")
        return all(key in table for key in required)


def shown(value: Any) -> str:
    """Return a value for one line of a list of problems."""
    return checks.shown(value, _LONGEST)
