"""Sequential halving on a random subset of the arms (Karnin, Koren & Somekh 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.jit import kernel
from manyarms.core.memory import Memory
from manyarms.policies.parts.halving import (
    Halving,
    arm_of,
    ask_bracket,
    halving,
    open_bracket,
    reset_halving,
    tell_bracket,
)
from manyarms.protocol import About, Policy, Variant, plays
from manyarms.protocol.parameters import Count


class SequentialHalvingState(NamedTuple):
    """One bracket of arms, and those of them that are left."""

    size: int  # 0: as the horizon says
    table: Halving


def halving_reset(state: SequentialHalvingState, key: int, horizon: int) -> None:
    reset_halving(state.table, key)
    size = state.size if state.size > 0 else arms_for(horizon)
    open_bracket(state.table, min(size, horizon, state.table.sampler.n[0]), horizon)


@kernel
def arms_for(horizon: int) -> int:
    """Return the largest power of two with K log2 K <= T: every arm is pulled in every round."""
    doublings = 0
    while (doublings + 1) << (doublings + 1) <= horizon:
        doublings += 1
    return 1 << doublings


def halving_ask(state: SequentialHalvingState) -> tuple[int, int]:
    return ask_bracket(state.table, 0)


def halving_recommend(state: SequentialHalvingState) -> int:
    winner = state.table.bracket[0].winner
    return -1 if winner < 0 else arm_of(state.table, winner)


plays(
    SequentialHalvingState,
    reset=halving_reset,
    ask=halving_ask,
    tell=lambda state, slot, reward: tell_bracket(state.table, slot, reward),
    recommend=halving_recommend,
)


@dataclass(frozen=True, kw_only=True)
class SequentialHalving(Policy):
    r"""Draw K arms at random; pull all of them equally often, keep the better half, and again.

    There are :math:`\lceil \log_2 K \rceil` rounds with an equal share of the pulls. Recommended
    is the arm that is left, or the best of the last round that is complete.

    Parameters
    ----------
    size
        K, at most n and T (default: the largest power of two with :math:`K \log_2 K \le T`).

    Notes
    -----
    Z. Karnin, T. Koren, O. Somekh, "Almost optimal exploration in multi-armed bandits", ICML 2013,
    Algorithm 1, which drops the pulls of earlier rounds; here they are kept. Their Theorem 4.1: of
    K arms it misses the best with probability at most :math:`3 \log_2 K \exp(-T / (8 H_2 \log_2
    K))`, :math:`H_2 = \max_i i / \Delta_i^2`, shown for pulls that are dropped. Zhao et al. (2023)
    show that its simple regret is :math:`O(\sqrt{K / T})` up to logarithms. Neither speaks of arms
    outside of the K.
    Where one pull of each arm is more than a round's share, each is pulled once, and later rounds
    have less. Cost per pull: O(log K) in the mean; memory of the K arms. Late rewards end a round
    later; its arms are pulled on until then.

    Examples
    --------
    >>> from manyarms.policies.field.sequential_halving import SequentialHalving
    >>> live = SequentialHalving(size=8).live(n_arms=1_000_000, horizon=100, seed=1)
    >>> for _ in range(100):
    ...     pull = live.ask()
    ...     live.tell(pull, reward=float(pull.arm % 2))
    >>> len(live.arms())
    8
    """

    name = "sequential-halving"
    about = About(
        needs="horizon",
        guarantee="none beyond its K arms; of these the best, likely",
        nanoseconds=27,
        page="docs/policies/finders.md",
        scaling="log of arms in the subset",
        good_at="keeping one arm, where K fits the problem",
        source="Karnin et al. 2013",
        finds=True,
        variants=(
            Variant(
                label="sequential-halving(4096)",
                parameters={"size": 4096},
                guarantee="none beyond its K arms; of these the best, likely",
            ),
        ),
    )

    size: Count | None = None

    def first_draws(self, *, n_arms: int, pulls: int) -> int:
        return min(self.size or arms_for(pulls), n_arms, pulls)

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> SequentialHalvingState:
        size = self.first_draws(n_arms=n_arms, pulls=pulls)
        table = halving(memory, n_arms, slots=size, brackets=1, largest=size)
        return SequentialHalvingState(self.size or 0, table)
