"""The second process of a node, which follows logs, makes snapshots and computes views; its link.

It is asked through its standard input, and answers on its standard output: frames of a length (4
bytes) and MessagePack. It ends when its input does. Serving does not depend on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import struct
import sys
import time
from typing import Any, get_type_hints

import msgspec

from manyarms.errors import ParameterError
from manyarms.live.databases import Database, UnreachableError, database_of
from manyarms.serve.errors import invalid, unavailable, unknown_experiment
from manyarms.serve.game import ReplayError
from manyarms.serve.replica import GoneError, Replica
from manyarms.serve.views import VIEWS

LENGTH = struct.Struct("<I")
TICK = 0.25  # seconds between looks
SNAPSHOT_EVENTS = 5000  # between snapshots, at least
_REST = 10  # times as long as a snapshot took, until the next
_KEYS_KEPT = 48 * 3600.0
_CLEANED_EVERY = 600.0  # seconds
_MOST_REPLICAS = 64
_PATIENCE = 20.0  # seconds for a view
_ANSWERS = {name: get_type_hints(view)["return"] for name, view in VIEWS.items()}
_ANSWERS["status"] = dict[str, Any]
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
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    database = database_of(url)
    database.open()
    scribe = Scribe(database, owner)
    encode = msgspec.msgpack.Encoder().encode
    due = 0.0
    while True:
        ready, _, _ = select.select([source], [], [], max(0.0, due - time.monotonic()))
        try:
            if ready:
                answer = encode(scribe.answer(msgspec.msgpack.decode(_frame())))
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


def _frame() -> bytes:
    """Return the next request: there is one at a time, so nothing is left in the buffer."""
    return _exactly(LENGTH.unpack(_exactly(LENGTH.size))[0])


def _exactly(count: int) -> bytes:
    data = sys.stdin.buffer.read(count)
    if len(data) < count:
        raise EOFError
    return data


class ScribeLink:
    """Starts the scribe, starts it again when it dies, and asks it for views."""

    def __init__(self, url: str, owner: str) -> None:
        # not among the arguments, which everybody may read: there may be a password in it
        self._environment = os.environ | {
            "MANYARMS_SCRIBE_STORE": url,
            "MANYARMS_SCRIBE_OWNER": owner,
        }
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self.status: dict[str, Any] | None = None

    async def start(self) -> None:
        """Start the process; it takes half a second until it answers."""
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "manyarms.serve.scribe"),
            stdin=pipe,
            stdout=pipe,
            limit=1 << 26,
            env=self._environment,
        )

    async def view(self, what: str, experiment: str, **chosen: Any) -> Any:
        """Return a view of an experiment: a type of `messages`."""
        return await self._ask({"view": what, "experiment": experiment, "with": chosen})

    async def look(self) -> None:
        """Ask how the scribe is doing."""
        try:
            self.status = await self._ask({"view": "status"})
        except Exception:
            self.status = None

    async def _ask(self, request: dict[str, Any]) -> Any:
        # whoever asks may go away: the answer is read all the same, so that the next is the next
        data = await asyncio.shield(asyncio.ensure_future(self._in_turn(request)))
        answer = msgspec.msgpack.decode(data)
        if "ok" in answer:
            return msgspec.convert(answer["ok"], _ANSWERS[request["view"]])
        if answer["error"] == "unknown":
            raise unknown_experiment(request["experiment"])
        if answer["error"] == "invalid":
            raise invalid(answer["message"])
        raise unavailable(answer["message"])

    async def _in_turn(self, request: dict[str, Any]) -> bytes:
        async with self._turn:
            try:
                async with asyncio.timeout(_PATIENCE):
                    return await self._exchange(msgspec.msgpack.encode(request))
            except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
                self._kill()
                raise unavailable("The view is not there: the scribe is started anew.") from error

    async def _exchange(self, data: bytes) -> bytes:
        if self._process is None or self._process.returncode is not None:
            await self.start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(LENGTH.pack(len(data)) + data)
        await process.stdin.drain()
        (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
        return await process.stdout.readexactly(length)

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 2)
        except TimeoutError:
            process.kill()
            await process.wait()


if __name__ == "__main__":
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the node's: its end is ours
    try:
        main()
    except UnreachableError as error:  # when it starts: the node starts it again
        _logger.warning("database away: %s", error)
        sys.exit(1)
