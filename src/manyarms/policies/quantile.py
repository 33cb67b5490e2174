"""Quantile: QRM2, which widens a random set of arms as time goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from manyarms.core.checks import check_number
from manyarms.core.memory import Memory, Records
from manyarms.policies.parts.fresh import FreshArms, choose, present
from manyarms.policies.parts.index import IndexPolicy
from manyarms.policies.parts.rounds import RoundClock, begin_round, reset_rounds
from manyarms.policies.parts.slots import credit
from manyarms.protocol.policy import ask, reset, tell
from manyarms.theory.schedules import quantile_arms

__all__ = ["Quantile"]


class QuantileState(NamedTuple):
    exponent: float
    clock: Records[RoundClock]  # [clock]
    arms: FreshArms


@reset.register(QuantileState)
def quantile_reset(state: QuantileState, key: int, horizon: int) -> None:
    reset_rounds(state.clock, state.arms, key, horizon)


@ask.register(QuantileState)
def quantile_ask(state: QuantileState) -> tuple[int, int]:
    if state.clock[0].left == 0:
        members = quantile_arms(state.clock[0].round + 1, state.exponent, present(state.arms))
        begin_round(state.clock, state.arms, members)
    state.clock[0].left -= 1
    slot = choose(state.arms)
    return slot, state.arms.slots.slot[slot].member


@tell.register(QuantileState)
def quantile_tell(state: QuantileState, slot: int, reward: float) -> None:
    credit(state.arms.slots, slot, reward)


@dataclass(frozen=True, kw_only=True)
class Quantile(IndexPolicy):
    r"""QRM2 (Chaudhuri & Kalyanakrishnan, UAI 2018): MOSS on about T^0.347 random arms.

    Round l lasts 2^l pulls, on a set grown to

    .. math:: \lceil 2^{0.347\,l} \rceil

    arms; statistics are kept. The index has K = size of the set and H = min(2^(l+1) - 2, T).

    Parameters
    ----------
    exponent
        How fast the set grows; the source's 0.347 is the default.
    sigma, exploration, count_late
        As for `MOSS`.

    Notes
    -----
    Anytime. Rate min(1, max(2.89 alpha, 0.674)): not Pareto optimal.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.Quantile().live(n_arms=1_000_000, seed=1)  # no horizon needed
    >>> live.tell(live.ask(), reward=0.0)
    """

    name: ClassVar[str] = "quantile"
    anytime: ClassVar[bool] = True

    exponent: float = 0.347

    def __post_init__(self) -> None:
        super().__post_init__()
        self._store(exponent=check_number("exponent", self.exponent, above=0.0, at_most=1.0))

    def stage(self, state: QuantileState) -> str:
        return f"round {state.clock[0].round}"

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> QuantileState:
        last_round = (pulls + 1).bit_length() - 1  # round l ends with pull 2^(l+1) - 2
        size = min(quantile_arms(last_round, self.exponent, n_arms), pulls)
        arms = self._arms(memory, n_arms, arms=size)
        return QuantileState(self.exponent, memory.records(1, RoundClock), arms)
