"""Greedy: each arm once, then the largest mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.memory import Memory
from manyarms.policies.parts.fresh import FreshArms, ask_arms, present, reset_arms
from manyarms.policies.parts.moss_slots import begin, count_late_pulls, credit
from manyarms.policies.parts.parameters import RankingPolicy
from manyarms.protocol import About, plays


class GreedyState(NamedTuple):
    """The arms pulled so far, ranked by their mean."""

    arms: FreshArms


def greedy_reset(state: GreedyState, key: int, horizon: int) -> None:
    reset_arms(state.arms, key)
    begin(state.arms.slots, present(state.arms), 1)  # with H = 1 the MOSS index is the mean


plays(
    GreedyState,
    reset=greedy_reset,
    ask=lambda state: ask_arms(state.arms),
    tell=lambda state, slot, reward: credit(state.arms.slots, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.arms.slots, slot, change),
)


@dataclass(frozen=True, kw_only=True)
class Greedy(RankingPolicy):
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

    name = "greedy"
    anytime = True
    about = About(
        needs="nothing",
        guarantee="none",
        nanoseconds=48,
        page="docs/policies/few_arms.md",
        scaling="log of arms pulled",
        good_at="many good arms, wide gaps, n well below T",
        source="Bayati et al. 2020",
    )

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> GreedyState:
        return GreedyState(self._arms(memory, n_arms, arms=min(n_arms, pulls)))
