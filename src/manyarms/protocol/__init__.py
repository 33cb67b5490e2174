"""What a policy is: its functions, its name in the registry, its keys, its state as plain data."""

from manyarms.protocol.about import About
from manyarms.protocol.parameters import (
    Count,
    Flag,
    Number,
    Positive,
    Probability,
    Share,
    choice,
    number,
    whole,
)
from manyarms.protocol.policy import (
    Policy,
    arrive,
    ask,
    count_late,
    delegates,
    generation,
    reset,
    retire,
    tell,
)
from manyarms.protocol.registry import described, policy, policy_names, register

__all__ = [
    "About",
    "Count",
    "Flag",
    "Number",
    "Policy",
    "Positive",
    "Probability",
    "Share",
    "arrive",
    "ask",
    "choice",
    "count_late",
    "delegates",
    "described",
    "generation",
    "number",
    "policy",
    "policy_names",
    "register",
    "reset",
    "retire",
    "tell",
    "whole",
]
