"""Mixture-arms: a pull draws an arm with the frequencies of an earlier iteration.

Mixture-arm j has a share for every member of iteration j's set: the number of its pulls. A member
is drawn by inverting the cumulative shares with a guide table (Chen & Asau 1974), in two expected
steps for any size of the set. If the member is another mixture-arm, a member of that one is drawn.

MOSS++ and empMOSS++ run MOSS (`moss_run.py`) in iterations, and each iteration becomes a
mixture-arm. New arms may be drawn when the next iteration begins. A retired arm loses its slots and
its shares of mixture-arms, and the set and K shrink; a set without members gets a fresh arm. This
is done for all arms retired since the last pull together, when the next one is asked for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from manyarms.core.hash_map import HashMap, contains
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Record, Records, wipe
from manyarms.core.rng import Stream, below, draw, next_word, restart, stream
from manyarms.policies.parts.moss_run import (
    MossRun,
    add_retired,
    close_slot,
    drawable,
    open_fresh,
    open_slot,
    reset_arms,
    slot_of,
)
from manyarms.policies.parts.randomness import MIXTURES, ORDER


class Share(Record):
    """What one member of an iteration's set contributes to the mixture."""

    member: int  # a real arm (>= 0), or -j for mixture-arm j
    until: int  # cumulative: the pulls of this member and of all before it
    guide: int  # entry k: the member in which the k-th of equal parts of the pulls begins


class MixtureCounts(Record):
    closed: int  # complete mixture-arms
    filled: int  # shares in use


class Mixtures(NamedTuple):
    """The mixture-arms, numbered from 1."""

    share: Records[Share]
    end: Ints  # by mixture-arm: where its shares end; end[0] = 0
    counts: Records[MixtureCounts]  # [counts]
    words: Stream
    waiting: Ints  # mixture-arms without a pull in this iteration
    order: Stream


class IterationClock(Record):
    horizon: int  # T
    iteration: int  # i
    left: int  # pulls left in the iteration
    retired: int  # 1 if an arm was retired since the last pull


def mixtures(memory: Memory, *, shares: int, arms: int, most: int) -> Mixtures:
    """Allocate memory for `arms` mixture-arms with `shares` shares in all.

    Arm numbers and numbers of pulls are at most `most`.
    """
    return Mixtures(
        memory.records(shares, Share, most=most),
        memory.ints(arms + 1),
        memory.records(1, MixtureCounts),
        stream(memory),
        memory.ints(arms),
        stream(memory),
    )


@kernel
def reset_iterations(state: Any, key: int, horizon: int) -> None:
    """Reset the state; the first iteration begins with the first pull.

    A state with iterations has `moss`, `mixtures` and `clock`.
    """
    reset_arms(state.moss, key)
    restart(state.mixtures.order, draw(key, ORDER))
    restart(state.mixtures.words, draw(key, MIXTURES))
    wipe(state.mixtures.counts, 0)
    wipe(state.clock, 0)
    state.clock[0].horizon = horizon


# Pulls


@kernel
def wait_for(moss: MossRun, mixtures: Mixtures, j: int) -> None:
    """Mark mixture-arm j as waiting for its first pull, unless all its arms are retired."""
    if mixture_pulls(mixtures, j) > 0:
        mixtures.waiting[moss.run[0].waiting] = j
        moss.run[0].waiting += 1


@kernel
def has_unpulled(moss: MossRun) -> bool:
    """Whether the set has fresh or waiting members."""
    return moss.run[0].fresh + moss.run[0].waiting > 0


@kernel
def open_member(moss: MossRun, mixtures: Mixtures) -> int:
    """Open a random fresh or waiting member, and return its slot."""
    run = moss.run[0]
    if run.waiting > 0:
        at = below(next_word(mixtures.order), run.fresh + run.waiting)
        if at < run.waiting:
            run.waiting -= 1
            mixture = mixtures.waiting[at]
            mixtures.waiting[at] = mixtures.waiting[run.waiting]
            return open_slot(moss, -mixture)
    return open_fresh(moss)


@kernel
def ask_member(moss: MossRun, mixtures: Mixtures, number: int) -> tuple[int, int]:
    """Count a pull of the slot; return the slot and its arm, drawn if it is a mixture-arm."""
    slot = moss.slot[number]
    slot.asked += 1
    return number, real_arm(mixtures, slot.arm)


@kernel
def real_arm(mixtures: Mixtures, member: int) -> int:
    """Return the member itself if it is a real arm, else an arm drawn from its mixture."""
    while member < 0:
        first, end = mixtures.end[-member - 1], mixtures.end[-member]
        word = next_word(mixtures.words)
        target = below(word, mixtures.share[end - 1].until)
        at = first + mixtures.share[first + below(word, end - first)].guide
        while mixtures.share[at].until <= target:
            at += 1
        member = mixtures.share[at].member
    return member


# Making a mixture-arm


@kernel
def add_share(mixtures: Mixtures, member: int, pulls: int) -> None:
    """Add a member to the mixture-arm under construction."""
    at = mixtures.counts[0].filled
    mixtures.counts[0].filled = at + 1
    begins = at == mixtures.end[mixtures.counts[0].closed]
    mixtures.share[at].member = member
    mixtures.share[at].until = pulls if begins else mixtures.share[at - 1].until + pulls


@rare
def close_mixture(mixtures: Mixtures) -> None:
    """Complete the mixture-arm: build its guide table."""
    mixtures.counts[0].closed += 1
    mixtures.end[mixtures.counts[0].closed] = mixtures.counts[0].filled
    _guide(mixtures, mixtures.counts[0].closed)


@kernel
def mixture_pulls(mixtures: Mixtures, j: int) -> int:
    """Return the sum of the shares of mixture-arm j; 0 if all its arms are retired."""
    empty = mixtures.end[j] == mixtures.end[j - 1]
    return 0 if empty else mixtures.share[mixtures.end[j] - 1].until


@rare
def _guide(mixtures: Mixtures, j: int) -> None:
    first, end = mixtures.end[j - 1], mixtures.end[j]
    size, pulls = end - first, mixture_pulls(mixtures, j)
    if pulls == 0:
        return
    member = 0
    for part in range(size):
        while mixtures.share[first + member].until <= part * pulls // size:
            member += 1
        mixtures.share[first + part].guide = member


# Added and retired arms


def arrive_later(state: Any, count: int) -> None:
    """Add new arms, which may be drawn from the next iteration on."""
    state.moss.pool[0] += count


def retire_later(state: Any, arm: int) -> None:
    """Retire an arm; `lose_retired` does the rest."""
    add_retired(state.moss, arm)
    slot = slot_of(state.moss, arm)
    if slot >= 0:
        close_slot(state.moss, slot)
    state.clock[0].retired = 1


@rare
def lose_retired(state: Any) -> None:
    """Remove retired arms from mixture-arms and fresh arms, without changing K."""
    moss, mixtures, run = state.moss, state.mixtures, state.moss.run[0]
    state.clock[0].retired = 0
    leave_mixtures(mixtures, moss.retired)
    for j in range(1, mixtures.counts[0].closed + 1):
        slot = slot_of(moss, -j)
        if slot >= 0 and mixture_pulls(mixtures, j) == 0:
            close_slot(moss, slot)
    waiting, run.waiting = run.waiting, 0
    for k in range(waiting):
        wait_for(moss, mixtures, mixtures.waiting[k])
    run.fresh = min(run.fresh, drawable(moss) - tried(moss))


@rare
def tried(moss: MossRun) -> int:
    """Return the number of real arms that have a slot."""
    count = 0
    for slot in range(moss.run[0].opened):
        count += int(moss.slot[slot].arm >= 0)
    return count


@rare
def leave_mixtures(mixtures: Mixtures, retired: HashMap) -> None:
    """Remove retired arms, and mixture-arms that become empty, from all mixture-arms."""
    for j in range(1, mixtures.counts[0].closed + 1):
        before, until = 0, 0
        for at in range(mixtures.end[j - 1], mixtures.end[j]):
            share = mixtures.share[at]
            pulls = share.until - before
            before = share.until
            inner = share.member
            if inner >= 0:
                if pulls > 0 and contains(retired, inner):
                    pulls = 0
            elif -j < inner and mixture_pulls(mixtures, -inner) == 0:
                pulls = 0
            until += pulls
            share.until = until
        _guide(mixtures, j)
