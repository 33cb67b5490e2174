"""SplitMix64 (Steele, Lea & Flood 2014), and functions of its words."""

from __future__ import annotations

FRESH, TIES, ORDER, MIXTURES, RANKING, EPOCHS, PHASES = 1, 2, 3, 4, 5, 6, 7
SUBSET, GUARDED = 10, 12


class SplitMix64:
    """The generator as published: add the golden gamma, then mix."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def next(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31


def draw(key: int, counter: int) -> int:
    """Return output number `counter` (from 0) of the generator seeded with `key`."""
    # the skipped outputs only advance the state
    return SplitMix64(key + counter * 0x9E3779B97F4A7C15).next()


def below(word: int, n: int) -> int:
    """Map a word to {0, ..., n - 1}."""
    return word * n // 2**64


def unit(word: int) -> float:
    """Map a word to a multiple of 2^-53 in [0, 1)."""
    return (word // 2**11) / 2**53


def upper(word: int) -> int:
    """Return the upper 60 bits, which break ties."""
    return word // 2**4


def stream(key: int, purpose: int) -> SplitMix64:
    """Return the stream of a purpose, given a policy's key."""
    return SplitMix64(draw(key, purpose))


def replication_key(seed: int, replication: int) -> int:
    """Return the key of one replication of a run."""
    return draw(draw(seed, 0), replication)


def policy_key(seed: int, replication: int) -> int:
    """Return the key of a policy's own choices."""
    return draw(replication_key(seed, replication), 0)
