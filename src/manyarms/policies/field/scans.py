r"""UCB1, UCB, KL-UCB and Thompson sampling: scan all arms tried so far, and pull the best.

An arm that was never pulled is drawn when its first pull is due, so neither time nor memory depends
on the number n of arms. But every pull scans all arms tried so far, so its cost grows with their
number. These policies are for few arms; with many arms, use a random subset (`SubSampled`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Record, Records, place_of_arm, places, wipe
from manyarms.core.rng import Stream, below, draw, next_word, open_unit, restart, stream, unit
from manyarms.core.sampler import Sampler, sampler
from manyarms.policies.parts.kl import kl_above, kl_upper
from manyarms.policies.parts.parameters import SigmaPolicy
from manyarms.policies.parts.randomness import (
    ROUNDING,
    SAMPLES,
    draw_fresh,
    reset_draws,
)
from manyarms.protocol import Policy, plays
from manyarms.protocol.parameters import Positive

_UNSEEN = 1e300  # the index of an arm without a reward: above all others
_LOG_4 = math.log(4.0)
_LOG_5 = math.log(5.0)


class ScannedArm(Record):
    """An arm that was tried."""

    arm: int
    pulls: int  # N, the pulls whose rewards were told
    total: float  # the sum of rewards; for Thompson sampling, the number of successes
    late: int  # pending pulls


class ScanClock(Record):
    tried: int  # arms that have slots
    pulls: int  # pulls asked for


class Scan(NamedTuple):
    """The arms tried, in the order of their first pulls, and the sampler of the others."""

    arm: Records[ScannedArm]
    tied: Ints  # slots of largest index
    clock: Records[ScanClock]  # [clock]
    sampler: Sampler
    words: Stream
    ties: Stream


def scan(memory: Memory, n_arms: int, pulls: int) -> Scan:
    """Allocate memory for `pulls` pulls of `n_arms` arms."""
    room = min(n_arms, pulls)
    return Scan(
        memory.records(room, ScannedArm),
        memory.ints(room),
        memory.records(1, ScanClock),
        sampler(memory, n_arms, draws=room),
        stream(memory),
        stream(memory),
    )


@kernel
def reset_scan(arms: Scan, key: int) -> None:
    """Forget all arms, and seed the random streams with `key`."""
    reset_draws(arms, key)
    wipe(arms.clock, 0)


@kernel
def not_tried(arms: Scan) -> int:
    """Return how many arms were never pulled."""
    return arms.sampler.n[0] - arms.clock[0].tried


@kernel
def try_next(arms: Scan) -> int:
    """Draw an arm that was never pulled, and return its slot; there must be one."""
    slot = arms.clock[0].tried
    arms.clock[0].tried += 1
    wipe(arms.arm, slot)
    arms.arm[slot].arm = draw_fresh(arms.sampler, arms.words)
    return slot


@kernel
def largest_index(arms: Scan, level: float, kl: bool) -> int:
    r"""Return a slot of largest index, at random if several have it.

    The index is :math:`\bar x + \sqrt{\text{level} / N}`, or with `kl` the largest q with
    :math:`N\, \mathrm{kl}(\bar x, q) \le \text{level}`. Arms without a reward come first, those
    with fewest pending pulls first. If indices are equal but means differ, which happens only by
    rounding, the arm of larger mean is taken.
    """
    best = best_mean = -math.inf
    tied = 0
    for slot in range(arms.clock[0].tried):
        own = arms.arm[slot]
        mean, index = 0.0, _UNSEEN / (1 + own.late)
        if own.pulls > 0:
            mean = own.total / own.pulls
            bound = level / own.pulls
            if not kl:
                index = mean + math.sqrt(bound)
            elif kl_above(mean, bound) >= best:
                index = kl_upper(mean, bound)
            else:
                continue
        if index > best or (index == best and mean > best_mean):
            best, best_mean, tied = index, mean, 0
        elif index < best or mean < best_mean:
            continue
        arms.tied[tied] = slot
        tied += 1
    return arms.tied[below(next_word(arms.ties), tied) if tied > 1 else 0]


@kernel
def count_reward(arms: Scan, slot: int, reward: float) -> None:
    """Count a pull of `slot` and its reward."""
    arms.arm[slot].pulls += 1
    arms.arm[slot].total += reward


@rare
def credit_scanned(arms: Scan, arm: int, count: int, total: float) -> int:
    """Credit known rewards, as if they had been pulls (see `credit_known`)."""
    clock = arms.clock[0]
    if arm >= 0:
        slot = place_of_arm(arms.arm, arm, clock.tried, 0)
    else:
        has_room = not_tried(arms) > 0 and clock.tried < places(arms.arm)
        slot = try_next(arms) if has_room else -1
    if slot < 0:
        return -1
    arms.arm[slot].pulls += count
    arms.arm[slot].total += total
    clock.pulls += count
    return arms.arm[slot].arm


@kernel
def count_pending(arms: Scan, slot: int, change: int) -> None:
    """Count `change` more pending pulls."""
    arms.arm[slot].late += change


class UcbState(NamedTuple):
    """The arms tried."""

    scale: float  # the factor of the logarithm
    classic: bool  # whether the formula is that of UCB1
    arms: Scan


def ucb_ask(state: UcbState) -> tuple[int, int]:
    arms = state.arms
    arms.clock[0].pulls += 1
    t = arms.clock[0].pulls  # the number of this pull
    if not_tried(arms) > 0:
        slot = try_next(arms)
    else:
        log = math.log(max(1, t - 1)) if state.classic else math.log1p(t * math.log(t) ** 2)
        slot = largest_index(arms, state.scale * log, False)
    return slot, arms.arm[slot].arm


plays(
    UcbState,
    reset=lambda state, key, horizon: reset_scan(state.arms, key),
    ask=ucb_ask,
    tell=lambda state, slot, reward: count_reward(state.arms, slot, reward),
    count_late=lambda state, slot, change: count_pending(state.arms, slot, change),
    credit_known=lambda state, arm, count, total, _: credit_scanned(state.arms, arm, count, total),
)


@dataclass(frozen=True, kw_only=True)
class UCB1(Policy):
    r"""Pull each arm once, in random order, then one of largest index, t being the pulls made.

    .. math:: \bar x + \sqrt{\frac{2 \log t}{N}}

    Parameters
    ----------
    exploration
        Multiplies the fraction under the root; 1 is the source's index.

    Notes
    -----
    P. Auer, N. Cesa-Bianchi, P. Fischer, "Finite-time analysis of the multiarmed bandit problem",
    Machine Learning 47 (2002). Rewards in [0, 1]; needs neither horizon nor best mean. With n arms
    the first n pulls only explore, and the regret grows as :math:`\sum_a \log T / \Delta_a`.

    Checked against `UCB.py` of SMPyBandits: the same index. There arms are first pulled in the
    order of their numbers, and of equal indices the first wins; here both are random.

    Cost per pull: O(arms tried).

    Examples
    --------
    >>> from manyarms.policies import UCB1
    >>> live = UCB1().live(n_arms=3, seed=1)  # no horizon needed
    >>> sorted(pull.arm for pull in live.ask(3))  # each arm once
    [0, 1, 2]
    """

    name = "ucb1"
    anytime = True
    unit_rewards = True

    exploration: Positive = 1.0

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> UcbState:
        return UcbState(2.0 * self.exploration, True, scan(memory, n_arms, pulls))


@dataclass(frozen=True, kw_only=True)
class UCB(SigmaPolicy):
    r"""Pull each arm once, in random order, then at pull t one of largest index.

    .. math:: \bar x + \sigma \sqrt{\frac{2 \log(1 + t \log^2 t)}{N}}

    Parameters
    ----------
    sigma
        Rewards are sigma-sub-Gaussian around their mean (default: half the width of their range,
        1/2 for [0, 1]).

    Notes
    -----
    T. Lattimore, C. Szepesvári, "Bandit Algorithms" (2020), the asymptotically optimal UCB, there
    with sigma = 1. For Gaussian rewards its regret is :math:`\sum_a 2 \sigma^2 \log T / \Delta_a`
    plus lower-order terms; no consistent policy does better in the limit. Needs neither
    horizon nor best mean. With n arms the first n pulls only explore.

    Checked against Chapter 8 of the book, which has this index, and against `mmab.py` of
    khashayarkhv/many-armed-bandit, which uses the same sigma for rewards 0 and 1. That code has
    log t² where the book has log² t.

    Cost per pull: O(arms tried).

    Examples
    --------
    >>> from manyarms.policies import UCB
    >>> UCB().with_reward_range((0.0, 10.0)).sigma  # half the width; a live handle does this
    5.0
    """

    name = "ucb"
    anytime = True

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> UcbState:
        return UcbState(2.0 * self._sigma() ** 2, False, scan(memory, n_arms, pulls))


class KlUcbState(NamedTuple):
    """The arms tried."""

    arms: Scan


def kl_ucb_ask(state: KlUcbState) -> tuple[int, int]:
    arms = state.arms
    t = arms.clock[0].pulls  # pulls made so far
    arms.clock[0].pulls += 1
    if not_tried(arms) > 0:
        slot = try_next(arms)
    else:
        slot = largest_index(arms, math.log(max(1, t)), True)
    return slot, arms.arm[slot].arm


plays(
    KlUcbState,
    reset=lambda state, key, horizon: reset_scan(state.arms, key),
    ask=kl_ucb_ask,
    tell=lambda state, slot, reward: count_reward(state.arms, slot, reward),
    count_late=lambda state, slot, change: count_pending(state.arms, slot, change),
    credit_known=lambda state, arm, count, total, _: credit_scanned(state.arms, arm, count, total),
)


@dataclass(frozen=True, kw_only=True)
class KLUCB(Policy):
    r"""Pull each arm once, in random order, then one of largest index, t being the pulls made.

    .. math:: \max \{ q \le 1 : N\, \mathrm{kl}(\bar x, q) \le \log t \}

    kl(p, q) is the Kullback-Leibler divergence between Bernoulli distributions of means p and q.

    Notes
    -----
    A. Garivier, O. Cappé, "The KL-UCB algorithm for bounded stochastic bandits and
    beyond", COLT 2011. For rewards in [0, 1]; a mean outside is replaced by the nearer end. For
    rewards 0 and 1 the regret is
    :math:`\sum_a \Delta_a \log T / \mathrm{kl}(\mu_a, \mu^*)` plus lower-order terms, the least
    possible in the limit. Needs neither horizon nor best mean. With n arms the first n pulls only
    explore.

    Checked against `klUCB.py` of SMPyBandits, whose authors include those of the paper: the same
    index, computed there up to 1e-4. Here ties are broken at random.

    Cost per pull: O(arms tried). The index is computed to full precision, and only for the arms
    that a cheaper bound does not rule out.

    Examples
    --------
    >>> from manyarms.policies import KLUCB
    >>> live = KLUCB().live(n_arms=2, seed=1)  # no horizon needed
    >>> for _ in range(20):
    ...     pull = live.ask()
    ...     live.tell(pull, reward=float(pull.arm))
    >>> live.ask().arm
    1
    """

    name = "kl-ucb"
    anytime = True
    unit_rewards = True

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> KlUcbState:
        return KlUcbState(scan(memory, n_arms, pulls))


class ThompsonState(NamedTuple):
    """The arms tried, with their successes."""

    arms: Scan
    samples: Stream
    rounding: Stream


def thompson_reset(state: ThompsonState, key: int, horizon: int) -> None:
    reset_scan(state.arms, key)
    restart(state.samples, draw(key, SAMPLES))
    restart(state.rounding, draw(key, ROUNDING))


def thompson_ask(state: ThompsonState) -> tuple[int, int]:
    arms = state.arms
    key = next_word(state.samples)
    best, largest = -1, 0.0
    if not_tried(arms) > 0:  # their samples are uniform: the largest of k is U^(1/k)
        largest = math.exp(math.log(open_unit(draw(key, 0))) / not_tried(arms))
    for slot in range(arms.clock[0].tried):
        own = arms.arm[slot]
        sample = posterior_sample(own.total + 1.0, own.pulls - own.total + 1.0, draw(key, slot + 1))
        if sample > largest:
            best, largest = slot, sample
    if best < 0:
        best = try_next(arms) if not_tried(arms) > 0 else 0
    return best, arms.arm[best].arm


@rare
def posterior_sample(a: float, b: float, key: int) -> float:
    """Sample from Beta(a, b), a and b >= 1, with random words derived from `key`.

    Algorithm BB of Cheng (1978) for a, b > 1: two words per try, and rarely more than two tries.
    """
    if b == 1.0:
        return math.exp(math.log(open_unit(draw(key, 0))) / a)
    if a == 1.0:
        return -math.expm1(math.log(open_unit(draw(key, 0))) / b)
    small, large, n = min(a, b), max(a, b), a + b
    scale = math.sqrt((n - 2.0) / (2.0 * a * b - n))
    slope = small + 1.0 / scale
    words = 0
    while True:
        u = open_unit(draw(key, words))
        z = u * u * open_unit(draw(key, words + 1))
        words += 2
        v = scale * math.log(u / (1.0 - u))
        w = small * math.exp(v)
        r = slope * v - _LOG_4
        if small + r - w + 1.0 + _LOG_5 >= 5.0 * z:
            break
        if r + n * math.log(n / (large + w)) >= math.log(z):
            break
    return w / (large + w) if a == small else large / (large + w)


@kernel
def is_success(reward: float, rounding: Stream) -> bool:
    """Round a reward to 0 or 1.

    A reward r in (0, 1) becomes 1 with probability r, so the mean stays the same. A reward outside
    [0, 1] is replaced by the nearer end.
    """
    if 0.0 < reward < 1.0:
        return unit(next_word(rounding)) < reward
    return reward >= 1.0


def thompson_tell(state: ThompsonState, slot: int, reward: float) -> None:
    count_reward(state.arms, slot, 1.0 if is_success(reward, state.rounding) else 0.0)


def thompson_credit(
    state: ThompsonState, arm: int, count: int, total: float, squares: float
) -> int:
    return credit_scanned(state.arms, arm, count, min(max(total, 0.0), float(count)))


plays(
    ThompsonState,
    reset=thompson_reset,
    ask=thompson_ask,
    tell=thompson_tell,
    credit_known=thompson_credit,
)


@dataclass(frozen=True, kw_only=True)
class Thompson(Policy):
    r"""Sample a mean of each of the n arms from its posterior, and pull the arm of the largest.

    The posterior of an arm with S successes and F failures so far is

    .. math:: \mathrm{Beta}(1 + S, 1 + F)

    Notes
    -----
    S. Agrawal, N. Goyal, "Analysis of Thompson sampling for the multi-armed bandit problem", COLT
    2012; W. R. Thompson (Biometrika 25, 1933). Needs neither horizon nor best mean. A reward
    r between 0 and 1 counts as a success with probability r.
    With n arms it tries nearly all of them before it settles on one. While rewards are late,
    samples come from the posterior so far, so a batch spreads over many arms.

    Checked against `Thompson.py` and `Posterior/Beta.py` of SMPyBandits: the same posterior, and
    the same treatment of rewards between 0 and 1.

    Cost per pull: O(arms tried), one posterior sample each, by Cheng's method (1978). Arms that
    were never pulled have the same posterior, so one number is drawn for the largest of their
    samples.

    Examples
    --------
    >>> from manyarms.policies import Thompson
    >>> live = Thompson().live(n_arms=2, seed=1)  # no horizon needed
    >>> for pull in live.ask(100):  # a batch spreads over the arms
    ...     live.tell(pull, reward=float(pull.arm))
    >>> [pull.arm for pull in live.ask(4)]
    [1, 1, 1, 1]
    """

    name = "thompson"
    anytime = True
    unit_rewards = True

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> ThompsonState:
        return ThompsonState(scan(memory, n_arms, pulls), stream(memory), stream(memory))
