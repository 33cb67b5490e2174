"""Seasons over HTTP behave as in a handle."""

from __future__ import annotations

from typing import Any

import pytest

import manyarms as ma
from manyarms.live.opening import replayed
from manyarms.serve import experiment
from tests.client.comparison import plain, play
from tests.serve.machines import (
    TOKEN,
    InThread,
    call,
    in_thread,
    made_token,
    new_name,
    opened,
    path_of,
)

pytestmark = pytest.mark.interpreted
NAMES = [f"{'x' * (k % 7 + 1)}{k}" for k in range(30)]


def begun(one: InThread, **spec: Any) -> ma.Remote:
    settings: dict[str, Any] = {"arms": NAMES, "seed": 3} | spec
    return ma.Remote.create(f"http://127.0.0.1:{one.port}", new_name(), token=TOKEN, **settings)


def test_a_season_picks_the_arms_of_a_handle(store: str) -> None:
    live = ma.MOSS().live(arms=NAMES, horizon=1000, control="today", seed=3)
    with in_thread(store) as one:
        remote = begun(one, policy="moss", horizon=1000, control="today")
        name = remote.experiment
        for handle in (live, remote):
            play(handle, 1)
            handle.season(policy=ma.EmpMOSSPlusPlus(), horizon=80)
        assert remote.summary()["season"] == 2
        assert [remote.ask() for _ in range(9)] == [live.ask() for _ in range(9)]
        for handle in (live, remote):
            handle.season(policy=ma.Prospector(), seed=9)
        remote.close()
    with in_thread(store) as one:  # also after a restart
        remote = ma.Remote(f"http://127.0.0.1:{one.port}", name, token=TOKEN)
        assert [remote.ask() for _ in range(9)] == [live.ask() for _ in range(9)]
        assert sorted(plain(remote.arms())) == sorted(plain(live.arms()))
        assert remote.summary()["season"] == 3
        remote.close()
    with opened(store) as other:
        assert replayed(other, name) == ""


def test_other_requests_are_answered_while_known_rewards_are_used(
    served: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "_MOST_USED", 10)
    live = ma.Prospector().live(arms=NAMES, control="today", seed=3)
    with begun(served, control="today") as remote:
        for handle in (live, remote):
            handle.observe(NAMES[3], [1.0] * 95)
        first = remote.ask(3)  # possibly fewer
        assert first == live.ask(3)[: len(first)]
        path = f"{path_of(remote.experiment)}/events?limit=10000"
        events = call(served.port, "GET", path)[1]["events"]
        used = [event["detail"]["count"] for event in events if event["kind"] == "used"]
        assert used
        assert set(used) == {10}


def test_wrong_requests_are_refused(served: InThread) -> None:
    port, empty = served.port, path_of(new_name())
    assert call(port, "PUT", empty, {})[0] == 201
    remote = begun(served)
    path = path_of(remote.experiment)
    for (status, answer), expected, words in (
        (call(port, "POST", f"{empty}/season", {}), 409, "no arms yet"),
        (call(port, "POST", "/v1/experiments/nobody/season", {}), 404, "nobody"),
        (call(port, "POST", f"{path}/season", {"name": "s1"}), 422, "no field `name`"),
        (call(port, "POST", f"{path}/season", {"policy": "moss"}), 422, "`horizon` must be given"),
        (call(port, "POST", f"{path}/season", {"policy": "mos"}), 422, "'moss'"),
    ):
        assert (status, words in answer["message"]) == (expected, True), answer
    client = made_token(served.store, new_name(), "client")
    assert call(port, "POST", f"{path}/season", {}, token=client)[0] == 403
    assert remote.summary()["season"] == 1
    remote.close()
