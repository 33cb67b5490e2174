"""Prospector: greedy, with a target that is lowered as exploration gets expensive; guarded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Memory, place_of_arm, wipe
from manyarms.core.rng import draw, restart, stream
from manyarms.core.shrunk_means import (
    add_reward,
    add_rewards,
    clear_means,
    highest_mean,
    leading_slot,
    shrink_to,
    shrunk_mean,
    shrunk_means,
    strike_out,
)
from manyarms.core.tournament import Tournament, clear, highest, leader, rekey, tournament
from manyarms.policies.parts.guard import (
    guard_arrive,
    guard_credit,
    guard_learn,
    guard_retire,
    guard_turn,
    reset_guard,
    stage_begins,
)
from manyarms.policies.parts.guard_slots import (
    can_open,
    count_guarded_late,
    has_fresh,
    is_gone,
    launch_pull,
    open_newcomer,
    open_next,
    stage_words,
)
from manyarms.policies.parts.kl import kl_upper
from manyarms.policies.parts.parameters import GuardPolicy
from manyarms.policies.parts.randomness import TIES
from manyarms.policies.parts.target import (
    ProspectArm,
    ProspectClock,
    ProspectState,
    highest_target,
    prior_weight,
    reaches,
    set_target,
)
from manyarms.protocol import plays
from manyarms.protocol.parameters import Flag, number

_C2, _BOLD_C2 = 1.5, 4.0  # c2 of the target, and c2 if `bold`

_TRIAL = 2  # `by_rule` of a trial pull, which does not count as a loss of the rule

_STALE = 0.1  # upper bounds are computed again once their unit D has changed by 10 %

# Late rewards
_FEW = 4  # an arm with N rewards rests once it has 4 N pending pulls
_RESTING = -1e100  # keys of resting arms, below all others: fewest pending pulls per reward first
_UNSEEN = -1e50  # key of an arm without rewards whose pulls were all abandoned


def prospector_reset(state: ProspectState, key: int, horizon: int) -> None:
    for slot in range(state.guard.clock[0].opened):
        wipe(state.arm, slot)
    reset_guard(state.guard, key, 0 if state.guess else horizon)
    restart(state.ties, draw(key, TIES))
    clear_means(state.shrunk)
    clear(state.by_mean)
    clear(state.by_upper)
    wipe(state.clock, 0)
    state.clock[0].current = -1
    state.clock[0].best = -math.inf
    state.clock[0].spread = state.guard.width
    state.clock[0].unit = state.guard.top - state.guard.bottom
    state.clock[0].ceiling = state.guard.top


@kernel
def choose(state: ProspectState) -> int:
    """Return the best arm if its mean reaches the target, else a fresh arm if there is one."""
    guard, clock = state.guard, state.clock[0]
    if reaches(state, highest(state.by_mean)):
        return keep_or_lead(state, state.by_mean)
    searching = not reaches(state, clock.best)
    if clock.resting > 0 and clock.spent > 0.0 and not searching:  # the best arm may be resting
        if clock.current >= 0 and shrunk_mean(state.shrunk, clock.current) >= clock.best:
            return clock.current
        return leading_slot(state.shrunk, state.ties)
    if has_fresh(guard):
        return open_next(guard)
    if searching:
        changed = abs(clock.spread - clock.ranked_by) > _STALE * clock.ranked_by
        if changed or clock.ranked != guard.clock[0].period:
            rank_by_upper(state)
        return keep_or_lead(state, state.by_upper)
    return keep_or_lead(state, state.by_mean)


@kernel
def keep_or_lead(state: ProspectState, rank: Tournament) -> int:
    """Return the current arm if no other ranks higher, else a leader of the ranking."""
    current = state.clock[0].current  # not ranked before its first reward
    if 0 <= current < rank.board[0].size and rank.entrant[current].key >= highest(rank):
        return current
    return leader(rank, state.ties)


def prospector_ask(state: ProspectState) -> tuple[int, int]:
    guard = state.guard
    if state.clock[0].credited == 1:
        state.clock[0].credited = 0
        set_target(state)
    if stage_begins(guard):
        guard.clock[0].hint = leading_slot(state.shrunk, state.ties)
    slot, by_rule = -1, _TRIAL
    if state.clock[0].changed == 1:
        slot = next_trial(state)
    if slot < 0:
        slot = guard_turn(guard)
        by_rule = 0
    if slot < 0:
        slot = choose(state)
        state.clock[0].current = slot
        by_rule = 1
    return launch_pull(guard, slot, by_rule), guard.slot[slot].arm


@rare
def next_trial(state: ProspectState) -> int:
    """Return the slot of the trial pull that is due now, or -1.

    Newcomers that were never pulled come first, then fresh arms if the best arm was retired. If
    there are neither, the arms on trial take turns.
    """
    clock, guard = state.clock[0], state.guard
    made = guard.clock[0].made
    if made % 2 == 1 or made - clock.paid < state.pause:
        return -1
    if clock.best == -math.inf or guard.clock[0].dropped == 1:  # no reward yet, or rule dropped
        return -1
    slot = open_newcomer(guard)
    if slot < 0 and clock.looks > 0 and has_fresh(guard):
        clock.looks -= 1
        slot = open_next(guard)
    if slot >= 0:
        state.trial[clock.on_trial] = slot
        clock.on_trial += 1
    elif clock.on_trial > 0:
        slot = take_turn(state)
    if slot >= 0:
        saved = (1.0 + guard.clock[0].power) * state.pause
        clock.paid = max(clock.paid, made - saved) + state.pause
    return slot


@kernel
def take_turn(state: ProspectState) -> int:
    """Return the next arm on trial, or -1 if its trial is over or it has a pending pull."""
    clock, guard = state.clock[0], state.guard
    at = clock.turn if clock.turn < clock.on_trial else 0
    slot = state.trial[at]
    arm = state.shrunk.arm[slot]
    lost = arm.pulls * clock.best - arm.total
    if is_gone(guard, slot) or slot == clock.current or lost >= clock.unit:
        clock.on_trial -= 1
        state.trial[at] = state.trial[clock.on_trial]
        slot = -1
    else:
        at += 1
        if guard.slot[slot].late > 0:
            slot = -1
    clock.turn = at
    return slot


def prospector_tell(state: ProspectState, note: int, reward: float) -> None:
    by_rule = state.guard.pending[note].by_rule
    slot = guard_learn(state.guard, note, reward)
    clock = state.clock[0]
    if state.shrunk.arm[slot].pulls == 0:
        clock.seen += 1
        clock.firsts += reward
        shrink_to(state.shrunk, clock.firsts / clock.seen)
    add_reward(state.shrunk, slot, reward)
    excess = reward - state.guard.least
    clock.excess += excess
    clock.squares += excess * excess
    if by_rule != _TRIAL:
        clock.told += 1
        clock.total += reward
    rank(state, slot)
    set_target(state)


@kernel
def rank(state: ProspectState, slot: int) -> None:
    """Update the ranks of the arm by mean and, if used, by upper bound."""
    clock, late, pulls = state.clock[0], state.guard.slot[slot].late, state.shrunk.arm[slot].pulls
    rests = 0
    if late > 0 and (pulls == 0 or (state.late_counts and late >= _FEW * pulls)):
        rests = 1
    clock.resting += rests - state.arm[slot].rests
    state.arm[slot].rests = rests
    rekey(state.by_mean, slot, mean_key(state, slot))
    if clock.ranked > 0:
        rekey(state.by_upper, slot, upper_key(state, slot))


@kernel
def mean_key(state: ProspectState, slot: int) -> float:
    arm = state.shrunk.arm[slot]
    if state.arm[slot].rests == 1:
        return _RESTING * (1.0 + state.guard.slot[slot].late) / (1.0 + arm.pulls)
    return arm.total / arm.pulls if arm.pulls > 0 else _UNSEEN


@kernel
def upper_key(state: ProspectState, slot: int) -> float:
    r"""Return the upper bound of an arm, with a level of our own.

    .. math:: \max\{q : N\,\mathrm{kl}(\bar x, q) \le x\} \;\text{ or }\;
        \bar x + \sigma \sqrt{2x/N}, \qquad
        x = \max(\tfrac12 \log^+(T/(nN)), \log^+(T/(n^2 N)))

    The first is in units of D, so it fits rewards with the variance of 0 and D; see `set_spread`.
    MOSS with `exploration` 1 has x = 2 log⁺(T/(nN)); a smaller level has less regret on few arms.
    """
    guard, arm = state.guard, state.shrunk.arm[slot]
    if state.arm[slot].rests == 1:
        return mean_key(state, slot)
    if arm.pulls == 0:
        return math.inf
    clock, mean = guard.clock[0], arm.total / arm.pulls
    log_n = math.log(clock.arms)
    excess = clock.log - log_n - math.log(arm.pulls)
    bound = max(0.0, 0.5 * excess, excess - log_n) / arm.pulls
    if guard.kl:
        spread = state.clock[0].spread
        return guard.least + spread * kl_upper((mean - guard.least) / spread, bound)
    return mean + guard.sigma * math.sqrt(2.0 * bound)


@rare
def rank_by_upper(state: ProspectState) -> None:
    """Compute all upper bounds: when no fresh arm is left, and after T or n have changed."""
    state.clock[0].ranked = state.guard.clock[0].period
    state.clock[0].ranked_by = state.clock[0].spread
    for slot in range(state.guard.clock[0].opened):
        gone = is_gone(state.guard, slot)
        rekey(state.by_upper, slot, -math.inf if gone else upper_key(state, slot))


def prospector_count_late(state: ProspectState, note: int, change: int) -> None:
    """Count a late or abandoned pull; an arm rests while too many of its pulls are pending."""
    count_guarded_late(state.guard, note, change)
    rank(state, state.guard.pending[note].slot)


def prospector_arrive(state: ProspectState, count: int) -> None:
    guard_arrive(state.guard, count)
    state.clock[0].ranked = 0
    state.clock[0].changed = 1


def prospector_retire(state: ProspectState, arm: int) -> None:
    clock = state.clock[0]
    slot = guard_retire(state.guard, arm)
    clock.ranked = 0
    if slot >= 0:
        clock.resting -= state.arm[slot].rests
        state.arm[slot].rests = 0
        rekey(state.by_mean, slot, -math.inf)
        strike_out(state.shrunk, slot)
        if clock.current == slot:
            clock.current = -1
        if highest_mean(state.shrunk) < clock.best:
            lose_best(state)


@rare
def lose_best(state: ProspectState) -> None:
    """Keep the value of C, although M falls to the best mean that is left."""
    clock = state.clock[0]
    clock.total -= clock.told * clock.best
    clock.told = 0
    clock.looks = int(state.guard.clock[0].power)
    clock.changed = 1
    if highest_mean(state.shrunk) > -math.inf:
        set_target(state)
    else:  # no remaining arm has a reward
        clock.best = -math.inf
        clock.ceiling = highest_target(state)
        clock.spent = 0.0


def prospector_credit(
    state: ProspectState, arm: int, count: int, total: float, squares: float
) -> int:
    """Credit known rewards; the mean of an arm's known rewards stands for its first reward."""
    guard, clock, slot = state.guard, state.clock[0], -1
    if arm >= 0:
        slot = place_of_arm(guard.slot, arm, guard.clock[0].opened, 0)
    elif can_open(guard):
        slot = open_next(guard)
    if slot < 0:
        return -1
    guard_credit(guard, slot, count, total)
    clock.excess += total - count * guard.least
    clock.squares += squares + guard.least * (count * guard.least - 2.0 * total)
    clock.told += count
    clock.total += total
    if state.shrunk.arm[slot].pulls == 0:
        clock.seen += 1
        clock.firsts += total / count
        shrink_to(state.shrunk, clock.firsts / clock.seen)
        weight = prior_weight(state)
        count += weight
        total += weight * clock.firsts / clock.seen
    add_rewards(state.shrunk, slot, count, total)
    clock.credited = 1
    rank(state, slot)
    return guard.slot[slot].arm


plays(
    ProspectState,
    reset=prospector_reset,
    ask=prospector_ask,
    tell=prospector_tell,
    count_late=prospector_count_late,
    arrive=prospector_arrive,
    retire=prospector_retire,
    credit_known=prospector_credit,
)


@dataclass(frozen=True, kw_only=True)
class Prospector(GuardPolicy):
    r"""Pull the best arm if it reaches a target, which is lowered as the search gets expensive.

    Fresh arms are taken in random order. After t rewards, :math:`\bar x` is the mean of an arm's N
    rewards, :math:`\bar a` the average of all arms' first rewards, and M the largest shrunk mean
    :math:`(N \bar x + \bar a)/(N + 1)` of an arm. The search has cost
    :math:`C = \max(0, t M - \text{sum of all rewards})` so far, and the target is

    .. math:: \zeta = 1 - C/T \;\text{ if } C < \tfrac12 T^\beta, \text{ else }\;
        \min(1, M + \tfrac52 (M - \bar a)^+, 2M) - \Big(\frac{C}{\frac32 T^\beta \log T}\Big)^{2/3}

    for rewards 0 and 1 (the term 2M is for `bound="kl"` only). The arm of largest :math:`\bar x` is
    pulled if this is at least :math:`\zeta`; among equal ones, the current arm is kept. Otherwise a
    fresh arm is pulled. When no fresh arm is left, the arm of largest upper bound is pulled if
    :math:`\zeta > M`, and otherwise the arm of largest mean. The level of the upper bound is
    :math:`\max(\tfrac12 \log^+(T/(nN)), \log^+(T/(n^2 N)))`. (The second term is larger only if
    :math:`T > n^3 N`.) The rule runs under the guard of `Guarded`, and also uses the rewards of the
    guard's pulls.

    For other rewards, all this is in units of

    .. math:: D = \min\Big(w, \max\Big(\frac{\sum x^2}{\sum x}, 2M\Big)\Big)

    Here x are all rewards so far; x and M are less the smallest possible reward, and w is the width
    of the range of rewards. If rewards are orders, D is about the size of an order, even if much
    larger orders are possible. For rewards 0 and 1 it is 1.

    Parameters
    ----------
    beta
        Between 1/2 and 1 (default: 0.5): the search may cost about :math:`T^\beta`.
    bold
        Whether to search longer (default: False): 4 replaces 3/2, and 1/2 replaces 2/3, in the last
        term. This is better if best arms are rarer than 1 in :math:`T^\beta`, and worse if there
        are many good arms, all far below `top`.
    bound
        "kl" for rewards in a known range (default for them); "mean" for rewards that are
        sigma-sub-Gaussian.
    sigma
        For "mean": rewards are sigma-sub-Gaussian (default: half the width of their range).
    bottom, top
        All means are between these (default: 0 and 1, or the ends of the rewards' range if it is
        not within), and so is :math:`\zeta`. With "kl", rewards must be in [0, 1] if these are, and
        otherwise between them, too. With "mean", they are the range of which w is the width.
    count_late
        Whether pending pulls count (default: True): an arm with N rewards then rests while 4 N or
        more of its pulls are pending, and others are tried. If False, only an arm without a reward
        rests.
    guess_horizon
        Whether to guess the horizon even if it is given (default: False).
    trials
        The largest share of the pulls, between 0 and 0.5, for trials of arms that were added or
        restored later (default: 0.02). With a fixed catalogue there are no trials.

    Notes
    -----
    Ours; the constants were tuned on simulated problems. With "kl", rewards in [0, 1] and a given
    horizon, the expected regret at every hardness is at most :math:`10 (\log T)^{5/2}\,
    T^{\min(\max(\beta, 1+\alpha-\beta), 1)}`, the rate of MOSS++ (`theory.guarded_bound`). Without
    a horizon, it is guessed, and the guess is doubled to stay above 4 t; statistics are kept, and
    the guard restarts (`theory.anytime_guarded_bound`). Proposition 7 of docs/guard.md bounds the
    regret of the rule alone if best arms never fail. For rewards in another range, the bounds are
    multiplied by its width. They are about the guard, which does not use D; about D nothing is
    proved, and the rule's upper bounds in this unit are not confidence bounds.

    While rewards are late, an arm is not pulled again before its first reward if there are others.
    If :math:`C \ge \tfrac12 T^\beta`, :math:`M \ge \zeta` and some arm rests, the arm of largest
    shrunk mean is pulled instead of a fresh one. Cost per pull: O(log(arms opened)), O(1)
    while one arm leads.

    Arms may be added and retired; no guarantee is proved for that. At most every second pull is a
    trial pull, and on average at most the share `trials`; up to :math:`T^\beta` unused trial pulls
    are saved. A trial pull goes to a new arm that was never pulled, drawn at random among those
    that came last; if there is none, the new arms on trial take turns. A trial ends when :math:`N
    M` minus the sum of the arm's N rewards is at least D, or when the arm becomes the current one.
    If more than :math:`T^\beta` new arms would wait for a trial, those added last keep theirs, and
    as many of the others lose theirs, at random. Trials do not count in C. When the best arm is
    retired, C does not change, and :math:`T^\beta` fresh arms may have trials, whether they were
    there from the start or added later. docs/changing_catalogue.md has measurements.

    Its page is docs/policies/prospector.md.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.Prospector().live(n_arms=1_000_000, seed=1)  # no horizon needed
    >>> first = live.ask()
    >>> live.tell(first, reward=1.0)
    >>> live.ask().arm == first.arm  # it may be a best one
    True
    """

    name = "prospector"
    anytime = True
    unit_rewards = True

    bold: Flag = False
    count_late: Flag = True
    guess_horizon: Flag = False
    trials: Annotated[float, number(at_least=0.0, at_most=0.5)] = 0.02

    def stage(self, state: ProspectState) -> str:
        if words := stage_words(state.guard):
            return words
        searching = not reaches(state, state.clock[0].best)
        return "searching" if searching else "pulling the best arm found"

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> ProspectState:
        room = min(n_arms, pulls)
        return ProspectState(
            budget=_BOLD_C2 if self.bold else _C2,
            bold=self.bold,
            guess=self.guess_horizon,
            late_counts=self.count_late,
            pause=1.0 / self.trials if self.trials > 0.0 else math.inf,
            guard=self._guard(memory, n_arms, pulls),
            arm=memory.records(room, ProspectArm),
            clock=memory.records(1, ProspectClock),
            shrunk=shrunk_means(memory, room),
            by_mean=tournament(memory, room),
            by_upper=tournament(memory, room),
            ties=stream(memory),
            trial=memory.ints(room if memory.changes > 0 else 0),
        )
