"""The node's side of the pipe to its scribe."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import Any

import msgspec

from manyarms.serve import messages as m
from manyarms.serve.errors import refuse, unknown_experiment
from manyarms.serve.node import unavailable
from manyarms.serve.scribe import LENGTH

__all__ = ["ScribeLink"]

_PATIENCE = 20.0  # seconds for a view
_ANSWERS: dict[str, Any] = {
    "summary": m.ExperimentSummary,
    "leaders": m.Leaders,
    "verdict": m.VerdictView,
    "arms": m.ArmPage,
    "arm": m.ArmView | None,
    "arm_at": m.ArmView | None,
    "minutes": m.Minutes,
    "in_flight": m.InFlightView,
    "exploring": m.Exploring,
    "status": dict[str, Any],
}


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
        """Return a view."""
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
            raise refuse(422, "invalid", answer["message"])
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
