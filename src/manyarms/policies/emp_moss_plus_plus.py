"""empMOSS++: MOSS++ that keeps its statistics from one iteration to the next."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Memory, Records
from manyarms.core.rng import Stream, below, draw, next_word, restart, stream
from manyarms.core.tournament import clear, enter, leader
from manyarms.policies.parts.best_means import Chosen, best_means, choose_slot, chosen
from manyarms.policies.parts.fresh import FreshArms, draw_arm, drawable, present
from manyarms.policies.parts.iterations import (
    IterationClock,
    arrive_later,
    ask_member,
    lose_arm,
    reset_iterations,
)
from manyarms.policies.parts.mixtures import (
    Mixtures,
    add_share,
    close_mixture,
    mixture_pulls,
    mixtures,
)
from manyarms.policies.parts.moss_slots import (
    GONE,
    begin,
    count_late_pulls,
    credit,
    learn,
    open_slot,
    refresh,
    set_scale,
)
from manyarms.policies.parts.parameters import MixturePolicy
from manyarms.policies.parts.randomness import RANKING
from manyarms.protocol import About, plays
from manyarms.protocol.parameters import choice
from manyarms.theory.schedules import iteration_arms, iteration_pulls, iterations

_OUTSIDE = -1  # `asked` of a slot that is not in the set


class EmpMossPlusPlusClock(IterationClock):
    end: int  # H: the pull with which the iteration ends
    fresh: int  # arms of the set that are still to be drawn
    touched: int  # arms drawn so far
    newest: int  # 1 while the newest mixture-arm waits for its first pull


class EmpMossPlusPlusState(NamedTuple):
    """Every arm and mixture-arm pulled so far, and which of them are in this iteration's set."""

    beta: float
    rank_all: bool  # rank the arms never pulled too
    clock: Records[EmpMossPlusPlusClock]  # [clock]
    arms: FreshArms
    chosen: Chosen
    order: Stream
    mixtures: Mixtures


def emp_moss_plus_plus_reset(state: EmpMossPlusPlusState, key: int, horizon: int) -> None:
    reset_iterations(state, key, horizon)
    begin(state.arms.slots, 1, 1)  # K and H come with the first iteration
    restart(state.chosen.words, draw(key, RANKING))
    state.chosen.size[0] = 0


@rare
def next_emp_iteration(state: EmpMossPlusPlusState) -> None:
    """Make a mixture-arm of the iteration that ended, choose a set, compute all its indices."""
    slots, clock = state.arms.slots, state.clock[0]
    clock.iteration += 1
    p = iterations(clock.horizon, state.beta)
    real = iteration_arms(p, clock.iteration, present(state.arms))
    clock.left = iteration_pulls(p, clock.iteration, clock.horizon)
    clock.end = min(clock.end + clock.left, clock.horizon)
    clock.fresh = real
    if clock.iteration > 1:
        close_iteration(state)
        untouched = present(state.arms) - clock.touched if state.rank_all else 0
        clock.fresh = best_means(state.chosen, slots, real, untouched)
        clock.newest = min(1, mixture_pulls(state.mixtures, clock.iteration - 1))
    state.arms.sampler.n[0] = state.arms.pool[0]
    clear(slots.rank)
    for number in range(slots.run[0].opened):
        enter(slots.rank, -math.inf)  # no member, unless it is chosen
        slots.slot[number].asked = _OUTSIDE
        if GONE < slots.slot[number].member < 0:
            choose_slot(state.chosen, number)
    if state.chosen.size[0] + clock.fresh + clock.newest == 0:  # all arms pulled are retired
        clock.fresh = 1
    set_scale(slots, state.chosen.size[0] + clock.fresh + clock.newest, clock.end)
    for k in range(state.chosen.size[0]):
        slots.slot[state.chosen.slot[k]].asked = 0
        refresh(slots, state.chosen.slot[k])


@kernel
def close_iteration(state: EmpMossPlusPlusState) -> None:
    for k in range(state.chosen.size[0]):
        slot = state.arms.slots.slot[state.chosen.slot[k]]
        add_share(state.mixtures, slot.member, slot.asked)
    close_mixture(state.mixtures)


@kernel
def open_member(state: EmpMossPlusPlusState) -> int:
    """Open a member that was never pulled: an untouched arm, or the newest mixture-arm."""
    clock, arms = state.clock[0], state.arms
    if clock.newest == 1 and below(next_word(state.order), clock.fresh + 1) == 0:
        clock.newest = 0
        slot = open_slot(arms.slots, 1 - clock.iteration)
    else:
        clock.fresh -= 1
        clock.touched += 1
        slot = open_slot(arms.slots, draw_arm(arms))
    choose_slot(state.chosen, slot)
    return slot


def emp_moss_plus_plus_ask(state: EmpMossPlusPlusState) -> tuple[int, int]:
    clock = state.clock[0]
    if clock.left == 0:
        next_emp_iteration(state)
    clock.left -= 1
    if clock.fresh + clock.newest > 0:
        number = open_member(state)
    else:
        number = leader(state.arms.slots.rank, state.arms.slots.ties)
    return ask_member(state.mixtures, state.arms.slots, number)


@kernel
def in_the_set(state: EmpMossPlusPlusState, slot: int) -> bool:
    return state.arms.slots.slot[slot].asked != _OUTSIDE


def emp_moss_plus_plus_tell(state: EmpMossPlusPlusState, slot: int, reward: float) -> None:
    if in_the_set(state, slot):
        credit(state.arms.slots, slot, reward)
    else:  # late: it left the set in the meantime
        learn(state.arms.slots, slot, reward)


def emp_moss_plus_plus_count_late(state: EmpMossPlusPlusState, slot: int, change: int) -> None:
    if in_the_set(state, slot):
        count_late_pulls(state.arms.slots, slot, change)
    else:
        state.arms.slots.late[slot] += change


def emp_moss_plus_plus_retire(state: EmpMossPlusPlusState, arm: int) -> None:
    slots, clock, chosen = state.arms.slots, state.clock[0], state.chosen
    clock.touched -= lose_arm(state, arm)
    if clock.iteration == 0:
        return
    if clock.newest == 1 and mixture_pulls(state.mixtures, clock.iteration - 1) == 0:
        clock.newest = 0
    clock.fresh = min(clock.fresh, drawable(state.arms) - clock.touched)
    before, chosen.size[0] = chosen.size[0], 0
    for k in range(before):
        if slots.slot[chosen.slot[k]].member != GONE:
            choose_slot(chosen, chosen.slot[k])
    if chosen.size[0] + clock.newest + clock.fresh == 0:
        choose_again(state)
    set_scale(slots, chosen.size[0] + clock.newest + clock.fresh, slots.run[0].horizon)
    for k in range(chosen.size[0]):
        refresh(slots, chosen.slot[k])


@rare
def choose_again(state: EmpMossPlusPlusState) -> None:
    """Refill a set that lost all its arms: with all arms pulled before, or a fresh one."""
    slots, clock = state.arms.slots, state.clock[0]
    if clock.touched == 0:
        state.arms.sampler.n[0] = state.arms.pool[0]
        clock.fresh = 1
    for slot in range(slots.run[0].opened):
        if slots.slot[slot].member >= 0:
            choose_slot(state.chosen, slot)
            slots.slot[slot].asked = 0


plays(
    EmpMossPlusPlusState,
    reset=emp_moss_plus_plus_reset,
    ask=emp_moss_plus_plus_ask,
    tell=emp_moss_plus_plus_tell,
    count_late=emp_moss_plus_plus_count_late,
    arrive=arrive_later,
    retire=emp_moss_plus_plus_retire,
)


@dataclass(frozen=True, kw_only=True)
class EmpMOSSPlusPlus(MixturePolicy):
    r"""MOSS++ that keeps its statistics and goes on with the arms that did best so far.

    As `MOSSPlusPlus`, except that

    * arms and mixture-arms keep their pulls and rewards from earlier iterations;
    * H is the total so far, :math:`H_i = \min(\Delta T_1 + \dots + \Delta T_i, T)`;
    * for i > 1 the set holds the :math:`K_i` highest empirical means among all n arms, an arm
      never pulled counting as mean 0, ties uniformly at random.

    Parameters
    ----------
    beta, mixture_sigma
        As for `MOSSPlusPlus`.
    rank
        "all" ranks arms never pulled with mean 0 (the paper's); "pulled" leaves them out.
    sigma, exploration, count_late, index
        As for `MOSS`. With "kl" it loses far less where rewards are rare.

    Notes
    -----
    No theorem covers it; in experiments it is often the best of all.

    Its page is docs/policies/emp_moss_plus_plus.md; docs/learn/emp_moss_plus_plus.py is the
    plain algorithm.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.EmpMOSSPlusPlus(beta=0.5).live(n_arms=1_000_000, horizon=20_000, seed=7)
    >>> for pull in live.ask(2000):
    ...     live.tell(pull, reward=float(pull.arm % 8 == 0))
    >>> live.recommend().arm % 8
    0
    """

    name = "empmoss++"
    about = About(
        needs="horizon",
        guarantee="none proven",
        page="docs/policies/emp_moss_plus_plus.md",
        scaling="log of arms in the set",
        good_at="wide gaps, rare best arms",
        source="Zhu & Nowak 2020",
        kind="paper",
    )

    rank: Annotated[str, choice("all", "pulled")] = "all"

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> EmpMossPlusPlusState:
        sets = [real + i for i, real in enumerate(self._sets(n_arms, pulls))]
        slots = min(sum(sets), n_arms + len(sets), pulls)  # a slot is opened by a pull
        return EmpMossPlusPlusState(
            beta=self.beta,
            rank_all=self.rank == "all",
            clock=memory.records(1, EmpMossPlusPlusClock),
            arms=self._arms(memory, n_arms, arms=slots),
            chosen=chosen(memory, slots),
            order=stream(memory),
            mixtures=mixtures(memory, shares=sum(sets), arms=len(sets), most=max(n_arms, pulls)),
        )
