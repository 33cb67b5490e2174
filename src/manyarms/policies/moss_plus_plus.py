"""MOSS++ (Algorithm 1): Pareto optimal without knowing the hardness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Records
from manyarms.core.rng import Stream, below, next_word, stream
from manyarms.policies.parts.fresh import FreshArms, choose, drawable, hold, present, put_back
from manyarms.policies.parts.iterations import (
    WaitingClock,
    arrive_later,
    ask_member,
    become_mixture,
    iteration_of,
    lose_arm,
    reset_iterations,
)
from manyarms.policies.parts.mixtures import Mixtures, mixture_pulls, mixtures
from manyarms.policies.parts.moss_slots import begin, count_late_pulls, credit, open_slot, unopened
from manyarms.policies.parts.parameters import MixturePolicy
from manyarms.protocol import About, plays
from manyarms.theory.schedules import iteration_arms, iteration_pulls, iterations


class MossPlusPlusState(NamedTuple):
    """The set of this iteration, and the earlier sets as mixture-arms."""

    beta: float
    clock: Records[WaitingClock]  # [clock]
    waiting: Ints  # the mixture-arms without a pull in this iteration
    arms: FreshArms
    order: Stream
    mixtures: Mixtures


@rare
def next_iteration(state: MossPlusPlusState) -> None:
    """Turn the iteration that ended into a mixture-arm, and start MOSS on a new set."""
    slots, clock = state.arms.slots, state.clock[0]
    clock.iteration += 1
    i = clock.iteration
    if i > 1:
        become_mixture(state)
    p = iterations(clock.horizon, state.beta)
    clock.left = iteration_pulls(p, i, clock.horizon)
    clock.waiting = 0
    for j in range(1, i):
        if mixture_pulls(state.mixtures, j) > 0:  # else all its arms are retired
            state.waiting[clock.waiting] = j
            clock.waiting += 1
    put_back(state.arms)
    real = iteration_arms(p, i, present(state.arms))
    begin(slots, real + clock.waiting, clock.left)


@kernel
def choose_member(state: MossPlusPlusState) -> int:
    """Return the next member: those without a pull first, in random order."""
    clock = state.clock[0]
    if clock.waiting > 0:
        at = below(next_word(state.order), unopened(state.arms.slots))
        if at < clock.waiting:
            clock.waiting -= 1
            mixture = state.waiting[at]
            state.waiting[at] = state.waiting[clock.waiting]
            return open_slot(state.arms.slots, -mixture)
    return choose(state.arms)


def moss_plus_plus_ask(state: MossPlusPlusState) -> tuple[int, int]:
    if state.clock[0].left == 0:
        next_iteration(state)
    state.clock[0].left -= 1
    return ask_member(state.mixtures, state.arms.slots, choose_member(state))


def moss_plus_plus_retire(state: MossPlusPlusState, arm: int) -> None:
    arms, slots, clock = state.arms, state.arms.slots, state.clock[0]
    fresh = unopened(slots) - clock.waiting
    lose_arm(state, arm)
    if clock.iteration == 0:
        return
    waiting, clock.waiting = clock.waiting, 0
    for k in range(waiting):
        if mixture_pulls(state.mixtures, state.waiting[k]) > 0:
            state.waiting[clock.waiting] = state.waiting[k]
            clock.waiting += 1
    real = 0
    for slot in range(slots.run[0].opened):
        real += int(slots.slot[slot].member >= 0)
    fresh = min(fresh, drawable(arms) - real)
    members = slots.run[0].opened - slots.run[0].gone + clock.waiting + fresh
    if members == 0:
        arms.sampler.n[0] = arms.pool[0]
        members = 1
    hold(arms, members)


plays(
    MossPlusPlusState,
    reset=reset_iterations,
    ask=moss_plus_plus_ask,
    tell=lambda state, slot, reward: credit(state.arms.slots, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.arms.slots, slot, change),
    generation=iteration_of,
    arrive=arrive_later,
    retire=moss_plus_plus_retire,
)


@dataclass(frozen=True, kw_only=True)
class MOSSPlusPlus(MixturePolicy):
    r"""MOSS on ever smaller random sets, which remember the larger ones as mixture-arms.

    With :math:`p = \lceil \log_2 T^\beta \rceil`, iteration i = 1, 2, … runs a new MOSS for

    .. math:: \Delta T_i = \min(2^{p+i}, T)

    pulls on :math:`\min(2^{p+2-i}, n)` arms drawn afresh and the i - 1 mixture-arms so far; its
    own mixture-arm draws from the arms as the iteration pulled them.

    Parameters
    ----------
    beta
        In [1/2, 1]: small for problems that are expected to be easy, large for hard ones.
    mixture_sigma
        `sigma` for mixture-arms, if it must be larger; see the notes.
    sigma, exploration, count_late, index
        As for `MOSS`. With "kl++" Theorem 1 stands for rewards 0 and 1, with another constant
        (docs/proofs.md); for "kl" nothing is proven.

    Notes
    -----
    Theorem 1: regret at most :math:`160 (\log_2 T)^{5/2}\, T^{\min(\max(\beta, 1+\alpha-\beta),
    1)}`. Theorem 3: a policy that is better at one hardness is worse at another. This holds for
    rewards in [0, 1]. For unbounded rewards, the reward of a mixture-arm has a variance proxy of up
    to :math:`\sigma^2 + r^2/4`, where r is the range of the means. The rate stays the same if
    `mixture_sigma` covers it.

    Its page is docs/policies/moss_plus_plus.md; docs/learn/moss_plus_plus.py is the plain
    algorithm.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.MOSSPlusPlus(beta=0.5).live(n_arms=1_000_000_000, horizon=20_000, seed=1)
    >>> live.tell(live.ask(), reward=1.0)
    >>> live
    <Live moss++: 1 of 20000 pulls on 1000000000 arms>
    """

    name = "moss++"
    about = About(
        needs="horizon",
        guarantee="Pareto optimal, every beta in [1/2, 1)",
        page="docs/policies/moss_plus_plus.md",
        scaling="log of arms in the set",
        good_at="a guarantee at every hardness",
        source="Zhu & Nowak 2020",
        kind="paper",
    )

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> MossPlusPlusState:
        sets = [real + i for i, real in enumerate(self._sets(n_arms, pulls))]
        largest = min(max(sets), pulls)
        return MossPlusPlusState(
            beta=self.beta,
            clock=memory.records(1, WaitingClock),
            waiting=memory.ints(len(sets)),
            arms=self._arms(memory, n_arms, arms=largest),
            order=stream(memory),
            mixtures=mixtures(
                memory,
                shares=min(sum(sets), pulls),
                arms=len(sets),
                most=max(n_arms, pulls),
            ),
        )
