"""A control over HTTP answers as in a handle, also with windows and after restarts."""

from __future__ import annotations

import random
from typing import Any

import pytest

import manyarms as ma
from manyarms.live.opening import replayed
from manyarms.serve import clock
from tests.serve.machines import (
    TOKEN,
    InThread,
    call,
    in_thread,
    new_name,
    opened,
    path_of,
    wait,
)

ARMS = [f"item {k}" for k in range(10)]


def remote_of(one: InThread, name: str) -> ma.Remote:
    return ma.Remote(f"http://127.0.0.1:{one.port}", name, token=TOKEN)


def test_a_control_over_http_equals_that_of_a_handle(store: str) -> None:
    name = new_name()
    given: dict[str, Any] = {"control": "current", "share": 0.3, "seed": 7, "reward": "clicks"}
    live = ma.Prospector().live(arms=ARMS, **given)
    dice = random.Random(5)

    def play(remote: ma.Remote) -> None:
        for _ in range(25):
            k = dice.randint(1, 4)
            pulls = remote.ask(k)
            twins = live.ask(k)
            assert [pull.arm for pull in pulls] == [pull.arm for pull in twins]
            for pull, twin in zip(pulls, twins, strict=True):
                if dice.random() < 0.2:
                    remote.abandon(pull)
                    live.abandon(twin)
                elif dice.random() < 0.8:
                    reward = float(dice.random() < (0.3 if pull.arm == "current" else 0.6))
                    remote.tell(pull, reward)
                    live.tell(twin, reward)
        assert remote.uplift() == live.uplift()
        assert remote.arms() == sorted(live.arms(), key=lambda arm: -arm.pulls)
        pending = [sorted(pull.arm for pull in one.pending) for one in (remote, live)]
        assert pending[0] == pending[1]

    with in_thread(store) as one:
        url = f"http://127.0.0.1:{one.port}"
        with ma.Remote.create(url, name, "prospector", arms=ARMS, token=TOKEN, **given) as remote:
            play(remote)
            summary = remote.summary()
            assert summary["pulls"] == live.pulls
    with in_thread(store) as one, remote_of(one, name) as remote:
        assert remote.summary()["pulls"] == summary["pulls"]
        play(remote)
        events = call(one.port, "GET", f"{path_of(name)}/events?limit=10000")[1]["events"]
    assert {event["arm"] for event in events if event["kind"] == "asked"} >= {"current"}
    with opened(store) as one_store:  # replaying the whole log gives the same experiment
        assert replayed(one_store, name) == ""


def test_asks_with_keys(served: InThread) -> None:
    path = path_of(new_name())
    spec = {"n_arms": 5, "control": "current", "share": 0.5, "seed": 1}
    assert call(served.port, "PUT", path, spec)[0] == 201
    key: dict[str, Any] = {"Idempotency_Key": "once"}
    body = {"k": 20}
    status, first = call(served.port, "POST", f"{path}/asks", body, **key)
    assert status == 200
    own = [pull for pull in first["pulls"] if pull["arm"] == "current"]
    assert 0 < len(own) < 20
    assert {type(pull["arm"]) for pull in first["pulls"]} == {str, int}
    assert call(served.port, "POST", f"{path}/asks", body, **key)[1] == first
    tell = {"tells": [{"pull": own[0]["pull"], "reward": 1}]}
    status, told = call(served.port, "POST", f"{path}/tells", tell)
    assert (status, told["results"][0]) == (200, {"pull": own[0]["pull"], "applied": True})
    assert call(served.port, "POST", f"{path}/tells", tell)[1]["results"][0]["applied"] is False
    other = {"tells": [{"pull": own[0]["pull"], "reward": 0}]}
    assert call(served.port, "POST", f"{path}/tells", other)[1]["results"][0]["code"] == "told"
    assert call(served.port, "POST", f"{path}/asks", body, **key)[1] == first  # after tells
    unknown = {"tells": [{"pull": 999, "reward": 1}]}
    assert call(served.port, "POST", f"{path}/tells", unknown)[1]["results"][0]["status"] == 404
    status, waiting = call(served.port, "GET", f"{path}/pending?limit=100")
    assert {pull["arm"] for pull in waiting["oldest"]} >= {"current"}


def test_uplift_over_http(served: InThread) -> None:
    path = path_of(new_name())
    assert call(served.port, "PUT", path, {"control": "current"})[0] == 201
    status, said = call(served.port, "GET", f"{path}/uplift")
    assert (status, said["missing"], said["control"]) == (
        200,
        "no rewards have been reported yet.",
        "current",
    )
    assert call(served.port, "GET", f"{path}/uplift?confidence=1")[0] == 422
    call(served.port, "POST", f"{path}/arms", {"names": ["a", "b"]})
    name = path.rsplit("/", 1)[1]
    with remote_of(served, name) as remote:
        assert "no rewards have been reported" in remote.uplift().missing
        for pull in remote.ask(200):
            remote.tell(pull, float(pull.arm == "a"))
        uplift = remote.uplift(confidence=0.9)
        assert (uplift.arm, uplift.control_mean, uplift.better) == ("a", 0.0, True)
        assert uplift.ratio_interval[1] == float("inf")
        said = call(served.port, "GET", f"{path}/uplift?confidence=0.9")[1]
        assert "+100 percentage points over current, with 90 % confidence from +" in said["text"]
        assert said["ratio"] is None  # the control earned nothing
    plain = path_of(new_name())
    assert call(served.port, "PUT", plain, {"n_arms": 3})[0] == 201
    missing = call(served.port, "GET", f"{plain}/uplift")[1]["missing"]
    assert missing == "this experiment has no control. Set `control` in a new experiment."


@pytest.mark.parametrize(
    "spec",
    [{"share": 0.2}, {"control": "x", "share": 0}, {"control": "x", "share": 0.7},
     {"control": ""}, {"reward": "a" * 100}],
)  # fmt: skip
def test_wrong_requests_are_refused(served: InThread, spec: dict[str, Any]) -> None:
    status, answer = call(served.port, "PUT", path_of(new_name()), {"n_arms": 3} | spec)
    assert (status, answer["code"]) == (422, "invalid")


def test_the_page_shows_the_uplift_below_the_arm(
    served: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("manyarms.serve.dashboard.pages._FRESH", -1.0)  # no caching
    path = path_of(new_name())
    spec = {"n_arms": 3, "control": "now & then", "share": 0.4, "seed": 2, "reward": "clicks"}
    assert call(served.port, "PUT", path, spec)[0] == 201
    name = path.rsplit("/", 1)[1]

    def page() -> str:
        text: bytes = call(served.port, "GET", f"/experiments/{name}")[1]
        return text.decode()

    assert 'id="uplift"' not in page()
    dice = random.Random(3)
    with remote_of(served, name) as remote:
        for _ in range(15):
            pulls = remote.ask(100)
            likely = {"now & then": 0.2, 1: 0.6}
            remote.tell_many([(p, float(dice.random() < likely.get(p.arm, 0.1))) for p in pulls])
        said, best = str(remote.uplift()), remote.recommend()
        assert f"{100 * best.estimate:.3g} %" in page().replace("\u00a0", " ")
        progress = remote.progress()
        assert f"; {progress.reward:,.0f} clicks, " in str(progress)
        assert f"{100 * progress.mean_reward:.3g} %" in str(progress)
    shown = page()
    amount = said.split(" over ", maxsplit=1)[0]
    place = shown.index('id="uplift"')
    assert amount in shown[place : place + 200]
    assert "over now &amp; then, with 95 % confidence from " in shown
    table = shown.partition('id="today"')[2].partition("</table>")[0].replace("\u00a0", " ")
    for number in (f"{100 * best.estimate:.3g} %", f"{best.pulls:,}", "now &amp; then", "Clicks"):
        assert number in table
    assert f"{100 * progress.control_mean:.3g} %</td><td>{progress.control_pulls:,}</td>" in table
    assert shown.index('id="best"') < place < shown.index("<dt>Verdict</dt>")


def test_windows_end_pulls_of_the_control(
    served: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = path_of(new_name())
    spec = {"n_arms": 5, "control": "today", "share": 0.5, "seed": 1, "window": 3600, "hold": True}
    assert call(served.port, "PUT", path, spec | {"missing": 0})[0] == 201
    pulls = call(served.port, "POST", f"{path}/asks", {"k": 30})[1]["pulls"]
    own = [pull for pull in pulls if pull["arm"] == "today"]
    assert 0 < len(own) < 30
    tell = {"tells": [{"pull": pull["pull"], "reward": 1} for pull in own[:5]]}
    results = call(served.port, "POST", f"{path}/tells", tell)[1]["results"]
    assert {result["held"] for result in results} == {True}
    passed = clock._passed
    monkeypatch.setattr(clock, "_passed", lambda: passed() + 3600)
    wait(lambda: call(served.port, "GET", f"{path}/pending")[1]["count"] == 0)
    said = call(served.port, "GET", f"{path}/uplift")[1]
    assert (said["control_told"], said["control_mean"]) == (len(own), 5 / len(own))
    summary = call(served.port, "GET", path)[1]
    assert summary["told"] == summary["pulls"] == 30 - len(own)


def test_the_control_is_the_target_until_it_is_changed(served: InThread) -> None:
    remote = ma.Remote.create(
        f"http://127.0.0.1:{served.port}", new_name(), token=TOKEN, arms=ARMS, control="current"
    )
    remote.observe(ARMS[0], [1.0])
    assert (remote.summary()["spec"]["target"], remote.verdict().target) == ("control", "current")
    remote.change(epsilon="20%")
    assert (remote.verdict().target, remote.verdict().epsilon) == (None, "20%")
    remote.change(target="control")
    assert remote.verdict().target == "current"
    remote.change(epsilon=None, target=None)
    assert (remote.verdict().target, remote.verdict().epsilon) == (None, "10%")
