"""The handle of an experiment, and its parts.

The modules of a call, from the user to the disk:

    handle               `Live`: the public methods
    recorder             runs one call at a time, and commits its events before it returns
    calls, arm_calls     the rules of each call: a check that may refuse, then a change
    experiment           `Experiment`: makes events, and applies them to its parts
    ledger, counts       `Ledger`: what happened; it knows no policy
    search               `Search`: one season's policy, and which arm a fresh seat gets
    turns                which pulls are the control's
    answers              passes the ledger and the settings to `inference`
    settings             what is fixed when an experiment begins
    arms                 names of arms, and the numbers by which a policy knows them

From the disk back: `opening` begins, continues and saves experiments; `snapshots` converts them to
bytes and back (in the format of `packing`); `replaying` checks the events of a log and applies
them. `html` shows an experiment in a notebook.
"""

from manyarms.live.handle import Live, load
from manyarms.live.pulls import Pull
from manyarms.live.synced import SyncedArms

__all__ = ["Live", "Pull", "SyncedArms", "load"]
