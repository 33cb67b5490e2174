"""Arms by how often they were pulled, for indices that change with time for all arms at once.

Among arms with the same number N of pulls only one of largest mean can have the largest index, if
the index grows with the mean. So the arms of each N stand in a queue of their own, by mean, and the
index is computed once for each queue: O(distinct N) a pull, and no more than sqrt(2 T) of them,
where a full argmax would take O(arms).

A queue knows how many of its slots share the largest mean, and finds any of them by its place
(`treap`), so that ties are broken uniformly at every step. The nonempty queues are linked in order
of N; queue 0 holds arms that were opened and never observed. Slots are numbered from 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Record, Records, wipe
from manyarms.core.rng import Stream, below, next_word, stream
from manyarms.core.sampler import Sampler, sampler
from manyarms.policies.parts.randomness import draw_fresh, reset_draws
from manyarms.policies.parts.treap import Node, comes_before, first_alike, join, last, leave, nth


class Queue(Record):
    """The queue of one N."""

    root: int
    head: int  # the last of its slots, so one of largest mean
    tied: int  # slots of that mean
    less: int  # the next smaller N whose queue is not empty
    more: int  # the next larger one


class LateReward(Record):
    """The pulls in flight of a slot."""

    pulls: int
    queued: int  # 1 while the slot stands in queue 0


class CountClock(Record):
    opened: int  # arms that have slots
    pulls: int  # pulls asked for
    leading: int  # queues whose heads share the largest index


class Queues(NamedTuple):
    """Slots of arms that were drawn, queued by N, and the sampler that draws the next one."""

    node: Records[Node]
    queue: Records[Queue]
    late: Records[LateReward]
    clock: Records[CountClock]  # [clock]
    leading: Ints  # the N of these queues, in order
    sampler: Sampler
    words: Stream
    ties: Stream


def queues(memory: Memory, n_arms: int, pulls: int) -> Queues:
    """Make room for a game of `pulls` pulls; call `reset` before use."""
    arms = min(n_arms, pulls)
    return Queues(
        memory.records(arms + 1, Node),  # place 0 is nobody's
        memory.records(pulls + 1, Queue),
        memory.records(arms + 1, LateReward),
        memory.records(1, CountClock),
        memory.ints(math.isqrt(2 * pulls) + 1),
        sampler(memory, n_arms, draws=arms),
        stream(memory),
        stream(memory),
    )


@kernel
def reset_queues(arms: Queues, key: int) -> None:
    """Forget everything and take the random words that belong to `key`."""
    reset_draws(arms, key)
    number = 0
    while True:
        after = arms.queue[number].more
        wipe(arms.queue, number)
        number = after
        if number == 0:
            break
    wipe(arms.clock, 0)


@kernel
def next_pull(arms: Queues) -> int:
    """Count the pull that is asked for, and return its number, from 1 on."""
    arms.clock[0].pulls += 1
    return arms.clock[0].pulls


@kernel
def due(arms: Queues) -> int:
    """Return the slot of an arm with an infinite index, a fresh one if possible; 0 if none."""
    if fresh_left(arms) > 0:
        return open_fresh(arms)
    return unobserved(arms) if waits(arms) else 0


@kernel
def fresh_left(arms: Queues) -> int:
    """Return how many arms have no slot yet."""
    return arms.sampler.n[0] - arms.clock[0].opened


@kernel
def open_fresh(arms: Queues) -> int:
    """Draw an arm that was not drawn before and give it a slot; there must be one."""
    arms.clock[0].opened += 1
    slot = arms.clock[0].opened
    node = arms.node[slot]
    node.arm = draw_fresh(arms.sampler, arms.words)
    node.pulls = 0
    node.total = 0.0
    wipe(arms.late, slot)
    return slot


@kernel
def waits(arms: Queues) -> bool:
    """Whether there is an opened arm without a reward."""
    return arms.queue[0].root != 0


@kernel
def unobserved(arms: Queues) -> int:
    """Return the slot of an arm without a reward, one with fewest pulls in flight."""
    forget_leaders(arms)
    lead(arms, 0, True)
    return any_leader(arms)


@kernel
def more(arms: Queues, number: int) -> int:
    """Return the next larger N whose queue is not empty; 0 after the last one."""
    return arms.queue[number].more


@kernel
def head(arms: Queues, number: int) -> int:
    """Return a slot of largest mean among those pulled `number` times."""
    return arms.queue[number].head


@kernel
def forget_leaders(arms: Queues) -> None:
    """Start a new search for the queues whose heads have the largest index."""
    arms.clock[0].leading = 0


@kernel
def lead(arms: Queues, number: int, alone: bool) -> None:
    """Make the queue of N = `number` a leader: the only one, or one of those that tie.

    If their means differ, the indices tie by rounding only, and the larger mean leads.
    """
    clock = arms.clock[0]
    if not alone:
        mean = arms.node[head(arms, number)].mean
        other = arms.node[head(arms, arms.leading[0])].mean
        if mean < other:
            return
        alone = mean > other
    place = 0 if alone else clock.leading
    clock.leading = place + 1
    while place > 0 and arms.leading[place - 1] > number:
        arms.leading[place] = arms.leading[place - 1]
        place -= 1
    arms.leading[place] = number


@kernel
def any_leader(arms: Queues) -> int:
    """Return a random slot among those of largest index; a tie takes a word of TIES."""
    tied = 0
    for k in range(arms.clock[0].leading):
        tied += arms.queue[arms.leading[k]].tied
    if tied == 0:
        return 1  # no head at all: no reward was told, and none said to be late
    at = below(next_word(arms.ties), tied) if tied > 1 else 0
    k = 0
    while at >= arms.queue[arms.leading[k]].tied:
        at -= arms.queue[arms.leading[k]].tied
        k += 1
    queue = arms.queue[arms.leading[k]]
    if queue.tied == 1:
        return queue.head
    return nth(arms.node, queue.root, arms.node[queue.root].size - queue.tied + at)


@kernel
def largest_index(arms: Queues, level: float) -> int:
    r"""Return a slot of largest :math:`\bar x + \sqrt{\text{level} / N}`."""
    best = -math.inf
    forget_leaders(arms)
    number = more(arms, 0)
    while number > 0:
        index = arms.node[head(arms, number)].mean + math.sqrt(level / number)
        if index >= best:
            lead(arms, number, index > best)
            best = index
        number = more(arms, number)
    return any_leader(arms)


@kernel
def credit(arms: Queues, slot: int, reward: float) -> None:
    """Count a pull of `slot` and its reward, and move it to the next queue."""
    node = arms.node[slot]
    number = node.pulls
    if number > 0 or arms.late[slot].queued == 1:
        _unqueue(arms, slot, number)
        arms.late[slot].queued = 0
    node.pulls = number + 1
    node.total += reward
    node.mean = node.total / (number + 1)
    if arms.queue[number + 1].root == 0:
        _link(arms, number, number + 1)
    _queue(arms, slot, number + 1)
    if number > 0 and arms.queue[number].root == 0:
        _unlink(arms, number)


@kernel
def count_late_pulls(arms: Queues, slot: int, change: int) -> None:
    """Count `change` more late pulls."""
    arms.late[slot].pulls += change
    if arms.node[slot].pulls == 0:
        _await(arms, slot)


@rare
def _await(arms: Queues, slot: int) -> None:
    """Put an arm without a reward into queue 0, by its pulls in flight."""
    late = arms.late[slot]
    if late.queued == 1:
        _unqueue(arms, slot, 0)
    late.queued = 1
    arms.node[slot].mean = -float(late.pulls)
    _queue(arms, slot, 0)


@kernel
def _queue(arms: Queues, slot: int, number: int) -> None:
    queue = arms.queue[number]
    ahead = queue.root == 0 or arms.node[slot].mean > arms.node[queue.head].mean
    if ahead:
        queue.tied = 1
    elif arms.node[slot].mean == arms.node[queue.head].mean:
        queue.tied += 1
    if ahead or comes_before(arms.node, queue.head, slot):
        queue.head = slot
    queue.root = join(arms.node, queue.root, slot)


@kernel
def _unqueue(arms: Queues, slot: int, number: int) -> None:
    queue = arms.queue[number]
    tied = arms.node[slot].mean == arms.node[queue.head].mean
    queue.root = leave(arms.node, queue.root, slot)
    if tied:
        queue.tied -= 1
        if slot == queue.head or queue.tied == 0:
            queue.head = last(arms.node, queue.root)
        if queue.tied == 0 and queue.root != 0:
            first = first_alike(arms.node, queue.root, arms.node[queue.head].mean)
            queue.tied = arms.node[queue.root].size - first


@kernel
def _link(arms: Queues, number: int, new: int) -> None:
    after = arms.queue[number].more
    arms.queue[number].more = new
    arms.queue[new].less = number
    arms.queue[new].more = after
    arms.queue[after].less = new  # that of N = 0 is not used


@kernel
def _unlink(arms: Queues, number: int) -> None:
    less, after = arms.queue[number].less, arms.queue[number].more
    arms.queue[less].more = after
    arms.queue[after].less = less
    wipe(arms.queue, number)
