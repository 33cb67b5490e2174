"""The handle that users hold, and what it is made of.

What a call does, from the user down to the disk:

    handle        `Live`: a lock, an experiment and perhaps a store
    recorder      one call at a time, all or nothing; its events are committed before it returns
    calls         the rules of a call: a check that may refuse, then a change
    experiment    `Experiment`: a deterministic state machine over events
    counts        what it keeps of pending pulls, of arms and of the control
    settings      what is fixed when an experiment begins
    arms          names of arms, and the numbers by which a policy knows them

And back from the disk: `opening` begins, continues and saves experiments; `snapshots` turns one
into bytes (`packing` has their format); `replaying` applies a log. `facts` hands an experiment to
`inference`, and `html` draws it.
"""

from manyarms.live.handle import Live, load
from manyarms.live.pulls import Pull
from manyarms.live.synced import SyncedArms

__all__ = ["Live", "Pull", "SyncedArms", "load"]
