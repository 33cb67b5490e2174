"""Greedy: each arm once, then the largest mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from manyarms.core.memory import Memory
from manyarms.policies.parts.fresh import (
    FreshArms,
    choose,
    fresh_arms,
    present,
    reset_fresh_arms,
    start_on,
)
from manyarms.policies.parts.slots import count_late, credit, slots
from manyarms.protocol.policy import Policy, ask, defer, reset, tell

__all__ = ["Greedy"]


class GreedyState(NamedTuple):
    arms: FreshArms


@reset.register(GreedyState)
def greedy_reset(state: GreedyState, key: int, horizon: int) -> None:
    reset_fresh_arms(state.arms, key)
    start_on(state.arms, present(state.arms), 1)  # with H = 1 the MOSS index is the mean


@ask.register(GreedyState)
def greedy_ask(state: GreedyState) -> tuple[int, int]:
    slot = choose(state.arms)
    return slot, state.arms.slots.slot[slot].member


@tell.register(GreedyState)
def greedy_tell(state: GreedyState, slot: int, reward: float) -> None:
    credit(state.arms.slots, slot, reward)


@defer.register(GreedyState)
def greedy_defer(state: GreedyState, slot: int, change: int) -> None:
    count_late(state.arms.slots, slot, change)


@dataclass(frozen=True, kw_only=True)
class Greedy(Policy):
    r"""Pull each of the n arms once, in random order, then always one of largest mean.

    .. math:: A_t \in \arg\max_a \bar x_a

    Equal means: at random.

    Notes
    -----
    It assumes nothing and explores only once: an arm whose first pulls fail may be lost for ever.
    With many arms that matters less, as some good arm does well at once (Bayati, Hamidi, Johari &
    Khosravi, *Unreasonable effectiveness of greedy algorithms in multi-armed bandit with many
    arms*, 2020), above all on a random subset of the arms. Anytime; with n > T it only explores.

    Cost per pull: O(log(arms opened)), O(1) while one arm leads.

    Examples
    --------
    >>> from manyarms.policies.field.greedy import Greedy
    >>> live = Greedy().live(n_arms=3, seed=1)
    >>> for _ in range(3):
    ...     pull = live.ask()
    ...     live.tell(pull, reward=1.0 if pull.arm == 2 else 0.0)
    >>> live.ask().arm
    2
    """

    name: ClassVar[str] = "greedy"
    anytime: ClassVar[bool] = True

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> GreedyState:
        room = min(n_arms, pulls)
        table = slots(memory, room, spread=0.0)
        return GreedyState(fresh_arms(memory, n_arms, draws=room, slots=table))
