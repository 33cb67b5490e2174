"""The handle that users hold, and the protocol and registry of policies."""

from manyarms.live.handle import Live, Pull
from manyarms.live.protocol import Policy, ask, reset, tell
from manyarms.live.registry import policy, policy_names, register

__all__ = ["Live", "Policy", "Pull", "ask", "policy", "policy_names", "register", "reset", "tell"]
