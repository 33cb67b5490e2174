"""Uniform: pull a random arm each time; a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.memory import Memory
from manyarms.core.rng import Stream, below, draw, next_word, restart, stream
from manyarms.policies.parts.randomness import FRESH
from manyarms.protocol import Policy, plays


class UniformState(NamedTuple):
    """The number of arms."""

    n_arms: int
    words: Stream


def uniform_reset(state: UniformState, key: int, horizon: int) -> None:
    restart(state.words, draw(key, FRESH))


def uniform_ask(state: UniformState) -> tuple[int, int]:
    arm = below(next_word(state.words), state.n_arms)
    return arm, arm


def uniform_tell(state: UniformState, slot: int, reward: float) -> None:
    pass


plays(UniformState, reset=uniform_reset, ask=uniform_ask, tell=uniform_tell)


@dataclass(frozen=True, kw_only=True)
class Uniform(Policy):
    r"""Pull one of the n arms, each with probability 1/n.

    .. math:: P(A_t = a) = \frac1n

    Notes
    -----
    It assumes nothing and learns nothing: the regret is T times the average gap. Arms are drawn
    with replacement. Anytime. The tests check the probabilities. Cost per pull: O(1).

    Examples
    --------
    >>> from manyarms.policies import Uniform
    >>> pulls = Uniform().live(n_arms=1_000_000_000, seed=1).ask(100)
    >>> len({pull.arm for pull in pulls})
    100
    """

    name = "uniform"
    anytime = True

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> UniformState:
        return UniformState(n_arms, stream(memory))
