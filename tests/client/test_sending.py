"""Requests: addresses, retries, timeouts and errors."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import inspect
import json
import socket
import threading
from collections.abc import Callable, Iterator
from itertools import count, repeat
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.client import AsyncRemote
from manyarms.client.answers import Answer
from manyarms.client.base import Client, NoAnswer
from manyarms.client.calls import Calls
from tests.client.scripted import BUSY, GIVEN, REFUSED, SILENT, STALE, STANDBY, UNKNOWN, Script

pytestmark = pytest.mark.interpreted

A, B, C = "http://a:1", "http://b:2/arms", "https://c:3"


@pytest.mark.parametrize(
    ("outcomes", "places"),
    [
        ([GIVEN], [A]),
        ([REFUSED, GIVEN], [A, B]),
        ([SILENT, GIVEN], [A, B]),
        ([STANDBY, GIVEN], [A, B]),
        ([UNKNOWN, GIVEN], [A, B]),
        ([STALE, GIVEN], [A, A]),
        ([STALE, REFUSED, STANDBY, GIVEN], [A, A, B, C]),
        ([STALE, STALE, GIVEN], [A, A, B]),
        ([BUSY, BUSY, GIVEN], [A, A, A]),
        ([REFUSED, STANDBY, SILENT, REFUSED, GIVEN], [A, B, C, A, B]),
    ],
)
def test_the_next_address_is_tried(outcomes: list[Answer | NoAnswer], places: list[str]) -> None:
    script = Script(outcomes)
    remote = script.remote(A, B, C)
    assert remote.ask() == ma.Pull("red", 4)
    assert [one.to.url for one in script.attempts] == places
    assert len({one.call.headers["Idempotency-Key"] for one in script.attempts}) == 1
    assert remote.url == places[-1], "the client remembers the address that answered"
    script.check_done()
    script.play(GIVEN)
    remote.ask()
    assert [one.to.url for one in script.attempts] == places[-1:]


def test_both_clients_send_the_same() -> None:
    outcomes: list[Answer | NoAnswer] = [STALE, REFUSED, STANDBY, GIVEN]
    one, two = Script(outcomes), Script(outcomes)

    async def ask() -> ma.Pull:
        async with two.async_remote(A, B, timeout=3) as remote:
            return await remote.ask(retry_for=4)

    assert one.remote(A, B, timeout=3).ask(retry_for=4) == asyncio.run(ask())
    for mine, other in zip(one.attempts, two.attempts, strict=True):
        assert (mine.to, mine.timeout, mine.call.path) == (other.to, other.timeout, other.call.path)
        assert (mine.timeout, mine.call.retry_for) == (3, 4)


def test_both_clients_have_the_same_methods() -> None:
    def methods(kind: type) -> dict[str, Any]:
        return {name: one for name, one in vars(kind).items() if not name.startswith("_")}

    here, there = methods(ma.Remote), methods(AsyncRemote)
    assert here.keys() - there.keys() == {
        "create",
        "experiments",
        "n_arms",
        "pulls",
        "to_dataframe",
    }
    assert there.keys() <= here.keys()
    assert all(inspect.iscoroutinefunction(one) for one in there.values())
    for name in here.keys() & there.keys() - {"pending", "close"}:
        parameters = [
            [*inspect.signature(one).parameters.values()][1:] for one in (here[name], there[name])
        ]
        assert parameters[0] == parameters[1], name


def test_there_is_a_pause_after_each_round_only() -> None:
    script = Script([REFUSED, STANDBY, REFUSED, STANDBY, GIVEN])
    script.remote(A, B).ask()
    assert script.waits[0] == script.waits[2] == 0.0
    assert min(script.waits[1], script.waits[3]) >= 1.0, "Retry-After"


# timeout and retry_for

COMMANDS: list[Callable[..., Any]] = [
    lambda x, **limits: x.ask(**limits),
    lambda x, **limits: x.tell(1, 1.0, **limits),
    lambda x, **limits: x.abandon(1, **limits),
    lambda x, **limits: x.observe("a", 1.0, **limits),
    lambda x, **limits: x.sync_arms(["a"], **limits),
    lambda x, **limits: x.add_arms(["a"], **limits),
    lambda x, **limits: x.season(**limits),
    lambda x, **limits: x.change(target=0.5, **limits),
    lambda x, **limits: x.verdict(**limits),
]
PROPERTIES: list[Callable[..., Any]] = [
    lambda x: x.pending,
    lambda x: x.n_arms,
    lambda x: x.pulls,
    lambda x: x.to_dataframe(),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_call_ends_in_time(command: Callable[..., Any]) -> None:
    for settings, limits, timeout, retry_for in (
        ({}, {}, None, 10.0),
        ({"timeout": 2.0, "retry_for": 7.0}, {}, 2.0, 7.0),
        ({"timeout": 2.0, "retry_for": 7.0}, {"timeout": 0.5, "retry_for": 3.0}, 0.5, 3.0),
        ({}, {"timeout": 0.5, "retry_for": None}, 0.5, 10.0),
    ):
        for outcome in (SILENT, REFUSED):
            script = Script(repeat(outcome))
            with pytest.raises(ma.ServiceError, match="did not answer"):
                command(script.remote(**settings), **limits)
            check_time(script, outcome, timeout, retry_for)


def check_time(script: Script, outcome: NoAnswer, timeout: float | None, retry_for: float) -> None:
    """Check how long a call without an answer took."""
    chosen = script.attempts[0].timeout
    assert timeout is None or chosen == timeout
    assert script.now <= retry_for + 2 * chosen
    if outcome is REFUSED:  # it was retried long enough
        assert script.now > retry_for - 2.0
        assert len(script.attempts) > 3


@pytest.mark.parametrize("read", PROPERTIES)
def test_properties_keep_the_clients_timeouts(read: Callable[..., Any]) -> None:
    for settings, timeout, retry_for in (
        ({}, 5.0, 10.0),
        ({"timeout": 2.0, "retry_for": 7.0}, 2.0, 7.0),
    ):
        for outcome in (SILENT, REFUSED):
            script = Script(repeat(outcome))
            with pytest.raises(ma.ServiceError, match="did not answer"):
                read(script.remote(**settings))
            check_time(script, outcome, timeout, retry_for)


def test_the_pending_pulls_of_an_async_client() -> None:
    async def pending(script: Script) -> None:
        await script.async_remote().pending(timeout=0.5, retry_for=3.0)

    for outcome in (SILENT, REFUSED):
        script = Script(repeat(outcome))
        with pytest.raises(ma.ServiceError, match=r"after \d+ attempts") as caught:
            asyncio.run(pending(script))
        check_time(script, outcome, 0.5, 3.0)
        assert "may or may not" not in str(caught.value), "nothing would have changed"


def test_retry_for_zero_makes_one_attempt() -> None:
    for outcome in (SILENT, REFUSED, STANDBY):
        script = Script([outcome])
        with pytest.raises(ma.ServiceError, match=r"did not answer\."):
            script.remote(A, B).tell(1, 1.0, retry_for=0)
    again = Script([STALE, Answer(200, {"results": [{"pull": 1, "applied": True}]})])
    again.remote(retry_for=0).tell(1, 1.0)  # an idle connection was closed; this is not a retry
    again.check_done()


def test_the_next_call_begins_at_another_address() -> None:
    """A frozen process must not keep asks with short timeouts from the present leader."""
    script = Script([SILENT])
    remote = script.remote(A, B, retry_for=0)
    assert remote.ask(fallback="current").is_fallback
    script.play(GIVEN)
    assert not remote.ask(fallback="current").is_fallback
    assert script.attempts[0].to.url == B


def test_timeouts_of_long_calls() -> None:
    script = Script([Answer(200, {"n_arms": 1, "added": 1})] * 2)
    remote = script.remote()
    remote.add_arms(["a"])
    remote.add_arms(3)
    assert [one.timeout for one in script.attempts] == [60.0, 5.0]


def test_wrong_parameters_of_both_clients() -> None:
    async def ask() -> None:
        await Script([]).async_remote().verdict(eps=0.1)  # type: ignore[call-arg]

    with pytest.raises(ma.UnknownNameError, match="parameter of `ask`: 'fallbck'"):
        Script([]).remote().ask(fallbck="red")  # type: ignore[call-overload]
    for attempt in (
        lambda: Script([]).remote().verdict(eps=0.1),  # type: ignore[call-arg]
        lambda: asyncio.run(ask()),
    ):
        with pytest.raises(ma.UnknownNameError, match="Unknown parameter of `verdict`: 'eps'"):
            attempt()


# Failures


def test_errors_name_all_addresses_tried() -> None:
    script = Script([REFUSED, STANDBY, SILENT])
    said = f"At {A}: ConnectionRefusedError. At {B}: a leads. At {C}: TimeoutError. The request may"
    with pytest.raises(ma.ServiceError, match=said) as caught:
        script.remote(A, B, C).ask(retry_for=0.5)
    assert (caught.value.status, caught.value.code) == (0, "unreachable")
    script = Script([REFUSED, STANDBY, STANDBY])
    with pytest.raises(ma.ServiceError, match="after 3 attempts") as caught:
        script.remote(A, B, C).ask(retry_for=0.5)
    assert (caught.value.status, caught.value.code) == (503, "unavailable")
    assert "may or may not" not in str(caught.value), "nothing was"


def test_calls_that_could_count_twice_are_sent_once() -> None:
    for first in (SILENT, UNKNOWN, STALE):
        script = Script([first])
        with pytest.raises(ma.ServiceError, match=f"At {A}: .* The request may or") as caught:
            script.remote(A, B).add_arms(3)
        assert B not in str(caught.value)
    added = Answer(200, {"added": 1, "n_arms": 1})
    for other in (REFUSED, STANDBY):  # the rewards were certainly not added
        script = Script([other, added])
        script.remote(A, B).add_arms(3)
        script.check_done()
    for other in (REFUSED, STANDBY, SILENT, UNKNOWN):  # existing names are skipped
        script = Script([other, added])
        script.remote(A, B).add_arms(["red"])
        script.check_done()


def test_a_repeated_tell_is_refused_unless_the_first_may_have_succeeded() -> None:
    again = Answer(200, {"results": [{"pull": 1, "applied": False}]})
    for first, refused in ((STANDBY, True), (REFUSED, True), (SILENT, False), (UNKNOWN, False)):
        error: Any = pytest.raises(ma.TurnError, match="has already been told")
        with error if refused else contextlib.nullcontext():
            Script([first, again]).remote(A, B).tell(1, 1.0)


def test_refusals_in_an_earlier_batch_are_reported_if_a_later_one_is_lost() -> None:
    fine = [{"pull": k, "applied": True} for k in range(10_000)]
    wrong = [*fine[:3], {"pull": 3, "applied": False, "code": "told", "status": 409}, *fine[4:]]
    rewards = [(k, 1.0) for k in range(20_001)]
    for first, said in (
        (fine, r"did not answer\..* The first 10000 rewards had been told before\."),
        (
            wrong,
            r"did not answer\..* before\. rewards\[3\], of pull 3: .* In total, 1 of 10000",
        ),
    ):
        script = Script([Answer(200, {"results": first}), SILENT])
        with pytest.raises(ma.ServiceError, match=said) as caught:
            script.remote().tell_many(iter(rewards), retry_for=0)
        assert caught.value.code == "unreachable"
    script = Script([Answer(200, {"kept": 10_000}), SILENT])
    with pytest.raises(ma.ServiceError, match=r"The first 10000 of 10001 rewards were recorded\."):
        script.remote().observe("red", [1.0] * 10_001)


def test_answers_of_other_servers_are_recognized() -> None:
    for status, body, said in (
        *((200, body, "not a manyarms service") for body in (b"<html>", b"[]", b"{}")),
        (200, b'{"pulls": 3}', "not a manyarms service"),
        (502, b"[]", "HTTP 502"),
        (401, b"no", "HTTP 401"),
    ):
        script = Script([Answer.of(status, body, "soon")])
        with pytest.raises(ma.ServiceError, match=said):
            script.remote().ask(retry_for=0)


def test_numpy_numbers_are_sent() -> None:
    body = Calls("shop").send("PUT", "", {"n_arms": np.int64(2**60 + 1), "share": np.float32(0.5)})
    assert json.loads(body.body or b"") == {"n_arms": 2**60 + 1, "share": 0.5}
    assert b"." not in (body.body or b"").partition(b"share")[0]


def test_invalid_addresses_are_refused() -> None:
    for url in ([], [A, "b:2"], f"{A},{B}", 3, [A, None], "127.0.0.1:8765"):
        with pytest.raises(ma.ParameterError, match="`url` must be .* or a list of addresses"):
            ma.Remote(url, "x")  # type: ignore[arg-type]
    assert repr(ma.Remote([A, B], "x")) == f"<Remote 'x' at {A}, {B}>"
    assert [one.prefix for one in ma.Remote([A, B], "x")._addresses] == ["", "/arms"]


def test_an_address_without_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = count()  # every look at the clock advances it by a second
    monkeypatch.setattr(Client, "_clock", staticmethod(lambda: float(next(moments))))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = f"http://127.0.0.1:{taken.getsockname()[1]}"
    said = rf"At {closed}: .*Refused.* At {closed}/b: .*Refused"
    with pytest.raises(ma.ServiceError, match=said):
        ma.Remote([closed, f"{closed}/b"], "x", retry_for=2.5).ask()

    async def ask() -> None:
        async with AsyncRemote([closed, f"{closed}/b"], "x", retry_for=2.5) as remote:
            await remote.ask()

    with pytest.raises(ma.ServiceError, match=f"At {closed}: .* At {closed}/b: .*Connect"):
        asyncio.run(ask())


# A proxy that limits bodies


@contextlib.contextmanager
def proxy() -> Iterator[str]:
    """Run a proxy that answers like nginx to bodies above its limit."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            page = b"<html><h1>413 Request Entity Too Large</h1></html>"
            self.send_response(413)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *arguments: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_large_body_refused_by_a_proxy() -> None:
    names = [f"picture {k}" for k in range(50_000)]

    async def sync(url: str) -> None:
        async with AsyncRemote(url, "x") as remote:
            await remote.sync_arms(names)

    def sync_here(url: str) -> None:
        with ma.Remote(url, "x") as remote:
            remote.sync_arms(names)

    with proxy() as url:
        for attempt in (sync_here, lambda url: asyncio.run(sync(url))):
            with pytest.raises(ma.ServiceError, match="proxy.*client_max_body_size") as caught:
                attempt(url)
            assert (caught.value.status, caught.value.code) == (413, "proxy_limit")
    own = {"code": "too_large", "message": "A body may have 2000000 bytes.", "status": 413}
    with pytest.raises(ma.ParameterError, match="may have 2000000 bytes"):  # the service's error
        Script([Answer(413, own)]).remote().sync_arms(names)
