"""A process that forks while four of its threads ask and tell."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import manyarms as ma

__all__ = ["what_forks_say"]

_FORK = """
import os, sys, threading, time
import manyarms as ma
count = int(sys.argv[1])
live = ma.MOSS().live(n_arms=9, horizon=10**7, store=sys.argv[2] if len(sys.argv) > 2 else None)
read, write = os.pipe()
stop = threading.Event()
def busy():
    while not stop.is_set():
        live.tell(live.ask(), 1.0)
threads = [threading.Thread(target=busy) for _ in range(4)]
for thread in threads: thread.start()
for _ in range(count):
    time.sleep(0.002)
    if os.fork() == 0:
        said = ""
        for call in (live.ask, live.progress):
            try:
                call()
            except (ma.StoreError, ma.TurnError) as error:
                said += str(error)
        live.close()
        os.write(write, (said or "went on").encode() + b"\\n")
        time.sleep(300)
        os._exit(0)
stop.set()
for thread in threads: thread.join()
with os.fdopen(read) as lines:
    for _ in range(count): print(next(lines), end="", flush=True)
live.close()
"""


def what_forks_say(count: int, path: Path | None = None, *, seconds: float = 120.0) -> list[str]:
    """Return, for each fork that did not hang, the messages that it got when it used the handle.

    With a path the handle is recorded there, and the store must be free after its process has
    ended, although the forks still run.
    """
    parent = subprocess.Popen(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            _FORK,
            str(count),
            *([] if path is None else [path]),
        ],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    alarm = threading.Timer(seconds, os.killpg, (parent.pid, signal.SIGKILL))
    alarm.start()
    try:
        said = [line for line in (parent.stdout.readline() for _ in range(count)) if line]
        if path is not None and len(said) == count:
            parent.wait()
            ma.load(path).close()
    finally:
        alarm.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
        parent.stdout.close()
    return said
