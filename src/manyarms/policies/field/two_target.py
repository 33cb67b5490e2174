"""Two-target: two hurdles for each arm, then stay with it (Bonald & Proutière 2013)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.jit import kernel
from manyarms.core.memory import Memory, Record, Records
from manyarms.policies.parts.losses import Shape
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


class Targets(Record):
    first: int  # l_1
    second: int  # l_2
    settled: int  # 1 once the arm in play is kept for good


class TwoTargetState(NamedTuple):
    """The two targets, and the arm in play with its successes and failures."""

    m: int
    b: float
    weight: float
    target: Records[Targets]  # [targets]
    arms: OneByOne


@kernel
def whole(number: float) -> int:
    """Return the floor, with a margin: 64^(1/3) is 3.9999999999999996 in floating point."""
    return math.floor(min(number * (1.0 + 1e-12), 1e15))


def two_target_reset(state: TwoTargetState, key: int, horizon: int) -> None:
    reset_one_by_one(state.arms, key)
    scale = state.weight * horizon / (state.b + 1.0)
    target = state.target[0]
    target.first = whole(math.pow(scale, 1.0 / (state.b + 2.0)))
    target.second = whole(state.m * math.pow(scale, 1.0 / (state.b + 1.0)))
    target.settled = 0


def two_target_tell(state: TwoTargetState, slot: int, reward: float) -> None:
    target, visit = state.target[0], state.arms.visit[0]
    if target.settled == 0 and in_play(state.arms, slot):
        count(state.arms, reward)
        if visit.failures == 1 and visit.successes < target.first:
            leave(state.arms)
        elif visit.successes >= target.second:
            target.settled = 1
        elif visit.failures >= state.m:
            leave(state.arms)


plays(
    TwoTargetState,
    reset=two_target_reset,
    ask=lambda state: arm_in_play(state.arms),
    tell=two_target_tell,
)


@dataclass(frozen=True, kw_only=True)
class TwoTarget(Policy):
    r"""Keep an arm for good that shows l_1 successes before a failure and l_2 before m of them.

    With :math:`P(\mu \ge 1 - e) \approx w\, e^b` for the means of the arms,

    .. math:: l_1 = \Big\lfloor \Big(\frac{w T}{b + 1}\Big)^{1/(b+2)} \Big\rfloor, \qquad
        l_2 = \Big\lfloor m \Big(\frac{w T}{b + 1}\Big)^{1/(b+1)} \Big\rfloor

    An arm with fewer than :math:`l_1` successes at its first failure is left for good, as is one
    with fewer than :math:`l_2` at its m-th.

    Parameters
    ----------
    m
        The failures that an arm may show on the way to the second target.
    b, weight
        How many arms are nearly perfect; 1 and 1 stand for means uniform on [0, 1].

    Notes
    -----
    Source: Bonald & Proutière, *Two-target algorithms for infinite-armed bandits with Bernoulli
    rewards*, NIPS 2013. Made for rewards 0 and 1 and :math:`\mu^* = 1`, with known horizon, b and
    weight; for uniform means the regret tends to :math:`\sqrt{2T}`, the best possible, as m grows.
    With :math:`\mu^* < 1` no arm may ever reach the targets. The targets were checked against a
    public implementation, for uniform and other means; the default m = 3 is from memory. Rewards
    between 0 and 1 are rounded at random, and when all n arms are left a new random order begins
    with fresh counts: both are ours.

    Cost per pull: O(1), and memory of one arm and of the order.

    Examples
    --------
    >>> from manyarms.policies.field import TwoTarget
    >>> live = TwoTarget(m=3).live(n_arms=1_000_000, horizon=100, seed=1)
    >>> for _ in range(60):
    ...     live.tell(live.ask(), reward=1.0)
    >>> live.progress().stage
    'exploiting'
    """

    name = "two-target"
    about = about_perfect(
        needs="horizon, μ* = 1, shape b",
        guarantee="√(2T) for uniform means, the best possible",
        only_if=("uniform means",),
        nanoseconds=31,
        page="docs/policies/never_fail.md",
        good_at="best arms that never fail, known shape",
        source="Bonald & Proutière 2013",
    )

    m: Length = 3
    b: Shape = 1.0
    weight: Shape = 1.0

    def stage(self, state: TwoTargetState) -> str:
        return "exploiting" if state.target[0].settled == 1 else "exploring"

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> TwoTargetState:
        return TwoTargetState(
            m=self.m,
            b=self.b,
            weight=self.weight,
            target=memory.records(1, Targets),
            arms=one_by_one(memory, n_arms, pulls=pulls),
        )
