"""What a policy is: its functions, its name in the registry, its keys, its state as columns."""

from manyarms.protocol.about import About
from manyarms.protocol.plain_classes import plain_policy
from manyarms.protocol.policy import (
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
from manyarms.protocol.registry import described, policy, policy_names, register

__all__ = [
    "About",
    "Policy",
    "arrive",
    "ask",
    "count_late",
    "described",
    "generation",
    "plain_policy",
    "plays",
    "policy",
    "policy_names",
    "register",
    "reset",
    "retire",
    "tell",
]
