"""Arms in random order, one at a time: an arm is pulled until it is left, and not met again.

When all n arms were left a new random order begins, and nothing is remembered of the old one; the
sources have infinitely many arms and need no such rule. A visit to an arm is the slot, so that a
reward that comes after its arm was left is known by it, and dropped.

Rules that count successes are made for rewards 0 and 1; others are rounded at random.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

from manyarms.core.jit import kernel
from manyarms.core.memory import Memory, Record, Records
from manyarms.core.rng import Stream, draw, restart, stream
from manyarms.core.sampler import Sampler, clear_sampler, sampler
from manyarms.policies.parts.randomness import ROUNDING, draw_fresh, is_success, reset_order
from manyarms.protocol.parameters import whole

Length: TypeAlias = Annotated[int, whole(at_least=1, at_most=1 << 40)]  # of a run of rewards


class Visit(Record):
    """The arm in play, or the last one."""

    number: int  # of the visit, from 1
    arm: int
    over: int  # 1 once the arm is left
    successes: int
    failures: int


class OneByOne(NamedTuple):
    """The arm in play, and the order of the next ones."""

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
    reset_order(arms.sampler, arms.words, key)
    restart(arms.rounding, draw(key, ROUNDING))
    arms.visit[0].number = 0
    arms.visit[0].over = 1


@kernel
def arm_in_play(arms: OneByOne) -> tuple[int, int]:
    """Return the visit and its arm; if the last arm was left, go on to the next."""
    visit = arms.visit[0]
    if visit.over == 1:
        if arms.sampler.drawn[0] >= arms.sampler.n[0]:
            clear_sampler(arms.sampler)
        visit.number += 1
        visit.arm = draw_fresh(arms.sampler, arms.words)
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
    if is_success(reward, arms.rounding):
        arms.visit[0].successes += 1
    else:
        arms.visit[0].failures += 1
