"""Patience: pull one arm while it may be a best one, then the next; needs the best mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from manyarms.core.hash_map import HashMap, add_name, contains, hash_map
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Memory, Record, Records
from manyarms.core.rng import Stream, draw, next_word, restart, stream
from manyarms.core.sampler import Sampler, clear_sampler, pick, sampler
from manyarms.policies.parts.kl import bernoulli_kl
from manyarms.policies.parts.parameters import KnowsBestMean, SigmaPolicy
from manyarms.policies.parts.randomness import FRESH
from manyarms.protocol import plays
from manyarms.protocol.parameters import choice


class PatienceArm(Record):
    slot: int  # the number of arms taken so far, this one included
    arm: int
    pulls: int  # N
    total: float
    log_horizon: float  # log T
    unasked: int  # 1 until its first pull
    again: int  # 1 once all arms were taken and a new order has begun


class PatienceState(NamedTuple):
    """The current arm, and the random order of the others."""

    best_mean: float
    spread: float  # (2 sigma)^2
    kl: bool
    current: Records[PatienceArm]  # [the current arm]
    sampler: Sampler
    words: Stream
    retired: HashMap  # retired arms


def patience_reset(state: PatienceState, key: int, horizon: int) -> None:
    restart(state.words, draw(key, FRESH))
    clear_sampler(state.sampler)
    state.current[0].slot = 0
    state.current[0].again = 0
    state.current[0].log_horizon = math.log(horizon)
    next_arm(state)


@kernel
def draw_next(state: PatienceState) -> int:
    if state.sampler.drawn[0] >= state.sampler.n[0]:
        clear_sampler(state.sampler)
        state.current[0].again = 1
    return pick(state.sampler, 0, next_word(state.words))


@rare
def next_arm(state: PatienceState) -> None:
    """Take the next arm of the random order; after the last one, start a new order."""
    current = state.current[0]
    current.slot += 1
    current.arm = draw_next(state)
    while contains(state.retired, current.arm):
        current.arm = draw_next(state)
    current.pulls = 0
    current.total = 0.0
    current.unasked = 1


@kernel
def may_be_best(state: PatienceState) -> bool:
    r"""Whether the arm's confidence bound reaches the best mean.

    .. math:: \bar x + 2\sigma \sqrt{\frac{\log T}{N}} \ge \mu^*
    """
    current = state.current[0]
    mean = current.total / current.pulls
    if state.kl:
        bound = current.log_horizon / current.pulls
        return mean >= state.best_mean or bernoulli_kl(mean, state.best_mean) <= bound
    gap = state.best_mean - mean
    return gap <= 0.0 or gap * gap * current.pulls <= state.spread * current.log_horizon


def patience_ask(state: PatienceState) -> tuple[int, int]:
    state.current[0].unasked = 0
    return state.current[0].slot, state.current[0].arm


def patience_tell(state: PatienceState, slot: int, reward: float) -> None:
    current = state.current[0]
    if slot == current.slot:  # else the arm was discarded before this reward
        current.pulls += 1
        current.total += reward
        if not may_be_best(state):
            next_arm(state)


def patience_arrive(state: PatienceState, count: int) -> None:
    """Add new arms to those not drawn yet."""
    state.sampler.n[0] += count


def patience_retire(state: PatienceState, arm: int) -> None:
    add_name(state.retired, arm)
    if state.current[0].arm == arm:
        next_arm(state)


def patience_credit(
    state: PatienceState, arm: int, count: int, total: float, squares: float
) -> int:
    """Credit known rewards; of the arms that may be best ones, keep that with most rewards.

    The other known arms are discarded.
    """
    current = state.current[0]
    is_fresh = current.pulls == 0 and current.unasked == 1
    if arm < 0 and current.again == 1:
        return -1
    if arm < 0 and not is_fresh:
        return keep_better(state, count, total)
    if arm < 0 or arm == current.arm:
        arm = current.arm
        current.pulls += count
        current.total += total
        if not may_be_best(state):
            next_arm(state)
    return arm


@rare
def keep_better(state: PatienceState, count: int, total: float) -> int:
    """Draw an arm for known rewards; it becomes the current one if it is better."""
    arm = -1
    while arm < 0 and state.sampler.drawn[0] < state.sampler.n[0]:
        arm = pick(state.sampler, 0, next_word(state.words))
        if contains(state.retired, arm):
            arm = -1
    current = state.current[0]
    if arm >= 0 and count > current.pulls:
        kept, pulls, before = current.arm, current.pulls, current.total
        current.arm = arm
        current.pulls = count
        current.total = total
        if may_be_best(state):
            current.slot += 1
        else:
            current.arm = kept
            current.pulls = pulls
            current.total = before
    return arm


plays(
    PatienceState,
    reset=patience_reset,
    ask=patience_ask,
    tell=patience_tell,
    arrive=patience_arrive,
    retire=patience_retire,
    credit_known=patience_credit,
)


@dataclass(frozen=True, kw_only=True)
class Patience(KnowsBestMean, SigmaPolicy):
    r"""Pull an arm until its upper bound is below the best mean, then discard it for the next.

    Arms are taken in random order. The current arm is pulled while

    .. math:: \bar x + 2\sigma \sqrt{\frac{\log T}{N}} \ge \mu^*

    Parameters
    ----------
    best_mean
        The best mean. When in doubt, round it down: if it is too high, every arm is discarded.
        By default simulations take it from the instance.
    sigma
        Rewards are sigma-sub-Gaussian around their mean (default: half the width of their range,
        1/2 for [0, 1]).
    bound
        "mean" (default) is the rule above. "kl" discards an arm if N kl(mean, best_mean) > log T
        and the mean is below best_mean; it is for rewards in [0, 1], and the guarantee below does
        not cover it.

    Notes
    -----
    The rule is known in other settings: UCB-TP (Kim, Vojnović & Yun, *Rotting
    infinitely many-armed bandits*, ICML 2022) leaves an arm when its upper bound falls below a
    threshold, for means that decrease; SELECT (Feng, Ma & Zhu, *Satisficing regret minimization in
    bandits*, ICLR 2025) tests arms against a threshold by a lower bound. The guarantee for m best
    arms of n, whatever m is, and its proof are ours.

    The regret is at most :math:`2\sqrt{(n/m)\,T\,(4 \log T + 3)} + 1` for rewards in [0, 1]: near
    minimax at every hardness at once, with :math:`\sqrt{\log T}` where Parallel has
    :math:`(\log T)^2`. The proof is in docs/proofs.md. Cost per pull: O(1). Memory: one arm and the
    order. When all arms are discarded, a new order begins. While rewards are late, the current arm
    is still pulled; late rewards of discarded arms are ignored.

    Its page is docs/policies/patience.md.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.Patience(best_mean=0.9).live(n_arms=1_000_000, horizon=20_000, seed=1)
    >>> for _ in range(14):
    ...     live.tell(live.ask(), reward=0.0)
    >>> live.progress().arms_touched  # the first arm was discarded after thirteen failures
    2
    """

    name = "patience"

    bound: Annotated[str, choice("mean", "kl")] = "mean"

    @property
    def unit_rewards(self) -> bool:  # type: ignore[override]  # it depends on the bound
        return self.bound == "kl"

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> PatienceState:
        return PatienceState(
            best_mean=self._best_mean(),
            spread=4.0 * self._sigma() ** 2,
            kl=self.bound == "kl",
            current=memory.records(1, PatienceArm),
            sampler=sampler(memory, n_arms, draws=min(n_arms, pulls + 1)),
            words=stream(memory),
            retired=hash_map(memory, names=n_arms, entries=memory.changes),
        )
