"""MOSS on a set of arms drawn at random, each drawn only when its first pull is due."""

from __future__ import annotations

from typing import NamedTuple

from manyarms.core.jit import kernel
from manyarms.core.memory import Memory
from manyarms.core.rng import Stream, draw, next_word, restart, stream
from manyarms.core.sampler import Sampler, clear_sampler, pick, sampler
from manyarms.core.tournament import leader
from manyarms.policies._randomness import FRESH, TIES
from manyarms.policies._slots import Slots, begin, open_slot, slots

__all__ = ["FreshArms", "choose", "fresh_arms", "reset_fresh_arms", "start_on"]


class FreshArms(NamedTuple):
    """Slots of arms that were drawn, and the sampler that draws the next one."""

    slots: Slots
    sampler: Sampler
    words: Stream


def fresh_arms(
    memory: Memory,
    n_arms: int,
    *,
    arms: int,
    spread: float,
    mixture_spread: float | None = None,
) -> FreshArms:
    """Make room for `arms` of `n_arms` arms."""
    return FreshArms(
        slots(memory, arms, spread=spread, mixture_spread=mixture_spread),
        sampler(memory, n_arms, draws=arms),
        stream(memory),
    )


@kernel
def reset_fresh_arms(arms: FreshArms, key: int) -> None:
    """Forget everything and take the random words that belong to `key`."""
    restart(arms.words, draw(key, FRESH))
    restart(arms.slots.ties, draw(key, TIES))
    clear_sampler(arms.sampler)


@kernel
def start_on(arms: FreshArms, members: int, horizon: int) -> None:
    """Begin MOSS on `members` arms not drawn yet, with the given H."""
    begin(arms.slots, members, horizon)


@kernel
def choose(arms: FreshArms) -> int:
    """Return the slot of largest index; arms never pulled come first, in random order."""
    number = arms.slots.rank.number
    run = arms.slots.run[number]
    if run.opened < run.members:
        return open_slot(arms.slots, pick(arms.sampler, number, next_word(arms.words)))
    return leader(arms.slots.rank)
