"""MOSS on a random set of arms: choose a member, credit its reward, compute its index.

The set has members of three kinds:

* *fresh* arms, which are not drawn yet: an arm is drawn when its first pull is due;
* *waiting* mixture-arms (`mixtures.py`), which have not been pulled in this run;
* members with a *slot*, which holds their statistics. They are ranked by index.

Fresh and waiting members have index +inf: they come first, in random order. K in the index counts
all three kinds.

Fresh arms are also drawn from arms added later. A retired arm loses its slot; a fresh arm replaces
it if there is one. Such changes of K change every index, so the indices are computed when the next
member is chosen, at most 512 for each pull.

Known rewards are credited without a pull. Their arm gets a slot; if the set has no room, it grows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.hash_map import HashMap, add_name, contains, hash_map
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import (
    Floats,
    Ints,
    Memory,
    Record,
    Records,
    place_of_arm,
    places,
    wipe,
)
from manyarms.core.rng import Stream, draw, next_word, restart, stream
from manyarms.core.sampler import Sampler, clear_sampler, pick, sampler
from manyarms.core.tournament import Tournament, clear, disband, leader, rekey, tournament
from manyarms.policies.parts.kl import kl_upper, switch_at
from manyarms.policies.parts.randomness import FRESH, TIES

GONE = -(1 << 62)  # the arm of a slot whose arm was retired
_UNSEEN = 1e300  # above every index
_ALWAYS = 1 << 62  # more than any number of pulls
_PIECE = 512  # indices that are computed with one pull, about 2 ms in CPython
_MOST_LATE = (1 << 31) - 1  # the maximum of pending pulls of a slot


class Slot(Record):
    """A member that was pulled."""

    arm: int  # the real arm (>= 0), or -j for mixture-arm j
    pulls: int  # N
    total: float  # of rewards; the mean is one division, so equal ratios compare equal
    asked: int  # its pulls in this iteration, for policies with mixture-arms


class Run(Record):
    """The counters and constants of one MOSS run."""

    opened: int  # slots in use
    gone: int  # slots freed by retired arms
    search: int  # the first slot that may be one of them, counted from `base`
    due: int  # the first slots of this number have an index of an earlier K
    fresh: int  # members not drawn yet
    waiting: int  # mixture-arms without a pull
    members: int  # K
    horizon: int  # H
    scale: float  # H / K
    log_scale: float  # log(H / K)
    kl_until: int  # the largest N for which the KL index is used


class MossIndex(NamedTuple):
    """The constants of the index."""

    spread: float  # (2 sigma)^2 times `exploration`
    mixture_spread: float  # the same for mixture-arms
    kl: float = 0.0  # the factor of the logarithm in the KL index; 0 if it is not used
    switch: bool = False  # whether to use the KL index only while N <= (H / K)^(1/5)
    plus: bool = False  # whether the KL index uses the level of KL-UCB++
    late_counts: bool = False  # whether late pulls count as pulls in the bonus


class MossRun(NamedTuple):
    """One MOSS run, or several that share the memory."""

    slot: Records[Slot]
    run: Records[Run]
    late: Ints  # by slot: pending pulls
    log: Floats  # cache of log N; 0 if not computed
    rule: MossIndex
    ties: Stream
    rank: Tournament
    sampler: Sampler  # draws fresh arms
    words: Stream
    pool: Ints  # [the number of arms, retired ones included]
    retired: HashMap  # retired arms
    absent: Ints  # [the number of retired arms among those that fresh ones are drawn from]


def moss_run(
    memory: Memory,
    n_arms: int,
    *,
    slots: int,
    index: MossIndex,
    draws: int | None = None,
    runs: int = 1,
    room: int | None = None,
) -> MossRun:
    """Allocate memory for `slots` slots and `draws` drawn arms in all (default: `slots`).

    With several `runs`, none needs more than `room` slots.
    """
    pool = memory.ints(1)
    pool[0] = n_arms
    return MossRun(
        slot=memory.records(slots, Slot),
        run=memory.records(runs, Run),
        late=memory.ints(slots, most=_MOST_LATE),
        log=memory.logs(),
        rule=index,
        ties=stream(memory),
        rank=tournament(memory, slots, tournaments=runs, room=room),
        sampler=sampler(memory, n_arms, draws=slots if draws is None else draws, shuffles=runs),
        words=stream(memory),
        pool=pool,
        retired=hash_map(memory, names=n_arms, entries=memory.changes),
        absent=memory.ints(1),
    )


@kernel
def reset_arms(moss: MossRun, key: int) -> None:
    """Forget all arms, and seed the random streams with `key`; call `begin` next."""
    restart(moss.words, draw(key, FRESH))
    restart(moss.ties, draw(key, TIES))
    put_back(moss)


@kernel
def put_back(moss: MossRun) -> None:
    """Put all arms back into the sampler."""
    clear_sampler(moss.sampler)
    draw_from_all(moss)


@kernel
def draw_from_all(moss: MossRun) -> None:
    """Let fresh arms be drawn from those added since, too."""
    moss.sampler.n[0] = moss.pool[0]
    moss.absent[0] = moss.retired.filled[0]


@kernel
def begin(moss: MossRun, arms: int, horizon: int) -> None:
    """Start a new MOSS run over `arms` fresh arms."""
    wipe(moss.run, moss.rank.number)
    clear(moss.rank)
    moss.run[moss.rank.number].fresh = arms
    set_scale(moss, arms, horizon)


@kernel
def set_scale(moss: MossRun, members: int, horizon: int) -> None:
    """Forget the leaders, and set K and H."""
    disband(moss.rank)
    take_scale(moss.run[moss.rank.number], moss.rule, members, horizon)


@kernel
def take_scale(run: Run, rule: MossIndex, members: int, horizon: int) -> None:
    """Set K and H. The caller must then `refresh` all slots that have an index."""
    run.members = members
    run.horizon = horizon
    run.scale = horizon / members
    run.log_scale = math.log(run.scale)
    run.kl_until = 0
    if rule.kl != 0.0:
        run.kl_until = switch_at(members, horizon) if rule.switch else _ALWAYS


# Choosing a member


@kernel
def ask_arms(moss: MossRun) -> tuple[int, int]:
    """Return the slot to pull, and its arm."""
    slot = choose(moss)
    return slot, moss.slot[slot].arm


@kernel
def choose(moss: MossRun) -> int:
    """Return the slot to pull: that of a fresh arm if there is one, else one of largest index."""
    run = moss.run[moss.rank.number]
    if run.fresh > 0:
        return open_fresh(moss)
    if run.due > 0:
        refresh_some(moss)
    return leader(moss.rank, moss.ties)


@kernel
def open_fresh(moss: MossRun) -> int:
    """Draw a fresh arm that is not retired, and return its slot; there must be one."""
    which = moss.rank.number
    moss.run[which].fresh -= 1
    arm = pick(moss.sampler, which, next_word(moss.words))
    while contains(moss.retired, arm):
        arm = pick(moss.sampler, which, next_word(moss.words))
    return open_slot(moss, arm)


@kernel
def open_slot(moss: MossRun, member: int) -> int:
    """Give `member` a slot for its first pull."""
    run = moss.run[moss.rank.number]
    if run.gone == 0:
        number = moss.rank.base + run.opened
        run.opened += 1
    else:
        number = _free_slot(moss)
    wipe(moss.slot, number)
    moss.slot[number].arm = member
    moss.late[number] = 0
    return number


@rare
def _free_slot(moss: MossRun) -> int:
    """Return the first slot that was closed; there must be one."""
    run = moss.run[moss.rank.number]
    run.gone -= 1
    while moss.slot[moss.rank.base + run.search].arm != GONE:
        run.search += 1
    run.search += 1
    return moss.rank.base + run.search - 1


# Rewards and the index


@kernel
def credit(moss: MossRun, slot: int, reward: float) -> None:
    """Count a pull of `slot` and its reward, and update its index."""
    learn(moss, slot, reward)
    late = moss.late[slot] if moss.rule.late_counts else 0
    rekey(moss.rank, slot, moss_index(moss, slot, late))


@kernel
def learn(moss: MossRun, slot: int, reward: float) -> None:
    """Count a pull of `slot` and its reward."""
    moss.slot[slot].pulls += 1
    moss.slot[slot].total += reward


@kernel
def slot_of(moss: MossRun, arm: int) -> int:
    """Return the slot of an arm, or -1."""
    return place_of_arm(moss.slot, arm, moss.run[moss.rank.number].opened, moss.rank.base)


@kernel
def has_room(moss: MossRun) -> bool:
    """Whether there is memory for another slot."""
    run = moss.run[moss.rank.number]
    return run.gone > 0 or moss.rank.base + run.opened < places(moss.slot)


@rare
def slot_for_known(moss: MossRun, arm: int) -> int:
    """Return the slot of `arm`, or that of a fresh arm if it is -1; -1 if there is none.

    If no fresh arm is left in the set, but others are outside, the set grows.
    """
    if arm >= 0:
        return slot_of(moss, arm)
    run = moss.run[moss.rank.number]
    if not has_room(moss):
        return -1
    if run.fresh == 0:
        if run.opened - run.gone >= drawable(moss):
            return -1
        hold(moss, run.members + 1)
    return open_fresh(moss)


@kernel
def learn_known(moss: MossRun, slot: int, count: int, total: float) -> int:
    """Count known rewards of `slot`, and return its arm."""
    moss.slot[slot].pulls += count
    moss.slot[slot].total += total
    return moss.slot[slot].arm


@rare
def credit_arm(moss: MossRun, arm: int, count: int, total: float) -> int:
    """Credit known rewards (see `credit_known`); return their arm, or -1."""
    slot = slot_for_known(moss, arm)
    if slot < 0:
        return -1
    learn_known(moss, slot, count, total)
    refresh(moss, slot)
    return moss.slot[slot].arm


@kernel
def moss_index(moss: MossRun, slot: int, late: int) -> float:
    r"""Return the index of a slot that was pulled; `late` pulls are added to N in the bonus.

    .. math:: B = \bar x + 2\sigma \sqrt{c\, \frac{\max(0, \log(H / (K N)))}{N}}

    c is `exploration`. The KL index is the largest q with :math:`N\,\mathrm{kl}(\bar x, q) \le
    \max(0, \log(H / (K N)))`. Both equal the mean if N >= H / K. KL-UCB++ adds :math:`\log(1 +
    \log^2(H / (K N)))` to the right side if that is positive.
    """
    run, rule = moss.run[moss.rank.number], moss.rule
    pulls = moss.slot[slot].pulls
    mean = moss.slot[slot].total / pulls
    pulls += late
    if pulls >= run.scale:
        return mean
    log_ratio = max(0.0, run.log_scale - _log_of(moss, pulls))  # log(H / K) - log(N)
    if pulls <= run.kl_until:
        if rule.plus:
            log_ratio += math.log1p(log_ratio * log_ratio)
        return kl_upper(mean, rule.kl * log_ratio / pulls)
    spread = rule.spread if moss.slot[slot].arm >= 0 else rule.mixture_spread
    return mean + math.sqrt(spread * log_ratio / pulls)


@kernel
def _log_of(moss: MossRun, number: int) -> float:
    """Return the logarithm from a table, which halves the time per pull."""
    if number >= places(moss.log):
        return math.log(number)
    value = moss.log[number]
    if value == 0.0 and number > 1:
        value = math.log(number)
        moss.log[number] = value
    return value


@rare
def refresh(moss: MossRun, slot: int) -> None:
    """Update the rank of a slot after K, H or its pending pulls changed."""
    late = moss.late[slot]
    if moss.slot[slot].pulls > 0:
        index = moss_index(moss, slot, late if moss.rule.late_counts else 0)
    else:  # no reward yet: above all others, those with fewest pending pulls first
        index = math.inf if late == 0 else _UNSEEN / late
    if moss.slot[slot].arm != GONE:
        rekey(moss.rank, slot, index)


@kernel
def count_late_pulls(moss: MossRun, slot: int, change: int) -> None:
    """Count `change` more late pulls.

    Unless late pulls count, indices use observed rewards only and stay valid. An arm whose first
    reward is late is no longer fresh. When no fresh arm is left, the arm with fewest pending pulls
    among those without a reward is next.
    """
    moss.late[slot] += change
    if moss.rule.late_counts or moss.slot[slot].pulls == 0:
        refresh(moss, slot)


# Resizing the set, added and retired arms


@rare
def resize(moss: MossRun, members: int, horizon: int) -> None:
    """Set the size of the set to `members`, and recompute all indices.

    The set has more members if more arms have slots, because of known rewards.
    """
    run = moss.run[moss.rank.number]
    taken = run.waiting + run.opened - run.gone
    run.fresh = max(0, members - taken)
    run.due = 0
    set_scale(moss, run.fresh + taken, horizon)
    for slot in range(moss.rank.base, moss.rank.base + run.opened):
        refresh(moss, slot)


@rare
def hold(moss: MossRun, members: int) -> None:
    """Grow or shrink the set to `members` members if the run has begun."""
    run = moss.run[moss.rank.number]
    if run.horizon > 0:
        taken = run.waiting + run.opened - run.gone
        run.fresh = max(0, members - taken)
        if run.fresh + taken != run.members:
            take_scale(run, moss.rule, run.fresh + taken, run.horizon)
            run.due = run.opened


@rare
def refresh_some(moss: MossRun) -> None:
    """Compute some of the indices that have an earlier K."""
    run = moss.run[moss.rank.number]
    last, run.due = run.due, max(0, run.due - _PIECE)
    for slot in range(moss.rank.base + run.due, moss.rank.base + last):
        refresh(moss, slot)


@kernel
def present(moss: MossRun) -> int:
    """Return the number of arms that are not retired."""
    return moss.pool[0] - moss.retired.filled[0]


@kernel
def drawable(moss: MossRun) -> int:
    """Return how many of the arms that the set is drawn from are not retired."""
    return moss.sampler.n[0] - moss.absent[0]


@kernel
def arrive_now(moss: MossRun, count: int) -> None:
    """Add new arms to those that the set is drawn from."""
    moss.pool[0] += count
    draw_from_all(moss)


@kernel
def retire_arm(moss: MossRun, arm: int) -> None:
    """Retire an arm; a fresh one takes its place."""
    add_retired(moss, arm)
    replace_arm(moss, arm)


@kernel
def add_retired(moss: MossRun, arm: int) -> None:
    add_name(moss.retired, arm)
    if arm < moss.sampler.n[0]:
        moss.absent[0] += 1


@rare
def replace_arm(moss: MossRun, arm: int) -> None:
    """Remove a retired arm from the set; a fresh arm replaces it if there is one."""
    slot = slot_of(moss, arm)
    if slot >= 0:
        close_slot(moss, slot)
    hold(moss, min(moss.run[moss.rank.number].members, present(moss)))


@rare
def close_slot(moss: MossRun, slot: int) -> None:
    """Remove the slot of a retired arm from the ranking and from future mixture-arms."""
    run = moss.run[moss.rank.number]
    run.search = slot - moss.rank.base if run.gone == 0 else min(run.search, slot - moss.rank.base)
    run.gone += 1
    moss.slot[slot].arm = GONE
    moss.slot[slot].asked = 0
    rekey(moss.rank, slot, -math.inf)
