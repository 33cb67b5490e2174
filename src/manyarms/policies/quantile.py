"""Quantile: QRM2, MOSS on a random set of arms that grows with time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Memory, Record, Records, wipe
from manyarms.policies.parts.moss_run import (
    MossRun,
    arrive_now,
    ask_arms,
    begin,
    count_late_pulls,
    credit,
    credit_arm,
    present,
    reset_arms,
    resize,
    retire_arm,
)
from manyarms.policies.parts.parameters import IndexPolicy
from manyarms.protocol import plays
from manyarms.protocol.parameters import Share


@kernel
def quantile_arms(round_number: int, exponent: float, n_arms: int) -> int:
    r"""Return the size of the set in round l.

    .. math:: \min(\lceil 2^{0.347\,l} \rceil, n)

    >>> [quantile_arms(l, 0.347, 20_000) for l in (1, 2, 10, 16)]
    [2, 2, 12, 47]
    """
    return min(math.ceil(math.pow(2.0, exponent * round_number)), n_arms)


class QuantileClock(Record):
    horizon: int  # T, or 0 if not known
    round: int  # l
    left: int  # pulls left in the round


class QuantileState(NamedTuple):
    """The round, and the arms of the growing set, ranked by index."""

    exponent: float
    clock: Records[QuantileClock]  # [clock]
    moss: MossRun


def quantile_reset(state: QuantileState, key: int, horizon: int) -> None:
    reset_arms(state.moss, key)
    begin(state.moss, 1, 1)  # the first round sets K and H
    wipe(state.clock, 0)
    state.clock[0].horizon = horizon


@rare
def next_round(state: QuantileState) -> None:
    """Start a round of twice the length: enlarge the set, and update all indices."""
    clock = state.clock[0]
    clock.round += 1
    clock.left = 1 << clock.round
    end = (2 << clock.round) - 2  # 2 + 4 + … + 2^l
    horizon = min(end, clock.horizon) if clock.horizon > 0 else end
    resize(state.moss, quantile_arms(clock.round, state.exponent, present(state.moss)), horizon)


def quantile_ask(state: QuantileState) -> tuple[int, int]:
    clock = state.clock[0]
    if clock.left == 0:
        next_round(state)
    clock.left -= 1
    return ask_arms(state.moss)


plays(
    QuantileState,
    reset=quantile_reset,
    ask=quantile_ask,
    tell=lambda state, slot, reward: credit(state.moss, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.moss, slot, change),
    arrive=lambda state, count: arrive_now(state.moss, count),
    retire=lambda state, arm: retire_arm(state.moss, arm),
    credit_known=lambda state, arm, count, total, _: credit_arm(state.moss, arm, count, total),
)


@dataclass(frozen=True, kw_only=True)
class Quantile(IndexPolicy):
    r"""QRM2 (Chaudhuri & Kalyanakrishnan, UAI 2018): MOSS on about T^0.347 random arms.

    Round l lasts 2^l pulls, on a set that has grown to

    .. math:: \lceil 2^{0.347\,l} \rceil

    arms; statistics are kept. The index has K = size of the set and H = min(2^(l+1) - 2, T).

    Parameters
    ----------
    exponent
        How fast the set grows (default: 0.347, as in the source).
    sigma, exploration, count_late, index
        As for `MOSS`; nothing is proven for the KL indices.

    Notes
    -----
    Anytime. Rate min(1, max(2.89 alpha, 0.674)): not Pareto optimal.

    Its page is docs/policies/quantile.md.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.Quantile().live(n_arms=1_000_000, seed=1)  # no horizon needed
    >>> for _ in range(100):
    ...     live.tell(live.ask(), reward=0.0)
    >>> print(live.progress())
    100 pulls, round 6
    100 rewards told, 0 pending, 0 abandoned; mean reward 0 %
    5 arms tried; 1000000 available
    """

    name = "quantile"
    anytime = True

    exponent: Share = 0.347

    def stage(self, state: Any) -> str:
        return f"round {state.clock[0].round}"

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> QuantileState:
        last = (pulls + 1).bit_length() - 1  # round l ends with pull 2^(l+1) - 2
        size = quantile_arms(last, self.exponent, n_arms)
        moss = self._moss(memory, n_arms, slots=min(size, pulls))
        return QuantileState(self.exponent, memory.records(1, QuantileClock), moss)
