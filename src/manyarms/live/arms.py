"""Arms by the user's names, or by number."""

from __future__ import annotations

import contextlib
import difflib
import numbers
import reprlib
from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Any

from manyarms.core.checks import check_int, shown
from manyarms.errors import ParameterError, UnknownArmError
from manyarms.protocol.policy import MOST_ARMS

__all__ = ["MOST_NAMES", "ArmNames", "ArmNumbers", "Arms", "arms_of"]

MOST_NAMES = 10_000_000  # some 2 GB
_DIGITS = 640  # of an integer: the least that Python can be told to write
_LARGEST = 10**_DIGITS
_LONGEST_HINT = 100  # characters: to search for what is near a longer name would take long
_MOST_COMPARED = 10_000  # names, for the same reason


class ArmNumbers:
    """Arms that are called by their number."""

    def __init__(self, count: int) -> None:
        self.count = check_int("n_arms", count, at_least=1, at_most=MOST_ARMS)

    def name(self, number: int) -> Any:
        """Return what the user calls the arm."""
        return number

    def number(self, arm: Any) -> int:
        """Return the arm's number, or raise."""
        try:
            return check_int("arm", arm, at_most=self.count - 1)
        except ParameterError:
            raise UnknownArmError(
                f"Unknown arm {_short(arm)}. Arms are numbered from 0 to {self.count - 1}."
            ) from None

    def fresh(self, arms: Any) -> range:
        """Return the numbers of new arms: of a count, or those given if they are the next ones."""
        least = 1
        if isinstance(arms, Iterable) and not isinstance(arms, str | bytes):
            wanted = arms if isinstance(arms, range) else _listed(arms, 0)
            new = range(self.count, self.count + len(wanted))
            if wanted != new and list(wanted) != list(new):
                raise ParameterError(
                    f"`arms` must be how many arms to add, because these are called by number, "
                    f"got {_short(wanted)}. For names of your own start with live(arms=[...])."
                )
            arms, least = len(wanted), 0
        added = check_int("arms", arms, at_least=least, at_most=MOST_ARMS - self.count)
        return range(self.count, self.count + added)

    def add(self, numbers: range) -> None:
        """Add what `fresh` returned."""
        self.count = numbers.stop


class ArmNames:
    """Arms that are called by names of the user's: strings or integers."""

    def __init__(self, names: Iterable[Any]) -> None:
        self.names: list[str | int] = []
        self._numbers: dict[Hashable, int] = {}
        self.add(self.fresh(names))
        if not self.names:
            raise ParameterError("`arms` must hold at least one name, got none.")

    @property
    def count(self) -> int:
        """The number of arms that ever were."""
        return len(self.names)

    def name(self, number: int) -> Any:
        """Return what the user calls the arm."""
        return self.names[number]

    def number(self, arm: Any) -> int:
        """Return the arm's number, or raise."""
        # True and 1.0 are equal to 1, and no names
        named = isinstance(arm, str | numbers.Integral) and not isinstance(arm, bool)
        number = self._numbers.get(arm) if named else None
        if number is None:
            text = arm if isinstance(arm, str) else shown(arm)
            raise UnknownArmError(f"Unknown arm {_short(arm)}.{self._hint(text)}")
        return number

    def _hint(self, name: str) -> str:
        if len(name) > _LONGEST_HINT:
            return ""
        known = {str(near)[:_LONGEST_HINT]: near for near in islice(self.names, _MOST_COMPARED)}
        near = difflib.get_close_matches(name, known, n=1)
        return f" Did you mean {_short(known[near[0]])}?" if near else ""

    def fresh(self, arms: Any) -> list[str | int]:
        """Return the names of new arms, or raise."""
        if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
            raise ParameterError(f"`arms` must be a list of names, got {_short(arms)}.")
        if isinstance(arms, set | frozenset):
            raise ParameterError(
                "`arms` must be in an order that is the same in every run, got a set, which is in "
                "none. Pass sorted(arms)."
            )
        names = [_check_name(name) for name in _listed(arms, self.count)]
        seen: set[Hashable] = set()
        for name in names:
            if name in seen:
                raise ParameterError(f"`arms` must not repeat a name, got {_short(name)} twice.")
            if name in self._numbers:
                raise ParameterError(
                    f"`arms` must be new names, got {_short(name)}, which is an arm already. A "
                    f"retired arm keeps its name; restore() brings it back."
                )
            seen.add(name)
        return names

    def add(self, names: list[str | int]) -> None:
        """Add what `fresh` returned."""
        self._numbers.update(zip(names, range(self.count, self.count + len(names)), strict=True))
        self.names += names


Arms = ArmNumbers | ArmNames


def arms_of(n_arms: Any, names: Any) -> Arms:
    """Return the arms that the user asked for, by `n_arms` or by names."""
    if (n_arms is None) == (names is None):
        got = "neither. Pass n_arms=1000, or arms=[...] with names."
        if names is not None:
            got = "both. Leave out `n_arms`: it is the number of names."
        raise ParameterError(f"Exactly one of `n_arms` and `arms` must be given, got {got}")
    return ArmNumbers(n_arms) if names is None else ArmNames(names)


def _check_name(name: Any) -> str | int:
    if isinstance(name, str):
        with contextlib.suppress(UnicodeEncodeError):  # half a character is no text
            name.encode()
            return str.__str__(name)  # NumPy's strings, and members of enumerations, too
    if isinstance(name, numbers.Integral) and not isinstance(name, bool):
        if abs(int(name)) < _LARGEST:
            return int(name)
        raise ParameterError(
            f"`arms` must hold integers of at most {_DIGITS} digits, got {_short(name)}. Use "
            f"strings instead."
        )
    raise ParameterError(
        f"`arms` must hold strings or integers, got {_short(name)}. They are saved with the "
        f"handle; use the item's id."
    )


def _listed(arms: Iterable[Any], there: int) -> list[Any]:
    """Return the arms, if they are not too many with those there are: they may have no end."""
    most = max(0, MOST_NAMES - there)
    listed = list(islice(arms, most + 1))
    if len(listed) > most:
        raise ParameterError(
            f"`arms` must hold at most {MOST_NAMES} names in all, got more. Call arms by number, "
            f"with n_arms=..., and keep the names elsewhere."
        )
    return listed


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60
        self.maxlist = 3

    def repr_int(self, number: int, level: int) -> str:
        return shown(number, 60)


_short = _Short().repr
