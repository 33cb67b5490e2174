"""Dynamic balancing over the subroutines of Parallel (Cutkosky et al. 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.jit import kernel
from manyarms.core.memory import Memory, Records
from manyarms.core.rng import Stream, below, draw, next_word, restart, stream
from manyarms.policies.parts.fresh import FreshArms
from manyarms.policies.parts.randomness import EPOCHS
from manyarms.policies.parts.subroutines import (
    Subroutine,
    SubroutineClock,
    SubroutinePolicy,
    ask_subroutine,
    count_late_in_subroutine,
    lose_arm,
    reset_subroutines,
    room_for,
    subroutine_of,
    tell_subroutine,
    widen,
)
from manyarms.protocol import About, plays
from manyarms.protocol.parameters import Positive

_FACTOR = 2.0  # of the sets' sizes, as in the text of Zhu & Nowak


class BalancedClock(SubroutineClock):
    log_share: float  # log(q / delta)


class BalancedSubroutine(Subroutine):
    allowed: float  # R_i(n_i), what it may have lost by its candidate bound
    above: float  # the best mean is not above this, if its candidate bound holds
    below: float  # the best mean is not below this


class BalancedState(NamedTuple):
    """The arms of all subroutines, and the bounds on the best mean that each one gives."""

    factor: float
    c: float
    regret_factor: float
    clock: Records[BalancedClock]  # [clock]
    subroutine: Records[BalancedSubroutine]
    arms: FreshArms  # of all subroutines
    ties: Stream


def balanced_reset(state: BalancedState, key: int, horizon: int) -> None:
    reset_subroutines(state, key, horizon)
    restart(state.ties, draw(key, EPOCHS))
    q = state.clock[0].subroutines
    state.clock[0].log_share = math.log(q) + 0.5 * math.log(horizon)  # delta = 1 / sqrt(T)
    for i in range(q):
        state.subroutine[i].allowed = 0.0
        state.subroutine[i].above = math.inf
        state.subroutine[i].below = -math.inf


@kernel
def least_allowed(state: BalancedState) -> int:
    """Return the active subroutine with the smallest allowed loss; ties are random."""
    q = state.clock[0].subroutines
    floor = -math.inf
    for i in range(q):
        floor = max(floor, state.subroutine[i].below)
    chosen, tied, least = 0, 0, math.inf
    for i in range(q):
        own = state.subroutine[i]
        if own.above >= floor and own.allowed <= least:
            tied = tied + 1 if own.allowed == least else 1
            if tied == 1 or below(next_word(state.ties), tied) == 0:
                chosen = i
            least = own.allowed
    return chosen


def balanced_ask(state: BalancedState) -> tuple[int, int]:
    return ask_subroutine(state, least_allowed(state))


def balanced_tell(state: BalancedState, slot: int, reward: float) -> None:
    tell_subroutine(state, slot, reward)
    i = subroutine_of(slot)
    own = state.subroutine[i]
    n = own.pulls
    mean = own.rewards / n
    # log(q log(n) / delta); log n counts as 1 at least
    level = state.clock[0].log_share + math.log(max(1.0, math.log(n)))
    width = state.c * math.sqrt(level / n)
    own.allowed = state.regret_factor * math.sqrt(float(state.arms.slots.run[i].members) * n)
    own.above = mean + width + own.allowed / n
    own.below = mean - width


plays(
    BalancedState,
    reset=balanced_reset,
    ask=balanced_ask,
    tell=balanced_tell,
    count_late=count_late_in_subroutine,
    arrive=widen,
    retire=lose_arm,
)


@dataclass(frozen=True, kw_only=True)
class DynamicBalancing(SubroutinePolicy):
    r"""Run the subroutines of `Parallel`, but know nothing: balance what each may have lost.

    There are :math:`q = \lceil \log T \rceil` subroutines, MOSS on :math:`K_i = \min(\lceil 2
    T^{i/q} \log \sqrt T \rceil, T, n)` random arms. Each has a candidate bound on its regret after
    n pulls, :math:`R_i(n) = r \sqrt{K_i n}`, which is wrong where the set holds no best arm. With
    :math:`n_i` pulls so far and their mean :math:`\bar x_i`, subroutine i is active while

    .. math:: \bar x_i + \gamma_i + \frac{R_i(n_i)}{n_i} \ge \max_j (\bar x_j - \gamma_j), \qquad
        \gamma_i = c \sqrt{\frac{\log(q \log(n_i) / \delta)}{n_i}}, \quad
        \delta = \frac{1}{\sqrt T}

    that is, while its bound does not contradict what others earned. The active one of lowest
    :math:`R_i(n_i)` is pulled; one that is not may become active again.

    Parameters
    ----------
    c
        Scales the confidence widths.
    regret_factor
        r, which scales the candidate bounds. Larger is safer for the larger sets, and slower to
        find a set wanting.
    sigma, exploration, count_late, index
        As for `MOSS`.

    Notes
    -----
    A. Cutkosky, C. Dann, A. Das, C. Gentile, A. Pacchiano, M. Purohit, "Dynamic balancing for model
    selection in bandits and RL", ICML 2021, with scaling coefficients 1 and biases 0; over these
    base algorithms it is ours. The rule was read in two public implementations, where c is 1 and,
    in one, :math:`\delta` is this. Both add :math:`\gamma_j` on the right side, where a bound that
    holds may be found wanting by chance; here it is subtracted, as in the test of the forerunner
    (Pacchiano, Dann, Gentile & Bartlett, "Regret bound balancing and elimination", 2020). Which of
    the two the source prints could not be checked. That :math:`\log n` is 1 at least is ours.

    No guarantee is claimed. The source's needs candidate bounds that hold where the set has a best
    arm. Proved for MOSS is :math:`20.5 \sqrt{K T}`, at its horizon; r = 1 is nearer to what it is.
    Rewards count when they are told, for the subroutine that asked. Cost per pull: O(q + log of
    arms pulled).

    Examples
    --------
    >>> from manyarms.policies.field import DynamicBalancing
    >>> live = DynamicBalancing().live(n_arms=1_000_000, horizon=20_000, seed=1)
    >>> live.tell(live.ask(), reward=1.0)
    >>> live.progress().stage  # q = ⌈log 20000⌉
    'subroutine 7 of 10'
    """

    name = "dynamic-balancing"
    about = About(
        needs="horizon",
        guarantee="none claimed",
        nanoseconds=110,
        page="docs/policies/new_arms.md",
        scaling="log T, and log of arms pulled",
        good_at="Parallel's sets without the best mean",
        source="Cutkosky et al. 2021",
        rewards="[0, 1]",
    )

    c: Positive = 1.0
    regret_factor: Positive = 1.0

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> BalancedState:
        room = room_for(memory, n_arms, pulls, _FACTOR)
        return BalancedState(
            factor=_FACTOR,
            c=self.c,
            regret_factor=self.regret_factor,
            clock=memory.records(1, BalancedClock),
            subroutine=memory.records(room["runs"], BalancedSubroutine),
            arms=self._arms(memory, n_arms, **room),
            ties=stream(memory),
        )
