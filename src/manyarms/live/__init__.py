"""The handle that users hold, and the protocol and registry of policies."""

from manyarms.live.handle import Live
from manyarms.live.journal import Journal
from manyarms.live.protocol import Policy, arrive, ask, defer, era, reset, retire, tell
from manyarms.live.pull import Pull
from manyarms.live.registry import policy, policy_names, register
from manyarms.live.views import ArmEstimate, Progress

__all__ = [
    "ArmEstimate",
    "Journal",
    "Live",
    "Policy",
    "Progress",
    "Pull",
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
