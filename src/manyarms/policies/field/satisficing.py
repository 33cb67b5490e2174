"""Satisficing Thompson sampling: stay with the first arm that may be good enough."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from manyarms.core.memory import Memory, Record, Records, wipe
from manyarms.core.rng import Stream, draw, next_word, restart, stream
from manyarms.core.sampler import Sampler, sampler
from manyarms.errors import ParameterError
from manyarms.policies.parts.beta import beta_tail
from manyarms.policies.parts.first_success import (
    Chances,
    add_chance,
    chances,
    clear_chances,
    first_again,
    first_of,
    set_chance,
)
from manyarms.policies.parts.randomness import (
    ROUNDING,
    SAMPLES,
    draw_fresh,
    is_success,
    reset_order,
)
from manyarms.protocol import About, Policy, plays
from manyarms.protocol.parameters import Probability


class SatisficingSlot(Record):
    arm: int
    successes: int
    failures: int


class SatisficingState(NamedTuple):
    """The successes and failures of every opened arm, and its probability to pass."""

    target: float
    slot: Records[SatisficingSlot]  # from 1 on, in the order the arms were opened
    chances: Chances  # by slot: that a posterior sample reaches the target
    sampler: Sampler
    fresh: Stream
    rounding: Stream
    samples: Stream


def satisficing_reset(state: SatisficingState, key: int, horizon: int) -> None:
    reset_order(state.sampler, state.fresh, key)
    restart(state.rounding, draw(key, ROUNDING))
    restart(state.samples, draw(key, SAMPLES))
    clear_chances(state.chances)


def satisficing_ask(state: SatisficingState) -> tuple[int, int]:
    slot = first_of(state.chances, next_word(state.samples))
    if slot == 0 and state.chances.size[0] < state.sampler.n[0]:
        slot = add_chance(state.chances, 1.0 - state.target)  # of Beta(1, 1)
        wipe(state.slot, slot)
        state.slot[slot].arm = draw_fresh(state.sampler, state.fresh)
    elif slot == 0:
        slot = first_again(state.chances, next_word(state.samples))
    return slot, state.slot[slot].arm


def satisficing_tell(state: SatisficingState, slot: int, reward: float) -> None:
    own = state.slot[slot]
    success = is_success(reward, state.rounding)
    own.successes += int(success)
    own.failures += int(not success)
    chance = beta_tail(own.successes + 1.0, own.failures + 1.0, state.target)
    set_chance(state.chances, slot, chance)


plays(SatisficingState, reset=satisficing_reset, ask=satisficing_ask, tell=satisficing_tell)


@dataclass(frozen=True, kw_only=True)
class SatisficingTS(Policy):
    r"""Pull the earliest opened arm whose posterior sample reaches the target, else open one.

    With S successes and F failures of an arm so far, its sample is drawn from

    .. math:: \mathrm{Beta}(1 + S, 1 + F)

    at every pull, for every arm opened.

    Parameters
    ----------
    target
        The mean to be content with, in [0, 1]. In a simulation it may be left to the instance:
        the best mean less `tolerance`.
    tolerance
        How far below the best mean is good enough, where `target` is not given.

    Notes
    -----
    After D. Russo, B. Van Roy, "Satisficing in time-sensitive bandit learning" (2018), for
    infinitely many arms; written from memory of the rule, which could not be checked. Needs to
    know what is good enough, and the horizon not at all. A target above the best mean makes it
    try all arms; one far below it keeps a poor one. What to do when all arms are opened and no
    sample reaches the target is ours: they are all drawn again until one does. A reward between 0
    and 1 is taken for a success with that probability (Agrawal & Goyal 2012), one outside for the
    nearer end.

    Cost per pull: O(log of arms opened), exact. Only the chance that a sample reaches the target
    matters, and an arm's chance changes with its own rewards only.

    Examples
    --------
    >>> from manyarms.policies.field import SatisficingTS
    >>> SatisficingTS(tolerance=0.2).with_best_mean(0.9)  # what a simulation does
    SatisficingTS(target=0.7, tolerance=0.2)
    """

    name = "satisficing-ts"
    anytime = True
    about = About(
        needs="a target",
        guarantee="Bayesian, against the target",
        nanoseconds=160,
        page="docs/policies/new_arms.md",
        scaling="log of arms opened",
        good_at="good enough, soon",
        source="Russo & Van Roy 2018",
        knowledge="mu*",
        rewards="[0, 1]",
    )

    target: Probability | None = None
    tolerance: Probability = 0.1

    def with_best_mean(self, best_mean: float) -> SatisficingTS:
        if self.target is not None:
            return self
        return replace(self, target=min(max(best_mean - self.tolerance, 0.0), 1.0))

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> SatisficingState:
        if self.target is None:
            raise ParameterError(
                "`target` must be given to SatisficingTS, got None. Pass the mean to be content "
                "with: SatisficingTS(target=0.8)."
            )
        arms = min(n_arms, pulls)
        return SatisficingState(
            self.target,
            memory.records(arms + 1, SatisficingSlot),
            chances(memory, arms),
            sampler(memory, n_arms, draws=arms),
            stream(memory),
            stream(memory),
            stream(memory),
        )
