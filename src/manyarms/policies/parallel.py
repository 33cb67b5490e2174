"""Parallel (Algorithm 3): near minimax for every hardness when the best mean is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Memory, Record, Records, power_of_two
from manyarms.core.rng import Stream, draw, next_word, restart, stream
from manyarms.core.tournament import Tournament
from manyarms.errors import ParameterError
from manyarms.policies.parts.fresh import (
    FreshArms,
    choose,
    hold,
    pool_is_sound,
    present,
    replace_arm,
    reset_arms,
    strike,
)
from manyarms.policies.parts.parameters import IndexPolicy, ToldBestMean
from manyarms.policies.parts.randomness import EPOCHS
from manyarms.policies.parts.slots import Slots, begin, credit
from manyarms.protocol import About, arrive, ask, count_late, reset, retire, tell
from manyarms.protocol.soundness import Known, holds, sound
from manyarms.theory.schedules import epoch_length, subroutines, subset_size

__all__ = ["Parallel"]

MOST_SUBROUTINES = 64  # log T is smaller for every T


class ParallelClock(Record):
    subroutines: int  # q
    epoch: int  # Delta
    left: int  # pulls left in the epoch
    running: int  # the subroutine of this epoch


class Subroutine(Record):
    base: int  # its first slot
    room: int  # slots for it, a power of two
    pulls: int  # T_i
    rewards: float  # their sum


class ParallelState(NamedTuple):
    """The arms of all subroutines, and what each subroutine earned."""

    best_mean: float
    factor: float
    clock: Records[ParallelClock]  # [clock]
    subroutine: Records[Subroutine]
    arms: FreshArms  # of all subroutines
    epochs: Stream


@kernel
def slots_of(state: ParallelState, i: int) -> Slots:
    """Return subroutine i's part of the shared slots."""
    own, slots = state.subroutine[i], state.arms.slots
    shared = slots.rank
    rank = Tournament(
        shared.seat,
        shared.leaders,
        shared.node,
        shared.changed,
        shared.board,
        own.base,
        own.room,
        i,
    )
    return Slots(
        slots.slot,
        slots.run,
        slots.late,
        slots.log,
        slots.spread,
        slots.mixture_spread,
        slots.kl,
        slots.switch,
        slots.plus,
        slots.late_counts,
        slots.ties,
        rank,
    )


@kernel
def arms_of(state: ParallelState, i: int) -> FreshArms:
    """Return subroutine i's slots, with the sampler that all share."""
    arms = state.arms
    return FreshArms(slots_of(state, i), arms.sampler, arms.words, arms.pool, arms.retired)


@kernel
def wanted_arms(state: ParallelState, i: int, q: int, horizon: int) -> int:
    """Return how large subroutine i's set is where there are enough arms."""
    return subset_size(horizon, (i + 1) / q, state.factor, horizon)


@reset.register(ParallelState)
def parallel_reset(state: ParallelState, key: int, horizon: int) -> None:
    reset_arms(state.arms, key)
    restart(state.epochs, draw(key, EPOCHS))
    q = subroutines(horizon)
    state.clock[0].subroutines = q
    state.clock[0].epoch = epoch_length(horizon)
    state.clock[0].left = 0
    base = 0
    for i in range(q):
        wanted = wanted_arms(state, i, q, horizon)
        own = state.subroutine[i]
        own.base = base
        own.room = 1
        while own.room < wanted:  # for the arms that may still come, too
            own.room *= 2
        own.pulls = 0
        own.rewards = 0.0
        base += own.room
        begin(slots_of(state, i), min(wanted, present(state.arms)), horizon)


@rare
def lowest_regret(state: ParallelState) -> int:
    """Return the subroutine of lowest empirical regret, ties at random."""
    lowest = 0
    least = math.inf
    least_word = next_word(state.epochs)
    for i in range(state.clock[0].subroutines):
        own = state.subroutine[i]
        regret = own.pulls * state.best_mean - own.rewards
        word = next_word(state.epochs)
        if regret < least or (regret == least and word > least_word):
            lowest, least, least_word = i, regret, word
    return lowest


@ask.register(ParallelState)
def parallel_ask(state: ParallelState) -> tuple[int, int]:
    clock = state.clock[0]
    if clock.left == 0:
        clock.running = lowest_regret(state)
        clock.left = clock.epoch
    clock.left -= 1
    slot = choose(arms_of(state, clock.running))
    # the reward may come when another subroutine runs: the slot says whose it is
    return slot * MOST_SUBROUTINES + clock.running, state.arms.slots.slot[slot].member


@tell.register(ParallelState)
def parallel_tell(state: ParallelState, slot: int, reward: float) -> None:
    i = slot % MOST_SUBROUTINES
    own = state.subroutine[i]
    own.pulls += 1
    own.rewards += reward
    credit(slots_of(state, i), slot // MOST_SUBROUTINES, reward)


@count_late.register(ParallelState)
def parallel_count_late(state: ParallelState, slot: int, change: int) -> None:
    count_late(slots_of(state, slot % MOST_SUBROUTINES), slot // MOST_SUBROUTINES, change)


@arrive.register(ParallelState)
def parallel_arrive(state: ParallelState, count: int) -> None:
    arrive(state.arms, count)
    q = state.clock[0].subroutines
    for i in range(q):
        horizon = state.arms.slots.run[i].horizon
        size = subset_size(horizon, (i + 1) / q, state.factor, present(state.arms))
        hold(arms_of(state, i), size)


@retire.register(ParallelState)
def parallel_retire(state: ParallelState, arm: int) -> None:
    strike(state.arms.retired, arm)
    for i in range(state.clock[0].subroutines):
        replace_arm(arms_of(state, i), arm)


@holds.register(ParallelState)
def parallel_holds(state: ParallelState, slot: int) -> bool:
    i, own = slot % MOST_SUBROUTINES, slot // MOST_SUBROUTINES
    return i < state.clock[0].subroutines and holds(slots_of(state, i), own)


@sound.register(ParallelState)
def parallel_is_sound(state: ParallelState, known: Known) -> bool:
    clock = state.clock[0]
    q = subroutines(known.horizon) if known.horizon > 0 else 0
    if clock.subroutines != q or not 0 <= clock.running < max(q, 1):
        return False
    base = 0
    for i in range(q):
        own, wanted = state.subroutine[i], wanted_arms(state, i, q, known.horizon)
        if (own.base, own.room) != (base, power_of_two(wanted)):
            return False
        base += own.room
    tables = all(sound(slots_of(state, i), known) for i in range(q))
    return tables and pool_is_sound(state.arms, known)


@dataclass(frozen=True, kw_only=True)
class Parallel(ToldBestMean, IndexPolicy):
    r"""Run the subroutine SR for many hardnesses, and always resume the one that lost least.

    There are :math:`q = \lceil \log T \rceil` subroutines, for :math:`\alpha_i = i/q`, and epochs
    of :math:`\lceil \sqrt T \rceil` pulls. An epoch goes to the subroutine of lowest

    .. math:: \hat R_i = T_i \mu^* - \text{(its rewards)}

    Parameters
    ----------
    best_mean
        The best mean, or an estimate within 1/sqrt(T). When in doubt round it down: too high
        makes every subroutine look bad. In a simulation it may be left to the instance.
    subset_factor
        2 as in the paper's text, or 1 as in its authors' code.
    sigma, exploration, count_late
        As for `MOSS`.

    Notes
    -----
    Theorem 4: regret at most :math:`C (\log T)^2\, T^{(1+\alpha)/2}`, for every hardness at once.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.Parallel(best_mean=0.9).live(n_arms=1_000_000, horizon=20_000, seed=1)
    >>> live.tell(live.ask(), reward=1.0)
    """

    name: ClassVar[str] = "parallel"
    about: ClassVar[About] = About(
        needs="horizon, μ*",
        guarantee="near minimax at every hardness, (log T)²",
        nanoseconds=52,
        scaling="log of arms pulled",
        good_at="a known best mean",
        source="Zhu & Nowak 2020",
        kind="paper",
        knowledge="mu*",
    )

    subset_factor: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subset_factor not in (1, 2):
            raise ParameterError(f"`subset_factor` must be 1 or 2, got {self.subset_factor!r}.")

    def stage(self, state: ParallelState) -> str:
        return f"subroutine {state.clock[0].running + 1} of {state.clock[0].subroutines}"

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> ParallelState:
        q, factor = subroutines(pulls), float(self.subset_factor)
        sizes = [subset_size(pulls, (i + 1) / q, factor, pulls) for i in range(q)]
        count = sum(map(power_of_two, sizes))
        return ParallelState(
            best_mean=self._best_mean(),
            factor=factor,
            clock=memory.records(1, ParallelClock),
            subroutine=memory.records(q, Subroutine),
            arms=self._arms(memory, n_arms, arms=count, draws=pulls, runs=q),
            epochs=stream(memory),
        )
