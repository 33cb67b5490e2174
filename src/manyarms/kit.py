"""The building blocks of the built-in policies, for policies of your own.

A simple policy needs four of them: `Ints`, `Floats`, `Memory` and `plays`. See
`examples/own_policy.py`, and docs/own_policy.md for what compiled functions may do.

Examples
--------
>>> from manyarms.kit import SPARSE, clear_sampler, draw, pick, sampler
>>> arms = sampler(SPARSE, 10**9, draws=3)
>>> len({pick(arms, 0, draw(7, k)) for k in range(3)})
3
"""

from manyarms.core.jit import kernel, rare
from manyarms.core.memory import ARRAYS, SPARSE, Floats, Ints, Memory, Record, Records, Word
from manyarms.core.rng import Stream, below, draw, next_word, restart, stream, unit
from manyarms.core.sampler import Sampler, clear_sampler, pick, sampler
from manyarms.core.tournament import Tournament, clear, enter, leader, rekey, tournament
from manyarms.core.variates import normal
from manyarms.protocol import (
    Policy,
    arrive,
    ask,
    count_late,
    credit_known,
    generation,
    plays,
    reset,
    retire,
    tell,
)
from manyarms.protocol.parameters import Count, Positive, Probability, choice, number, whole
from manyarms.protocol.policy import recommend

__all__ = [
    "ARRAYS",
    "SPARSE",
    "Count",
    "Floats",
    "Ints",
    "Memory",
    "Policy",
    "Positive",
    "Probability",
    "Record",
    "Records",
    "Sampler",
    "Stream",
    "Tournament",
    "Word",
    "arrive",
    "ask",
    "below",
    "choice",
    "clear",
    "clear_sampler",
    "count_late",
    "credit_known",
    "draw",
    "enter",
    "generation",
    "kernel",
    "leader",
    "next_word",
    "normal",
    "number",
    "pick",
    "plays",
    "rare",
    "recommend",
    "rekey",
    "reset",
    "restart",
    "retire",
    "sampler",
    "stream",
    "tell",
    "tournament",
    "unit",
    "whole",
]
