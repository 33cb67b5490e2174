"""The one loop: ask, read the tape, tell, add up the regret."""

from __future__ import annotations

from typing import Any

from manyarms.core.rng import draw
from manyarms.instances._tape import Tape, card_of, favourite, next_reward, rewind
from manyarms.instances._world import World
from manyarms.protocol.policy import ask, reset, tell

__all__ = ["play"]


def play(
    state: Any,
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
    """Play pulls `start` + 1 to `stop` of the replications from `first` on.

    A replication may be played in pieces: then it is alone in the block, and the state, the tape
    and the counts in `best_pulls` and `regret` carry on.

    Parameters
    ----------
    seed
        [the key of the run]: an array, because Numba takes a plain integer for a signed one.
    times
        The checkpoints; the last one is the horizon.
    regret
        By replication and checkpoint, written at each checkpoint; one more column carries the
        regret between the pieces of a replication.
    best_pulls, distinct, favourites
        By replication, written at the end.
    arms
        By replication and time, the arm pulled: as many as there are columns.
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
        for time in range(start, stop):
            slot, arm = ask(state)
            number = card_of(tape, world, tape_key, arm)
            if number < 0:  # kernels do not raise: the caller does
                distinct[replication] = -1
                favourites[replication] = arm
                return
            mean = tape.card[number].mean
            reward = next_reward(tape, world, number)
            tell(state, slot, reward)
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
