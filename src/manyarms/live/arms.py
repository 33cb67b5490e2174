"""Arms by the user's names, and what was seen of each arm that was pulled."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterable
from typing import Any

from manyarms.core.checks import check_int
from manyarms.errors import ParameterError, UnknownArmError
from manyarms.live.protocol import MOST_ARMS

__all__ = ["ArmNames", "ArmNumbers", "Arms", "Tally", "arms_of"]


class Tally:
    """What was seen of one arm: the pulls asked for, the rewards told, their sum."""

    __slots__ = ("asked", "told", "total")

    def __init__(self, asked: int = 0, told: int = 0, total: float = 0.0) -> None:
        self.asked = asked
        self.told = told
        self.total = total


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
                f"Unknown arm {arm!r}. Arms are numbered from 0 to {self.count - 1}."
            ) from None

    def add(self, arms: Any) -> int:
        """Add so many arms, or those of the next numbers; return how many."""
        if isinstance(arms, Iterable) and not isinstance(arms, str | bytes):
            numbers = list(arms)
            if numbers != list(range(self.count, self.count + len(numbers))):
                raise ParameterError(
                    f"`arms` must be how many arms to add, because these are called by number, "
                    f"got {_few(numbers)}. For names of your own start with live(arms=[...])."
                )
            arms = len(numbers)
        most = MOST_ARMS - self.count
        added = check_int("arms", arms, at_least=1, at_most=most)
        self.count += added
        return added


class ArmNames:
    """Arms that are called by names of the user's: strings or integers."""

    def __init__(self, names: Iterable[Any]) -> None:
        self.names: list[str | int] = []
        self._numbers: dict[Hashable, int] = {}
        if self.add(names) == 0:
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
        try:
            return self._numbers[arm]
        except (KeyError, TypeError):
            near = difflib.get_close_matches(str(arm), map(str, self.names[:10_000]), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UnknownArmError(f"Unknown arm {arm!r}.{hint}") from None

    def add(self, arms: Any) -> int:
        """Add arms; return how many. Nothing changes if one of them is refused."""
        if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
            raise ParameterError(f"`arms` must be a list of names, got {arms!r}.")
        names = [_check_name(name) for name in arms]
        fresh: dict[Hashable, int] = {}
        for name in names:
            if name in self._numbers or name in fresh:
                raise ParameterError(f"`arms` must hold new names, each once, got {name!r} again.")
            fresh[name] = len(self.names) + len(fresh)
        self._numbers |= fresh
        self.names += names
        return len(names)


Arms = ArmNumbers | ArmNames


def arms_of(n_arms: Any, names: Any) -> Arms:
    """Return the arms that the user asked for, by `n_arms` or by names."""
    if (n_arms is None) == (names is None):
        raise ParameterError(
            f"`n_arms` or `arms` must be given, one of them, got n_arms={n_arms!r} and "
            f"arms={'None' if names is None else '...'}."
        )
    return ArmNumbers(n_arms) if names is None else ArmNames(names)


def _check_name(name: Any) -> str | int:
    if isinstance(name, bool) or not isinstance(name, str | int):
        try:
            return check_int("arms", name, at_least=-(1 << 62), at_most=1 << 62)  # NumPy's, too
        except ParameterError:
            raise ParameterError(
                f"`arms` must hold strings or integers, got {name!r}. They are saved with the "
                f"handle; use the item's id."
            ) from None
    return name


def _few(items: list[Any]) -> str:
    return repr(items) if len(items) <= 3 else f"[{', '.join(map(repr, items[:3]))}, …]"
