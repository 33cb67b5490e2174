"""Uniform: pull a random arm each time; a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.hash_map import HashMap, add_name, clear_map, contains, hash_map
from manyarms.core.memory import Ints, Memory
from manyarms.core.rng import Stream, below, draw, next_word, restart, stream
from manyarms.policies.parts.randomness import FRESH
from manyarms.protocol import Policy, plays


class UniformState(NamedTuple):
    """The number of arms, the arms that were retired, and the random stream."""

    n_arms: Ints  # [number]
    retired: HashMap
    initial: int
    words: Stream


def uniform_reset(state: UniformState, key: int, horizon: int) -> None:
    restart(state.words, draw(key, FRESH))
    state.n_arms[0] = state.initial
    clear_map(state.retired)


def uniform_ask(state: UniformState) -> tuple[int, int]:
    arm = below(next_word(state.words), state.n_arms[0])
    while contains(state.retired, arm):
        arm = below(next_word(state.words), state.n_arms[0])
    return arm, arm


def uniform_tell(state: UniformState, slot: int, reward: float) -> None:
    pass


def uniform_arrive(state: UniformState, count: int) -> None:
    state.n_arms[0] += count


def uniform_credit(state: UniformState, arm: int, count: int, total: float, squares: float) -> int:
    return -1  # known rewards change nothing


plays(
    UniformState,
    reset=uniform_reset,
    ask=uniform_ask,
    tell=uniform_tell,
    arrive=uniform_arrive,
    retire=lambda state, arm: add_name(state.retired, arm),
    credit_known=uniform_credit,
)


@dataclass(frozen=True, kw_only=True)
class Uniform(Policy):
    r"""Pull one of the n arms, each with probability 1/n.

    .. math:: P(A_t = a) = \frac1n

    Notes
    -----
    It assumes nothing and learns nothing: the regret is T times the average gap. Arms are drawn
    with replacement, and retired ones are skipped. Anytime. The tests check the probabilities. Cost
    per pull: O(1), unless most arms are retired.

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
        retired = hash_map(memory, names=n_arms, entries=memory.changes)
        return UniformState(memory.ints(1), retired, n_arms, stream(memory))
