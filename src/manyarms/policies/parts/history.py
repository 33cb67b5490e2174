"""The pulls and rewards of every arm over all iterations, and which arms did best.

For policies that restart: an arm's pulls and rewards are added when its iteration ends.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.hash_map import HashMap, clear_map, find, hash_map, insert
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Record, Records, wipe
from manyarms.core.rng import Stream, draw, restart, stream
from manyarms.core.tournament import Tournament, clear, enter, leader, rekey, tournament
from manyarms.policies.parts.randomness import RANKING


class PulledArm(Record):
    """An arm that was pulled before."""

    arm: int
    pulls: int
    total: float
    chosen: int  # the last iteration that chose it as one of the best


class History(NamedTuple):
    """Every arm pulled before, in the order they were remembered."""

    pulled: Records[PulledArm]
    number: HashMap  # arm -> its place in `pulled`
    best: Ints  # places of those that were ranked best, best first
    rank: Tournament
    words: Stream


def history(memory: Memory, n_arms: int, *, arms: int) -> History:
    """Make room for `arms` of `n_arms` arms."""
    return History(
        memory.records(arms, PulledArm),
        hash_map(memory, names=n_arms, entries=arms, values=arms),
        memory.ints(arms, most=arms),
        tournament(memory, arms),
        stream(memory),
    )


@kernel
def reset_history(history: History, key: int) -> None:
    """Forget all arms."""
    restart(history.words, draw(key, RANKING))
    clear_map(history.number)


@kernel
def known(history: History) -> int:
    """Return the number of arms that were pulled before."""
    return history.number.filled[0]


@rare
def remember(history: History, arm: int, pulls: int, total: float) -> None:
    """Add pulls and rewards of an arm."""
    at = find(history.number, arm)
    if history.number.cells[at] == 0:
        place = known(history)
        insert(history.number, at, arm, place)
        wipe(history.pulled, place)
        history.pulled[place].arm = arm
    else:
        place = history.number.cells[at + 1]
    history.pulled[place].pulls += pulls
    history.pulled[place].total += total


@rare
def forget_arm(history: History, arm: int) -> None:
    """Exclude a retired arm from all rankings."""
    at = find(history.number, arm)
    if history.number.cells[at] != 0:
        history.pulled[history.number.cells[at + 1]].pulls = 0


@rare
def rank_best(history: History, count: int, iteration: int) -> int:
    """Choose the arms of the `count` highest means, ties at random; return how many there are."""
    clear(history.rank)
    for place in range(known(history)):
        pulled = history.pulled[place]
        mean = pulled.total / pulled.pulls if pulled.pulls > 0 else -math.inf  # retired
        enter(history.rank, mean)
    chosen = 0
    while chosen < min(count, known(history)):
        place = leader(history.rank, history.words)
        if history.pulled[place].pulls == 0:
            return chosen
        rekey(history.rank, place, -math.inf)
        history.best[chosen] = place
        history.pulled[place].chosen = iteration
        chosen += 1
    return chosen


@kernel
def among_best(history: History, arm: int, iteration: int) -> bool:
    """Whether this iteration chose the arm as one of the best."""
    at = find(history.number, arm)
    if history.number.cells[at] == 0:
        return False
    return history.pulled[history.number.cells[at + 1]].chosen == iteration
