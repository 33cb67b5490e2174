"""Attacks on a cluster of our own: whoever it listens to runs code as us."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Iterator
from typing import Any

from manyarms.simulation import dask as ours
from tests.attack.arena import Arena, Attempt, attack


@attack("cluster: strangers on this machine")
def strangers(arena: Arena) -> Iterator[Attempt]:
    if importlib.util.find_spec("distributed") is None:
        return
    distributed = ours.need_dask()
    own = distributed.Security.temporary()
    with ours._local(1, own) as address, ours._connected(address, own) as client:
        workers = client.scheduler_info()["workers"]
        nannies = [worker["nanny"] for worker in workers.values()]
        for place in (address, *workers, *nannies):
            for what, security in (
                ("without credentials", distributed.Security()),
                ("with credentials of its own", distributed.Security.temporary()),
            ):
                for scheme in ("tls:", "tcp:"):
                    target = place.replace("tls:", scheme)
                    yield f"{target}, {what}", not asyncio.run(_listens(target, security))


async def _listens(address: str, security: Any) -> bool:
    connect = ours.need_dask().comm.connect
    try:
        comm = await connect(address, timeout=3, **security.get_connection_args("client"))
    except (OSError, TypeError, RuntimeError):  # Dask's words for wrong credentials
        return False
    await comm.close()
    return True
