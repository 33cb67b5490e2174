"""The loop for rewards that come late or in batches: `play`, with pulls in flight as they are live.

Each pull's reward is taken from the tape when the pull is made, and told when it is due.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from manyarms.core.jit import kernel
from manyarms.core.memory import Floats, Memory, Records
from manyarms.core.rng import draw
from manyarms.instances._tape import Tape, card_of, favourite, next_reward, rewind
from manyarms.instances._world import World
from manyarms.protocol.in_flight import InFlight, land, launch
from manyarms.protocol.policy import reset

__all__ = ["Ring", "play_late", "ring"]


class Ring(NamedTuple):
    """The pulls in flight: pull t lies at place t modulo `size`, until its reward is told."""

    flight: Records[InFlight]
    reward: Floats
    size: int
    delay: int
    batch: int  # 1 where rewards come one by one


def ring(memory: Memory, *, delay: int, batch: int, pulls: int) -> Ring:
    """Make room for as many pulls in flight as there will be; one of `delay`, `batch` is idle."""
    size = min(max(delay + 1, batch), pulls)
    return Ring(memory.records(size, InFlight), memory.floats(size), size, delay, batch)


@kernel
def due(ring: Ring, time: int) -> int:
    """Return how many rewards are told before pull `time` (from 0) is asked for."""
    if ring.batch > 1:
        return time - time % ring.batch
    return max(0, time - ring.delay)


def play_late(
    state: Any,
    ring: Ring,
    world: World,
    tape: Tape,
    seed: Any,
    first: int,
    start: int,
    stop: int,
    times: Any,
    regret: Any,
    best_pulls: Any,
    distinct: Any,
    favourites: Any,
    arms: Any,
) -> None:
    """Play pulls `start` + 1 to `stop` of the replications from `first` on, as `play` does.

    Parameters
    ----------
    ring
        The pulls in flight; they carry on between the pieces of a replication.
    """
    last = len(times) - 1
    for replication in range(len(best_pulls)):
        key = draw(seed[0], first + replication)
        tape_key = draw(key, 1)
        if start == 0:
            rewind(tape)
            reset(state, draw(key, 0), int(times[last]))
            best_pulls[replication] = 0
            regret[replication, last + 1] = 0.0
        total = regret[replication, last + 1]
        best = best_pulls[replication]
        checkpoint = 0
        while times[checkpoint] <= start:
            checkpoint += 1
        told = due(ring, max(0, start - 1))
        for time in range(start, stop):
            while told < due(ring, time):
                land(state, ring.flight, told % ring.size, ring.reward[told % ring.size])
                told += 1
            place = time % ring.size
            arm = launch(state, ring.flight, place, (time - 1) % ring.size if told < time else -1)
            number = card_of(tape, world, tape_key, arm)
            if number < 0:  # kernels do not raise: the caller does
                distinct[replication] = -1
                favourites[replication] = arm
                return
            mean = tape.card[number].mean
            ring.reward[place] = next_reward(tape, world, number)
            total += world.best_mean - mean
            best += int(mean >= world.good_mean)
            if time < arms.shape[1]:
                arms[replication, time] = arm
            if time + 1 == times[checkpoint]:
                regret[replication, checkpoint] = total
                checkpoint += 1
        regret[replication, last + 1] = total
        best_pulls[replication] = best
        if stop == times[last]:
            distinct[replication] = tape.number.filled[0]
            favourites[replication] = favourite(tape)
