"""A process that writes to a store, for tests that kill or freeze it.

`python -m tests.store.writer commit ADDRESS` creates or continues the experiment "shop" and prints
each event that is committed. `lead ADDRESS SILENCE` leads, and prints whether each commit succeeds;
after the first one, PostgreSQL ends its session if it is silent for SILENCE seconds.
"""

from __future__ import annotations

import sys
import time

from manyarms.errors import StoreError
from manyarms.store import Append, Event, open_store, postgres


def _commit(address: str) -> None:
    store = open_store(address, wait=60)
    shop = store.find("shop") or store.create("shop", {})
    seq = store.last_seq(shop.id)
    while True:
        size = 1 + seq % 3
        events = [Event(seq + 1 + k, 0.5, "asked", seq + k, 0) for k in range(size)]
        names = [(seq, f"arm {seq}")] if seq % 5 == 0 else []
        store.commit([Append(shop.id, seq, events, names)])
        seq += size
        if seq % 7 == 0:
            store.save_snapshot(shop.id, seq, "1", b"state %d" % seq * 1000)
        print(seq, flush=True)  # noqa: T201


def _lead(address: str, silence: str) -> None:
    postgres.SILENCE = 600.0
    store = open_store(address, wait=60)
    assert store.lead()
    shop = store.create("shop", {})
    seq = 0
    while True:
        try:
            store.commit([Append(shop.id, seq, [Event(seq + 1, 0.5, "asked", seq, 0)])])
        except StoreError:
            print("lost", flush=True)  # noqa: T201
            return
        seq += 1
        if seq == 1 and address.startswith("postgres"):
            with store.writing() as link:
                link.run(f"SET idle_session_timeout = {1000 * float(silence):.0f}")
        print(seq, flush=True)  # noqa: T201
        time.sleep(0.01)


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    _commit(*words) if command == "commit" else _lead(*words)
