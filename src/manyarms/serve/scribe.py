"""The second process of a node: follows logs, makes snapshots, computes views.

It is asked through its standard input, and answers on its standard output: frames of a length (4
bytes) and MessagePack. It ends when its input does. Serving does not depend on it.
"""

from __future__ import annotations

import logging
import os
import select
import struct
import sys
import time
from typing import Any

import msgspec

from manyarms.errors import ParameterError
from manyarms.live.databases import Database, UnreachableError, database_of
from manyarms.serve.game import ReplayError
from manyarms.serve.replica import GoneError, Replica
from manyarms.serve.views import VIEWS

__all__ = ["Scribe", "main"]

LENGTH = struct.Struct("<I")
TICK = 0.25  # seconds between looks
SNAPSHOT_EVENTS = 5000  # between snapshots, at least
_REST = 10  # times as long as a snapshot took, until the next
_KEYS_KEPT = 48 * 3600.0
_CLEANED_EVERY = 600.0  # seconds
_MOST_REPLICAS = 64
_logger = logging.getLogger("manyarms.scribe")


class Scribe:
    """Follows the experiments that one node owns, and others while somebody looks at them."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner
        self._replicas: dict[str, Replica] = {}  # the last used last
        # by id, since a name may be given again: head of the last snapshot, not before
        self._saved: dict[int, tuple[int, float]] = {}
        self._failures: dict[str, str] = {}
        self._cleaned = 0.0

    def tick(self) -> None:
        """Follow what the node owns; make snapshots where they are due."""
        rows = self._database.experiments()
        for row in rows:
            if row.owner != self._owner or row.spec == "null":
                continue
            try:
                replica = self._replica(row.name)
                replica.follow_to(row)
                self._save_if_due(replica)
                self._failures.pop(row.name, None)
            except UnreachableError:
                raise
            except Exception as error:  # the others are followed all the same
                if self._failures.get(row.name) != repr(error):  # said once
                    self._failures[row.name] = repr(error)
                    _logger.exception("%s cannot be followed", row.name)
        deleted = next((row for row in rows if row.state == "deleted"), None)
        if deleted is not None:
            self._database.purge(deleted.id)  # a little now: others have their turn
        due = time.monotonic() - self._cleaned > _CLEANED_EVERY
        if due and not any(self._database.drop_old_keys(row.id, _KEYS_KEPT) for row in rows):
            self._cleaned = time.monotonic()

    def _replica(self, name: str) -> Replica:
        replica = self._replicas.pop(name, None)
        known = None if replica is None else self._database.find(name)
        if replica is None or known is None or known.id != replica.row.id:
            replica = Replica(self._database, name)
        self._replicas[name] = replica
        if len(self._replicas) > _MOST_REPLICAS:
            del self._replicas[next(iter(self._replicas))]
        return replica

    def _save_if_due(self, replica: Replica) -> None:
        game, now = replica.game, time.monotonic()
        if replica.alarm or game.live is None:
            return
        if game.id not in self._saved:
            last = self._database.snapshot(game.id)
            self._saved[game.id] = (0 if last is None else last[0]), 0.0
        head, not_before = self._saved[game.id]
        if game.head - head >= SNAPSHOT_EVENTS and now >= not_before:
            self._database.save(game.id, game.head, game.engine, *game.snapshot())
            end = time.monotonic()
            self._saved[game.id] = game.head, end + _REST * (end - now)

    def status(self) -> dict[str, Any]:
        """Return how far each replica is, and what is wrong with it."""
        return {
            name: {
                "head": replica.game.head,
                "alarm": replica.alarm,
                "saved": self._saved.get(replica.game.id, (None, 0))[0],
            }
            for name, replica in self._replicas.items()
        }

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return a view, or why there is none."""
        what = request["view"]
        try:
            if what == "status":
                return {"ok": self.status()}
            replica = self._replica(request["experiment"])
            replica.follow()
            return {"ok": VIEWS[what](replica, **request["with"])}
        except GoneError as error:
            self._replicas.pop(request.get("experiment", ""), None)
            return {"error": "unknown", "message": str(error)}
        except ParameterError as error:  # another class of error is a fault of ours
            return {"error": "invalid", "message": str(error)}
        except (UnreachableError, ReplayError) as error:
            return {"error": "unavailable", "message": str(error)}
        except Exception as error:  # one bad question must not end the scribe
            _logger.exception("the view %s failed", what)
            return {"error": "unavailable", "message": f"The view failed: {error}"}


def main() -> None:
    """Run a scribe; its environment says of what."""
    url, owner = os.environ["MANYARMS_SCRIBE_STORE"], os.environ["MANYARMS_SCRIBE_OWNER"]
    source, sink = sys.stdin.buffer.fileno(), sys.stdout.buffer
    database = database_of(url)
    database.open()
    scribe = Scribe(database, owner)
    encode = msgspec.msgpack.Encoder().encode
    due = 0.0
    while True:
        ready, _, _ = select.select([source], [], [], max(0.0, due - time.monotonic()))
        try:
            if ready:
                data = _frame(source)
                answer = encode(scribe.answer(msgspec.msgpack.decode(data)))
                sink.write(LENGTH.pack(len(answer)) + answer)
                sink.flush()
            if time.monotonic() >= due:
                scribe.tick()
                due = time.monotonic() + TICK
        except (EOFError, BrokenPipeError):
            return
        except UnreachableError as error:
            _logger.warning("database away: %s", error)
            due = time.monotonic() + 2 * TICK


def _frame(source: int) -> bytes:
    return _exactly(source, LENGTH.unpack(_exactly(source, LENGTH.size))[0])


def _exactly(source: int, count: int) -> bytes:
    parts = []
    while count:
        part = os.read(source, count)
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


if __name__ == "__main__":
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the node's: its end is ours
    main()
