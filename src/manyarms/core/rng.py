"""Random numbers as pure functions of a key and a counter.

`draw(key, counter)` is output number `counter` of SplitMix64 (Steele, Lea & Flood 2014) seeded
with `key`. Keys for seeds, replications and purposes are themselves draws, so every number of a
run can be computed alone, in any order, on any machine. Written by hand because NumPy's generators
are sequential and cannot answer "the k-th reward of arm a".

A word is an unsigned 64-bit integer. CPython computes with plain integers and a mask; the
compiled twins spell the types out, because Numba turns uint64 + int64 into something else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from manyarms.core.jit import kernel, twin
from manyarms.core.memory import Memory, Record, Records, Word

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_LOW = 0xFFFF_FFFF
_GAMMA = 0x9E37_79B9_7F4A_7C15  # the golden ratio in 64 bits: SplitMix64's step
_MIX_1 = 0xBF58_476D_1CE4_E5B9  # the two multipliers of its output function
_MIX_2 = 0x94D0_49BB_1331_11EB
_TWO_TO_MINUS_52 = 2.0**-52
_TWO_TO_MINUS_53 = 2.0**-53


def _compiled_draw() -> Callable[..., Any]:
    from numpy import uint64

    one = uint64(1)

    def draw(key: int, counter: int) -> Any:
        z = uint64(key) + (uint64(counter) + one) * _GAMMA
        z = (z ^ (z >> 30)) * _MIX_1
        z = (z ^ (z >> 27)) * _MIX_2
        return z ^ (z >> 31)

    return draw


@twin(_compiled_draw)
def draw(key: int, counter: int) -> int:
    """Return word number `counter` (from 0) of the sequence that belongs to `key`.

    >>> draw(1234567, 0)  # the published first output of SplitMix64 for this seed
    6457827717110365317
    """
    z = (key + (counter + 1) * _GAMMA) & _MASK
    z = ((z ^ (z >> 30)) * _MIX_1) & _MASK
    z = ((z ^ (z >> 27)) * _MIX_2) & _MASK
    return z ^ (z >> 31)


def _compiled_below() -> Callable[..., Any]:
    from numpy import int64, uint64

    low = uint64(_LOW)
    half = uint64(32)

    def below(word: int, n: int) -> Any:
        # the upper 64 bits of a 128-bit product, from four 32-bit ones
        z, m = uint64(word), uint64(n)
        z_high, z_low = z >> half, z & low
        m_high, m_low = m >> half, m & low
        middle = z_high * m_low + ((z_low * m_low) >> half)
        return int64(
            z_high * m_high + (middle >> half) + ((z_low * m_high + (middle & low)) >> half)
        )

    return below


@twin(_compiled_below)
def below(word: int, n: int) -> int:
    """Map a word to an integer in [0, n), monotonically: floor(word * n / 2^64).

    >>> below(2**63, 10)
    5
    """
    return (word * n) >> 64


def _compiled_unit() -> Callable[..., Any]:
    from numpy import int64, uint64

    eleven = uint64(11)

    def unit(word: int) -> Any:
        return int64(uint64(word) >> eleven) * _TWO_TO_MINUS_53

    return unit


@twin(_compiled_unit)
def unit(word: int) -> float:
    """Map a word to a multiple of 2^-53 in [0, 1).

    >>> unit(2**62)
    0.25
    """
    return (word >> 11) * _TWO_TO_MINUS_53


def _compiled_open_unit() -> Callable[..., Any]:
    from numpy import int64, uint64

    twelve = uint64(12)

    def open_unit(word: int) -> Any:
        return (int64(uint64(word) >> twelve) + 0.5) * _TWO_TO_MINUS_52

    return open_unit


@twin(_compiled_open_unit)
def open_unit(word: int) -> float:
    """Map a word to an odd multiple of 2^-53 in (0, 1): never 0, and never rounded to 1.

    >>> open_unit(2**63) - 0.5 == 2**-53 == open_unit(0)
    True
    """
    return ((word >> 12) + 0.5) * _TWO_TO_MINUS_52


def _compiled_priority() -> Callable[..., Any]:
    from numpy import int64, uint64

    four = uint64(4)

    def priority(word: int) -> Any:
        return int64(uint64(word) >> four)

    return priority


@twin(_compiled_priority)
def priority(word: int) -> int:
    """Map a word to a signed integer in [0, 2^60)."""
    return word >> 4


def _compiled_hashed() -> Callable[..., Any]:
    from numpy import int64, uint64

    half = uint64(32)

    def hashed(number: int, mask: int) -> Any:
        return int64((uint64(number) * _GAMMA) >> half) & mask

    return hashed


@twin(_compiled_hashed)
def hashed(number: int, mask: int) -> int:
    """Spread integers over [0, mask], mask = 2^b - 1, b <= 32 (Fibonacci hashing)."""
    return ((number * _GAMMA) & _MASK) >> 32 & mask


class Cursor(Record):
    """How far a sequence of words has been read."""

    key: Word
    read: int


Stream: TypeAlias = Records[Cursor]  # [cursor]


def stream(memory: Memory) -> Stream:
    """Make a stream; `restart` gives it a key."""
    return memory.records(1, Cursor)


@kernel
def restart(stream: Stream, key: int) -> None:
    """Restart the stream at the beginning of the sequence that belongs to `key`."""
    stream[0].key = key
    stream[0].read = 0


@kernel
def next_word(stream: Stream) -> int:
    """Read the next word."""
    cursor = stream[0]
    cursor.read += 1
    return draw(cursor.key, cursor.read - 1)
