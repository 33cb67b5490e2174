"""k-failure: leave an arm at its k-th failure (Berry et al. 1997)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.memory import Memory
from manyarms.policies.parts.one_by_one import (
    Length,
    OneByOne,
    arm_in_play,
    count,
    in_play,
    leave,
    one_by_one,
    reset_one_by_one,
)
from manyarms.policies.parts.parameters import about_perfect
from manyarms.protocol import Policy, plays


class KFailureState(NamedTuple):
    """The arm in play, and its successes and failures."""

    k: int
    arms: OneByOne


def k_failure_tell(state: KFailureState, slot: int, reward: float) -> None:
    if in_play(state.arms, slot):
        count(state.arms, reward)
        if state.arms.visit[0].failures >= state.k:
            leave(state.arms)


plays(
    KFailureState,
    reset=lambda state, key, horizon: reset_one_by_one(state.arms, key),
    ask=lambda state: arm_in_play(state.arms),
    tell=k_failure_tell,
)


@dataclass(frozen=True, kw_only=True)
class KFailure(Policy):
    r"""Stay with an arm until its k-th failure, then take the next one, for good.

    An arm of mean :math:`\mu` is pulled :math:`k / (1 - \mu)` times in expectation, for ever if
    :math:`\mu = 1`.

    Parameters
    ----------
    k
        The failures an arm may show; 1 is "stay with a winner, leave a loser".

    Notes
    -----
    Source: Berry, Chen, Zame, Heath & Shepp, *Bandit problems with infinitely many arms*, Annals
    of Statistics 25 (1997). Made for rewards 0 and 1 and :math:`\mu^* = 1`: an arm that ever fails
    is left sooner or later, so with :math:`\mu^* < 1` the regret is linear. Anytime. The rule is
    from memory; that the source, too, counts the failures of one stay and not in a row could not
    be checked. Rewards between 0 and 1 are rounded at random, and when all n arms are left a new
    random order begins with fresh counts: both are ours.

    Cost per pull: O(1), and memory of one arm and of the order.

    Examples
    --------
    >>> from manyarms.policies.field.k_failure import KFailure
    >>> live = KFailure(k=1).live(n_arms=1_000_000, seed=1)  # no horizon needed
    >>> first = live.ask()
    >>> live.tell(first, reward=0.0)
    >>> live.ask().arm == first.arm
    False
    """

    name = "k-failure"
    anytime = True
    about = about_perfect(
        needs="μ* = 1",
        guarantee="T / log T failures for k = 1, uniform means",
        only_if=("best mean 1", "uniform means"),
        nanoseconds=31,
        page="docs/policies/never_fail.md",
        good_at="best arms that never fail",
        source="Berry et al. 1997",
    )

    k: Length = 1

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> KFailureState:
        return KFailureState(self.k, one_by_one(memory, n_arms, pulls=pulls))
