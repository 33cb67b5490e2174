"""CBT: leave an arm when the lower bound of its losses exceeds a target (Chan & Hu 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypeAlias

from manyarms.core.memory import Memory, Record, Records, wipe
from manyarms.core.rng import Stream, stream
from manyarms.core.sampler import Sampler, clear_sampler, sampler
from manyarms.errors import ParameterError
from manyarms.policies.parts.losses import (
    Factor,
    Losses,
    confidence_factor,
    count_loss,
    count_losses,
)
from manyarms.policies.parts.randomness import draw_fresh, reset_order
from manyarms.protocol import Policy, plays
from manyarms.protocol.parameters import number

Shape: TypeAlias = Annotated[float, number(above=0.0, at_most=1e6)]


class CbtClock(Record):
    factor: float  # b = c
    target: float
    visit: int  # arms pulled so far, this one included; it serves as the slot
    left: int  # 1 once the arm is left
    again: int  # 1 once all arms were left and a new order has begun


class CbtState(NamedTuple):
    """The target, and the losses of the current arm."""

    factor: float  # 0 for log log T
    target: float  # 0 if it follows from b and weight
    b: float
    weight: float
    clock: Records[CbtClock]  # [clock]
    losses: Records[Losses]  # [of the current arm, of a known arm]
    sampler: Sampler
    words: Stream


def cbt_reset(state: CbtState, key: int, horizon: int) -> None:
    reset_order(state.sampler, state.words, key)
    clock = state.clock[0]
    clock.visit = 0
    clock.again = 0
    clock.left = 1
    clock.factor = confidence_factor(state.factor, horizon)
    clock.target = state.target
    if state.target == 0.0:
        scale = (state.b + 1.0) / (state.weight * horizon)
        clock.target = math.pow(scale, 1.0 / (state.b + 1.0))


def cbt_ask(state: CbtState) -> tuple[int, int]:
    clock = state.clock[0]
    if clock.left == 1:
        if state.sampler.drawn[0] >= state.sampler.n[0]:
            clear_sampler(state.sampler)
            clock.again = 1
        clock.visit += 1
        clock.left = 0
        wipe(state.losses, 0)
        state.losses[0].arm = draw_fresh(state.sampler, state.words)
    return clock.visit, state.losses[0].arm


def cbt_tell(state: CbtState, slot: int, reward: float) -> None:
    clock = state.clock[0]
    if slot == clock.visit and clock.left == 0:  # else the arm was left before this reward
        bound = count_loss(state.losses, 0, 1.0 - reward, clock.factor)
        clock.left = int(bound > clock.target)


def cbt_credit(state: CbtState, arm: int, count: int, total: float, squares: float) -> int:
    """Credit known rewards; of the arms that are not left, keep that with most rewards."""
    clock, current = state.clock[0], state.losses[0]
    loss, squared = count - total, count - 2.0 * total + squares  # of 1 - reward
    if arm >= 0:
        if clock.left == 0 and arm == current.arm:
            bound = count_losses(state.losses, 0, count, loss, squared, clock.factor)
            clock.left = int(bound > clock.target)
        return arm
    if clock.again == 1 or state.sampler.drawn[0] >= state.sampler.n[0]:
        return -1
    arm = draw_fresh(state.sampler, state.words)
    if clock.left == 1 or count > current.pulls:
        wipe(state.losses, 1)
        bound = count_losses(state.losses, 1, count, loss, squared, clock.factor)
        if bound <= clock.target:
            clock.visit += 1
            clock.left = 0
            current.arm = arm
            current.pulls = count
            current.total = loss
            current.squares = squared
            current.bound = bound
    return arm


plays(CbtState, reset=cbt_reset, ask=cbt_ask, tell=cbt_tell, credit_known=cbt_credit)


@dataclass(frozen=True, kw_only=True)
class CBT(Policy):
    r"""Pull an arm until the lower bound of its losses exceeds a target, then take a new arm.

    The bound is that of `EmpiricalCBT`. With :math:`P(\mu \ge 1 - e) \approx w\, e^b` and rewards
    0 and 1 the target is

    .. math:: \zeta = \Big(\frac{b + 1}{w T}\Big)^{1/(b+1)}

    An arm that was left is not pulled again.

    Parameters
    ----------
    b, weight
        b and w: how many arms have means close to 1 (default: 1 and 1, means uniform on [0, 1]).
    target
        The target, instead of `b` and `weight`.
    factor
        As for `EmpiricalCBT`.

    Notes
    -----
    Chan & Hu, *Infinite arms bandit: optimality via confidence bounds*, 2018. It needs the horizon,
    :math:`\mu^* = 1`, and the distribution of the means near 1. When all n arms were left (the
    source has infinitely many), a new random order begins, and all statistics are reset.

    Checked against `CBT.R` and the manual of the R package CBT, by the authors of the paper: the
    same bound, the same rule, and for its three priors the same targets: (b, weight) is (1, 1) for
    "Uniform", (2, π²/4) for "Sine" and (3, π²/6) for "Cosine".

    Cost per pull: O(1). Memory: one arm and the order.

    Examples
    --------
    >>> from manyarms.policies import CBT
    >>> live = CBT(b=1.0).live(n_arms=1_000_000, horizon=20_000, seed=1)
    >>> for _ in range(100):
    ...     pull = live.ask()
    ...     live.tell(pull, reward=float(pull.arm % 4 == 0))
    >>> pull.arm % 4  # an arm that never fails
    0
    """

    name = "cbt"
    unit_rewards = True

    b: Shape | None = None
    weight: Shape | None = None
    target: Shape | None = None
    factor: Factor | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target is not None and (self.b, self.weight) != (None, None):
            raise ParameterError(
                f"`b` and `weight` must be left out if `target` is given, got b={self.b} and "
                f"weight={self.weight} with target={self.target}: it replaces them."
            )

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> CbtState:
        return CbtState(
            factor=0.0 if self.factor is None else self.factor,
            target=0.0 if self.target is None else self.target,
            b=1.0 if self.b is None else self.b,
            weight=1.0 if self.weight is None else self.weight,
            clock=memory.records(1, CbtClock),
            losses=memory.records(2, Losses),
            sampler=sampler(memory, n_arms, draws=min(n_arms, pulls)),
            words=stream(memory),
        )
