"""The handle that users hold, and its journal."""

from manyarms.live.handle import Live
from manyarms.live.journal import Journal
from manyarms.live.pull import Pull
from manyarms.live.views import ArmEstimate, Progress

__all__ = ["ArmEstimate", "Journal", "Live", "Progress", "Pull"]
