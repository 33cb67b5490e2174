"""Scout: find good arms among many, then compare the best of them (ours)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.beta_function import beta_tail, log_beta
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Floats, Ints, Memory, Record, Records, place_of_arm, places, wipe
from manyarms.core.rng import Stream, stream
from manyarms.core.sampler import Sampler, sampler
from manyarms.core.tournament import Tournament, clear, disband, highest, leader, rekey, tournament
from manyarms.policies.parts.randomness import draw_fresh, reset_draws
from manyarms.protocol import Policy, plays
from manyarms.protocol.parameters import Share

# Tuned on ten problems with 1000 to 100000 pulls; halving or doubling them changes little.
_PRICE = 0.3  # the `price` of `target_mean`
_GROWTH = 1.2  # while searching, the next fit is after 1.2 times as many pulls
_LOOKS = 25  # while comparing, at most T / 25 pulls are between two fits
# The search pulls an arm at most k = max(4, sqrt(T) / 8, T / (n log2(n + 1)), min(1 / (1 - v),
# T / 100)) times. The third is the length of the first round of sequential halving on all arms.
_FEWEST, _SHARE = 4, 8.0
_PART = 100
_MORE = 16  # the search ends when at most k + 16 pulls per candidate are left
_DONE = -1e200  # the key of an arm that was pulled as often as the search allows
_TABLE = 32  # keys of arms with fewer pulls are cached by (N, S)
_SAMPLE = 500  # known arms whose rewards count in the first fit
_UNSEEN = -1e-9  # the key of an arm whose first reward is late, per pending pull

# The fitted distribution
_STRENGTHS = 12  # 2, 4, 8, …, 4096
_STEPS = 40  # of the bisection
_TINY = 1e-200  # smaller products are replaced by their logarithm
_LEAST = 4.0  # arms screened, at least: the target is not below the upper quartile


class Fit(Record):
    """The parameters of the fitted distribution."""

    mean: float  # m
    strength: float  # c
    first: float  # the sum of first rewards
    firsts: int  # the number of first rewards


class Prior(NamedTuple):
    r"""A Beta distribution of the arms' means, fitted to all rewards so far.

    Its mean m is estimated from the first reward of each arm, since the choice of fresh arms does
    not depend on rewards. The variance is m (1 - m) / (c + 1) with the strength c, which maximizes
    the likelihood of the later rewards, each predicted from the earlier ones by

    .. math:: p = \frac{c\,m + S}{c + N}

    for an arm with N rewards of sum S. As this is a likelihood, it is valid although the arms that
    did well are pulled again. Rewards are in [0, 1].
    """

    fit: Records[Fit]  # [fit]
    score: Floats  # by strength: the log-likelihood of earlier rewards
    chance: Floats  # by strength: the likelihood of the latest rewards, as a product


def prior(memory: Memory) -> Prior:
    """Allocate memory; call `reset_prior` before use."""
    return Prior(memory.records(1, Fit), memory.floats(_STRENGTHS), memory.floats(_STRENGTHS))


@kernel
def reset_prior(prior: Prior) -> None:
    """Forget all rewards; the distribution of the means is then uniform."""
    fit = prior.fit[0]
    fit.mean = 0.5
    fit.strength = 2.0
    fit.first = 0.0
    fit.firsts = 0
    for k in range(_STRENGTHS):
        prior.score[k] = 0.0
        prior.chance[k] = 1.0


@kernel
def update_likelihood(prior: Prior, pulls: int, total: float, reward: float) -> None:
    """Update the likelihoods with a reward of an arm that had `pulls` rewards of sum `total`."""
    fit = prior.fit[0]
    if pulls == 0:
        fit.first += reward
        fit.firsts += 1
        return
    strength = 2.0
    for k in range(_STRENGTHS):
        chance = (strength * fit.mean + total) / (strength + pulls)
        if reward == 1.0:
            prior.chance[k] *= chance
        elif reward == 0.0:
            prior.chance[k] *= 1.0 - chance
        else:
            prior.score[k] += reward * math.log(chance) + (1.0 - reward) * math.log(1.0 - chance)
        if prior.chance[k] < _TINY:
            take_logarithm(prior, k)
        strength *= 2.0


@kernel
def take_logarithm(prior: Prior, k: int) -> None:
    prior.score[k] += math.log(prior.chance[k])
    prior.chance[k] = 1.0


@rare
def fit(prior: Prior) -> None:
    """Fit the distribution; its mean counts one success and one failure more than observed."""
    fit = prior.fit[0]
    fit.mean = (fit.first + 1.0) / (fit.firsts + 2.0)
    best = 0
    for k in range(_STRENGTHS):
        take_logarithm(prior, k)
        if prior.score[k] > prior.score[best]:
            best = k
    fit.strength = 2.0 * float(1 << best)


@rare
def target_mean(mean: float, strength: float, n_arms: int, pulls: int, price: float) -> float:
    r"""Return the mean v that the best of the arms that `pulls` can screen is expected to have.

    To reject an arm of mean m when looking for arms of mean v takes
    :math:`1 + \text{price} / \mathrm{kl}(m, v)` pulls. This gives the number K of arms that can be
    screened, at most n, but counted as at least 4. One of K arms is expected to have a mean above
    v.
    """
    low, high = mean, 1.0 - 0.5 / (pulls + 1.0)
    a, b = strength * mean, strength * (1.0 - mean)
    if low >= high:
        return high
    for _ in range(_STEPS):
        v = 0.5 * (low + high)
        apart = mean * math.log(mean / v) + (1.0 - mean) * math.log((1.0 - mean) / (1.0 - v))
        screened = min(float(n_arms), pulls / (1.0 + price / max(apart, 1e-12)))
        screened = max(screened, _LEAST)
        if beta_tail(a, b, v) * screened > 1.0:
            low = v
        else:
            high = v
    return high


class ScoutArm(Record):
    """The rewards of an arm."""

    arm: int
    pulls: int  # N, the number of rewards
    total: float  # S, the sum of rewards, clipped to [0, 1]
    late: int  # pending pulls


class Plan(Record):
    """The state of the search."""

    horizon: int
    search: int  # the search ends at the first fit after this many pulls
    asked: int
    known: int  # rewards known before the first pull
    next_fit: int  # the pull before which the distribution is fitted next
    looks: int  # the number of fits
    opened: int
    searching: int  # 1 while searching, 0 while comparing
    most: int  # k: the most pulls of one arm while searching
    candidates: int  # arms with k rewards
    target: float  # while searching v; while comparing the largest posterior mean
    second: float  # while comparing: the second largest posterior mean
    best: int  # while comparing: the slot of the largest posterior mean
    log_target: float  # log v
    log_rest: float  # log(1 - v)
    log_prior: float  # log B(c m, c (1 - m))


class ScoutState(NamedTuple):
    """The arms opened so far, the fitted distribution of means, and the plan."""

    share: float
    arm: Records[ScoutArm]
    plan: Records[Plan]  # [plan]
    prior: Prior
    key: Floats  # by 32 N + S: the cached key
    look: Ints  # by 32 N + S: the number of fits when the key was computed
    sampler: Sampler
    words: Stream
    ties: Stream
    rank: Tournament


def scout_reset(state: ScoutState, key: int, horizon: int) -> None:
    reset_draws(state, key)
    reset_prior(state.prior)
    clear(state.rank)
    for place in range(_TABLE * _TABLE):
        state.look[place] = 0
    wipe(state.plan, 0)
    plan = state.plan[0]
    plan.horizon = horizon
    plan.search = int(state.share * horizon)
    plan.searching = 1
    plan.best = -1


def scout_ask(state: ScoutState) -> tuple[int, int]:
    plan = state.plan[0]
    if plan.asked >= plan.next_fit:
        refit(state)
    fresh = state.sampler.n[0] - state.sampler.drawn[0]
    if plan.searching == 1 and fresh == 0 and highest(state.rank) <= _DONE:
        compare(state)  # every arm was pulled as often as the search allows
    elif plan.searching == 1 and is_search_over(plan):
        compare(state)
    plan.asked += 1
    if plan.opened == 0 or (plan.searching == 1 and fresh > 0 and highest(state.rank) <= 0.0):
        return open_arm(state)
    slot = leader(state.rank, state.ties)
    return slot, state.arm[slot].arm


@kernel
def is_search_over(plan: Plan) -> bool:
    """Whether the pulls left are at most those needed to compare the candidates."""
    return plan.candidates * (plan.most + _MORE) >= plan.horizon - plan.asked


@rare
def compare(state: ScoutState) -> None:
    """End the search, and start the comparison."""
    state.plan[0].searching = 0
    refit(state)


@kernel
def open_arm(state: ScoutState) -> tuple[int, int]:
    """Draw a fresh arm, and return its slot and number."""
    slot = state.plan[0].opened
    state.plan[0].opened += 1
    wipe(state.arm, slot)
    state.arm[slot].arm = draw_fresh(state.sampler, state.words)
    rekey(state.rank, slot, key_of(state, slot))
    return slot, state.arm[slot].arm


def scout_tell(state: ScoutState, slot: int, reward: float) -> None:
    record, value = state.arm[slot], min(max(reward, 0.0), 1.0)
    update_likelihood(state.prior, record.pulls, record.total, value)
    record.pulls += 1
    record.total += value
    if record.pulls == state.plan[0].most:
        state.plan[0].candidates += 1
    rekey(state.rank, slot, key_of(state, slot))


def scout_credit(state: ScoutState, arm: int, count: int, total: float, squares: float) -> int:
    """Credit known rewards; the mean of an arm's known rewards stands for its first reward.

    Those known before the first pull count in the share of the search.
    """
    plan, fitted, slot = state.plan[0], state.prior.fit[0], -1
    if arm >= 0:
        slot = place_of_arm(state.arm, arm, plan.opened, 0)
    elif state.sampler.drawn[0] < state.sampler.n[0] and plan.opened < places(state.arm):
        slot, _ = open_arm(state)
    if slot < 0:
        return -1
    record, value = state.arm[slot], min(max(total, 0.0), float(count))
    if record.pulls == 0:
        fitted.first += value / count
        fitted.firsts += 1
    if plan.asked > 0:
        count_known(state.prior, record, -1.0)
    record.pulls += count
    record.total += value
    if plan.asked == 0:  # the next pull is fitted first
        plan.known += count
        return record.arm
    count_known(state.prior, record, 1.0)
    if plan.most > record.pulls - count and plan.most <= record.pulls:
        plan.candidates += 1
    rekey(state.rank, slot, key_of(state, slot))
    return record.arm


@rare
def count_known(prior: Prior, record: ScoutArm, sign: float) -> None:
    """Add the likelihood of an arm's rewards after the first, up to a factor without c.

    With `sign` -1, subtract it.
    """
    if record.pulls < 2:
        return
    strength = 2.0
    for k in range(_STRENGTHS):
        a, b = strength * prior.fit[0].mean, strength * (1.0 - prior.fit[0].mean)
        score = log_beta(a + record.total, b + record.pulls - record.total) - log_beta(a, b)
        prior.score[k] += sign * score
        strength *= 2.0


@rare
def fit_known(state: ScoutState) -> None:
    """Prepare the first fit after known rewards: their likelihood, and the search that is left.

    The first arms are a random sample of the known ones.
    """
    plan, fitted = state.plan[0], state.prior.fit[0]
    fitted.mean = (fitted.first + 1.0) / (fitted.firsts + 2.0)
    for slot in range(min(plan.opened, _SAMPLE)):
        count_known(state.prior, state.arm[slot], 1.0)
    plan.search = max(0, int(state.share * (plan.horizon + plan.known)) - plan.known)


def scout_count_late(state: ScoutState, slot: int, change: int) -> None:
    state.arm[slot].late += change
    rekey(state.rank, slot, key_of(state, slot))


@kernel
def key_of(state: ScoutState, slot: int) -> float:
    """Return the key of an arm; keys are cached, since many arms have the same few rewards."""
    record, plan = state.arm[slot], state.plan[0]
    ones = int(record.total)
    if record.pulls >= _TABLE or record.late > 0 or ones != record.total or slot == plan.best:
        return compute_key(state, slot)
    place = _TABLE * record.pulls + ones
    if state.look[place] != plan.looks:
        state.look[place] = plan.looks
        state.key[place] = compute_key(state, slot)
    return state.key[place]


@rare
def compute_key(state: ScoutState, slot: int) -> float:
    if state.plan[0].searching == 1:
        return evidence(state, slot)
    return improvement(state, slot)


@rare
def evidence(state: ScoutState, slot: int) -> float:
    """Return the evidence of an arm's rewards for the mean v; 0 for fresh arms.

    It is the logarithm of the posterior density at v divided by the prior density. A pending pull
    counts as one more reward of the expected value.
    """
    record, plan, fitted = state.arm[slot], state.plan[0], state.prior.fit[0]
    if record.pulls + record.late >= plan.most:
        return _DONE
    if record.pulls == 0:
        return _UNSEEN * record.late
    ones = fitted.strength * fitted.mean + record.total
    zeros = fitted.strength + record.pulls - ones
    missed = record.pulls - record.total
    gain = plan.log_prior - log_beta(ones, zeros)
    gain += record.total * plan.log_target + missed * plan.log_rest
    if record.late > 0:
        mean = ones / (ones + zeros)
        expected = mean * (math.log(mean) - plan.log_target)
        gain -= record.late * (expected + (1.0 - mean) * (math.log(1.0 - mean) - plan.log_rest))
    return gain


@rare
def improvement(state: ScoutState, slot: int) -> float:
    """Return the expected improvement of an arm over the best one, by a normal approximation.

    For the best arm it is the expected improvement of the second best over it.
    """
    record, plan, fitted = state.arm[slot], state.plan[0], state.prior.fit[0]
    mean = posterior_mean(state, slot)
    weight = fitted.strength + record.pulls + record.late + 1.0
    deviation = math.sqrt(mean * (1.0 - mean) / weight)
    gap = plan.second - mean if slot == plan.best else mean - plan.target
    z = gap / deviation
    density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    if z < -6.0:  # the difference below would cancel
        return deviation * density / (z * z)
    return deviation * density + gap * 0.5 * math.erfc(-z / math.sqrt(2.0))


@kernel
def posterior_mean(state: ScoutState, slot: int) -> float:
    record, fitted = state.arm[slot], state.prior.fit[0]
    return (fitted.strength * fitted.mean + record.total) / (fitted.strength + record.pulls)


@rare
def refit(state: ScoutState) -> None:
    """Fit the distribution of means, and update all ranks."""
    plan, fitted = state.plan[0], state.prior.fit[0]
    plan.looks += 1
    if plan.known > 0 and plan.asked == 0:
        fit_known(state)
    fit(state.prior)
    if plan.asked >= plan.search:
        plan.searching = 0
    if plan.searching == 1:
        later = int(_GROWTH * (plan.asked + plan.known)) - plan.known
        plan.next_fit = max(plan.asked + 1, later)
        v = target_mean(fitted.mean, fitted.strength, state.sampler.n[0], plan.search, _PRICE)
        plan.target = v
        plan.log_target = math.log(v)
        plan.log_rest = math.log(1.0 - v)
        plan.most = most_pulls(float(plan.horizon), float(state.sampler.n[0]), v)
        a = fitted.strength * fitted.mean
        plan.log_prior = log_beta(a, fitted.strength - a)
    else:
        plan.next_fit = plan.asked + max(1, min(plan.opened // 2, plan.horizon // _LOOKS))
        find_best(state)
    disband(state.rank)
    plan.candidates = 0
    for slot in range(plan.opened):
        if state.arm[slot].pulls >= plan.most:
            plan.candidates += 1
        rekey(state.rank, slot, key_of(state, slot))


@kernel
def most_pulls(horizon: float, n: float, v: float) -> int:
    """Return k, the most pulls of an arm in the search."""
    fewest = max(_FEWEST, math.sqrt(horizon) / _SHARE, horizon / (n * math.log2(n + 1.0)))
    return int(max(fewest, min(1.0 / (1.0 - v), horizon / _PART)))


@kernel
def find_best(state: ScoutState) -> None:
    """Find the two largest posterior means."""
    plan = state.plan[0]
    plan.best = -1
    plan.target = -1.0
    plan.second = -1.0
    for slot in range(plan.opened):
        mean = posterior_mean(state, slot)
        if mean > plan.target:
            plan.second = plan.target
            plan.best = slot
            plan.target = mean
        elif mean > plan.second:
            plan.second = mean
    if plan.second < 0.0:
        plan.second = state.prior.fit[0].mean  # the prior mean, as of an arm without rewards


def scout_recommend(state: ScoutState) -> int:
    """Return the arm of largest posterior mean, the first one if several have it."""
    kept, largest = -1, -1.0
    for slot in range(state.plan[0].opened):
        mean = posterior_mean(state, slot)
        if state.arm[slot].pulls > 0 and mean > largest:
            kept, largest = state.arm[slot].arm, mean
    return kept


plays(
    ScoutState,
    reset=scout_reset,
    ask=scout_ask,
    tell=scout_tell,
    count_late=scout_count_late,
    credit_known=scout_credit,
    recommend=scout_recommend,
)


@dataclass(frozen=True, kw_only=True)
class Scout(Policy):
    r"""Search many arms, leaving each once a fresh arm is more promising, then compare the best.

    Scout is for problems in which one arm is kept in the end. It fits a Beta distribution of the
    arms' means to all rewards, and computes from it v, the mean that the best arm is expected to
    have among those that the search has time for. In the *search* it pulls the arm with the most
    evidence for a mean of v,

    .. math:: \log \frac{f(v \mid S, N)}{f(v)}

    where f is the density of the mean. A fresh arm has 0. No arm is pulled more than
    :math:`k = \max(4, \sqrt T / 8, T / (n \log_2 (n + 1)), \min(1 / (1 - v), T / 100))` times. Arms
    that were pulled k times are *candidates*. The search ends after its share of the pulls, or
    earlier if at most k + 16 pulls are left per candidate or if all arms are candidates. In the
    *comparison* it pulls the arm with the largest expected improvement over the best. It recommends
    the arm with the largest posterior mean.

    Parameters
    ----------
    search
        The share of the pulls after which the search ends, at the next fit (default: 0.75).

    Notes
    -----
    Ours; it has no proven guarantee. With very many arms, an arm that is less promising than a
    fresh one need not be pulled again. This is the idea of the Gittins index; the index here is
    simpler. Rewards are in [0, 1]. Pending pulls count as rewards of the expected value, so
    hundreds may be pending. Cost per pull: O(log(arms opened)), and about ten arms are re-ranked
    per pull on average, because the fitted distribution changes. Memory: the arms opened.

    Its page is docs/policies/scout.md.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.Scout().live(n_arms=200_000, horizon=10_000, seed=1)
    >>> for pull in live.ask(256):  # many may be pending
    ...     live.tell(pull, reward=float(pull.arm % 2))
    >>> live.recommend().arm % 2
    1
    """

    name = "scout"
    unit_rewards = True

    search: Share = 0.75

    def stage(self, state: ScoutState) -> str:
        return "search" if state.plan[0].searching == 1 else "comparison"

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> ScoutState:
        arms = min(n_arms, pulls)
        return ScoutState(
            share=self.search,
            arm=memory.records(arms, ScoutArm),
            plan=memory.records(1, Plan),
            prior=prior(memory),
            key=memory.floats(_TABLE * _TABLE),
            look=memory.ints(_TABLE * _TABLE),
            sampler=sampler(memory, n_arms, draws=arms),
            words=stream(memory),
            ties=stream(memory),
            rank=tournament(memory, arms),
        )
