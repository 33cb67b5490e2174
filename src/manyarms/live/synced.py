"""The result of `sync_arms`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from manyarms.core.tabular import plain
from manyarms.inference.estimates import count

_SHOWN = 3  # names in a line


@dataclass(frozen=True)
class SyncedArms:
    """The changes that `sync_arms` made.

    Attributes
    ----------
    added, restored, retired
        The names of the arms that were added, restored and retired.
    n_arms
        The number of available arms now.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.Prospector().live(arms=["red", "blue"])
    >>> print(live.sync_arms(["blue", "green"]))
    2 arms now
    1 added: 'green'
    1 retired: 'red'
    >>> print(live.sync_arms(["blue", "green"]))
    2 arms now: nothing has changed
    """

    added: Sequence[str | int]
    restored: Sequence[str | int]
    retired: Sequence[str | int]
    n_arms: int

    def __bool__(self) -> bool:
        """Return whether anything has changed."""
        return bool(self.added or self.restored or self.retired)

    def __str__(self) -> str:
        now = f"{count(self.n_arms, 'arm')} now"
        if not self:
            return f"{now}: nothing has changed"
        done = {"added": self.added, "restored": self.restored, "retired": self.retired}
        return "\n".join([now, *(_line(what, names) for what, names in done.items() if names)])


def _line(what: str, names: Sequence[str | int]) -> str:
    shown = ", ".join(plain(repr(name), at_most=40) for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{len(names)} {what}: {shown}{more}"
