"""MOSS++ (Algorithm 1): Pareto optimal for beta < 1, without knowing the hardness.

The schedule and the iterations are here. MOSS on a random set (the index, crediting rewards) is in
`parts/moss_run.py`, and the mixture-arms are in `parts/mixtures.py`.
"""

# Annotations are not postponed, so that the types of inherited fields are known in other modules.

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Memory, Records
from manyarms.core.tournament import leader
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
    wait_for,
)
from manyarms.policies.parts.moss_run import (
    MossRun,
    begin,
    count_late_pulls,
    credit,
    credit_arm,
    draw_from_all,
    hold,
    present,
    put_back,
    refresh_some,
    set_scale,
)
from manyarms.policies.parts.parameters import IndexPolicy, unused
from manyarms.protocol import plays
from manyarms.protocol.parameters import Positive, number


@kernel
def iterations(horizon: int, beta: float) -> int:
    r"""Return p, the maximum number of iterations.

    .. math:: p = \lceil \log_2 T^\beta \rceil

    >>> iterations(50_000, 0.5), iterations(2**20, 0.55), iterations(1, 0.5)
    (8, 11, 0)
    """
    # 0.55 * 20 is 11.000000000000002 in floating point. The margin exceeds such errors, and is
    # below beta * log2(1 + 2^-38), the smallest step between horizons up to 2^38.
    return math.ceil(beta * math.log2(horizon) - 1e-12)


@kernel
def iteration_arms(p: int, i: int, n_arms: int) -> int:
    r"""Return the number of real arms in iteration i.

    .. math:: \min(K_i, n), \quad K_i = 2^{p+2-i}

    >>> [iteration_arms(8, i, 20_000) for i in (1, 2, 8)]
    [512, 256, 4]
    """
    return min(1 << (p + 2 - i), n_arms)


@kernel
def iteration_pulls(p: int, i: int, horizon: int) -> int:
    r"""Return the length of iteration i.

    .. math:: \Delta T_i = \min(2^{p+i}, T)

    >>> [iteration_pulls(8, i, 50_000) for i in (1, 2, 8)]
    [512, 1024, 50000]
    """
    return horizon if p + i >= 62 else min(1 << (p + i), horizon)


class MossPlusPlusState(NamedTuple):
    """The MOSS run of this iteration, and the earlier iterations as mixture-arms."""

    beta: float
    clock: Records[IterationClock]  # [clock]
    moss: MossRun
    mixtures: Mixtures


@kernel
def prolong_last(clock: Any, beta: float) -> bool:
    """If this is the last iteration, prolong it, and return True.

    Iteration p alone has room for T pulls, so this happens only after the horizon.
    """
    is_last: bool = clock.iteration >= max(1, iterations(clock.horizon, beta))
    if is_last:
        clock.left = clock.horizon
    return is_last


@rare
def next_iteration(state: MossPlusPlusState) -> None:
    """Start MOSS on a new set: min(K_i, n) newly drawn arms, and the mixture-arms so far."""
    moss, clock = state.moss, state.clock[0]
    if prolong_last(clock, state.beta):
        return
    clock.iteration += 1
    i = clock.iteration
    if i > 1:
        become_mixture(state)
    p = iterations(clock.horizon, state.beta)
    clock.left = iteration_pulls(p, i, clock.horizon)
    put_back(moss)
    begin(moss, iteration_arms(p, i, present(moss)), clock.left)
    for j in range(1, i):
        wait_for(moss, state.mixtures, j)
    set_scale(moss, moss.run[0].fresh + moss.run[0].waiting, clock.left)


@rare
def become_mixture(state: MossPlusPlusState) -> None:
    """Turn the last iteration into a mixture-arm, weighted by the pulls of its members."""
    for k in range(state.moss.run[0].opened):
        add_share(state.mixtures, state.moss.slot[k].arm, state.moss.slot[k].asked)
    close_mixture(state.mixtures)


def moss_plus_plus_ask(state: MossPlusPlusState) -> tuple[int, int]:
    if state.clock[0].retired == 1:
        shrink_set(state)
    if state.clock[0].left == 0:
        next_iteration(state)
    state.clock[0].left -= 1
    if has_unpulled(state.moss):
        slot = open_member(state.moss, state.mixtures)
    else:
        if state.moss.run[0].due > 0:
            refresh_some(state.moss)
        slot = leader(state.moss.rank, state.moss.ties)
    return ask_member(state.moss, state.mixtures, slot)


@rare
def shrink_set(state: MossPlusPlusState) -> None:
    """Let retired arms leave: the set shrinks, but keeps at least one member."""
    moss, run = state.moss, state.moss.run[0]
    lose_retired(state)
    if state.clock[0].iteration == 0:
        return
    members = run.opened - run.gone + run.waiting + run.fresh
    if members == 0:
        draw_from_all(moss)
    hold(moss, max(1, members))


def moss_plus_plus_credit(
    state: MossPlusPlusState, arm: int, count: int, total: float, squares: float
) -> int:
    """Credit known rewards to the set of this iteration; the first one begins for them.

    Later iterations may draw arms that were pulled before, so they take no new ones.
    """
    clock = state.clock[0]
    if clock.retired == 1:
        shrink_set(state)
    if clock.iteration == 0:
        next_iteration(state)
    if arm < 0 and clock.iteration > 1:
        return -1
    return credit_arm(state.moss, arm, count, total)


plays(
    MossPlusPlusState,
    reset=reset_iterations,
    ask=moss_plus_plus_ask,
    tell=lambda state, slot, reward: credit(state.moss, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.moss, slot, change),
    generation=lambda state: state.clock[0].iteration,  # rewards of earlier iterations are dropped
    arrive=arrive_later,
    retire=retire_later,
    credit_known=moss_plus_plus_credit,
)


@dataclass(frozen=True, kw_only=True)
class MixturePolicy(IndexPolicy):
    """A policy with the schedule of MOSS++, and mixture-arms."""

    beta: Annotated[float, number(at_least=0.5, at_most=1.0)] = 0.5
    mixture_sigma: Positive | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unit_rewards and self.mixture_sigma is not None:
            raise unused("mixture_sigma", self.mixture_sigma, self)

    @property
    def mixture_spread(self) -> float:
        sigma = self._sigma() if self.mixture_sigma is None else self.mixture_sigma
        return 4.0 * sigma**2 * self.exploration

    def stage(self, state: Any) -> str:
        clock = state.clock[0]
        p, last, pulls = iterations(max(clock.horizon, 1), self.beta), 0, 0
        while pulls < clock.horizon:  # the horizon may end before iteration p
            last += 1
            pulls += iteration_pulls(p, last, clock.horizon)
        return f"iteration {clock.iteration} of {last}"

    def _sets(self, n_arms: int, pulls: int) -> list[int]:
        """Return the size of the set in each iteration, mixture-arms included."""
        p = iterations(pulls, self.beta)
        return [iteration_arms(p, i, n_arms) + i - 1 for i in range(1, max(p, 1) + 1)]


@dataclass(frozen=True, kw_only=True)
class MOSSPlusPlus(MixturePolicy):
    r"""Run MOSS on random sets of decreasing size, with mixture-arms for the earlier iterations.

    With :math:`p = \lceil \log_2 T^\beta \rceil`, iteration i = 1, 2, … runs a new MOSS for

    .. math:: \Delta T_i = \min(2^{p+i}, T)

    pulls on :math:`\min(2^{p+2-i}, n)` newly drawn arms and the i - 1 mixture-arms so far. A pull
    of mixture-arm j draws a member with probability proportional to its pulls in iteration j.

    Parameters
    ----------
    beta
        Between 1/2 and 1 (default: 0.5). With (1 + alpha)/2 the rate at hardness alpha is minimax.
    mixture_sigma
        `sigma` for mixture-arms (default: `sigma`); see the notes.
    sigma, exploration, count_late, index
        As for `MOSS`. With "kl++" Theorem 1 holds for rewards 0 and 1, with another constant
        (docs/proofs.md); for "kl" nothing is proven.

    Notes
    -----
    Theorem 1, for rewards in [0, 1]: expected regret at most :math:`160 (\log_2 T)^{5/2}\,
    T^{\min(\max(\beta, 1+\alpha-\beta), 1)}`. Theorem 3: for beta < 1 this rate is Pareto optimal.
    For unbounded rewards, the rate holds if `mixture_sigma` is at least :math:`\sqrt{\sigma^2 +
    r^2/4}`, where r is the range of the means.

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

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> MossPlusPlusState:
        sets = self._sets(n_arms, pulls)
        shares, most = min(sum(sets), pulls) + memory.changes, max(n_arms, pulls)
        return MossPlusPlusState(
            beta=self.beta,
            clock=memory.records(1, IterationClock),
            moss=self._moss(memory, n_arms, slots=min(max(sets), pulls)),
            mixtures=mixtures(memory, shares=shares, arms=len(sets), most=most),
        )
