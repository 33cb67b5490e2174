"""Seasons over HTTP behave as in a handle."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import manyarms as ma
from manyarms.live.experiment import Experiment
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


@pytest.mark.parametrize("policy", [ma.Prospector(), ma.MOSS()])
def test_a_policy_is_told_known_rewards_in_pieces(
    policy: ma.Policy, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other experiments are answered meanwhile, other changes of this one wait."""
    monkeypatch.setattr(experiment, "_MOST_NEWS", 3)
    pieces, told = list[str](), threading.Event()
    prepare = Experiment.prepare

    def watched(self: Experiment, most: int | None = None) -> bool:
        pieces.append("piece")
        time.sleep(0.01)  # so that other requests come in between
        told.set()
        done = prepare(self, most)
        if done:
            pieces.append("done")
        return done

    live = policy.live(arms=NAMES, horizon=500, control="today", seed=3)
    counts = {name: (k + 2, k / 3) for k, name in enumerate(NAMES)}
    with in_thread(store) as one, begun(one) as other:
        remote = begun(one, policy=str(policy), horizon=500, control="today")
        name = remote.experiment
        pull = live.ask()
        assert remote.ask() == pull
        for handle in (live, remote):
            handle.observe(counts=counts)
        monkeypatch.setattr(Experiment, "prepare", watched)
        with ThreadPoolExecutor(2) as pool:
            asked = pool.submit(remote.ask, 3)
            assert told.wait(60)
            remote.tell(pull, 1.0)
            pieces.append("tell")
            assert asked.result() == live.ask(3)
        live.tell(pull, 1.0)
        assert pieces.count("piece") > 5
        assert pieces.index("tell") > pieces.index("done")
        assert other.summary()["pulls"] == 0
        monkeypatch.setattr(Experiment, "prepare", prepare)
        assert remote.ask(20) == live.ask(20)
        remote.close()
    with opened(store) as log:
        assert replayed(log, name) == ""


def test_counts_are_observed_over_http(served: InThread) -> None:
    with begun(served, policy="moss", horizon=50) as remote:
        path = f"{path_of(remote.experiment)}/observations"
        body = {"counts": {NAMES[0]: [120, 7], NAMES[1]: [4, 2.5, 1.6]}}
        assert call(served.port, "POST", path, body)[1]["kept"] == 124
        assert {arm.arm: arm.told for arm in remote.arms()} == {NAMES[0]: 120, NAMES[1]: 4}
        for wrong, words in (
            ({"counts": {NAMES[0]: [1, 7]}}, "a sum for arm"),
            ({"counts": {NAMES[0]: [1]}}, "counts"),
            ({"counts": {}}, "counts"),
            ({"counts": {"nobody": [1, 1]}}, "Unknown arm"),
            ({"arm": NAMES[0]}, "Send either `arm` and `rewards`, or `counts`."),
            ({"arm": NAMES[0], "rewards": [1], "counts": {NAMES[0]: [1, 1]}}, "Send either"),
        ):
            status, answer = call(served.port, "POST", path, wrong)
            assert (status in (404, 422), words in answer["message"]) == (True, True), answer
        with pytest.raises(ma.ParameterError, match="Either `arm` and `rewards` must be given"):
            remote.observe(NAMES[0])


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
