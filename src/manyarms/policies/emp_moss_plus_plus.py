"""empMOSS++: MOSS++ that keeps its statistics from one iteration to the next."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Records
from manyarms.core.rng import Stream, below, draw, next_word, restart, stream
from manyarms.core.tournament import Tournament, clear, enter, leader, rekey
from manyarms.policies.moss_plus_plus import (
    MixturePolicy,
    iteration_arms,
    iteration_pulls,
    iterations,
    prolong_last,
)
from manyarms.policies.parts.mixtures import (
    IterationClock,
    Mixtures,
    add_share,
    arrive_later,
    ask_member,
    close_mixture,
    has_unpulled,
    lose_arm,
    mixtures,
    open_member,
    reset_iterations,
    tried,
    wait_for,
)
from manyarms.policies.parts.moss_run import (
    GONE,
    MossRun,
    begin,
    count_late_pulls,
    credit,
    learn,
    present,
    refresh,
    set_scale,
)
from manyarms.policies.parts.randomness import RANKING
from manyarms.protocol import plays
from manyarms.protocol.parameters import choice

_OUTSIDE = -1  # the value of `asked` for a slot that is not in the set


class Chosen(NamedTuple):
    """The members of the current set that have slots."""

    slot: Ints
    size: Ints  # [number of slots]
    zeros: Ints  # scratch: the slots of mean 0
    words: Stream


def chosen(memory: Memory, slots: int) -> Chosen:
    """Allocate memory for a set of at most `slots` slots."""
    return Chosen(
        memory.ints(slots, most=slots),
        memory.ints(1),
        memory.ints(slots, most=slots),
        stream(memory),
    )


@kernel
def choose_slot(chosen: Chosen, slot: int) -> None:
    """Add a slot to the set."""
    chosen.slot[chosen.size[0]] = slot
    chosen.size[0] += 1


class EmpMossPlusPlusClock(IterationClock):
    end: int  # H: the number of pulls made when the iteration ends


class EmpMossPlusPlusState(NamedTuple):
    """The arms and mixture-arms pulled so far, and which of them are in the current set."""

    beta: float
    rank_all: bool  # whether arms never pulled are ranked, too
    clock: Records[EmpMossPlusPlusClock]  # [clock]
    moss: MossRun
    chosen: Chosen
    mixtures: Mixtures


def emp_moss_plus_plus_reset(state: EmpMossPlusPlusState, key: int, horizon: int) -> None:
    reset_iterations(state, key, horizon)
    begin(state.moss, 1, 1)  # the first iteration sets K and H
    restart(state.chosen.words, draw(key, RANKING))
    state.chosen.size[0] = 0


@rare
def next_emp_iteration(state: EmpMossPlusPlusState) -> None:
    """Turn the last iteration into a mixture-arm, choose the next set, compute its indices."""
    moss, clock, run = state.moss, state.clock[0], state.moss.run[0]
    if prolong_last(clock, state.beta):
        return
    clock.iteration += 1
    p, i = iterations(clock.horizon, state.beta), clock.iteration
    clock.left = iteration_pulls(p, i, clock.horizon)
    clock.end = min(clock.end + clock.left, clock.horizon)
    run.fresh = iteration_arms(p, i, present(moss))
    run.waiting = 0
    if i > 1:
        become_mixture(state)
        wait_for(moss, state.mixtures, i - 1)
        untouched = present(moss) - tried(moss) if state.rank_all else 0
        run.fresh = best_means(state.chosen, moss, run.fresh, untouched)
    moss.sampler.n[0] = moss.pool[0]
    clear(moss.rank)
    for slot in range(run.opened):
        enter(moss.rank, -math.inf)  # not a member unless chosen below
        moss.slot[slot].asked = _OUTSIDE
        if GONE < moss.slot[slot].member < 0:
            choose_slot(state.chosen, slot)
    if state.chosen.size[0] + run.fresh + run.waiting == 0:  # all arms pulled are retired
        run.fresh = 1
    for k in range(state.chosen.size[0]):
        moss.slot[state.chosen.slot[k]].asked = 0
    compute_indices(state, clock.end)


@kernel
def become_mixture(state: EmpMossPlusPlusState) -> None:
    """Turn the last iteration into a mixture-arm, weighted by the pulls of its members."""
    for k in range(state.chosen.size[0]):
        slot = state.moss.slot[state.chosen.slot[k]]
        add_share(state.mixtures, slot.member, slot.asked)
    close_mixture(state.mixtures)


@rare
def compute_indices(state: EmpMossPlusPlusState, horizon: int) -> None:
    """Compute all indices for the present size of the set and H = `horizon`."""
    run, chosen = state.moss.run[0], state.chosen
    set_scale(state.moss, chosen.size[0] + run.fresh + run.waiting, horizon)
    for k in range(chosen.size[0]):
        refresh(state.moss, chosen.slot[k])


@rare
def best_means(chosen: Chosen, moss: MossRun, arms: int, untouched: int) -> int:
    """Choose the arms of highest mean; return how many of them were never pulled.

    An arm that was never pulled counts as mean 0, and ties are broken uniformly at random. The
    order is: arms of positive mean, by their mean; arms of mean 0, whether pulled or not, in random
    order; arms of negative mean, by their mean.
    """
    chosen.size[0] = 0
    zero = 0
    positive = 0
    negative = 0
    clear(moss.rank)
    for slot in range(moss.run[0].opened):
        mean = -math.inf  # mixture-arms and arms of mean 0 are not ranked
        if moss.slot[slot].member >= 0:
            pulls = moss.slot[slot].pulls  # 0 while the first reward is late
            mean = moss.slot[slot].total / pulls if pulls > 0 else 0.0
            if mean == 0.0:
                chosen.zeros[zero] = slot
                zero += 1
                mean = -math.inf
            elif mean > 0.0:
                positive += 1
            else:
                negative += 1
        enter(moss.rank, mean)
    _choose_leaders(chosen, moss.rank, min(arms, positive))
    fresh = _choose_zeros(chosen, arms - chosen.size[0], zero, untouched)
    _choose_leaders(chosen, moss.rank, min(arms - chosen.size[0] - fresh, negative))
    return fresh


@rare
def _choose_leaders(chosen: Chosen, rank: Tournament, count: int) -> None:
    for _ in range(count):
        slot = leader(rank, chosen.words)
        choose_slot(chosen, slot)
        rekey(rank, slot, -math.inf)


@rare
def _choose_zeros(chosen: Chosen, places: int, zero: int, untouched: int) -> int:
    """Fill places with random arms of mean 0; return how many of them were never pulled."""
    fresh = 0
    for _ in range(min(places, zero + untouched)):
        at = below(next_word(chosen.words), zero + untouched - fresh)
        if at < zero:
            choose_slot(chosen, chosen.zeros[at])
            zero -= 1
            chosen.zeros[at] = chosen.zeros[zero]
        else:
            fresh += 1
    return fresh


def emp_moss_plus_plus_ask(state: EmpMossPlusPlusState) -> tuple[int, int]:
    clock = state.clock[0]
    if clock.left == 0:
        next_emp_iteration(state)
    clock.left -= 1
    if has_unpulled(state.moss):
        slot = open_member(state.moss, state.mixtures)
        choose_slot(state.chosen, slot)
    else:
        slot = leader(state.moss.rank, state.moss.ties)
    return ask_member(state.moss, state.mixtures, slot)


@kernel
def in_the_set(state: EmpMossPlusPlusState, slot: int) -> bool:
    return state.moss.slot[slot].asked != _OUTSIDE


def emp_moss_plus_plus_tell(state: EmpMossPlusPlusState, slot: int, reward: float) -> None:
    if in_the_set(state, slot):
        credit(state.moss, slot, reward)
    else:  # the slot left the set while the reward was pending
        learn(state.moss, slot, reward)


def emp_moss_plus_plus_count_late(state: EmpMossPlusPlusState, slot: int, change: int) -> None:
    if in_the_set(state, slot):
        count_late_pulls(state.moss, slot, change)
    else:
        state.moss.late[slot] += change


def emp_moss_plus_plus_retire(state: EmpMossPlusPlusState, arm: int) -> None:
    moss, run, chosen = state.moss, state.moss.run[0], state.chosen
    lose_arm(state, arm)
    if state.clock[0].iteration == 0:
        return
    before, chosen.size[0] = chosen.size[0], 0
    for k in range(before):
        if moss.slot[chosen.slot[k]].member != GONE:
            choose_slot(chosen, chosen.slot[k])
    if chosen.size[0] + run.waiting + run.fresh == 0:
        choose_again(state)
    compute_indices(state, run.horizon)


@rare
def choose_again(state: EmpMossPlusPlusState) -> None:
    """Refill an empty set with all arms pulled before, or with a fresh one if there are none."""
    moss = state.moss
    for slot in range(moss.run[0].opened):
        if moss.slot[slot].member >= 0:
            choose_slot(state.chosen, slot)
            moss.slot[slot].asked = 0
    if state.chosen.size[0] == 0:
        moss.sampler.n[0] = moss.pool[0]
        moss.run[0].fresh = 1


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
    r"""MOSS++ that keeps its statistics and continues with the best arms so far.

    As `MOSSPlusPlus`, except that

    * arms and mixture-arms keep their pulls and rewards from earlier iterations;
    * H is the number of pulls made by the end of the iteration,
      :math:`H_i = \min(\Delta T_1 + \dots + \Delta T_i, T)`;
    * for i > 1 the set holds the :math:`K_i` arms of highest empirical mean among all n arms. An
      arm never pulled counts as mean 0, and ties are broken uniformly at random.

    Parameters
    ----------
    beta, mixture_sigma
        As for `MOSSPlusPlus`.
    rank
        "all" ranks arms never pulled as mean 0, as in the paper; "pulled" leaves them out.
    sigma, exploration, count_late, index
        As for `MOSS`. With "kl" the regret is far lower if rewards are rare.

    Notes
    -----
    It has no proven guarantee; in experiments it is often the best policy of the paper.

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

    rank: Annotated[str, choice("all", "pulled")] = "all"

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> EmpMossPlusPlusState:
        sets = self._sets(n_arms, pulls)
        slots = min(sum(sets), n_arms + len(sets), pulls)  # a slot is opened by a pull
        shares, most = sum(sets), max(n_arms, pulls)
        return EmpMossPlusPlusState(
            beta=self.beta,
            rank_all=self.rank == "all",
            clock=memory.records(1, EmpMossPlusPlusClock),
            moss=self._moss(memory, n_arms, slots=slots),
            chosen=chosen(memory, slots),
            mixtures=mixtures(memory, shares=shares, arms=len(sets), most=most),
        )
