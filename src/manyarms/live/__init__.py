"""The handle that users hold, and the stores that keep it.

What a call does, from the user down to the disk:

    handle      `Live`: what users hold
    recorder    one command at a time, all or nothing; its events go to the store
    commands    the rules of a turn: a check that may refuse, then a change
    game        `LiveGame`: everything that is known, and what each event changes
    store       the seam: events, snapshots, and what "kept" means
      journal, in_memory, databases     the stores: a file, a list, SQLite and PostgreSQL
        journal_file, compaction        a journal's layout, and how it becomes short again

Back from the disk: `opening` begins a game in a store or goes on with one, `saving` has snapshots
as bytes, `replay` plays events again, `history` lists them. `columns` hands a game to `inference`
as numbers, and `html` draws it. The game's own parts: `arms`, `season`, `syncing`, `control`.
"""

from manyarms.live.game import Pull
from manyarms.live.handle import Live
from manyarms.live.history import GameHistory, Happening
from manyarms.live.in_memory import InMemory
from manyarms.live.journal import Journal
from manyarms.live.opening import recorded
from manyarms.live.store import Contents, Event, EventKind, Events, Store
from manyarms.live.syncing import SyncedArms

__all__ = [
    "Contents",
    "Event",
    "EventKind",
    "Events",
    "GameHistory",
    "Happening",
    "InMemory",
    "Journal",
    "Live",
    "Pull",
    "Store",
    "SyncedArms",
    "recorded",
]
