"""Arms by how often they were pulled, for indices that change with time for all arms at once.

Among arms with the same number N of pulls only one of largest mean can have the largest index, if
the index grows with the mean. So the arms of each N stand in a queue of their own, by (mean,
random tie), and the index is computed for the heads only: O(distinct N) a pull, and no more than
sqrt(2 T) of them, where a full argmax would take O(arms).

A queue is a pairing heap, which lets go of any member, as a late reward may ask for. The nonempty
queues are linked in order of N; queue 0 holds arms that were opened and never observed. Slots are
numbered from 1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from manyarms.core.jit import generic, kernel, rare
from manyarms.core.memory import Memory, Record, Records, release
from manyarms.core.rng import Stream, draw, next_word, priority, restart, stream
from manyarms.core.sampler import Sampler, sampler
from manyarms.policies.parts.pairing import Node, beats, join, leave, slots_of
from manyarms.policies.parts.randomness import TIES, draw_fresh, reset_order
from manyarms.protocol import count_late, reset, tell
from manyarms.protocol.soundness import Known, holds, sound

__all__ = ["Queues", "ahead", "ask_largest", "due", "fresh_left", "head", "level", "more"]
__all__ += ["next_pull", "open_fresh", "queues", "unobserved"]


class Queue(Record):
    """The queue of one N."""

    root: int  # its head
    less: int  # the next smaller N whose queue is not empty
    more: int  # the next larger one


class LateReward(Record):
    """What is in flight for a slot."""

    pulls: int
    queued: int  # 1 while the slot stands in queue 0


class CountClock(Record):
    opened: int  # arms that have slots
    pulls: int  # pulls asked for


class Queues(NamedTuple):
    """Slots of arms that were drawn, queued by N, and the sampler that draws the next one."""

    node: Records[Node]
    queue: Records[Queue]
    late: Records[LateReward]
    clock: Records[CountClock]  # [clock]
    sampler: Sampler
    words: Stream
    ties: Stream


def queues(memory: Memory, n_arms: int, pulls: int) -> Queues:
    """Make room for so many pulls; call `reset` before use."""
    arms = min(n_arms, pulls)
    return Queues(
        memory.records(arms + 1, Node),  # place 0 is nobody's
        memory.records(pulls + 1, Queue),
        memory.records(arms + 1, LateReward),
        memory.records(1, CountClock),
        sampler(memory, n_arms, draws=arms),
        stream(memory),
        stream(memory),
    )


@reset.register(Queues)
def reset_queues(arms: Queues, key: int, horizon: int) -> None:
    """Forget everything and take the random words that belong to `key`."""
    reset_order(arms.sampler, arms.words, key)
    restart(arms.ties, draw(key, TIES))
    number = 0
    while True:
        arms.queue[number].root = 0
        number = arms.queue[number].more
        if number == 0:
            break
    arms.queue[0].more = 0
    arms.clock[0].opened = 0
    arms.clock[0].pulls = 0


@kernel
def next_pull(arms: Queues) -> int:
    """Count the pull that is asked for, and return its number, from 1 on."""
    arms.clock[0].pulls += 1
    return arms.clock[0].pulls


@generic
def level(state: Any, t: int) -> float:  # type: ignore[empty-body]
    """Return what stands over N under the root of the index, at pull number t."""


def ask_largest(state: Any) -> tuple[int, int]:
    """Choose the largest index, arms never pulled first: a body of `ask` for a state with arms."""
    t = next_pull(state.arms)
    slot = due(state.arms)
    if slot == 0:
        slot = largest_index(state.arms, level(state, t))
    return slot, state.arms.node[slot].arm


@kernel
def due(arms: Queues) -> int:
    """Return the slot of an arm whose index is infinite, a fresh one if there is; 0 if none."""
    if fresh_left(arms) > 0:
        return open_fresh(arms)
    return unobserved(arms)


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
    arms.late[slot].pulls = 0
    arms.late[slot].queued = 0
    return slot


@kernel
def unobserved(arms: Queues) -> int:
    """Return the slot of an arm without any reward so far, fewest pulls in flight; 0 if none."""
    return arms.queue[0].root


@kernel
def more(arms: Queues, number: int) -> int:
    """Return the next larger N whose queue is not empty; 0 after the last one."""
    return arms.queue[number].more


@kernel
def head(arms: Queues, number: int) -> int:
    """Return the slot of largest (mean, tie) among those pulled `number` times."""
    return arms.queue[number].root


@kernel
def ahead(arms: Queues, slot: int, index: float, best: int, best_index: float) -> bool:
    """Whether a slot comes before the best one so far: by index, then mean, then tie."""
    if index != best_index or best == 0:
        return index > best_index or best == 0
    return beats(arms.node, slot, best)


@kernel
def largest_index(arms: Queues, level: float) -> int:
    r"""Return the slot of largest :math:`\bar x + \sqrt{\text{level} / N}`."""
    best, best_index = 0, -math.inf
    number = more(arms, 0)
    while number > 0:
        slot = head(arms, number)
        index = arms.node[slot].mean + math.sqrt(level / number)
        if ahead(arms, slot, index, best, best_index):
            best, best_index = slot, index
        number = more(arms, number)
    return max(1, best)  # no head at all: no reward was told, and none said to be late


@tell.register(Queues)
def credit(arms: Queues, slot: int, reward: float) -> None:
    """Count a pull of `slot` and its reward, and move it to the next queue."""
    node = arms.node[slot]
    number = node.pulls
    if number > 0 or arms.late[slot].queued == 1:
        arms.queue[number].root = leave(arms.node, arms.queue[number].root, slot)
        arms.late[slot].queued = 0
    node.pulls = number + 1
    node.total += reward
    node.mean = node.total / (number + 1)
    if arms.queue[number + 1].root == 0:
        _link(arms, number, number + 1)
    _queue(arms, slot, number + 1)
    if number > 0 and arms.queue[number].root == 0:
        _unlink(arms, number)


@count_late.register(Queues)
def queues_count_late(arms: Queues, slot: int, change: int) -> None:
    """Count pulls that are late, or no longer."""
    arms.late[slot].pulls += change
    if arms.node[slot].pulls == 0:
        _await(arms, slot)


@rare
def _await(arms: Queues, slot: int) -> None:
    """Queue an arm never observed: fewest pulls in flight first."""
    late = arms.late[slot]
    if late.queued == 1:
        arms.queue[0].root = leave(arms.node, arms.queue[0].root, slot)
    late.queued = 1
    arms.node[slot].mean = -float(late.pulls)
    _queue(arms, slot, 0)


@kernel
def _queue(arms: Queues, slot: int, number: int) -> None:
    arms.node[slot].tie = priority(next_word(arms.ties))
    arms.queue[number].root = join(arms.node, arms.queue[number].root, slot)


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
    arms.queue[number].less = 0
    arms.queue[number].more = 0
    release(arms.queue, number)


@holds.register(Queues)
def queues_hold(arms: Queues, slot: int) -> bool:
    return 1 <= slot <= arms.clock[0].opened


@sound.register(Queues)
def queues_are_sound(arms: Queues, known: Known) -> bool:
    opened = arms.clock[0].opened
    if not 0 <= opened <= known.touched or arms.clock[0].pulls != known.pulls:
        return False
    slots = range(1, opened + 1)
    waiting = {k: arms.node[k].pulls for k in slots if arms.node[k].pulls or arms.late[k].queued}
    number = 0
    while True:  # numbers grow, and every queue but the first takes a slot away
        queue = arms.queue[number]
        found = slots_of(arms.node, queue.root, opened)
        if found is None or any(waiting.pop(slot, -1) != number for slot in found):
            return False
        if number > 0 and not found:
            return False
        if queue.more == 0:
            return not waiting and sound(arms.sampler, known)
        if queue.more <= number or arms.queue[queue.more].less != number:
            return False
        number = queue.more
