"""QRM1: a random set just large enough for a given quantile (Chaudhuri & Kalyanakrishnan 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.jit import kernel
from manyarms.core.memory import Memory, Records
from manyarms.policies.parts.doubling_rounds import (
    RoundClock,
    RoundPolicy,
    last_round,
    next_round,
    reset_rounds,
)
from manyarms.policies.parts.fresh import FreshArms, ask_arms, present
from manyarms.policies.parts.moss_slots import count_late_pulls, credit
from manyarms.protocol import About, plays
from manyarms.protocol.parameters import Share


class Qrm1State(NamedTuple):
    """The round, and the arms of the growing set, ranked by their index."""

    rho: float
    clock: Records[RoundClock]  # [clock]
    arms: FreshArms


@kernel
def qrm1_arms(round_number: int, rho: float, n_arms: int) -> int:
    r"""Return the size of QRM1's set in round l.

    .. math:: \min(\lceil \rho^{-1} \max(1, \log \sqrt{\rho 2^l}) \rceil, n)

    >>> [qrm1_arms(l, 0.05, 20_000) for l in (1, 7, 8, 16)]
    [20, 20, 26, 81]
    """
    log = 0.5 * (math.log(rho) + round_number * math.log(2.0))
    wanted = max(1.0, log) / rho
    return min(math.ceil(min(wanted, n_arms) * (1.0 - 1e-12)), n_arms)  # 1 / (1/49) > 49


def qrm1_ask(state: Qrm1State) -> tuple[int, int]:
    clock = state.clock[0]
    if clock.left == 0:
        next_round(state, qrm1_arms(clock.round + 1, state.rho, present(state.arms)))
    clock.left -= 1
    return ask_arms(state.arms)


plays(
    Qrm1State,
    reset=reset_rounds,
    ask=qrm1_ask,
    tell=lambda state, slot, reward: credit(state.arms.slots, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.arms.slots, slot, change),
)


@dataclass(frozen=True, kw_only=True)
class QRM1(RoundPolicy):
    r"""MOSS on a random set that holds one of the best rho of all arms, most likely.

    Round l lasts 2^l pulls, on a set grown to

    .. math:: \lceil \rho^{-1} \max(1, \log \sqrt{\rho\,2^l}) \rceil

    arms; statistics are kept. The index has K = size of the set and H = min(2^(l+1) - 2, T).

    Parameters
    ----------
    rho
        In (0, 1]: the share of arms that are good enough; m/n for those who know m.
    sigma, exploration, count_late, index
        As for `MOSS`.

    Notes
    -----
    A. R. Chaudhuri, S. Kalyanakrishnan, "Quantile-regret minimisation in infinitely many-armed
    bandits", UAI 2018. The size of the set was not checked against the source, nor whether
    statistics are kept there: rounds, index and horizon are those of `Quantile`, which is their
    QRM2. Anytime. Cost per pull: O(log of the arms pulled).

    Examples
    --------
    >>> from manyarms.policies.field import QRM1
    >>> live = QRM1(rho=0.05).live(n_arms=1_000_000, seed=1)  # no horizon needed
    >>> len({pull.arm for pull in live.ask(100)})  # 1 / rho
    20
    """

    name = "qrm1"
    about = About(
        needs="share of good arms",
        guarantee="sublinear against the best rho of the arms",
        nanoseconds=17,
        page="docs/policies/subsets.md",
        scaling="log of arms pulled",
        good_at="a known share of good arms, no horizon",
        source="Chaudhuri & Kalyanakrishnan 2018",
        knowledge="m",
    )

    rho: Share

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> Qrm1State:
        arms = min(qrm1_arms(last_round(pulls), self.rho, n_arms), pulls)
        return Qrm1State(
            self.rho, memory.records(1, RoundClock), self._arms(memory, n_arms, arms=arms)
        )
