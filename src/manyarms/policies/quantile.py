"""Quantile: QRM2, which widens a random set of arms as time goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from manyarms.core.memory import Memory, Records
from manyarms.policies.parts.fresh import FreshArms, present
from manyarms.policies.parts.rounds import RoundClock, RoundPolicy, begin_round, reset_rounds
from manyarms.protocol import About, Share, arrive, ask, count_late, delegates, reset, retire, tell
from manyarms.theory.schedules import quantile_arms

__all__ = ["Quantile"]


@delegates(arms=(tell, count_late, arrive, retire))
class QuantileState(NamedTuple):
    """The round, and the arms of the growing set, ranked by their index."""

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
    return ask(state.arms)


@dataclass(frozen=True, kw_only=True)
class Quantile(RoundPolicy):
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
    about: ClassVar[About] = About(
        kind="paper",
        needs="nothing",
        guarantee="sublinear below hardness 0.35",
        nanoseconds=13,
        scaling="log of arms pulled",
        good_at="plenty of good arms, no horizon",
        source="Chaudhuri & Kalyanakrishnan 2018 (QRM2)",
    )

    exponent: Share = 0.347

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> QuantileState:
        size = quantile_arms(self._last_round(pulls), self.exponent, n_arms)
        arms = self._arms(memory, n_arms, arms=min(size, pulls))
        return QuantileState(self.exponent, memory.records(1, RoundClock), arms)
