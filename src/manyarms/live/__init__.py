"""The handle that users hold, and the stores that keep it."""

from manyarms.live.estimates import ArmEstimate, Progress
from manyarms.live.game import Pull
from manyarms.live.handle import Live
from manyarms.live.history import GameHistory, Happening
from manyarms.live.in_memory import InMemory
from manyarms.live.journal import Journal
from manyarms.live.opening import recorded
from manyarms.live.store import Contents, Event, Events, Store
from manyarms.live.verdict import StopVerdict

__all__ = [
    "ArmEstimate",
    "Contents",
    "Event",
    "Events",
    "GameHistory",
    "Happening",
    "InMemory",
    "Journal",
    "Live",
    "Progress",
    "Pull",
    "StopVerdict",
    "Store",
    "recorded",
]
