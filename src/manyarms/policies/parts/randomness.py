"""The purposes of random words; each has its own key, so that draws are independent."""

from __future__ import annotations

from typing import Any

from manyarms.core.jit import kernel
from manyarms.core.rng import Stream, draw, next_word, restart
from manyarms.core.sampler import Sampler, clear_sampler, pick

FRESH = 1  # which arm is drawn next: one word for each arm
TIES = 2  # which of several leaders is pulled: one word each time
ORDER = 3  # which fresh arm or waiting mixture-arm is opened: one word each time
MIXTURES = 4  # one word for each draw from a mixture-arm
RANKING = 5  # empMOSS++ and sequential halving: ties among equal means when a set is chosen
EPOCHS = 6  # Parallel: ties among subroutines
PHASES = 7  # Doubling: the keys of its restarts
ROUNDING = 8  # Thompson sampling: one word for each reward between 0 and 1
SUBSET = 10  # SubSampled: the key of the inner policy
SAMPLES = 11  # Thompson sampling: one word for each pull
GUARDED = 12  # Guarded: the key of the inner policy


@kernel
def reset_order(sampler: Sampler, words: Stream, key: int) -> None:
    """Start a new random order of the arms."""
    restart(words, draw(key, FRESH))
    clear_sampler(sampler)


@kernel
def reset_draws(state: Any, key: int) -> None:
    """Start a new random order and new tie-breaks of a state with `sampler`, `words` and `ties`."""
    reset_order(state.sampler, state.words, key)
    restart(state.ties, draw(key, TIES))


@kernel
def draw_fresh(sampler: Sampler, words: Stream) -> int:
    """Return the next arm of a random order; there must be one."""
    return pick(sampler, 0, next_word(words))
