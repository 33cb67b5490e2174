"""Mixture-arms: pulling one pulls an arm drawn with the frequencies of an earlier iteration.

Mixture-arm j has a share for every member of iteration j's set: the pulls that the member got.
Drawing one is inverting the cumulative shares, with a guide table that starts the search next to
its end (Chen & Asau 1974): two steps in expectation, whatever the size of the set. A share may
belong to another mixture-arm; then the draw goes on there.
"""

from __future__ import annotations

from typing import NamedTuple

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import Ints, Memory, Record, Records, wipe
from manyarms.core.rng import Stream, below, next_word, restart, stream

_MOST = 64  # mixture-arms: iterations double in length


class Share(Record):
    """What one member of an iteration's set contributes to the mixture."""

    member: int  # a real arm (>= 0), or -j for mixture-arm j
    until: int  # the pulls of this member and of all before it
    guide: int  # for the k-th of equal parts of the pulls: the member it begins with


class Tally(Record):
    closed: int  # mixture-arms
    filled: int  # shares


class Mixtures(NamedTuple):
    """Mixture-arms 1, 2, …, one behind the other."""

    share: Records[Share]
    end: Ints  # by mixture-arm: where its shares end; end[0] = 0
    tally: Records[Tally]  # [tally]
    words: Stream


def mixtures(memory: Memory, *, shares: int, arms: int, most: int) -> Mixtures:
    """Make room for `arms` mixture-arms with `shares` shares in all.

    No arm's number, and no number of pulls, is above `most`.
    """
    return Mixtures(
        memory.records(shares, Share, most=most),
        memory.ints(arms + 1),
        memory.records(1, Tally),
        stream(memory),
    )


@kernel
def reset_mixtures(mixtures: Mixtures, key: int) -> None:
    """Forget all mixture-arms."""
    restart(mixtures.words, key)
    wipe(mixtures.tally, 0)


@kernel
def add_share(mixtures: Mixtures, member: int, pulls: int) -> None:
    """Add a member to the mixture-arm that is being made."""
    at = mixtures.tally[0].filled
    mixtures.tally[0].filled = at + 1
    begins = at == mixtures.end[mixtures.tally[0].closed]
    mixtures.share[at].member = member
    mixtures.share[at].until = pulls if begins else mixtures.share[at - 1].until + pulls


@rare
def close_mixture(mixtures: Mixtures) -> None:
    """Complete the mixture-arm: build its guide table."""
    mixtures.tally[0].closed += 1
    mixtures.end[mixtures.tally[0].closed] = mixtures.tally[0].filled
    _guide(mixtures, mixtures.tally[0].closed)


@rare
def leave_mixtures(mixtures: Mixtures, arm: int) -> None:
    """Remove a retired arm from all mixture-arms, and mixture-arms that are now empty."""
    for j in range(1, mixtures.tally[0].closed + 1):
        before, until = 0, 0
        for at in range(mixtures.end[j - 1], mixtures.end[j]):
            share = mixtures.share[at]
            pulls = share.until - before
            before = share.until
            inner = share.member
            if inner == arm or (-j < inner < 0 and mixture_pulls(mixtures, -inner) == 0):
                pulls = 0
            until += pulls
            share.until = until
        _guide(mixtures, j)


@kernel
def mixture_pulls(mixtures: Mixtures, j: int) -> int:
    """Return the pulls that mixture-arm j draws from: 0 if all its arms are retired."""
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
