"""Events and arms leave as a stream: NDJSON, CSV, a CSV for spreadsheets, or Parquet."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import sys
from collections.abc import AsyncGenerator

from manyarms.errors import MissingExtraError
from manyarms.serve.errors import refuse, unknown_experiment
from manyarms.serve.exporter import EXPORTS, FORMS, STORE
from manyarms.serve.node import unavailable
from manyarms.serve.requests import Request, Response
from manyarms.serve.service import Service

__all__ = ["MOST_EXPORTS", "export"]

MOST_EXPORTS = 3  # at a time: each has a process and a connection to the database
_PIECE = 64 << 10  # bytes


async def export(service: Service, request: Request) -> Response:
    """Send all events, or all arms, as a stream."""
    what, form = request.query.get("what", "events"), request.query.get("format", "ndjson")
    if what not in EXPORTS or form not in FORMS:
        raise refuse(
            422,
            "invalid",
            f"`what` must be events or arms, and `format` one of {', '.join(FORMS)}, got "
            f"{what[:100]!r} and {form[:100]!r}.",
        )
    name = request.experiment
    if await service.node.read(lambda database: database.find(name)) is None:
        raise unknown_experiment(name)
    if form == "parquet" and importlib.util.find_spec("pyarrow") is None:
        error = MissingExtraError("pyarrow", "to export Parquet")
        raise refuse(501, "no_parquet", str(error))
    if service.exports >= MOST_EXPORTS:
        raise unavailable(f"This node makes {MOST_EXPORTS} exports already. Wait for one to end.")
    stream = _exported(service, name, what, form)
    await anext(stream)
    ending = "csv" if form == "spreadsheet" else form
    disposition = {"content-disposition": f'attachment; filename="{name}-{what}.{ending}"'}
    return Response(headers=disposition, kind=FORMS[form][0], stream=stream)


async def _exported(service: Service, *words: str) -> AsyncGenerator[bytes]:
    """Yield nothing as soon as the first bytes are there; then these, and all others."""
    service.exports += 1
    process: asyncio.subprocess.Process | None = None
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "manyarms.serve.exporter", *words),
            stdout=asyncio.subprocess.PIPE,
            limit=_PIECE,
            env=os.environ | {STORE: service.settings.store},
        )
        assert process.stdout is not None
        piece = await process.stdout.read(_PIECE)
        if not piece and await process.wait():
            raise unavailable("The export cannot be made; the log of the node says why.")
        yield b""  # now the head may be sent
        while piece:
            yield piece
            piece = await process.stdout.read(_PIECE)
        if await process.wait():
            raise unavailable("The export ended early.")
    finally:
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()  # reads what is left in the pipe, too, which closes it
        service.exports -= 1
