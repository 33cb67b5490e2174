"""Asks with a fallback: the arm if the service gives no pull, and its reward."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.client import AsyncRemote
from manyarms.client.answers import Answer
from manyarms.client.base import NoAnswer
from manyarms.live.pulls import NO_PULL
from tests.client.scripted import BUSY, GIVEN, REFUSED, SILENT, STANDBY, UNKNOWN, Script
from tests.serve.machines import TOKEN, in_thread, new_name

pytestmark = pytest.mark.interpreted

BEST = {
    "arm": "blue", "estimate": 0.5, "low": 0.4, "high": 0.6, "pulls": 9, "told": 9,
    "retired": False, "rate": True,
}  # fmt: skip
STOPPED = Answer(409, {"code": "stopped", "message": "x was stopped.", "recommended": BEST})
FINISHED = Answer(409, {"code": "horizon", "message": "No pulls left.", "recommended": BEST})
PAUSED = Answer(409, {"code": "paused", "message": "x is paused."})
FULL = Answer(409, {"code": "in_flight", "message": "There is no room."})
NO_REPLAY = Answer(503, {"code": "replay", "message": "x cannot be replayed."})
BROKEN = Answer(500, {"code": "failed", "message": "This failed."})
DENIED = Answer(401, {"code": "token", "message": "Unknown token."})
NOT_THERE = Answer(404, {"code": "unknown_experiment", "message": "There is no experiment."})
FOREIGN = Answer(200, {})
ALL = [
    REFUSED, SILENT, STANDBY, UNKNOWN, BUSY, STOPPED, FINISHED, PAUSED, FULL, NO_REPLAY, BROKEN,
    DENIED, NOT_THERE, FOREIGN, *(Answer(status, {}) for status in (301, 400, 413, 422, 502)),
    Answer(400, {"code": "short", "message": "Content-Length is 9, but 3 bytes arrived."}),
]  # fmt: skip
LEADERS = Answer(200, {"arms": [BEST]})


def times(outcome: Answer | NoAnswer) -> list[Answer | NoAnswer]:
    return [outcome] * 100


@pytest.mark.parametrize("outcome", ALL)
def test_the_given_fallback_arm(outcome: Answer | NoAnswer) -> None:
    script = Script(times(outcome))
    remote = script.remote()
    pull = remote.ask(fallback="current")
    assert pull == ma.Pull("current", NO_PULL)
    assert pull.is_fallback
    assert script.now <= 3.0  # seconds, by the defaults
    assert remote.ask(2, fallback=7) == [ma.Pull(7, NO_PULL)] * 2
    for fallback in (None, False):
        with pytest.raises(ma.ManyarmsError):
            remote.ask(fallback=fallback)

    async def ask() -> ma.Pull:
        async with Script(times(outcome)).async_remote() as other:
            return await other.ask(fallback="current")

    assert asyncio.run(ask()) == pull


def test_fewer_pulls_than_requested() -> None:
    """The service gives fewer pulls if it used known rewards; the client asks for the rest."""
    script = Script([GIVEN, GIVEN, GIVEN, PAUSED, Answer(200, {"pulls": []})])
    remote = script.remote()
    red = ma.Pull("red", 4)
    assert remote.ask(2) == [red, red]
    asked = [json.loads(one.call.body or b"") for one in script.attempts]
    assert asked == [{"k": 2}, {"k": 1}]
    keys = {one.call.headers["Idempotency-Key"] for one in script.attempts}
    assert len(keys) == 2, "another request has another key"
    assert remote.ask(3, fallback="current") == [red, *[ma.Pull("current", NO_PULL)] * 2]
    with pytest.raises(ma.ServiceError, match="not a manyarms service"):
        remote.ask(2)
    script.check_done()


@pytest.mark.parametrize(
    ("outcome", "fallback"),
    [*((outcome, None) for outcome in (PAUSED, STOPPED, FINISHED, SILENT, FOREIGN, DENIED)),
     (PAUSED, True), (SILENT, True), (FOREIGN, True)],
)  # fmt: skip
def test_pulls_are_not_lost_if_the_rest_is_refused(
    outcome: Answer | NoAnswer, fallback: bool | None
) -> None:
    script = Script([GIVEN, outcome, outcome, outcome])
    remote = script.remote(retry_for=0)
    assert remote.ask(3, fallback=fallback) == [ma.Pull("red", 4)]
    for k in (3, None):
        with pytest.raises(ma.ManyarmsError):
            remote.ask(k)  # type: ignore[arg-type]  # None is a single pull
    script.check_done()


def test_timeouts_of_an_ask_with_a_fallback() -> None:
    script = Script(times(SILENT))
    remote = script.remote(timeout=4.0)
    remote.ask(timeout=0.2, retry_for=0.0, fallback="current")
    assert script.now == 0.2
    script.play(*times(SILENT))
    remote.ask(fallback="current")
    assert {one.timeout for one in script.attempts} == {4.0}, "the user's setting"


@pytest.mark.parametrize("outcome", [STOPPED, FINISHED])
def test_the_fallback_of_a_stopped_experiment(outcome: Answer) -> None:
    remote = Script([outcome] * 3).remote()
    assert remote.ask(fallback=True) == ma.Pull("blue", NO_PULL)
    assert remote.ask(fallback="current") == ma.Pull("current", NO_PULL)
    with pytest.raises(ma.StoppedError) as caught:
        remote.ask()
    assert caught.value.recommended.arm == "blue"


@pytest.mark.parametrize("outcome", ALL)
def test_the_fallback_is_the_recommended_arm(outcome: Answer | NoAnswer) -> None:
    script = Script([GIVEN, LEADERS, GIVEN])
    remote = script.remote()
    assert remote.ask(fallback=True) == ma.Pull("red", 4)
    assert remote.ask(fallback=True) == ma.Pull("red", 4)  # within a minute: one request
    script.play(*times(outcome))
    assert remote.ask(fallback=True) == ma.Pull("blue", NO_PULL)


def test_the_recommended_arm_is_requested_once_a_minute() -> None:
    script = Script([GIVEN, BROKEN, GIVEN, GIVEN, LEADERS, GIVEN])
    remote = script.remote()
    for wait in (0.0, 59.0, 2.0, 0.0):
        script.now += wait
        assert not remote.ask(fallback=True).is_fallback  # also if that request fails
    paths = [one.call.path.rpartition("/")[2] for one in script.attempts]
    assert paths == ["asks", "leaders?k=1", "asks", "asks", "leaders?k=1", "asks"]


@pytest.mark.parametrize("outcome", [SILENT, REFUSED, FOREIGN, BROKEN])
def test_an_answered_ask_does_not_wait_for_the_recommended_arm(outcome: Answer | NoAnswer) -> None:
    script = Script([GIVEN, *times(outcome)])
    assert script.remote().ask(fallback=True) == ma.Pull("red", 4)
    assert script.now <= 3.0  # seconds, by the defaults


def test_without_a_known_arm_the_error_is_raised() -> None:
    with pytest.raises(ma.TurnError, match="paused"):
        Script([PAUSED]).remote().ask(fallback=True)
    unknown = Answer(409, STOPPED.body | {"recommended": None})
    with pytest.raises(ma.StoppedError):
        Script([unknown]).remote().ask(fallback=True)
    script = Script([LEADERS, PAUSED])
    remote = script.remote()
    remote.recommend()
    assert remote.ask(fallback=True).arm == "blue"


def test_the_reward_of_a_fallback_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    script = Script([PAUSED, PAUSED, GIVEN, PAUSED])
    remote = script.remote()
    pull = remote.ask(fallback="current")
    remote.ask(fallback="current")
    assert [one.getMessage() for one in caplog.records] == [
        "Asks now return the fallback, arm 'current', because the service returned no pull: "
        "x is paused."
    ]
    assert caplog.records[0].name == "manyarms.client"
    assert caplog.records[0].levelno == logging.WARNING
    assert remote.ask(fallback="current").arm == "red"
    remote.ask(fallback="current")
    assert len(caplog.records) == 2, "another outage is logged again"
    caplog.clear()
    remote.tell(pull, 1.0)
    remote.tell(pull.id, 1.0)  # a web page may keep only the id
    remote.tell_many([(pull, 1.0), (pull.id, 1.0)])
    remote.abandon(pull)
    remote.abandon(pull.id)
    assert len(script.attempts) == 4, "nothing was sent"
    assert len(caplog.records) == 1, "it is logged once"
    assert "This has no effect" in caplog.records[0].getMessage()
    with pytest.raises(ma.ParameterError, match="`pull` must be"):
        remote.tell(-2, 1.0)
    with pytest.raises(ma.ParameterError, match="reward"):
        remote.tell(pull, "much")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fallback": 1.5}, "`fallback` must be"),
        ({"fallback": "current", "timeout": 0}, "`timeout` must be"),
        ({"fallback": "current", "k": 0}, "`k` must be"),
    ],
)
def test_wrong_calls_raise(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ma.ParameterError, match=said):
        Script([]).remote().ask(**given)
    refused = Answer(422, {"code": "key_reused", "message": "Use a new key."})
    with pytest.raises(ma.ParameterError, match="Use a new key"):
        Script([refused]).remote().ask(fallback="current")


def test_the_states_of_a_real_experiment(tmp_path: Path) -> None:
    with in_thread(f"sqlite:///{tmp_path}/serve.db") as one:
        url, name = f"http://127.0.0.1:{one.port}", new_name()
        admin = ma.Remote.create(url, name, "moss", token=TOKEN, arms=["a", "b"], horizon=99)
        for pull in admin.ask(20):
            admin.tell(pull, float(pull.arm == "b"))
        with ma.Remote(url, name, token=TOKEN, timeout=20) as fresh:
            admin.pause()
            assert fresh.ask(fallback="current") == ma.Pull("current", NO_PULL)
            with pytest.raises(ma.TurnError, match="paused"):
                fresh.ask(fallback=True)  # it knows no arm yet
            admin.resume()
            assert not fresh.ask(fallback=True).is_fallback
            admin.pause()
            assert fresh.ask(fallback=True) == ma.Pull("b", NO_PULL)
            admin.resume()
        with ma.Remote(url, name, token=TOKEN, timeout=20) as fresh:
            admin.ask(78)
            assert fresh.ask(fallback=True) == ma.Pull("b", NO_PULL)  # finished
        with ma.Remote(url, name, token=TOKEN, timeout=20) as fresh:
            admin.stop()
            assert fresh.ask(fallback=True) == ma.Pull("b", NO_PULL)

        async def ask() -> ma.Pull:
            async with AsyncRemote(url, name, token=TOKEN, timeout=20) as remote:
                return await remote.ask(fallback=True)

        assert asyncio.run(ask()) == ma.Pull("b", NO_PULL)
        admin.close()
