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
    lose_retired,
    mixtures,
    open_member,
    reset_iterations,
    retire_later,
    tried,
    wait_for,
)
from manyarms.policies.parts.moss_run import (
    GONE,
    MossRun,
    begin,
    count_late_pulls,
    credit,
    draw_from_all,
    has_room,
    learn,
    learn_known,
    open_fresh,
    present,
    refresh,
    set_scale,
    slot_of,
)
from manyarms.policies.parts.randomness import RANKING
from manyarms.protocol import plays
from manyarms.protocol.parameters import choice

# An iteration is skipped if known rewards stand for this share of its pulls. A member of its set
# counts with at most its equal share of the pulls.
_ENOUGH = 0.1
_SAMPLE = 1000  # known arms from which their average mean is estimated
_HEAVIEST = 1000.0  # the weight of the prior, at most
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
    p, closed = iterations(clock.horizon, state.beta), state.mixtures.counts[0].closed
    if clock.iteration > 0:
        become_mixture(state)
        closed += 1
    clock.iteration += 1
    run.waiting = 0
    if closed > 0:
        wait_for(moss, state.mixtures, closed)
    run.fresh = iteration_arms(p, clock.iteration, present(moss))
    if run.opened > 0:
        choose_best(state, p)
    clock.left = iteration_pulls(p, clock.iteration, clock.horizon)
    clock.end = min(clock.end + clock.left, clock.horizon)
    draw_from_all(moss)
    clear(moss.rank)
    for slot in range(run.opened):
        enter(moss.rank, -math.inf)  # not a member unless chosen below
        moss.slot[slot].asked = _OUTSIDE
        if GONE < moss.slot[slot].arm < 0:
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
        add_share(state.mixtures, slot.arm, slot.asked)
    close_mixture(state.mixtures)


@rare
def compute_indices(state: EmpMossPlusPlusState, horizon: int) -> None:
    """Compute all indices for the present size of the set and H = `horizon`."""
    run, chosen = state.moss.run[0], state.chosen
    set_scale(state.moss, chosen.size[0] + run.fresh + run.waiting, horizon)
    for k in range(chosen.size[0]):
        refresh(state.moss, chosen.slot[k])


@rare
def choose_best(state: EmpMossPlusPlusState, p: int) -> None:
    """Choose the arms of highest mean.

    An arm that was never pulled counts as mean 0, and ties are broken uniformly at random. The
    order is: arms of positive mean, by their mean; arms of mean 0, whether pulled or not, in random
    order; arms of negative mean, by their mean.
    """
    chosen, moss, clock, run = state.chosen, state.moss, state.clock[0], state.moss.run[0]
    is_first = clock.end == 0  # the arms are those with known rewards
    arms, untouched = run.fresh, present(moss) - tried(moss) if state.rank_all else 0
    zero, positive, negative = rank_means(chosen, moss, is_first)
    _choose_leaders(chosen, moss.rank, min(arms, positive))
    if is_first:
        clock.iteration = first_iteration(state, p)
        arms = iteration_arms(p, clock.iteration, present(moss))
        chosen.size[0] = min(arms, chosen.size[0])
    run.fresh = _choose_zeros(chosen, arms - chosen.size[0], zero, untouched)
    _choose_leaders(chosen, moss.rank, min(arms - chosen.size[0] - run.fresh, negative))


@rare
def rank_means(chosen: Chosen, moss: MossRun, is_first: bool) -> tuple[int, int, int]:
    """Rank the arms of positive and of negative mean, and list those of mean 0; return the counts.

    If all rewards were known before, positive means are shrunk.
    """
    zero, positive, negative = 0, 0, 0
    average, weight = prior_of_known(moss) if is_first else (0.0, 0.0)
    chosen.size[0] = 0
    clear(moss.rank)
    for slot in range(moss.run[0].opened):
        mean = -math.inf  # mixture-arms and arms of mean 0 are not ranked
        if moss.slot[slot].arm >= 0:
            pulls = moss.slot[slot].pulls  # 0 while the first reward is late
            mean = moss.slot[slot].total / pulls if pulls > 0 else 0.0
            if mean == 0.0:
                chosen.zeros[zero] = slot
                zero += 1
                mean = -math.inf
            elif mean < 0.0:
                negative += 1
            else:
                positive += 1
                if is_first:
                    mean = (moss.slot[slot].total + weight * average) / (pulls + weight)
        enter(moss.rank, mean)
    return zero, positive, negative


@rare
def first_iteration(state: EmpMossPlusPlusState, p: int) -> int:
    """Return the number of the first iteration for which too little is known."""
    moss, chosen, horizon = state.moss, state.chosen, state.clock[0].horizon
    for i in range(1, p):
        arms, pulls = iteration_arms(p, i, present(moss)), iteration_pulls(p, i, horizon)
        known = 0.0
        for k in range(min(arms, chosen.size[0])):
            known += min(float(moss.slot[chosen.slot[k]].pulls), pulls / arms)
        if known < _ENOUGH * pulls:
            return i
    return max(p, 1)


@rare
def prior_of_known(moss: MossRun) -> tuple[float, float]:
    r"""Return the average a of the arms' known means, and the weight of a Beta(1, 1/a - 1) prior.

    Without it, arms with few known rewards that happened to be good would fill the set. The first
    arms are a random sample.
    """
    total, arms = 0.0, 0
    for slot in range(min(moss.run[0].opened, _SAMPLE)):
        if moss.slot[slot].pulls > 0:
            total += moss.slot[slot].total / moss.slot[slot].pulls
            arms += 1
    average = total / max(1, arms)
    width = math.sqrt(moss.rule.spread)
    return average, min(width / average, _HEAVIEST) if average > 0.0 else 0.0


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
    if clock.retired == 1:
        shrink_set(state)
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


@rare
def shrink_set(state: EmpMossPlusPlusState) -> None:
    """Let retired arms leave the set."""
    moss, run, chosen = state.moss, state.moss.run[0], state.chosen
    lose_retired(state)
    if state.clock[0].iteration == 0:
        return
    before, chosen.size[0] = chosen.size[0], 0
    for k in range(before):
        if moss.slot[chosen.slot[k]].arm != GONE:
            choose_slot(chosen, chosen.slot[k])
    if chosen.size[0] + run.waiting + run.fresh == 0:
        choose_again(state)
    compute_indices(state, run.horizon)


def emp_moss_plus_plus_credit(
    state: EmpMossPlusPlusState, arm: int, count: int, total: float, squares: float
) -> int:
    """Credit known rewards; the next iteration may choose their arm."""
    moss = state.moss
    slot = slot_of(moss, arm) if arm >= 0 else open_outside(state)
    if slot < 0:
        return -1
    if in_the_set(state, slot):
        learn_known(moss, slot, count, total)
        refresh(moss, slot)
    else:
        learn_known(moss, slot, count, total)
    return moss.slot[slot].arm


@rare
def open_outside(state: EmpMossPlusPlusState) -> int:
    """Give a fresh arm a slot outside the set, or in it if this leaves too few; -1 if none is."""
    moss, run = state.moss, state.moss.run[0]
    draw_from_all(moss)
    untouched = present(moss) - (run.opened - run.gone)
    if untouched < run.fresh:  # mixture-arms have slots, too
        untouched = present(moss) - tried(moss)
    if untouched <= 0 or not has_room(moss):
        return -1
    fresh = run.fresh
    slot = open_fresh(moss)
    if state.clock[0].iteration > 0 and untouched <= fresh:
        choose_slot(state.chosen, slot)
    else:
        run.fresh = fresh
        moss.slot[slot].asked = _OUTSIDE
    return slot


@rare
def choose_again(state: EmpMossPlusPlusState) -> None:
    """Refill an empty set with all arms pulled before, or with a fresh one if there are none."""
    moss = state.moss
    for slot in range(moss.run[0].opened):
        if moss.slot[slot].arm >= 0:
            choose_slot(state.chosen, slot)
            moss.slot[slot].asked = 0
    if state.chosen.size[0] == 0:
        draw_from_all(moss)
        moss.run[0].fresh = 1


plays(
    EmpMossPlusPlusState,
    reset=emp_moss_plus_plus_reset,
    ask=emp_moss_plus_plus_ask,
    tell=emp_moss_plus_plus_tell,
    count_late=emp_moss_plus_plus_count_late,
    arrive=arrive_later,
    retire=retire_later,
    credit_known=emp_moss_plus_plus_credit,
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
        shares, most = sum(sets) + memory.changes, max(n_arms, pulls)
        return EmpMossPlusPlusState(
            beta=self.beta,
            rank_all=self.rank == "all",
            clock=memory.records(1, EmpMossPlusPlusClock),
            moss=self._moss(memory, n_arms, slots=slots),
            chosen=chosen(memory, slots + memory.changes),
            mixtures=mixtures(memory, shares=shares, arms=len(sets), most=most),
        )
