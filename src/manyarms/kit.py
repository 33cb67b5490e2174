"""What a policy of your own is built from: the parts our policies use.

See `examples/own_policy.py` for a policy in one file, and CONTRIBUTING for the rules that
functions on states must keep (no allocation, no exceptions, no Python objects).

Examples
--------
>>> from manyarms.kit import SPARSE, clear_sampler, draw, pick, sampler
>>> arms = sampler(SPARSE, 10**9, draws=3)
>>> len({pick(arms, 0, draw(7, k)) for k in range(3)})
3
"""

from manyarms.core.checks import check_choice, check_int, check_number
from manyarms.core.jit import kernel, rare
from manyarms.core.memory import ARRAYS, SPARSE, Floats, Ints, Memory, Record, Records, Word
from manyarms.core.rng import Stream, below, draw, next_word, restart, stream, unit
from manyarms.core.sampler import Sampler, clear_sampler, pick, sampler
from manyarms.core.tournament import Tournament, clear, enter, leader, rekey, tournament
from manyarms.protocol import (
    Policy,
    arrive,
    ask,
    count_late,
    generation,
    plays,
    reset,
    retire,
    tell,
)
from manyarms.protocol.about import About
from manyarms.protocol.parameters import choice, number, whole
from manyarms.protocol.policy import recommend

__all__ = [
    "ARRAYS",
    "SPARSE",
    "About",
    "Floats",
    "Ints",
    "Memory",
    "Policy",
    "Record",
    "Records",
    "Sampler",
    "Stream",
    "Tournament",
    "Word",
    "arrive",
    "ask",
    "below",
    "check_choice",
    "check_int",
    "check_number",
    "choice",
    "clear",
    "clear_sampler",
    "count_late",
    "draw",
    "enter",
    "generation",
    "kernel",
    "leader",
    "next_word",
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
