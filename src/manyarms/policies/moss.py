"""MOSS: minimax optimal when every arm can be tried (Audibert & Bubeck 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.memory import Memory
from manyarms.policies.parts.fresh import (
    FreshArms,
    arrive_now,
    ask_arms,
    hold,
    present,
    reset_arms,
    retire_arm,
)
from manyarms.policies.parts.parameters import IndexPolicy
from manyarms.policies.parts.slots import begin, count_late_pulls, credit
from manyarms.protocol import About, plays


class MossState(NamedTuple):
    """The arms pulled so far, ranked by their index."""

    arms: FreshArms


def moss_reset(state: MossState, key: int, horizon: int) -> None:
    reset_arms(state.arms, key)
    begin(state.arms.slots, present(state.arms), horizon)


def moss_arrive(state: MossState, count: int) -> None:
    arrive_now(state.arms, count)
    hold(state.arms, present(state.arms))


plays(
    MossState,
    reset=moss_reset,
    ask=lambda state: ask_arms(state.arms),
    tell=lambda state, slot, reward: credit(state.arms.slots, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.arms.slots, slot, change),
    arrive=moss_arrive,
    retire=lambda state, arm: retire_arm(state.arms, arm),
)


@dataclass(frozen=True, kw_only=True)
class MOSS(IndexPolicy):
    r"""MOSS over all n arms: pull an arm of largest index.

    .. math:: B = \bar x + 2\sigma \sqrt{\frac{\max(0, \log(T / (n N)))}{N}}

    Parameters
    ----------
    sigma
        Rewards are sigma-sub-Gaussian around their mean; 1/2 holds for rewards in [0, 1].
    exploration
        Scales what stands under the root: 1 is the paper's index, 1/2 that of Garivier et al.,
        to which the bound 18 sqrt(nT) belongs.
    count_late
        Whether pulls whose reward is late count as pulls in the bonus (not in the mean). It
        spreads batches over more arms, and is without guarantee; False keeps the index valid.
    index
        "moss" (default), "kl" or "kl++": in the place of the index above, that of `KLMOSS` or
        `KLUCBPlusPlus`, for rewards in [0, 1]. They are sharper where means are close to 0 or 1,
        and have no use for `sigma`. With "kl++" MOSS is minimax for rewards 0 and 1, with another
        constant; for "kl" nothing is proven.

    Notes
    -----
    With more arms than pulls it only explores: legal, and the reason for this package.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.MOSS().live(n_arms=3, horizon=100, seed=1)
    >>> pull = live.ask()
    >>> live.tell(pull, reward=1.0)
    """

    name = "moss"
    about = About(
        needs="horizon",
        guarantee="minimax over n arms for T ≥ n",
        nanoseconds=86,
        scaling="log of arms pulled",
        good_at="few arms, many pulls",
        source="Audibert & Bubeck 2009",
        kind="paper",
    )

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> MossState:
        return MossState(self._arms(memory, n_arms, arms=min(n_arms, pulls)))
