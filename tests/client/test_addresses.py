"""A client of several addresses: one process leads, and another one when that has gone."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import socket
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.client.answers import Answer
from manyarms.client.calls import Call, Plan
from manyarms.client.client import Addresses, Lost, Run
from tests.client.same import plain, play
from tests.serve.machines import TOKEN, Node, new_name, shared_postgres, wait

pytestmark = pytest.mark.interpreted

A, B, C = "http://a:1", "http://b:2/arms", "https://c:3"
REFUSED = Lost("ConnectionRefusedError", sent=False)
SILENT = Lost("TimeoutError", sent=True)
STALE = Lost("RemoteDisconnected", sent=True, stale=True)
STANDBY = Answer(503, {"code": "unavailable", "message": "a leads.", "retry_after": "1"})
UNKNOWN = Answer(503, {"code": "unknown"})
BUSY = Answer(429, {"retry_after": "3"})
GIVEN = Answer(200, {"pulls": [{"pull": 4, "arm": "red"}]})


def carry_out(run: Run[Any], came: Iterable[Answer | Lost]) -> tuple[list[int], list[Call]]:
    """Answer the requests of a run; return where they were sent, and what."""
    answers, places, calls = iter(came), [], []
    for step in run:
        if isinstance(step, Call):
            places.append(run.at)
            calls.append(step)
            run.came = next(answers)
    assert next(answers, None) is None, "not all was sent"
    return places, calls


def remote(*urls: str) -> ma.Remote:
    return ma.Remote(urls, "x", token="t")


def run_of(game: ma.Remote, plan: Plan[Any], patience: float = 60.0) -> Run[Any]:
    return Run(plan, game._addresses, patience)


# What is sent where


@pytest.mark.parametrize(
    ("came", "places"),
    [
        ([GIVEN], [0]),
        ([REFUSED, GIVEN], [0, 1]),
        ([SILENT, GIVEN], [0, 1]),
        ([STANDBY, GIVEN], [0, 1]),
        ([UNKNOWN, GIVEN], [0, 1]),
        ([STALE, GIVEN], [0, 0]),
        ([STALE, REFUSED, STANDBY, GIVEN], [0, 0, 1, 2]),
        ([STALE, STALE, GIVEN], [0, 0, 1]),
        ([BUSY, BUSY, GIVEN], [0, 0, 0]),
        ([REFUSED, STANDBY, SILENT, REFUSED, GIVEN], [0, 1, 2, 0, 1]),
    ],
)
def test_the_next_address_is_tried(came: list[Answer | Lost], places: list[int]) -> None:
    game = remote(A, B, C)
    run = run_of(game, game._calls.ask(None))
    sent, calls = carry_out(run, came)
    assert sent == places
    assert run.result == ma.Pull("red", 4)
    assert len({call.headers["Idempotency-Key"] for call in calls}) == 1
    assert game.url == (A, B, C)[places[-1]], "it remembers the one that answered"
    assert carry_out(run_of(game, game._calls.ask(None)), [GIVEN])[0] == places[-1:]


def test_there_is_a_pause_after_each_round_only() -> None:
    game = remote(A, B)
    run, pauses = run_of(game, game._calls.ask(None)), []
    answers = iter((REFUSED, STANDBY, REFUSED, STANDBY, GIVEN))
    for step in run:
        if isinstance(step, Call):
            run.came = next(answers)
        else:
            pauses.append(step)
    assert pauses[0] == pauses[2] == 0.0
    assert min(pauses[1], pauses[3]) >= 1.0, "as the service has asked for"


def test_errors_name_all_addresses_tried() -> None:
    game = remote(A, B, C)
    run = run_of(game, game._calls.ask(None), 0.5)
    said = f"At {A}: ConnectionRefusedError. At {B}: a leads. At {C}: TimeoutError. It may have"
    with pytest.raises(ma.ServiceError, match=said) as caught:
        carry_out(run, [REFUSED, STANDBY, SILENT] * 99)
    assert (caught.value.status, caught.value.code) == (0, "unreachable")
    assert game.url == A
    run = run_of(game, game._calls.ask(None), 0.5)
    with pytest.raises(ma.ServiceError, match="after 3 attempts") as caught:
        carry_out(run, [REFUSED, STANDBY, STANDBY])
    assert (caught.value.status, caught.value.code) == (503, "unavailable")
    assert "may have been done" not in str(caught.value), "nothing was"
    for first in (SILENT, UNKNOWN):  # it might be added twice
        with pytest.raises(ma.ServiceError, match=f"At {A}: .* It may have been done") as caught:
            carry_out(run_of(game, game._calls.add_arms(3)), [first])
        assert B not in str(caught.value)
    added = Answer(200, {"added": 1, "n_arms": 1})
    for other in (REFUSED, STANDBY):  # it was certainly not added
        game = remote(A, B)
        assert carry_out(run_of(game, game._calls.add_arms(3)), [other, added])[0] == [0, 1]
    for other in (REFUSED, STANDBY, SILENT, UNKNOWN):  # names that are there are skipped
        game = remote(A, B)
        assert carry_out(run_of(game, game._calls.add_arms(["red"])), [other, added])[0] == [0, 1]


def test_addresses_that_are_none() -> None:
    for url in ([], [A, "b:2"], f"{A},{B}", 3, [A, None]):
        with pytest.raises(ma.ParameterError, match="`url` must be .* or a list of addresses"):
            ma.Remote(url, "x")  # type: ignore[arg-type]
    assert repr(remote(A, B)) == f"<Remote 'x' at {A}, {B}>"
    assert [one.prefix for one in Addresses([A, B]).all] == ["", "/arms"]


def test_what_a_standby_did_not_do_was_not_done_before() -> None:
    """A tell that comes again is refused, unless it may be ours."""
    again = Answer(200, {"results": [{"pull": 1, "applied": False}]})
    for first, refused in ((STANDBY, True), (REFUSED, True), (SILENT, False), (UNKNOWN, False)):
        game = remote(A, B)
        run = run_of(game, game._calls.tell(1, 1.0, "refuse"))
        error: Any = pytest.raises(ma.TurnError, match="was told already")
        with error if refused else contextlib.nullcontext():
            carry_out(run, [first, again])


def test_refusals_of_an_earlier_piece_are_said_if_a_later_one_is_lost() -> None:
    game = remote(A)
    fine = [{"pull": k, "applied": True} for k in range(10_000)]
    wrong = [*fine[:3], {"pull": 3, "applied": False, "code": "told", "status": 409}, *fine[4:]]
    rewards = [(k, 1.0) for k in range(20_001)]
    for first, said in (
        (fine, r"did not answer\..* The first 10000 rewards were told before\."),
        (wrong, r"did not answer\..* before\. rewards\[3\], of pull 3: .* So 1 of 10000 were"),
    ):
        run = run_of(game, game._calls.tell_many(iter(rewards), "refuse"), 0)
        with pytest.raises(ma.ServiceError, match=said) as caught:
            carry_out(run, [Answer(200, {"results": first}), SILENT])
        assert caught.value.code == "unreachable"
    run = run_of(game, game._calls.observe("red", [1.0] * 10_001), 0)
    with pytest.raises(ma.ServiceError, match=r"The first 10000 of 10001 rewards were kept\."):
        carry_out(run, [Answer(200, {"kept": 10_000}), SILENT])


# Two processes


@contextlib.contextmanager
def two(store: str) -> Iterator[list[Node]]:
    """A leader and a standby, both ended in any case."""
    both = [Node(store), Node(store)]
    try:
        both[0].start()
        both[1].start(wait=False).wait_for("/healthz")
        yield both
    finally:
        for one in both:
            with contextlib.suppress(ProcessLookupError, AssertionError):
                one.signal(signal.SIGCONT)
            one.kill()


def urls_of(nodes: Iterable[Node]) -> list[str]:
    return [f"http://{one.address}" for one in nodes]


class Fate:
    """What befalls whoever leads, while requests are on their way."""

    def __init__(self, nodes: list[Node], events: dict[int, str]) -> None:
        self._leader, self._other = nodes
        self._events = events
        self._thread = threading.Thread()

    def __call__(self, turn: int) -> None:
        if turn in self._events:
            self.wait()
            self._thread = threading.Thread(target=self._befall, args=(self._events[turn],))
            self._thread.start()

    def wait(self) -> None:
        if self._thread.ident is not None:
            self._thread.join()

    def _befall(self, what: str) -> None:
        threading.Event().wait(random.uniform(0.0, 0.01))
        if what == "freeze":
            self._leader.signal(signal.SIGSTOP)
            self._other.wait()
            self._leader.signal(signal.SIGCONT)
        else:
            {"kill": self._leader.kill, "stop": self._leader.stop}[what]()
            self._other.wait()
            self._leader.start(wait=False).wait_for("/healthz")
        self._leader, self._other = self._other, self._leader


def compare(store: str, events: dict[int, str], **settings: Any) -> None:
    """Play while a leader goes, and compare with a handle."""
    policy, spec = ma.MOSSPlusPlus(beta=0.6), {"n_arms": 300, "horizon": 500, "seed": 5}
    live = policy.live(**spec)  # type: ignore[arg-type]
    with two(store) as nodes:
        urls = urls_of(reversed(nodes))  # the one that stands by comes first
        made = ma.Remote.create(urls, new_name(), policy, token=TOKEN, **spec)  # type: ignore[arg-type]
        assert made.url == urls[1]
        assert any(
            one["name"] == made.experiment for one in ma.Remote.experiments(urls, token=TOKEN)
        )
        fate = Fate(nodes, events)
        with ma.Remote(urls, made.experiment, token=TOKEN, **settings) as game:
            assert play(game, 1, before=fate) == play(live, 1)
            fate.wait()
            assert game.progress() == live.progress()
            assert plain(game.top(5)) == plain(live.top(5))


@pytest.mark.patient
def test_the_game_is_the_live_game_when_leaders_go(tmp_path: Path) -> None:
    compare(f"sqlite:///{tmp_path}/serve.db?sync=never", {15: "kill", 40: "stop"})


@pytest.mark.patient
def test_the_game_is_the_live_game_when_a_leader_is_frozen() -> None:
    compare(shared_postgres(), {15: "freeze", 40: "kill"}, timeout=2.0)


@pytest.mark.patient
def test_many_lose_and_double_nothing_when_the_leader_is_killed(tmp_path: Path) -> None:
    with two(f"sqlite:///{tmp_path}/serve.db?sync=never") as nodes:
        urls = urls_of(nodes)
        game = ma.Remote.create(urls, "x", "moss", n_arms=50, token=TOKEN, horizon=9999, seed=1)
        told: list[int] = []  # which the service has acknowledged

        def threads(_: int) -> None:
            for _ in range(25):
                pull = game.ask()
                game.tell(pull, 1.0)
                told.append(pull.id)

        async def task(remote: ma.AsyncRemote) -> None:
            for _ in range(25):
                pulls = await remote.ask(2)
                await remote.tell_many([(pull, 0.0) for pull in pulls])
                told.extend(pull.id for pull in pulls)

        async def tasks() -> None:
            async with ma.AsyncRemote(urls, "x", token=TOKEN) as remote:
                await asyncio.gather(*(task(remote) for _ in range(4)))

        with ThreadPoolExecutor(6) as pool:
            work = [pool.submit(threads, k) for k in range(4)]
            work.append(pool.submit(asyncio.run, tasks()))
            wait(lambda: len(told) > 60)
            assert len(told) < 300, "it is killed in the middle"
            nodes[0].kill()
            for one in work:
                one.result(60)
        assert sorted(told) == list(range(300))
        seen = game.progress()
        assert (seen.pulls, seen.told, seen.pending) == (300, 300, 0)
        assert seen.mean_reward == pytest.approx(1 / 3)
        assert game.url == urls[1]


def test_an_address_where_nobody_is(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(
        ma.ServiceError, match=rf"At {nobody}: .*Refused.* At {nobody}/b: .*Refused"
    ):
        ma.Remote([nobody, f"{nobody}/b"], "x", patience=0.3).ask()

    async def ask() -> None:
        async with ma.AsyncRemote([nobody, f"{nobody}/b"], "x", patience=0.3) as game:
            await game.ask()

    with pytest.raises(ma.ServiceError, match=f"At {nobody}: .* At {nobody}/b: .*Connect"):
        asyncio.run(ask())
