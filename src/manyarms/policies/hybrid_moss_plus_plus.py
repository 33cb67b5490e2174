"""Hybrid MOSS++: MOSS++ whose sets also contain the arms that did best so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Records
from manyarms.core.rng import Stream, below, next_word, stream
from manyarms.core.tournament import leader
from manyarms.policies.parts.fresh import FreshArms, draw_arm, present, put_back, resize
from manyarms.policies.parts.history import (
    History,
    among_best,
    forget_arm,
    history,
    rank_best,
    remember,
    reset_history,
)
from manyarms.policies.parts.iterations import (
    WaitingClock,
    arrive_later,
    ask_member,
    become_mixture,
    is_gone,
    iteration_of,
    lose_arm,
    reset_iterations,
)
from manyarms.policies.parts.mixtures import Mixtures, mixture_pulls, mixtures
from manyarms.policies.parts.moss_slots import begin, count_late_pulls, credit, open_slot
from manyarms.policies.parts.parameters import MixturePolicy, kl_form
from manyarms.protocol import About, plays
from manyarms.theory.schedules import iteration_arms, iteration_pulls, iterations


class HybridMossPlusPlusState(NamedTuple):
    """The set of this iteration, earlier sets as mixture-arms, and how each arm did so far."""

    beta: float
    clock: Records[WaitingClock]  # [clock]
    waiting: Ints  # the members without a pull in this iteration: arms, and -j for mixture-arm j
    arms: FreshArms
    order: Stream
    history: History
    mixtures: Mixtures


def hybrid_reset(state: HybridMossPlusPlusState, key: int, horizon: int) -> None:
    reset_iterations(state, key, horizon)
    reset_history(state.history, key)


@rare
def remember_arms(state: HybridMossPlusPlusState) -> None:
    """Add the pulls and rewards of the iteration that ended to the history."""
    slots = state.arms.slots
    for k in range(slots.run[0].opened):
        slot = slots.slot[k]
        if slot.member >= 0 and slot.pulls > 0:
            remember(state.history, slot.member, slot.pulls, slot.total)


@kernel
def await_member(state: HybridMossPlusPlusState, member: int) -> None:
    state.waiting[state.clock[0].waiting] = member
    state.clock[0].waiting += 1


@rare
def next_hybrid_iteration(state: HybridMossPlusPlusState) -> None:
    """Start MOSS on the best arms so far, arms drawn afresh, and the mixture-arms."""
    clock = state.clock[0]
    clock.iteration += 1
    i = clock.iteration
    if i > 1:
        become_mixture(state)
        remember_arms(state)
    p = iterations(clock.horizon, state.beta)
    real = iteration_arms(p, i, present(state.arms))
    clock.left = iteration_pulls(p, i, clock.horizon)
    clock.waiting = 0
    for k in range(rank_best(state.history, real, i)):
        await_member(state, state.history.pulled[state.history.best[k]].arm)
    put_back(state.arms)
    for _ in range(real):  # drawn now, not when due: the size of the union is part of the index
        arm = draw_arm(state.arms)
        if not among_best(state.history, arm, i):
            await_member(state, arm)
    for j in range(1, i):
        if mixture_pulls(state.mixtures, j) > 0:  # else all its arms are retired
            await_member(state, -j)
    begin(state.arms.slots, clock.waiting, clock.left)


def hybrid_ask(state: HybridMossPlusPlusState) -> tuple[int, int]:
    clock = state.clock[0]
    if clock.left == 0:
        next_hybrid_iteration(state)
    clock.left -= 1
    if clock.waiting > 0:
        at = below(next_word(state.order), clock.waiting)
        clock.waiting -= 1
        number = open_slot(state.arms.slots, state.waiting[at])
        state.waiting[at] = state.waiting[clock.waiting]
    else:
        number = leader(state.arms.slots.rank, state.arms.slots.ties)
    return ask_member(state.mixtures, state.arms.slots, number)


def hybrid_retire(state: HybridMossPlusPlusState, arm: int) -> None:
    arms, slots, clock = state.arms, state.arms.slots, state.clock[0]
    forget_arm(state.history, arm)
    lose_arm(state, arm)
    if clock.iteration == 0:
        return
    waiting, clock.waiting = clock.waiting, 0
    for k in range(waiting):
        if not is_gone(state.mixtures, state.waiting[k], arm):
            await_member(state, state.waiting[k])
    members = slots.run[0].opened - slots.run[0].gone + clock.waiting
    if members == 0:
        put_back(arms)
        await_member(state, draw_arm(arms))
        members = 1
    resize(arms, members, slots.run[0].horizon)


plays(
    HybridMossPlusPlusState,
    reset=hybrid_reset,
    ask=hybrid_ask,
    tell=lambda state, slot, reward: credit(state.arms.slots, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.arms.slots, slot, change),
    generation=iteration_of,
    arrive=arrive_later,
    retire=hybrid_retire,
)


@dataclass(frozen=True, kw_only=True)
class HybridMOSSPlusPlus(MixturePolicy):
    r"""MOSS++ whose sets also hold the arms that did best so far: far better, and as safe.

    As `MOSSPlusPlus`, but for i > 1 the set is the union of

    * :math:`\min(K_i, n)` arms drawn afresh, :math:`K_i = 2^{p+2-i}`;
    * the :math:`K_i` highest empirical means among the arms pulled before, ties at random;
    * the mixture-arms.

    MOSS restarts in each iteration, so nothing is learned twice.

    Parameters
    ----------
    beta, mixture_sigma
        As for `MOSSPlusPlus`.
    sigma, exploration, count_late, index
        As for `MOSS`. "kl" is not covered by the guarantee below; "kl++" is for rewards 0 and 1,
        with another constant.

    Notes
    -----
    Ours. Regret at most :math:`\sqrt 2 \cdot 160 (\log_2 T)^{5/2}\, T^{\min(\max(\beta,
    1+\alpha-\beta), 1)}`: given the past the set is fixed and MOSS restarts, so an iteration's
    learning error grows by :math:`\sqrt 2` at most, and the arms drawn afresh and the
    mixture-arms do all they do in the paper's proof. The rate is Pareto optimal for beta < 1. The
    proof is in docs/proofs.md. Means are over an arm's own pulls, those through a mixture-arm not
    counted. Cost per pull: O(log of the set), and O(1) while one member leads.

    Its page is docs/policies/hybrid_moss_plus_plus.md.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.HybridMOSSPlusPlus(beta=0.5).live(n_arms=1_000_000, horizon=20_000, seed=1)
    >>> for pull in live.ask(2000):
    ...     live.tell(pull, reward=float(pull.arm % 8 == 0))
    >>> live.progress().stage
    'iteration 3 of 6'
    """

    name = "hybrid-moss++"
    about = About(
        needs="horizon",
        guarantee="Pareto optimal, √2 times MOSS++'s bound",
        nanoseconds=22,
        page="docs/policies/hybrid_moss_plus_plus.md",
        scaling="log of arms in the set",
        good_at="MOSS++'s guarantee at a far lower price",
        source="ours, docs/proofs.md",
        kind="ours",
        variants=(kl_form("hybrid-moss++"),),
    )

    def first_draws(self, *, n_arms: int, pulls: int) -> int:
        return self._sets(n_arms, pulls)[0]

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> HybridMossPlusPlusState:
        real = self._sets(n_arms, pulls)
        p = len(real)
        largest = max(2 * k + i for i, k in enumerate(real))
        slots = min(largest, pulls)
        return HybridMossPlusPlusState(
            beta=self.beta,
            clock=memory.records(1, WaitingClock),
            waiting=memory.ints(largest, most=n_arms),
            arms=self._arms(memory, n_arms, arms=slots, draws=real[0]),
            order=stream(memory),
            history=history(memory, n_arms, arms=min(n_arms, pulls, 2 * sum(real))),
            mixtures=mixtures(
                memory,
                shares=min(2 * sum(real) + p * p, pulls),
                arms=p,
                most=max(n_arms, pulls),
            ),
        )
