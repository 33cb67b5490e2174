"""The state of Prospector, and its target.

The target is in a unit that is estimated from the rewards, so the largest possible reward may be
far above all others.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.jit import kernel
from manyarms.core.memory import Ints, Record, Records
from manyarms.core.rng import Stream
from manyarms.core.shrunk_means import ShrunkMeans, highest_mean
from manyarms.core.tournament import Tournament
from manyarms.policies.parts.guard_slots import Guard

# The constants of the target (see `set_target`) were tuned; the guarantee holds for any values.
_C1 = 0.5  # c1: the target is 1 - C/T while C < c1 T^beta
_KAPPA = 2.5  # kappa
# c2 is the `budget`. The exponent is 1/e with e = 3/2, or 2 if `bold`; see `reaches`.

_TINY = 1e-300  # the smallest D: costs are divided by it


class ProspectArm(Record):
    rests: int  # 1 while too many of its pulls are pending


class ProspectClock(Record):
    current: int  # the slot of the current arm, -1 if none
    told: int  # t in C: rewards since the best arm was last retired, without trials
    total: float  # their sum, minus the C at that time (see `lose_best`)
    seen: int  # arms with a reward
    firsts: float  # the sum of their first rewards
    best: float  # M
    excess: float  # the sum of all rewards, each less the smallest possible reward
    squares: float  # the sum of the squares of these
    spread: float  # D, see `set_spread`
    unit: float  # of costs: D, or `top` - `bottom` if that is smaller
    ceiling: float  # the target before the penalty
    spent: float  # C / (c2 T^beta log T), or 0 while C < c1 T^beta
    resting: int  # arms that rest
    ranked: int  # the guard's period when the upper bounds were computed; 0 if never
    ranked_by: float  # D at that time
    changed: int  # 1 once arms were added, or the best one was retired
    looks: int  # fresh arms that may still get a trial after the best arm was retired
    on_trial: int  # arms on trial
    turn: int  # the one whose turn is next
    credited: int  # 1 if known rewards were credited since the last pull
    paid: float  # pulls charged for trials: 1 / `trials` for each trial pull used or lapsed


class ProspectState(NamedTuple):
    """The rewards of all opened arms, the target, and the guard."""

    budget: float  # c2
    bold: bool
    guess: bool  # whether to guess the horizon even if it is given
    late_counts: bool
    pause: float  # 1 / `trials`: pulls per trial pull, on average
    guard: Guard
    arm: Records[ProspectArm]  # by slot
    clock: Records[ProspectClock]  # [clock]
    shrunk: ShrunkMeans  # by slot: N, rewards, and (rewards + average of first ones) / (N + 1)
    by_mean: Tournament
    by_upper: Tournament  # once no fresh arm is left
    ties: Stream
    trial: Ints  # slots of arms on trial


@kernel
def set_spread(state: ProspectState) -> None:
    r"""Set the unit of costs.

    .. math:: D = \min\Big(w, \max\Big(\frac{\sum x^2}{\sum x}, 2 M\Big)\Big)

    with the sums over all rewards, x and M less the smallest possible reward, and the width w of
    the range of rewards. If all x are 0 or w, D is w, to the last bit. A reward that is D with
    probability p and else 0 has the mean p D and the variance p (1 - p) D^2; with
    :math:`D = \sum x^2 / \sum x` these are the mean and the variance of x.
    """
    guard, clock = state.guard, state.clock[0]
    spread = guard.width
    if clock.squares < spread * clock.excess:
        least = max(clock.squares / clock.excess, 2.0 * (clock.best - guard.least), _TINY)
        spread = min(spread, least)
    clock.spread = spread
    clock.unit = min(guard.top - guard.bottom, spread)


@kernel
def highest_target(state: ProspectState) -> float:
    return min(state.guard.top, state.guard.least + state.clock[0].spread)


@kernel
def set_target(state: ProspectState) -> None:
    r"""Lower the target as the search gets expensive.

    .. math:: C = \max(0, t M - \text{all rewards}), \qquad \zeta = 1 - C/T
        \text{ if } C < c_1 T^\beta, \text{ else }
        \min(1, M + \kappa (M - \bar a)^+, 2M) - \Big(\frac{C}{c_2 T^\beta \log T}\Big)^{1/e}

    in units of D; see `set_spread`. The term 2M is for `bound="kl"` only. `reaches` compares
    powers, which is cheaper than computing a root.
    """
    guard, clock = state.guard, state.clock[0]
    clock.best = min(highest_mean(state.shrunk), guard.top)
    set_spread(state)
    cost = max(0.0, clock.told * clock.best - clock.total)
    scale = clock.unit * guard.clock[0].power
    if cost < _C1 * scale:
        clock.ceiling = highest_target(state) - cost / guard.clock[0].horizon
        clock.spent = 0.0
    else:
        gain = _KAPPA * max(0.0, clock.best - clock.firsts / clock.seen)
        if guard.kl:
            gain = min(gain, clock.best - guard.bottom)
        clock.ceiling = min(highest_target(state), clock.best + gain)
        clock.spent = cost / (state.budget * guard.clock[0].log * scale)


@kernel
def reaches(state: ProspectState, mean: float) -> bool:
    """Whether a mean is at least the target."""
    clock = state.clock[0]
    below = (clock.ceiling - mean) / clock.unit
    if below <= 0.0:
        return True
    return (below * below if state.bold else below * math.sqrt(below)) <= clock.spent  # below^e
