"""Arms in random order, one at a time: an arm is pulled until it is left, and not met again.

When all n arms were left a new random order begins, and nothing is remembered of the old one; the
sources have infinitely many arms and need no such rule. A visit to an arm is the slot, so that a
reward that comes after its arm was left is known by it, and dropped.

Rules that count successes are made for rewards 0 and 1. A reward between them counts as a success
with the probability it says, which keeps the mean; one outside of [0, 1] as the nearer end.
"""

from __future__ import annotations

from typing import NamedTuple

from manyarms.core.jit import kernel
from manyarms.core.memory import Memory, Record, Records
from manyarms.core.rng import Stream, draw, next_word, restart, stream, unit
from manyarms.core.sampler import Sampler, clear_sampler, pick, sampler
from manyarms.policies.parts.randomness import FRESH, ROUNDING

__all__ = ["OneByOne", "count", "current", "in_play", "leave", "one_by_one", "reset_one_by_one"]


class Visit(Record):
    """The arm in play, or the last one that was."""

    number: int  # of the visit, from 1
    arm: int
    over: int  # 1 once the arm is left
    successes: int
    failures: int


class OneByOne(NamedTuple):
    """The arm in play, and the order the next ones come in."""

    visit: Records[Visit]  # [visit]
    sampler: Sampler
    words: Stream
    rounding: Stream


def one_by_one(memory: Memory, n_arms: int, *, pulls: int) -> OneByOne:
    """Make room for visits to `n_arms` arms in `pulls` pulls."""
    order = sampler(memory, n_arms, draws=min(n_arms, pulls))
    return OneByOne(memory.records(1, Visit), order, stream(memory), stream(memory))


@kernel
def reset_one_by_one(arms: OneByOne, key: int) -> None:
    """Begin a new order with the random words that belong to `key`."""
    restart(arms.words, draw(key, FRESH))
    restart(arms.rounding, draw(key, ROUNDING))
    clear_sampler(arms.sampler)
    arms.visit[0].number = 0
    arms.visit[0].over = 1


@kernel
def current(arms: OneByOne) -> tuple[int, int]:
    """Return the visit and the arm in play; if the last one was left, the next."""
    visit = arms.visit[0]
    if visit.over == 1:
        if arms.sampler.drawn[0] >= arms.sampler.n[0]:
            clear_sampler(arms.sampler)
        visit.number += 1
        visit.arm = pick(arms.sampler, 0, next_word(arms.words))
        visit.over = 0
        visit.successes = 0
        visit.failures = 0
    return visit.number, visit.arm


@kernel
def in_play(arms: OneByOne, slot: int) -> bool:
    """Whether this visit still goes on."""
    return arms.visit[0].number == slot and arms.visit[0].over == 0


@kernel
def leave(arms: OneByOne) -> None:
    """Leave the arm in play for good."""
    arms.visit[0].over = 1


@kernel
def count(arms: OneByOne, reward: float) -> None:
    """Count a success or a failure of the arm in play."""
    success = reward >= 1.0
    if 0.0 < reward < 1.0:
        success = unit(next_word(arms.rounding)) < reward
    if success:
        arms.visit[0].successes += 1
    else:
        arms.visit[0].failures += 1
