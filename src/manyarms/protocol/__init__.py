"""The protocol of policies: functions, names, random keys, and states as columns."""

from manyarms.protocol.plain_classes import plain_policy
from manyarms.protocol.policy import (
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
from manyarms.protocol.registry import policy, policy_names, register
from manyarms.protocol.wrapper import Wrapper

__all__ = [
    "Policy",
    "Wrapper",
    "arrive",
    "ask",
    "count_late",
    "credit_known",
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
