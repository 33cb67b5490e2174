"""What is wrong with a spec: all of it at once, each problem with its place in the file."""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping

from manyarms.errors import ManyarmsError, SpecError

__all__ = ["Problems", "SpecError", "suggestion"]

_NAMED = re.compile(r"`(\w+)` (must .*)", re.DOTALL)  # how our errors begin


class Problems:
    """Collects problems, so that a user need not fix them one by one.

    >>> problems = Problems()
    >>> with problems.at("policy[1]", keys=["beta"]):
    ...     import manyarms as ma
    ...     ma.MOSSPlusPlus(beta=2)
    >>> problems.lines
    ['policy[1].beta: must be a number >= 0.5 and <= 1, got 2.']
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0  # with those that were told before

    def add(self, place: str, text: str) -> None:
        """Note a problem; the cells of a sweep often share one."""
        self.count += 1
        line = f"{place}: {text}"
        if line not in self.lines:
            self.lines.append(line)

    @contextlib.contextmanager
    def at(self, place: str, keys: Iterable[str] = ()) -> Iterator[None]:
        """Note the error that the block raises; one that names a key of `keys` goes there."""
        try:
            yield
        except (ManyarmsError, OSError) as error:
            text = str(error)
            named = _NAMED.fullmatch(text)
            if named and place.endswith(f".{named[1]}"):
                text = named[2]
            elif named and named[1] in keys:
                place, text = f"{place}.{named[1]}", named[2]
            self.add(place, text)
        except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
            # a registered policy of a user need not check its parameters as ours do
            self.add(place, f"cannot be made: {error}.")

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
                hint = f"It belongs into {home}." if home else suggestion(key, known)
                self.add(f"{place}.{key}" if place else key, f"unknown key. {hint}")
        for key in required:
            if key not in table:
                self.add(f"{place}.{key}" if place else key, "must be given, got nothing.")
        return all(key in table for key in required)


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return "Did you mean …?" with the nearest known name, or all of them if none is near.

    >>> suggestion("betta", ["beta", "sigma"])
    "Did you mean 'beta'?"
    """
    names = sorted(known)
    near = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=0.5)
    return f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(names)}."
