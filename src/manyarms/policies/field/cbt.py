"""CBT: leave an arm when the bound of its losses exceeds a target (Chan & Hu 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.memory import Memory, Record, Records, wipe
from manyarms.policies.parts.losses import Factor, Losses, Shape, confidence_factor, suffer
from manyarms.policies.parts.one_by_one import (
    OneByOne,
    arm_in_play,
    in_play,
    leave,
    one_by_one,
    reset_one_by_one,
)
from manyarms.policies.parts.parameters import about_perfect
from manyarms.protocol import Policy, plays


class CbtClock(Record):
    factor: float  # b = c
    target: float


class CbtState(NamedTuple):
    """The target, and the losses of the arm in play."""

    factor: float  # 0 for log log T
    target: float  # 0 for the one that b and weight give
    b: float
    weight: float
    clock: Records[CbtClock]  # [clock]
    losses: Records[Losses]  # [of the arm in play]
    arms: OneByOne


def cbt_reset(state: CbtState, key: int, horizon: int) -> None:
    reset_one_by_one(state.arms, key)
    wipe(state.losses, 0)
    clock = state.clock[0]
    clock.factor = confidence_factor(state.factor, horizon)
    clock.target = state.target
    if state.target == 0.0:
        scale = (state.b + 1.0) / (state.weight * horizon)
        clock.target = math.pow(scale, 1.0 / (state.b + 1.0))


def cbt_tell(state: CbtState, slot: int, reward: float) -> None:
    if in_play(state.arms, slot):
        clock = state.clock[0]
        if suffer(state.losses, 0, 1.0 - reward, clock.factor) > clock.target:
            leave(state.arms)
            wipe(state.losses, 0)


plays(CbtState, reset=cbt_reset, ask=lambda state: arm_in_play(state.arms), tell=cbt_tell)


@dataclass(frozen=True, kw_only=True)
class CBT(Policy):
    r"""As `EmpiricalCBT` with a target computed from the distribution of the means.

    With :math:`P(\mu \ge 1 - e) \approx w\, e^b` and rewards 0 and 1 the target is

    .. math:: \zeta = \Big(\frac{b + 1}{w T}\Big)^{1/(b+1)}

    An arm is left for good when its bound exceeds the target; its bound cannot change any more.

    Parameters
    ----------
    b, weight
        How many arms are nearly perfect; 1 and 1 stand for means uniform on [0, 1].
    target
        The target itself, instead of both.
    factor
        As for `EmpiricalCBT`.

    Notes
    -----
    Source and assumptions (:math:`\mu^* = 1`, horizon): as for `EmpiricalCBT`; besides, b and the
    weight are known. The source's target solves :math:`\int_0^\zeta (\zeta - x) g(x)\,dx =
    \lambda / T` for the density g of mean losses, with :math:`\lambda = 1` for losses 0 and 1; the
    formula above is its solution for :math:`g(x) = w b x^{b-1}`, from memory. When all n arms are
    left a new random order begins with fresh statistics, which is ours.

    Cost per pull: O(1), and memory of one arm and of the order.

    Examples
    --------
    >>> from manyarms.policies.field import CBT
    >>> live = CBT(b=1.0).live(n_arms=1_000_000, horizon=20_000, seed=1)
    >>> for _ in range(100):
    ...     pull = live.ask()
    ...     live.tell(pull, reward=float(pull.arm % 4 == 0))
    >>> pull.arm % 4  # an arm that never fails
    0
    """

    name = "cbt"
    about = about_perfect(
        needs="horizon, μ* = 1, shape b",
        guarantee="asymptotically optimal for known shape",
        only_if=("a known shape",),
        nanoseconds=41,
        page="docs/policies/never_fail.md",
        good_at="best arms that never fail, known shape",
        source="Chan & Hu 2018",
    )

    b: Shape = 1.0
    weight: Shape = 1.0
    target: Shape | None = None
    factor: Factor | None = None

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> CbtState:
        return CbtState(
            factor=0.0 if self.factor is None else self.factor,
            target=0.0 if self.target is None else self.target,
            b=self.b,
            weight=self.weight,
            clock=memory.records(1, CbtClock),
            losses=memory.records(1, Losses),
            arms=one_by_one(memory, n_arms, pulls=pulls),
        )
