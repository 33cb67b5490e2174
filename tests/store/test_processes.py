"""Several processes on one store: kills, leaders, standbys and forks."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from manyarms.errors import StoreError
from manyarms.store import Append, Event, EventStore, check, open_store
from tests.store.conftest import Opener

pytestmark = pytest.mark.patient


@contextlib.contextmanager
def writer(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Start a writer in a new process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store.writer", *words], stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def read(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def read_rest(process: subprocess.Popen[str]) -> list[str]:
    """Return the remaining lines of a process."""
    assert process.stdout is not None
    return process.stdout.read().split()


def wait(true: Callable[[], object], seconds: float = 120) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def appended(store: EventStore, experiment: int) -> None:
    """Commit one more event."""
    last = store.last_seq(experiment)
    store.commit([Append(experiment, last, [Event(last + 1, 0.5, "asked", last, 0)])])


def test_a_kill_loses_no_acknowledged_event(address: str) -> None:
    acknowledged = 0
    for lines in (1, 2, 3, 5, 8, 13):
        with writer("commit", address) as process:
            for _ in range(lines):
                last = int(read(process))
                assert last > acknowledged
                acknowledged = last
            process.kill()
            acknowledged = max([acknowledged, *map(int, read_rest(process))])
        with open_store(address) as store:
            (found,) = check(store)
            assert not found.trouble
            assert found.events >= acknowledged
            shop = store.find("shop")
            assert shop is not None
            for number, name in store.arm_names(shop.id).items():
                assert name == f"arm {number}"
            for snapshot in store.snapshots(shop.id):
                assert snapshot.data == b"state %d" % snapshot.seq * 1000


def test_one_process_leads(store: EventStore, opened: Opener) -> None:
    other = opened()
    assert other.leader() == ""
    assert store.lead()
    assert store.lead()
    assert not other.lead()
    assert str(os.getpid()) in other.leader()
    shop = store.create("shop", {}).id
    appended(store, shop)
    store.beat()
    with pytest.raises(StoreError, match="does not lead on .*Call lead"):
        other.beat()
    store.resign()
    assert other.lead()
    assert not store.lead()
    appended(other, shop)
    other.close()
    assert store.lead()
    appended(store, shop)
    assert store.last_seq(shop) == 3


def test_a_standby_leads_when_the_leader_was_killed(store: EventStore, address: str) -> None:
    with writer("lead", address, "60") as leader:
        assert read(leader) == "1"
        assert not store.lead()
        leader.kill()
        rest = read_rest(leader)
        wait(store.lead)
    shop = store.find("shop")
    assert shop is not None
    assert store.last_seq(shop.id) >= max([1, *map(int, rest)])
    appended(store, shop.id)


def test_a_frozen_leader_is_replaced(address: str) -> None:
    """On SQLite the lock of a running process cannot be taken."""
    if address.startswith("sqlite"):
        pytest.skip("a file's lock belongs to its process until the process ends")
    with open_store(address) as store, writer("lead", address, "1") as leader:
        assert read(leader) == "1"
        leader.send_signal(signal.SIGSTOP)
        wait(store.lead)
        shop = store.find("shop")
        assert shop is not None
        before = store.last_seq(shop.id)
        leader.send_signal(signal.SIGCONT)
        rest = read_rest(leader)
        assert rest[-1] == "lost"
        assert store.last_seq(shop.id) == before
        assert max([1, *map(int, rest[:-1])]) <= before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_is_refused(store: EventStore) -> None:
    shop = store.create("shop", {}).id
    end, begin = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"nothing was raised"
        try:
            appended(store, shop)
        except StoreError as error:
            said = str(error).encode()
        finally:
            os.write(begin, said)
            os._exit(0)
    os.waitpid(child, 0)
    os.close(begin)
    assert b"was opened by process" in os.read(end, 1000)
    os.close(end)
    appended(store, shop)
