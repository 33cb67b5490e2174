"""The guard: staged tests and an allowance that give any rule the rate of MOSS++.

The guard draws one random order of the arms; *slot* j is its j-th arm. A rule pulls open slots or
the next fresh one. docs/guard.md has the algorithm, the theorem and its proof.

Rewards may be late: the guard pulls a slot only when none of its pulls is pending.
"""

from __future__ import annotations

import math

from manyarms.core.hash_map import add_name
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import place_of_arm, wipe
from manyarms.core.sampler import clear_sampler
from manyarms.policies.parts.guard_slots import RETIRED, TOLD, Guard, has_fresh, open_next, settle
from manyarms.policies.parts.kl import bernoulli_kl, kl_upper
from manyarms.policies.parts.randomness import draw_fresh, reset_order

_FIRST_GUESS = 256  # of an unknown horizon (docs/guard.md, "Without the horizon")
_AHEAD = 4  # the guess is kept above this multiple of the pulls made
_NEVER = 1 << 62


@kernel
def guard_log(horizon: int) -> float:
    r"""Return the logarithm of the horizon, at least 1.

    .. math:: L = \max(1, \log T)

    >>> guard_log(2), round(guard_log(50_000), 3)
    (1.0, 10.82)
    """
    return max(1.0, math.log(horizon))


@kernel
def guard_lower_level(horizon: int) -> float:
    r"""Return the level of the lower bounds that define the guard's floor.

    .. math:: x_{low} = \tfrac52 L

    >>> round(guard_lower_level(50_000), 3)
    27.049
    """
    return 2.5 * guard_log(horizon)


@kernel
def guard_upper_level(horizon: int) -> float:
    r"""Return the level of the upper bounds that rule arms out.

    It is the first x of 1, 1.25, 1.5, … with

    .. math:: 2 e \lceil x L \rceil e^{-x} \le 1

    >>> guard_upper_level(50_000), guard_upper_level(5_000_000)
    (6.0, 6.5)
    """
    level = 1.0
    while 2.0 * math.ceil(level * guard_log(horizon)) * math.exp(1.0 - level) > 1.0:
        level += 0.25
    return level


@kernel
def guard_stages_planned(horizon: int, beta: float) -> int:
    r"""Return the number of the guard's stages.

    These are stage 0 and every stage i >= 1 with

    .. math:: 2^{-i} \, T^\beta / L > \tfrac12

    >>> guard_stages_planned(50_000, 0.5), guard_stages_planned(2, 0.5)
    (6, 2)
    """
    size = math.pow(horizon, beta) / guard_log(horizon)
    stages = 1
    while size / (1 << stages) > 0.5:
        stages += 1
    return stages


@kernel
def guard_stage(horizon: int, beta: float, stage: int) -> tuple[int, int, int]:
    r"""Return the arms that stage i tests, the pulls of each, and the pulls made when it is due.

    .. math:: a_i = \lceil 2^{-i} S \rceil, \quad \lceil (S / a_i)^2 \rceil, \quad
              \lceil T^\beta S / a_i \rceil, \quad S = T^\beta / L

    There may be fewer arms. The second number counts all pulls of an arm, earlier ones included. It
    and the start are at most T; a stage due at T never begins.

    >>> [guard_stage(50_000, 0.5, i) for i in (0, 1, 5)]
    [(21, 1, 221), (11, 4, 421), (1, 428, 4622)]
    """
    power = math.pow(horizon, beta)
    size = power / guard_log(horizon)
    arms = math.ceil(size / (1 << stage))
    share = size / arms
    pulls = math.ceil(min(share * share, float(horizon)))
    return arms, pulls, math.ceil(min(power * share, float(horizon)))


@kernel
def guard_error(upper_level: float, lower_level: float, pulls: int) -> float:
    r"""Return how far the floor may be below the best mean after a stage.

    .. math:: (\sqrt{x_i / 2} + \sqrt{x_{low} / 2}) / \sqrt{n_i}

    >>> guard_error(8.0, 18.0, 25)
    1.0
    """
    return (math.sqrt(upper_level / 2.0) + math.sqrt(lower_level / 2.0)) / math.sqrt(pulls)


@kernel
def guard_allowance(horizon: int, beta: float) -> float:
    r"""Return the loss against the floor above which a rule is dropped.

    .. math:: 4 \, T^\beta L

    >>> round(guard_allowance(50_000, 0.5), 1)
    9677.5
    """
    return 4.0 * math.pow(horizon, beta) * guard_log(horizon)


@kernel
def reset_guard(guard: Guard, key: int, horizon: int) -> None:
    """Start with a new order; `horizon` is 0 if unknown."""
    reset_order(guard.sampler, guard.words, key)
    clear_sampler(guard.newcomers)
    guard.newcomers.n[0] = 0
    wipe(guard.clock, 0)
    clock = guard.clock[0]
    clock.arms = guard.sampler.n[0] - guard.retired.filled[0]
    clock.hint = -1
    clock.guessed = 0 if horizon > 0 else 1
    take_horizon(guard, horizon if horizon > 0 else _FIRST_GUESS)


@rare
def take_horizon(guard: Guard, horizon: int) -> None:
    """Set T; reset the levels, stages, floor, debt and ruled-out slots."""
    clock = guard.clock[0]
    clock.horizon = horizon
    clock.log = guard_log(horizon)
    clock.power = math.pow(horizon, guard.beta)
    clock.low = guard_lower_level(horizon)
    clock.up = guard_upper_level(horizon)
    width = max(guard.top - guard.bottom, 2.0 * guard.sigma)  # V
    clock.allowance = width * guard_allowance(horizon, guard.beta)
    clock.debt = 0.0
    clock.dropped = 0
    forget_floor(guard)
    plan_stage(guard, 0)


@rare
def forget_floor(guard: Guard) -> None:
    clock = guard.clock[0]
    clock.period += 1
    clock.floor = -math.inf
    clock.keeper = -1


@rare
def plan_stage(guard: Guard, stage: int) -> None:
    """Compute the numbers of a stage."""
    clock = guard.clock[0]
    clock.stage = stage
    clock.at = -1
    clock.start = _NEVER
    if stage < guard_stages_planned(clock.horizon, guard.beta):
        size, clock.need, clock.start = guard_stage(clock.horizon, guard.beta, stage)
        clock.size = min(size, clock.arms)
        clock.level = clock.low if clock.size == clock.arms else clock.up
        clock.error = 2.0 * guard.sigma * guard_error(clock.level, clock.low, clock.need)


@kernel
def stage_begins(guard: Guard) -> bool:
    """Whether a stage is due with this pull; it is skipped if the floor is high enough.

    If the horizon is guessed, the guess is doubled first if needed.
    """
    clock = guard.clock[0]
    if clock.guessed == 1 and _AHEAD * (clock.made + clock.known) >= clock.horizon:
        double_guess(guard)
    return clock.at < 0 and clock.made >= clock.start


@rare
def double_guess(guard: Guard) -> None:
    """Double a guessed horizon until it is far enough ahead."""
    clock = guard.clock[0]
    horizon = clock.horizon
    while clock.guessed == 1 and _AHEAD * (clock.made + clock.known) >= horizon:
        horizon *= 2
    if horizon != clock.horizon:
        take_horizon(guard, horizon)


@kernel
def guard_turn(guard: Guard) -> int:
    """Return the slot that the guard pulls now, or -1 if the rule chooses.

    Call `stage_begins` first.
    """
    clock, slot = guard.clock[0], -1
    if clock.made >= clock.start:
        slot = next_test(guard)
    if slot < 0 and clock.dropped == 1:
        slot = clock.keeper
    return slot


@rare
def next_test(guard: Guard) -> int:
    """Return the slot that a stage pulls now; -1 if no stage is due or its slots are pending."""
    clock = guard.clock[0]
    while clock.made >= clock.start:
        if clock.at < 0:
            raise_floor(guard, clock.rules)
            raise_floor(guard, clock.hint)
            if guard.top - clock.floor > clock.error:
                clock.at = 0
        if clock.at >= 0:
            slot = first_to_pull(guard)
            if slot >= 0 or clock.at < clock.size:
                return slot
        plan_stage(guard, clock.stage + 1)
    return -1


@rare
def first_to_pull(guard: Guard) -> int:
    """Return the first slot that the stage may pull now, or -1."""
    clock = guard.clock[0]
    slot = clock.at
    while slot < clock.size:
        if slot == clock.opened:
            if has_fresh(guard):
                return open_next(guard)
            clock.size = slot
            break
        if is_done(guard, slot):
            if slot == clock.at:
                clock.at += 1
        elif guard.slot[slot].late == 0:
            return slot
        slot += 1
    return -1


@rare
def is_done(guard: Guard, slot: int) -> bool:
    """Whether the slot is out or has all its rewards; if it has, update the floor."""
    clock, own = guard.clock[0], guard.slot[slot]
    if own.out in (clock.period, RETIRED):
        return True
    if own.pulls > 0 and is_below(guard, slot):
        own.out = clock.period
        return True
    if own.pulls < clock.need:
        return False
    raise_floor(guard, slot)
    return True


@rare
def is_below(guard: Guard, slot: int) -> bool:
    """Whether the slot's upper bound, at the level of the stage, is below the floor."""
    clock, own = guard.clock[0], guard.slot[slot]
    mean = own.total / own.pulls
    if mean >= clock.floor:
        return False
    if guard.kl:
        low, high = (mean - guard.least) / guard.width, (clock.floor - guard.least) / guard.width
        return own.pulls * bernoulli_kl(max(low, 0.0), high) > clock.level
    gap = clock.floor - mean
    return own.pulls * gap * gap > 2.0 * guard.sigma * guard.sigma * clock.level


@rare
def raise_floor(guard: Guard, slot: int) -> None:
    """Raise the floor to the lower bound of an open slot if that is larger."""
    clock = guard.clock[0]
    if not 0 <= slot < clock.opened or guard.slot[slot].out == RETIRED:
        return
    own = guard.slot[slot]
    if own.pulls > 0:
        mean, level = own.total / own.pulls, clock.low / own.pulls
        if guard.kl:
            share = (mean - guard.least) / guard.width
            bound = guard.least + guard.width * (1.0 - kl_upper(1.0 - share, level))
        else:
            bound = mean - guard.sigma * math.sqrt(2.0 * level)
        bound = min(max(bound, guard.bottom), guard.top)
        if bound > clock.floor:
            clock.floor = bound
            clock.keeper = slot


@kernel
def guard_learn(guard: Guard, note: int, reward: float) -> int:
    """Record the reward of a pull, and return its slot."""
    clock, pull = guard.clock[0], guard.pending[note]
    pull.settled = TOLD
    pull.reward = reward
    if pull.by_rule == 1:
        clock.rules = pull.slot
        if pull.floor > -math.inf and pull.period == clock.period:
            clock.debt += pull.floor - reward
            if clock.debt > clock.allowance:
                clock.dropped = 1
    settle(guard, pull.slot)
    return pull.slot


@rare
def guard_credit(guard: Guard, slot: int, count: int, total: float) -> None:
    """Count known rewards of a slot; they do not start stages.

    A guessed horizon grows as if they had been pulls.
    """
    clock, own = guard.clock[0], guard.slot[slot]
    own.pulls += count
    own.total += total
    clock.known += count
    double_guess(guard)


@kernel
def guard_arrive(guard: Guard, count: int) -> None:
    """Add new arms to those that have no slot yet.

    They become newcomers. All of them get a trial, before those that came earlier. If more than
    T^beta newcomers would wait for one, as many of the earlier ones lose theirs, at random.
    """
    newcomers = guard.newcomers
    waiting = newcomers.n[0] - newcomers.drawn[0]
    lost = min(waiting, max(0, waiting + count - int(guard.clock[0].power)))
    for _ in range(lost):
        draw_fresh(newcomers, guard.words)
    guard.clock[0].newest = newcomers.n[0]
    newcomers.n[0] += count
    guard.sampler.n[0] += count
    guard.clock[0].arms += count
    if guard.clock[0].at < 0:
        plan_stage(guard, guard.clock[0].stage)


@rare
def guard_retire(guard: Guard, arm: int) -> int:
    """Rule out the arm's slot, or never open the arm; return the slot, or -1 if it has none.

    If the floor came from this slot, recompute it from the other slots.
    """
    clock = guard.clock[0]
    add_name(guard.retired, arm)
    slot = place_of_arm(guard.slot, arm, clock.opened, 0)
    if slot < 0:
        clock.arms -= 1
    else:
        guard.slot[slot].out = RETIRED
    if slot >= 0 and slot == clock.keeper:
        forget_floor(guard)
        for other in range(clock.opened):
            raise_floor(guard, other)
    if clock.at < 0:
        plan_stage(guard, clock.stage)
    return slot
