"""What the leader deletes bit by bit, so that others have their turn."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from manyarms.serve import tables
from manyarms.serve.experiment import Experiment

if TYPE_CHECKING:
    from manyarms.serve.leader import Leader

SOME_ARMS = 2000  # arms of a transaction: others wait some milliseconds for it
_KEYS_KEPT = 48 * 3600.0  # seconds


async def purge(leader: Leader) -> None:
    """Delete the rows of experiments that were deleted."""
    while leader.leads and await leader.write(tables.purge):
        await asyncio.sleep(0.01)


async def begin(leader: Leader) -> None:
    """Delete what an earlier leader began to delete, or did not finish to make."""
    await leader.write(tables.bury_hidden)
    await purge(leader)


async def drop_old_keys(leader: Leader) -> None:
    """Delete keys of asks that nobody repeats any more."""
    for experiment in list(leader.games.values()):
        drop = partial(tables.drop_old_keys, experiment=experiment.id, seconds=_KEYS_KEPT)
        while leader.leads and await leader.write(drop):
            await asyncio.sleep(0.01)


async def drop_unpublished(leader: Leader, experiment: Experiment) -> None:
    """Delete arms that an import which did not end has left."""
    begin = experiment.live.arms.count if experiment.live is not None else 0
    end = await leader.read(partial(tables.end_of_arms, experiment=experiment.id))
    while begin < end and not experiment.gone:
        await leader.write(
            partial(
                tables.drop_unpublished,
                experiment=experiment.id,
                begin=begin,
                end=begin + SOME_ARMS,
            )
        )
        begin += SOME_ARMS
