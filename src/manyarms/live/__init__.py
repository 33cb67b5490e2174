"""The handle of an experiment, and its parts.

The modules of a call, from the user to the disk:

    handle        `Live`: the public methods
    recorder      runs one call at a time, and commits its events before it returns
    calls         the rules of each call: a check that may refuse, then a change
    experiment    `Experiment`: a deterministic state machine over events
    counts        its records of pending pulls, of arms and of the control
    settings      what is fixed when an experiment begins
    arms          names of arms, and the numbers by which a policy knows them

From the disk back: `opening` begins, continues and saves experiments; `snapshots` converts them to
bytes and back (in the format of `packing`); `replaying` applies a log. `facts` passes an experiment
to `inference`, and `html` shows it in a notebook.
"""

from manyarms.live.handle import Live, load
from manyarms.live.pulls import Pull
from manyarms.live.synced import SyncedArms

__all__ = ["Live", "Pull", "SyncedArms", "load"]
