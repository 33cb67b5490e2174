"""Doubling: turn a policy that needs a horizon into an anytime policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from manyarms.core.jit import rare
from manyarms.core.memory import Memory, Record, Records, Word, place_of_arm, places, wipe
from manyarms.core.rng import draw
from manyarms.errors import ParameterError
from manyarms.policies.parts.randomness import PHASES
from manyarms.protocol import (
    Wrapper,
    arrive,
    ask,
    count_late,
    credit_known,
    generation,
    plays,
    reset,
    retire,
    tell,
)

_MOST_ITERATIONS = 64


class DoublingClock(Record):
    key: Word  # the keys of the phases are drawn from it
    phase: int  # the number of phases begun
    left: int  # pulls left in the phase
    known: int  # arms with rewards that are credited again in each phase


class KnownArm(Record):
    """Rewards that were known before the first pull."""

    arm: int
    count: int  # 0 once the arm is retired
    total: float
    squares: float


class DoublingState(NamedTuple):
    """The state of the inner policy, and the current phase."""

    inner: Any  # the policy's own state
    clock: Records[DoublingClock]  # [clock]
    known: Records[KnownArm]


def doubling_reset(state: DoublingState, key: int, horizon: int) -> None:
    wipe(state.clock, 0)
    state.clock[0].key = draw(key, PHASES)


def doubling_ask(state: DoublingState) -> tuple[int, int]:
    clock = state.clock[0]
    if clock.left == 0:
        next_phase(state)
    clock.left -= 1
    return ask(state.inner)


@rare
def next_phase(state: DoublingState) -> None:
    """Restart the inner policy, and credit what was known before the first pull.

    With the key of the first phase, the inner policy draws the known arms again, in the same order.
    A phase is not shorter than their number, so crediting them costs O(1) for each pull.
    """
    clock = state.clock[0]
    while 1 << clock.phase < clock.known:
        clock.phase += 1
    clock.left = 1 << clock.phase
    reset(state.inner, draw(clock.key, 0 if clock.known > 0 else clock.phase), clock.left)
    clock.phase += 1
    for k in range(clock.known):
        known = state.known[k]
        if known.count > 0:
            credit_known(state.inner, -1, known.count, known.total, known.squares)


def doubling_credit(
    state: DoublingState, arm: int, count: int, total: float, squares: float
) -> int:
    """Credit known rewards; those that come before the first pull are credited in each phase.

    Later phases may draw arms that were pulled before, so they take no new ones.
    """
    clock = state.clock[0]
    if clock.phase == 0:
        next_phase(state)
    is_kept = arm < 0 and clock.phase == 1 and clock.left == 1
    if arm < 0 and not is_kept:
        return -1
    arm = credit_known(state.inner, arm, count, total, squares)
    if is_kept and arm >= 0 and clock.known < places(state.known):
        wipe(state.known, clock.known)
        state.known[clock.known].arm = arm
        clock.known += 1
    place = place_of_arm(state.known, arm, clock.known, 0) if arm >= 0 else -1
    if place >= 0:
        state.known[place].count += count
        state.known[place].total += total
        state.known[place].squares += squares
    return arm


def doubling_arrive(state: DoublingState, count: int) -> None:
    """Add new arms; the next phase then has another order, and begins without known rewards."""
    arrive(state.inner, count)
    state.clock[0].known = 0


def doubling_retire(state: DoublingState, arm: int) -> None:
    retire(state.inner, arm)
    place = place_of_arm(state.known, arm, state.clock[0].known, 0)
    if place >= 0:
        state.known[place].count = 0


def doubling_generation(state: DoublingState) -> int:
    return state.clock[0].phase * _MOST_ITERATIONS + generation(state.inner)


plays(
    DoublingState,
    reset=doubling_reset,
    ask=doubling_ask,
    tell=lambda state, slot, reward: tell(state.inner, slot, reward),
    count_late=lambda state, slot, change: count_late(state.inner, slot, change),
    generation=doubling_generation,
    arrive=doubling_arrive,
    retire=doubling_retire,
    credit_known=doubling_credit,
)


@dataclass(frozen=True)
class Doubling(Wrapper):
    r"""Restart a policy with horizons 1, 2, 4, 8, …, so that it needs no horizon.

    Parameters
    ----------
    policy
        The policy to make anytime, such as `MOSSPlusPlus()` or `Parallel(best_mean=0.9)`.

    Notes
    -----
    Anytime MOSS++ has regret at most :math:`924 (\log_2 T)^{5/2}\, T^{\min(\max(\beta,
    1+\alpha-\beta), 1)}`. The paper's proof uses the hardness at T also for the shorter phases,
    where the same problem is harder. The rate is correct; the constant is the paper's.

    Its page is docs/policies/doubling.md.

    Examples
    --------
    >>> import manyarms as ma
    >>> policy = ma.Doubling(ma.MOSSPlusPlus(beta=0.5))
    >>> str(policy)
    'anytime-moss++'
    >>> live = policy.live(n_arms=1_000_000, seed=1)  # no horizon needed
    >>> live.tell(live.ask(), reward=1.0)
    """

    prefix = "anytime"
    anytime = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.policy.anytime:
            raise ParameterError(
                f"`policy` must be one that needs a horizon, got {self.policy}, which is "
                f"already anytime. Use it without Doubling."
            )
        if getattr(self.policy, "sized_by_horizon", False):
            raise ParameterError(
                f"`policy` must have a set of arms that does not depend on the horizon, got "
                f"{self.policy}. Give it `size`."
            )

    def stage(self, state: DoublingState) -> str:
        if state.clock[0].phase == 0:
            return "not started"
        inner = self.policy.stage(state.inner)
        pulls = 1 << (state.clock[0].phase - 1)
        return f"phase of {pulls} pulls" + (f", {inner}" if inner else "")

    def first_draws(self, *, n_arms: int, pulls: int) -> int:
        return self.policy.first_draws(n_arms=n_arms, pulls=1)  # the first phase has one pull

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> DoublingState:
        longest = 1 << (pulls.bit_length() - 1)  # phase i begins after 2^i - 1 pulls
        inner = self.policy.new_state(memory, n_arms=n_arms, pulls=longest)
        known = memory.records(memory.changes, KnownArm)
        return DoublingState(inner, memory.records(1, DoublingClock), known)
