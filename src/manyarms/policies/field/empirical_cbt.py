"""Empirical CBT: compare lower bounds of losses with the total loss (Chan & Hu 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.jit import kernel
from manyarms.core.memory import Memory, Record, Records, place_of_arm, places, wipe
from manyarms.core.rng import Stream, stream
from manyarms.core.sampler import Sampler, sampler
from manyarms.core.tournament import Tournament, clear, leader, rekey, tournament
from manyarms.policies.parts.losses import (
    Factor,
    Losses,
    confidence_factor,
    count_loss,
    count_losses,
)
from manyarms.policies.parts.randomness import draw_fresh, reset_draws
from manyarms.protocol import Policy, plays

_UNSEEN = 1e300  # above every bound


class EmpiricalCbtClock(Record):
    horizon: int  # T, and the number of known rewards
    opened: int
    factor: float  # b = c
    loss: float  # of all pulls


class EmpiricalCbtState(NamedTuple):
    """The losses of all opened arms, ranked by their bounds, and the total loss."""

    factor: float  # 0 for log log T
    clock: Records[EmpiricalCbtClock]  # [clock]
    losses: Records[Losses]  # by slot
    rank: Tournament  # by -L
    sampler: Sampler
    words: Stream
    ties: Stream


def empirical_cbt_reset(state: EmpiricalCbtState, key: int, horizon: int) -> None:
    reset_draws(state, key)
    clear(state.rank)
    clock = state.clock[0]
    clock.horizon = horizon
    clock.opened = 0
    clock.loss = 0.0
    clock.factor = confidence_factor(state.factor, horizon)


def empirical_cbt_ask(state: EmpiricalCbtState) -> tuple[int, int]:
    clock = state.clock[0]
    slot = leader(state.rank, state.ties)
    enough = slot >= 0 and state.losses[slot].bound <= clock.loss / clock.horizon
    if not enough and clock.opened < state.sampler.n[0]:
        slot = open_fresh(state)
    return slot, state.losses[slot].arm


@kernel
def open_fresh(state: EmpiricalCbtState) -> int:
    """Draw an arm, and return its slot."""
    slot = state.clock[0].opened
    state.clock[0].opened += 1
    wipe(state.losses, slot)
    state.losses[slot].arm = draw_fresh(state.sampler, state.words)
    state.losses[slot].bound = math.inf
    return slot


def empirical_cbt_tell(state: EmpiricalCbtState, slot: int, reward: float) -> None:
    loss = 1.0 - reward
    state.clock[0].loss += loss
    bound = count_loss(state.losses, slot, loss, state.clock[0].factor)
    rekey(state.rank, slot, -bound)


def empirical_cbt_count_late(state: EmpiricalCbtState, slot: int, change: int) -> None:
    losses = state.losses[slot]
    losses.late += change
    if losses.pulls == 0:  # ranked last while its first reward is late, first if it was abandoned
        losses.bound = _UNSEEN * losses.late if losses.late > 0 else -math.inf
        rekey(state.rank, slot, -losses.bound)


def empirical_cbt_credit(
    state: EmpiricalCbtState, arm: int, count: int, total: float, squares: float
) -> int:
    """Credit known rewards, as if they had been pulls of a run with so many pulls more."""
    clock = state.clock[0]
    if arm >= 0:
        slot = place_of_arm(state.losses, arm, clock.opened, 0)
    else:
        has_room = clock.opened < min(state.sampler.n[0], places(state.losses))
        slot = open_fresh(state) if has_room else -1
    if slot < 0:
        return -1
    loss, squared = count - total, count - 2.0 * total + squares  # of 1 - reward
    clock.loss += loss
    clock.horizon += count
    bound = count_losses(state.losses, slot, count, loss, squared, clock.factor)
    rekey(state.rank, slot, -bound)
    return state.losses[slot].arm


plays(
    EmpiricalCbtState,
    reset=empirical_cbt_reset,
    ask=empirical_cbt_ask,
    tell=empirical_cbt_tell,
    count_late=empirical_cbt_count_late,
    credit_known=empirical_cbt_credit,
)


@dataclass(frozen=True, kw_only=True)
class EmpiricalCBT(Policy):
    r"""Pull the arm of smallest bound if that is at most the total loss over T, else a new arm.

    With losses 1 - reward of mean :math:`\bar x` and standard deviation :math:`\hat\sigma`,

    .. math:: L = \max\Big(\frac{\bar x}{b},\; \bar x - \frac{c\,\hat\sigma}{\sqrt N}\Big),
        \qquad b = c = \log \log T

    and the target is (the sum of all losses so far)/T. Ties are broken at random.

    Parameters
    ----------
    factor
        b = c, at least 1 (default: the larger of log log T and 1).

    Notes
    -----
    Chan & Hu, *Infinite arms bandit: optimality via confidence bounds*, 2018. It needs the
    horizon, but neither the best mean nor the distribution of the means. Its theory assumes that
    the smallest mean loss is 0, that is :math:`\mu^* = 1`. With :math:`\mu^* < 1` it opens new arms
    until the loss has grown. The larger :math:`1 - \mu^*` is, the longer that takes. An arm whose
    first reward is pending is pulled again only if there are no others.

    Checked against `Emp_CBT` and `Ana_CBT` of `CBT.R` in the R package CBT, by the authors of the
    paper: the same bound, with a standard deviation that divides by N; the same factors, target and
    rule; and when no new arm is left, the arm of smallest bound is pulled. Two details are ours:
    the factor is at least 1 (log log T is less for T <= 15), and ties are broken at random.

    Cost per pull: O(log(arms opened)), O(1) while one arm leads.

    Examples
    --------
    >>> from manyarms.policies import EmpiricalCBT
    >>> live = EmpiricalCBT().live(n_arms=1_000_000, horizon=1000, seed=1)
    >>> for _ in range(100):
    ...     pull = live.ask()
    ...     live.tell(pull, reward=float(pull.arm % 4 == 0))
    >>> len(live.arms()), pull.arm % 4
    (5, 0)
    """

    name = "empirical-cbt"
    unit_rewards = True

    factor: Factor | None = None

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> EmpiricalCbtState:
        room = min(n_arms, pulls)
        return EmpiricalCbtState(
            factor=0.0 if self.factor is None else self.factor,
            clock=memory.records(1, EmpiricalCbtClock),
            losses=memory.records(room, Losses),
            rank=tournament(memory, room),
            sampler=sampler(memory, n_arms, draws=room),
            words=stream(memory),
            ties=stream(memory),
        )
