"""Thompson sampling: pull the arm that looks best in one sample of all posteriors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.jit import kernel
from manyarms.core.memory import Ints, Memory
from manyarms.core.rng import Stream, draw, next_word, open_unit, restart, stream
from manyarms.policies.parts.beta import beta_tail, beta_upper, beta_variate, share_of_tail
from manyarms.policies.parts.posterior_groups import (
    FEW,
    Groups,
    choose_from,
    credit,
    groups,
    name_of,
    reset_groups,
    size_of,
)
from manyarms.policies.parts.randomness import SAMPLES
from manyarms.protocol import About, Policy, plays

_LARGE = 64  # pulls + 2 from which on an arm alone is sampled without a quantile: that is slower


class ThompsonState(NamedTuple):
    """The arms, grouped by their successes and failures, and which was pulled last."""

    arms: Groups
    samples: Stream
    last: Ints  # [the slot pulled last, + 1; 0 for none]


def thompson_reset(state: ThompsonState, key: int, horizon: int) -> None:
    reset_groups(state.arms, key)
    restart(state.samples, draw(key, SAMPLES))
    state.last[0] = 0


def thompson_ask(state: ThompsonState) -> tuple[int, int]:
    arms = state.arms
    key = next_word(state.samples)
    best, best_sample = 0, -1.0
    if size_of(arms, 0) > 0:
        best_sample = largest_sample(arms, 0, key, best_sample)
    # the group of the last pull first: it is often the best, and the others need but a look then
    first = arms.slot[state.last[0] - 1].group if state.last[0] > 0 else 0
    for place in range(-1 if first > 0 else 0, arms.clock[0].listed):
        number = arms.listed[place] if place >= 0 else first
        if place < 0 or number != first:
            sample = largest_sample(arms, number, key, best_sample)
            if sample > best_sample:
                best, best_sample = number, sample
    slot = choose_from(arms, best)
    state.last[0] = slot + 1
    return slot, arms.slot[slot].arm


@kernel
def largest_sample(arms: Groups, number: int, key: int, best: float) -> float:
    """Return the largest posterior sample of a group, or -1 if it is not above `best`."""
    group = arms.group[number]
    a, b = group.successes + 1.0, group.failures + 1.0
    k = size_of(arms, number)
    word = draw(key, name_of(group.successes, group.failures))
    if k == 1 and a + b > _LARGE:
        return beta_variate(a, b, word)
    u = open_unit(word)  # the probability that the largest of k samples is above ours
    if best > 0.0:
        if u > k * most_tail(group.ways, group.failures + 1, group.mean, a + b, best):
            return -1.0
        if a > 1.0 and b > 1.0 and share_of_tail(u, k) > beta_tail(a, b, best):
            return -1.0
    return beta_upper(a, b, share_of_tail(u, k))


@kernel
def most_tail(ways: float, b: int, mean: float, n: float, x: float) -> float:
    r"""Return a cheap upper bound of the probability that a sample is above x.

    It is :math:`P(\mathrm{Bin}(n - 1, 1 - x) \ge b) \le \binom{n-1}{b} (1 - x)^b`, and a Beta
    number is sub-Gaussian: the probability is at most :math:`e^{-s} \le 1 / (1 + s)` with
    :math:`s = 2 (n + 1) (x - \text{mean})^2` (Marchal & Arbel 2017).
    """
    for _ in range(min(b, FEW)):
        ways *= 1.0 - x
    ahead = max(0.0, x - mean)
    return min(ways, 1.0 / (1.0 + 2.0 * (n + 1.0) * ahead * ahead))


plays(
    ThompsonState,
    reset=thompson_reset,
    ask=thompson_ask,
    tell=lambda state, slot, reward: credit(state.arms, slot, reward),
)


@dataclass(frozen=True, kw_only=True)
class Thompson(Policy):
    r"""Draw a mean for each of the n arms from its posterior, and pull the arm of the largest.

    With S successes and F failures of an arm so far, its posterior is

    .. math:: \mathrm{Beta}(1 + S, 1 + F)

    Notes
    -----
    W. R. Thompson (Biometrika 25, 1933). Needs neither horizon nor best mean. A reward between 0
    and 1 is taken for a success with that probability, as in S. Agrawal, N. Goyal, "Analysis of
    Thompson sampling for the multi-armed bandit problem" (2012); one outside for the nearer end.
    With n arms it tries nearly all of them before it stays with one. Rewards may be late: samples
    come from what is known, so a batch spreads over many arms by itself.

    Cost per pull: O(distinct (S, F) among the arms), exact, and no more for a billion arms never
    pulled. Arms with the same S and F are alike; the largest of their k samples is the posterior's
    quantile at :math:`U^{1/k}`, and any of them has it with the same chance. Most groups lose by
    cheap bounds on that quantile. An arm alone with many pulls is sampled by Cheng's method (1978).

    Examples
    --------
    >>> from manyarms.policies.field import Thompson
    >>> live = Thompson().live(n_arms=2, seed=1)  # no horizon needed
    >>> for pull in live.ask(100):  # a batch spreads over the arms by itself
    ...     live.tell(pull, reward=float(pull.arm))
    >>> [pull.arm for pull in live.ask(4)]
    [1, 1, 1, 1]
    """

    name = "thompson"
    anytime = True
    about = About(
        needs="nothing",
        guarantee="asymptotically optimal, rewards 0 and 1",
        only_if=("rewards 0 and 1", "more pulls than arms"),
        nanoseconds=2400,
        page="docs/policies/few_arms.md",
        scaling="distinct (successes, failures): not sublinear",
        good_at="few arms, rewards 0 and 1",
        source="Thompson 1933; Agrawal & Goyal 2012",
        rewards="[0, 1]",
    )

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> ThompsonState:
        return ThompsonState(groups(memory, n_arms, pulls), stream(memory), memory.ints(1))
