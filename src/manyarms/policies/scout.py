"""Scout: search many arms for one good arm, then compare the best. Ours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from manyarms.core.beta_function import beta_tail, log_beta
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Floats, Ints, Memory, Record, Records, wipe
from manyarms.core.rng import Stream, stream
from manyarms.core.sampler import Sampler, sampler
from manyarms.core.tournament import Tournament, clear, disband, highest, leader, rekey, tournament
from manyarms.policies.parts.randomness import draw_fresh, reset_draws
from manyarms.protocol import Policy, plays
from manyarms.protocol.parameters import Share

# Measured on ten problems, from 1000 to 100000 pulls; halves and doubles of these change little.
_PRICE = 0.3  # of leaving an arm, in `target_mean`
_GROWTH = 1.2  # of the pulls between two fits while searching
_LOOKS = 25  # parts of the horizon: the most pulls between two fits while comparing
_FEWEST, _SHARE = 4, 8.0  # pulls of one arm while searching: at most max(4, sqrt(T) / 8), or more
# … if arms are few: T / (n log2(n + 1)), as many as the first round of halving them all has
_PART = 100  # … or T / 100, where so many tell arms of mean v from better ones
_MORE = 16  # the search ends when candidates have as many pulls left again, and 16 more, each
_DONE = -1e200  # the key of an arm that was pulled as often as the search allows
_TABLE = 32  # keys of arms with fewer pulls are computed once for each (N, S)
_UNSEEN = -1e-9  # the key of an arm whose first reward is late, by pending pulls

# Of the fitted law
_STRENGTHS = 12  # 2, 4, 8, …, 4096
_STEPS = 40  # of a bisection
_TINY = 1e-200  # smaller products are replaced by their logarithm
_LEAST = 4.0  # arms: the target is never below the upper quartile


class Fit(Record):
    """The fitted law."""

    mean: float  # m
    strength: float  # c
    first: float  # the sum of first rewards
    firsts: int  # how many


class Prior(NamedTuple):
    r"""A Beta law for the means of all arms, fitted to the rewards seen so far.

    Its mean m is that of first rewards, one of each arm: which arm is pulled a first time does not
    depend on rewards. Its strength c (the variance of Beta(c m, c (1 - m)) is m (1 - m) / (c + 1))
    is the one with the largest likelihood of the later rewards, each predicted beforehand, by

    .. math:: p = \frac{c\,m + S}{c + N}

    for an arm of N rewards of sum S. That is a likelihood, so it does not matter that arms are
    pulled again because they did well. Rewards are in [0, 1].
    """

    fit: Records[Fit]  # [fit]
    score: Floats  # by strength: the logarithm of the likelihood, but for
    chance: Floats  # that of the last rewards, as a product


def prior(memory: Memory) -> Prior:
    """Make room; call `reset_prior` before use."""
    return Prior(memory.records(1, Fit), memory.floats(_STRENGTHS), memory.floats(_STRENGTHS))


@kernel
def reset_prior(prior: Prior) -> None:
    """Forget all rewards; the law of the means is uniform then."""
    fit = prior.fit[0]
    fit.mean = 0.5
    fit.strength = 2.0
    fit.first = 0.0
    fit.firsts = 0
    for k in range(_STRENGTHS):
        prior.score[k] = 0.0
        prior.chance[k] = 1.0


@kernel
def foresee(prior: Prior, pulls: int, total: float, reward: float) -> None:
    """Learn from a reward of an arm that had `pulls` rewards, of this sum, before."""
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
    """Fit the law to all rewards; one success and one failure are added to those of its mean."""
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
    r"""Return the mean that the best of the arms is expected to have that `pulls` can screen.

    To leave an arm of mean m takes :math:`1 + \text{price} / \mathrm{kl}(m, v)` pulls where arms of
    mean v are looked for. So K arms can be screened, n at most and for this purpose at least 4;
    one of K is expected above v.
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
    pulls: int  # N, those whose reward was told
    total: float  # S, of rewards cut to [0, 1]
    late: int  # pulls whose reward is late


class Plan(Record):
    """The state of the search."""

    horizon: int
    search: int  # the pulls of the search
    asked: int
    next_fit: int  # when the law is fitted next
    looks: int  # how often it was fitted
    opened: int
    searching: int  # 1, or 0 while the best are compared
    most: int  # pulls of one arm while searching
    candidates: int  # arms that were pulled as often
    target: float  # v: while searching the mean looked for, then the largest one
    second: float  # while comparing: the second largest mean
    best: int  # while comparing: the slot of the largest mean
    log_target: float  # log v
    log_rest: float  # log(1 - v)
    log_prior: float  # log B(c m, c (1 - m))


class ScoutState(NamedTuple):
    """The arms opened so far with their keys, the fitted law of means, and the plan."""

    share: float
    arm: Records[ScoutArm]
    plan: Records[Plan]  # [plan]
    prior: Prior
    key: Floats  # by 32 N + S: the key when it was computed last
    look: Ints  # by 32 N + S: how often the law had been fitted then
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
        look_again(state)
    fresh = state.sampler.n[0] - state.sampler.drawn[0]
    if plan.searching == 1 and fresh == 0 and highest(state.rank) <= _DONE:
        compare(state)  # all arms were tried as often as a search tries them
    elif plan.searching == 1 and are_enough(plan):
        compare(state)
    plan.asked += 1
    if plan.opened == 0 or (plan.searching == 1 and fresh > 0 and highest(state.rank) <= 0.0):
        return open_arm(state)
    slot = leader(state.rank, state.ties)
    return slot, state.arm[slot].arm


@kernel
def are_enough(plan: Plan) -> bool:
    """Whether more candidates could not be compared in the pulls that are left."""
    return plan.candidates * (plan.most + _MORE) >= plan.horizon - plan.asked


@rare
def compare(state: ScoutState) -> None:
    """End the search."""
    state.plan[0].searching = 0
    look_again(state)


@kernel
def open_arm(state: ScoutState) -> tuple[int, int]:
    """Take a fresh arm."""
    slot = state.plan[0].opened
    state.plan[0].opened += 1
    wipe(state.arm, slot)
    state.arm[slot].arm = draw_fresh(state.sampler, state.words)
    rekey(state.rank, slot, key_of(state, slot))
    return slot, state.arm[slot].arm


def scout_tell(state: ScoutState, slot: int, reward: float) -> None:
    record, value = state.arm[slot], min(max(reward, 0.0), 1.0)
    foresee(state.prior, record.pulls, record.total, value)
    record.pulls += 1
    record.total += value
    if record.pulls == state.plan[0].most:
        state.plan[0].candidates += 1
    rekey(state.rank, slot, key_of(state, slot))


def scout_count_late(state: ScoutState, slot: int, change: int) -> None:
    state.arm[slot].late += change
    rekey(state.rank, slot, key_of(state, slot))


@kernel
def key_of(state: ScoutState, slot: int) -> float:
    """Return the key of an arm; most arms have few rewards, and many have the same ones."""
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
        return promise(state, slot)
    return improvement(state, slot)


@rare
def promise(state: ScoutState, slot: int) -> float:
    """Return how much more likely the target became by an arm's rewards; 0 for fresh arms.

    It is the logarithm of the posterior density at v over the prior one. A late pull counts as one
    more reward that is as expected.
    """
    record, plan, law = state.arm[slot], state.plan[0], state.prior.fit[0]
    if record.pulls + record.late >= plan.most:
        return _DONE
    if record.pulls == 0:
        return _UNSEEN * record.late
    ones = law.strength * law.mean + record.total
    zeros = law.strength + record.pulls - ones
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
    """Return the expected improvement, by a normal law: of an arm over the best one.

    For the best arm it is what the second is expected to be above it.
    """
    record, plan, law = state.arm[slot], state.plan[0], state.prior.fit[0]
    mean = posterior_mean(state, slot)
    weight = law.strength + record.pulls + record.late + 1.0
    deviation = math.sqrt(mean * (1.0 - mean) / weight)
    gap = plan.second - mean if slot == plan.best else mean - plan.target
    z = gap / deviation
    density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    if z < -6.0:  # where the difference below would cancel
        return deviation * density / (z * z)
    return deviation * density + gap * 0.5 * math.erfc(-z / math.sqrt(2.0))


@kernel
def posterior_mean(state: ScoutState, slot: int) -> float:
    record, law = state.arm[slot], state.prior.fit[0]
    return (law.strength * law.mean + record.total) / (law.strength + record.pulls)


@rare
def look_again(state: ScoutState) -> None:
    """Fit the law of means, and rank all arms again."""
    plan, law = state.plan[0], state.prior.fit[0]
    plan.looks += 1
    fit(state.prior)
    if plan.asked >= plan.search:
        plan.searching = 0
    if plan.searching == 1:
        plan.next_fit = max(plan.asked + 1, int(_GROWTH * plan.asked))
        v = target_mean(law.mean, law.strength, state.sampler.n[0], plan.search, _PRICE)
        plan.target = v
        plan.log_target = math.log(v)
        plan.log_rest = math.log(1.0 - v)
        plan.most = most_pulls(float(plan.horizon), float(state.sampler.n[0]), v)
        a = law.strength * law.mean
        plan.log_prior = log_beta(a, law.strength - a)
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
    """Return the most pulls of an arm in the search."""
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
        plan.second = state.prior.fit[0].mean  # that of an arm of which nothing is known


def scout_recommend(state: ScoutState) -> int:
    """Return the arm of the largest posterior mean; the first one of several."""
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
    recommend=scout_recommend,
)


@dataclass(frozen=True, kw_only=True)
class Scout(Policy):
    r"""Search many arms, leaving each as soon as a fresh one promises more; then compare the best.

    Made for keeping one arm in the end. A Beta law of the arms' means is fitted to all rewards.
    From it follows the mean v that the best of the arms may have for which the search has time. In
    the *search* the arm is pulled whose rewards speak most for v,

    .. math:: \log \frac{f(v \mid S, N)}{f(v)}

    with f the density of its mean, or a fresh one, which has 0; none more often than
    :math:`k = \max(4, \sqrt T / 8, T / (n \log_2 (n + 1)), \min(1 / (1 - v), T / 100))` times. Arms
    that were pulled k times are *candidates*. The search ends after its share of the pulls, or
    sooner: when fewer than k + 16 pulls are left for each candidate, or when every arm is one. Then
    the arms are *compared*: the arm with the largest expected improvement over the best is pulled.
    The arm with the largest posterior mean is recommended.

    Parameters
    ----------
    search
        The share of the pulls that the search may take (default: 0.75).

    Notes
    -----
    Ours; nothing is proved about it. If there are very many arms, one that promises less than a
    fresh arm need not be pulled again. This is the idea of Gittins' index; the index here is
    simpler. Rewards are in [0, 1]. Pending pulls count as rewards that are as expected, so hundreds
    may be pending. Cost per pull: O(log) for the ranking,
    and some ten arms ranked again on average, because the fitted law changes; memory of the arms
    opened.

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
