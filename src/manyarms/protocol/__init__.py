"""What a policy is: its functions, its name in the registry, its keys, its state as plain data."""

from manyarms.protocol.policy import Policy, arrive, ask, defer, era, reset, retire, tell
from manyarms.protocol.registry import policy, policy_names, register

__all__ = [
    "Policy",
    "arrive",
    "ask",
    "defer",
    "era",
    "policy",
    "policy_names",
    "register",
    "reset",
    "retire",
    "tell",
]
