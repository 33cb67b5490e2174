"""Parallel (Algorithm 3): near minimax for every hardness when the best mean is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.jit import rare
from manyarms.core.memory import Memory, Records
from manyarms.core.rng import Stream, draw, next_word, restart, stream
from manyarms.errors import ParameterError
from manyarms.policies.parts.fresh import FreshArms
from manyarms.policies.parts.parameters import ToldBestMean
from manyarms.policies.parts.randomness import EPOCHS
from manyarms.policies.parts.subroutines import (
    Subroutine,
    SubroutineClock,
    SubroutinePolicy,
    ask_subroutine,
    count_late_in_subroutine,
    lose_arm,
    reset_subroutines,
    room_for,
    tell_subroutine,
    widen,
)
from manyarms.protocol import About, plays
from manyarms.theory.schedules import epoch_length


class ParallelClock(SubroutineClock):
    epoch: int  # Delta
    left: int  # pulls left in the epoch


class ParallelState(NamedTuple):
    """The arms of all subroutines, and what each subroutine earned."""

    best_mean: float
    factor: float
    clock: Records[ParallelClock]  # [clock]
    subroutine: Records[Subroutine]
    arms: FreshArms  # of all subroutines
    epochs: Stream


def parallel_reset(state: ParallelState, key: int, horizon: int) -> None:
    reset_subroutines(state, key, horizon)
    restart(state.epochs, draw(key, EPOCHS))
    state.clock[0].epoch = epoch_length(horizon)
    state.clock[0].left = 0


@rare
def lowest_regret(state: ParallelState) -> int:
    """Return the subroutine of lowest empirical regret; ties are random."""
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


def parallel_ask(state: ParallelState) -> tuple[int, int]:
    clock = state.clock[0]
    if clock.left == 0:
        clock.running = lowest_regret(state)
        clock.left = clock.epoch
    clock.left -= 1
    return ask_subroutine(state, clock.running)


plays(
    ParallelState,
    reset=parallel_reset,
    ask=parallel_ask,
    tell=tell_subroutine,
    count_late=count_late_in_subroutine,
    arrive=widen,
    retire=lose_arm,
)


@dataclass(frozen=True, kw_only=True)
class Parallel(ToldBestMean, SubroutinePolicy):
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
    sigma, exploration, count_late, index
        As for `MOSS`; Theorem 4 was not checked for the KL indices.

    Notes
    -----
    Theorem 4: regret at most :math:`C (\log T)^2\, T^{(1+\alpha)/2}`, for every hardness at once.

    Its page is docs/policies/parallel.md; docs/learn/parallel.py is the plain algorithm.

    Examples
    --------
    >>> import manyarms as ma
    >>> ma.Parallel(best_mean=0.9, subset_factor=1).label
    'parallel(best_mean=0.9, subset_factor=1)'
    >>> live = ma.Parallel(best_mean=0.9).live(n_arms=1_000_000, horizon=20_000, seed=1)
    >>> live.tell(live.ask(), reward=1.0)
    """

    name = "parallel"
    about = About(
        needs="horizon, μ*",
        guarantee="near minimax at every hardness, (log T)²",
        page="docs/policies/parallel.md",
        scaling="log of arms pulled",
        good_at="a known best mean",
        source="Zhu & Nowak 2020",
        kind="paper",
    )

    subset_factor: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subset_factor not in (1, 2):
            raise ParameterError(f"`subset_factor` must be 1 or 2, got {self.subset_factor!r}.")

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> ParallelState:
        factor = float(self.subset_factor)
        room = room_for(memory, n_arms, pulls, factor)
        return ParallelState(
            best_mean=self._best_mean(),
            factor=factor,
            clock=memory.records(1, ParallelClock),
            subroutine=memory.records(room["runs"], Subroutine),
            arms=self._arms(memory, n_arms, **room),
            epochs=stream(memory),
        )
