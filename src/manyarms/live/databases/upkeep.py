"""What keeps the tables tidy: rows that nobody needs go, some at a time; backups are made safe."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import Any

_AT_ONCE = 2000  # rows that are deleted
# what belongs to an experiment, and the column that numbers it there
_TABLES = {
    "events": "seq",
    "ask_keys": "key",
    "arms": "number",
    "minutes": "minute",
    "snapshots": "seq",
}


class Upkeep(ABC):
    """The part of a database that is seldom used."""

    now: str  # the clock, in SQL

    @abstractmethod
    def run(self, sql: str, **values: Any) -> list[Any]:
        """Run one statement; return its rows. Raises `UnreachableError` if there is no answer."""

    @abstractmethod
    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """Do all of it, or nothing."""

    def bury(self, experiment: int, epoch: int, *, in_any_state: bool = False) -> bool:
        """Take an experiment out of sight, if we are its owner; its name is free at once.

        It must be stopped or without arms, unless it may be `in_any_state`. What it has is deleted
        by `purge`, bit by bit.
        """
        ended = "" if in_any_state else "AND (state = 'stopped' OR n_arms = 0) "
        gone = self.run(
            "UPDATE experiments SET name = '~' || id || ' ' || name, spec = 'null', "
            "state = 'deleted', epoch = epoch + 1, owner = '', lease_until = 0 "
            f"WHERE id = :x AND epoch = :epoch {ended}RETURNING id",
            x=experiment,
            epoch=epoch,
        )
        return bool(gone)

    def purge(self, experiment: int) -> None:
        """Delete some rows of a buried experiment, the experiment itself with the last ones."""
        left = _AT_ONCE
        with self.transaction():
            for table, column in _TABLES.items():
                gone = self.run(
                    f"DELETE FROM {table} WHERE experiment = :x AND {column} IN (SELECT {column} "
                    f"FROM {table} WHERE experiment = :x LIMIT :left) RETURNING 1",
                    x=experiment,
                    left=left,
                )
                left -= len(gone)
                if left <= 0:
                    return
            self.run("DELETE FROM experiments WHERE id = :x AND state = 'deleted'", x=experiment)

    def after_restore(self) -> None:
        """Make a database safe that was restored from a backup: what it had since is unknown.

        Tickets of the lost time are of an earlier generation. Epochs leap beyond those of the lost
        time, so that a node that still runs since then cannot pass the fence by chance.
        """
        self.run(
            "UPDATE experiments SET generation = generation + 1, epoch = epoch + 1000000, "
            "owner = '', lease_until = 0"
        )

    def drop_old_keys(self, experiment: int, seconds: float, *, most: int = _AT_ONCE) -> bool:
        """Forget asks that are older, some at a time; return whether there were any."""
        gone = self.run(
            "DELETE FROM ask_keys WHERE experiment = :x AND key IN (SELECT key FROM ask_keys "
            f"WHERE experiment = :x AND at < {self.now} - :seconds ORDER BY at LIMIT :most) "
            "RETURNING 1",
            x=experiment,
            seconds=seconds,
            most=most,
        )
        return bool(gone)

    def end_of_arms(self, experiment: int) -> int:
        """Return the number after the last arm, those of imports that did not end among them."""
        rows = self.run("SELECT max(number) FROM arms WHERE experiment = :x", x=experiment)
        return 0 if rows[0][0] is None else int(rows[0][0]) + 1

    def drop_unpublished(self, experiment: int, epoch: int, begin: int, end: int) -> None:
        """Delete some arms that an import which did not end has left, if we are the owner."""
        self.run(
            "DELETE FROM arms WHERE experiment = :x AND number >= :begin AND number < :end AND "
            "EXISTS (SELECT 1 FROM experiments WHERE id = :x AND epoch = :epoch AND "
            "n_arms <= :begin)",
            x=experiment,
            begin=begin,
            end=end,
            epoch=epoch,
        )
