"""Verdicts of the service, their settings, and finished experiments."""

from __future__ import annotations

import re
from typing import Any

import pytest

import manyarms as ma
from tests.serve.machines import TOKEN, InThread, call, in_thread, made_token, new_name


def _played(port: int, path: str, pulls: int, best: str) -> None:
    """Ask and tell; only the best arm earns rewards."""
    while pulls > 0:
        status, asked = call(port, "POST", f"{path}/asks", {"k": min(pulls, 500)})
        assert status == 200
        tells = [
            {"pull": one["pull"], "reward": float(one["arm"] == best)} for one in asked["pulls"]
        ]
        assert call(port, "POST", f"{path}/tells", {"tells": tells})[0] == 200
        pulls -= 500


def test_epsilon_is_changed_and_stored(store: str) -> None:
    path, spec = "/v1/experiments/a", {"policy": "moss", "horizon": 900, "seed": 1}
    with in_thread(store) as one:
        port = one.port
        assert call(port, "PUT", path, spec | {"epsilon": "5%"})[0] == 201
        assert call(port, "POST", f"{path}/verdict")[1]["code"] == "no_arms"
        call(port, "POST", f"{path}/arms", {"names": ["red", "green", "7"]})
        assert call(port, "GET", path)[1]["headline"].startswith("Too early to say: no reward")
        _played(port, path, 500, "green")
        assert call(port, "POST", f"{path}/verdict")[1]["epsilon"] == "5%"
        status, changed = call(port, "PATCH", path, {"epsilon": 0.2})
        assert (status, changed["spec"]["epsilon"]) == (200, 0.2)
        assert "20 percentage points below that of the best of the 3 arms" in changed["headline"]
        assert call(port, "PUT", path, spec)[0] == 200, "still the same experiment"
        for wrong in ("0%", "lots", -1, {"a": 1}):
            assert call(port, "PATCH", path, {"epsilon": wrong})[0] == 422
        assert call(port, "PATCH", path, {"horizon": 3})[0] == 422
        assert call(port, "PUT", "/v1/experiments/b", spec | {"epsilon": "x"})[0] == 422
    with in_thread(store) as one:
        seen = call(one.port, "GET", path)[1]
        assert (seen["spec"]["epsilon"], seen["spec"]["seed"]) == (0.2, 1)
        assert call(one.port, "PATCH", path, {"epsilon": None})[1]["spec"]["epsilon"] is None
        assert call(one.port, "POST", f"{path}/verdict")[1]["epsilon"] == "10%"


def test_a_drawn_seed_is_stored(served: InThread) -> None:
    path = "/v1/experiments/unseeded"
    assert call(served.port, "PUT", path, {"n_arms": 9})[0] == 201
    assert call(served.port, "PATCH", path, {"epsilon": "5%"})[0] == 200
    assert call(served.port, "PUT", path, {"n_arms": 9})[0] == 200


def test_targets_over_http(served: InThread) -> None:
    path, url = "/v1/experiments/targets", f"http://127.0.0.1:{served.port}"
    arms = ["red", "green", "7"]
    remote = ma.Remote.create(url, "targets", "moss", arms=arms, horizon=900, seed=1, token=TOKEN)
    _played(served.port, path, 500, "green")
    above = remote.verdict(target=0.5)
    assert (
        above.headline == "Stop and deploy arm 'green': its mean is above 50 % (95 % confidence)."
    )
    seen = call(served.port, "POST", f"{path}/verdict", {"target": 0.5})[1]
    assert seen["headline"] == above.headline
    better = remote.verdict(target="7", margin="20%")
    assert (better.stop, better.target, better.margin) == (True, "7", "20%")
    assert not remote.verdict(target="green").stop
    for name in ("green", "7"):
        assert call(served.port, "POST", f"{path}/verdict", {"target": name})[1]["target"] == name
    for wrong in ({"target": 7}, {"target": 0.5, "epsilon": 0.1}, {"epsilon": "x%"}):
        assert call(served.port, "POST", f"{path}/verdict", wrong)[0] == 422
    status, answer = call(served.port, "POST", f"{path}/verdict", {"epsilon": "lots"})
    assert (status, answer["message"].startswith("`epsilon` must be a number")) == (422, True)
    remote.change(epsilon="30%")
    assert remote.verdict().epsilon == "30%"
    remote.change(target=0.5)
    assert remote.summary()["headline"] == remote.verdict().headline == above.headline
    assert remote.verdict(quantile=0.0).target is None
    assert remote.verdict(epsilon="20%").target is None
    assert remote.verdict(target="7").target == "7"
    remote.change(target=None)
    assert (remote.verdict().target, remote.verdict().epsilon) == (None, "30%")
    with pytest.raises(ma.ParameterError, match="horizon"):
        remote.change(horizon=3)


def test_an_experiment_ends_with_its_horizon(served: InThread) -> None:
    port, path = served.port, "/v1/experiments/ends"
    spec: dict[str, Any] = {"policy": "moss", "horizon": 4, "n_arms": 3, "seed": 1}
    assert call(port, "PUT", path, spec)[1]["state"] == "running"
    pulls = call(port, "POST", f"{path}/asks", {"k": 4})[1]["pulls"]
    assert call(port, "GET", path)[1]["state"] == "finished"
    tells = [{"pull": one["pull"], "reward": 1.0} for one in pulls[:3]]
    call(port, "POST", f"{path}/tells", {"tells": tells})
    seen = call(port, "GET", path)[1]
    assert (seen["outcome"], seen["may_stop"]) == ("out of pulls", False)
    assert re.match(r"Out of pulls\. Best so far: arm \d, but it could still be", seen["headline"])
    assert seen["advice"].endswith(
        "First report the 1 pending reward. To continue after the last pull, begin a season under "
        "Settings, with the horizon 1000."
    )
    listed = call(port, "GET", "/v1/experiments")[1]["experiments"]
    assert {one["name"]: one["state"] for one in listed}["ends"] == "finished"
    assert call(port, "POST", f"{path}/stop")[1]["state"] == "stopped"
    assert call(port, "GET", path)[1]["headline"].startswith("Stopped. Best so far: arm ")
    assert call(port, "DELETE", path)[0] == 200


def test_advice_can_be_followed(served: InThread) -> None:
    """Prospector keeps an arm that never fails, so more pulls do not concern other arms."""
    port, path = served.port, "/v1/experiments/settled"
    assert call(port, "PUT", path, {"policy": "prospector", "n_arms": 3})[0] == 201
    for _ in range(300):
        (first,) = call(port, "POST", f"{path}/asks", {})[1]["pulls"]
        call(port, "POST", f"{path}/tells", {"tells": [{"pull": first["pull"], "reward": 1.0}]})
    seen = call(port, "GET", path)[1]
    assert (seen["outcome"], seen["arms_touched"]) == ("settled", 1)
    step = "under Settings, begin a season with the policy uniform and the horizon 1000."
    assert step in seen["advice"]
    wanted = {"policy": "uniform", "horizon": 1000}
    assert call(port, "POST", f"{path}/season", wanted)[0] == 200
    pulls = call(port, "POST", f"{path}/asks", {"k": 1000})[1]["pulls"]
    tells = [{"pull": p["pull"], "reward": float(p["arm"] == first["arm"])} for p in pulls]
    assert call(port, "POST", f"{path}/tells", {"tells": tells})[0] == 200
    assert call(port, "POST", f"{path}/verdict")[1]["stop"]


def test_a_control_is_a_target(served: InThread) -> None:
    port, path, page = served.port, "/v1/experiments/controlled", "/experiments/controlled"
    spec: dict[str, Any] = {"policy": "moss", "horizon": 2000, "n_arms": 3}
    spec |= {"control": "today", "share": 0.3}
    assert call(port, "PUT", path, spec | {"seed": 1})[0] == 201
    for _ in range(2):
        pulls = call(port, "POST", f"{path}/asks", {"k": 500})[1]["pulls"]
        tells = [{"pull": p["pull"], "reward": float(p["arm"] != "today")} for p in pulls]
        assert call(port, "POST", f"{path}/tells", {"tells": tells})[0] == 200
    for name in ("control", "today"):
        said = call(port, "POST", f"{path}/verdict", {"target": name, "margin": 0.5})[1]
        assert said["stop"]
        said = said["headline"]
        assert "its mean is more than 50 percentage points above that of 'today' (95 %" in said
    assert call(port, "POST", f"{path}/verdict", {"target": "yesterday"})[0] == 422
    # as a setting
    seen = call(port, "PATCH", path, {"target": "control"})[1]
    assert (seen["spec"]["target"], seen["may_stop"]) == ("control", True)
    assert "it is better than 'today' (95 % confidence)." in seen["headline"]
    assert call(port, "POST", f"{path}/verdict")[1]["headline"] == seen["headline"]
    assert call(port, "POST", f"{path}/verdict", {"epsilon": 0.1})[1]["target"] is None
    assert b'name="target" autocomplete="off" value="control"' in call(port, "GET", page)[1]
    viewer = made_token(served.store, new_name(), "viewer")
    shown = call(port, "GET", page, token=viewer)[1]
    assert b"<dt>Good enough</dt><dd>better than today</dd>" in shown
    for wrong in ("today", "5%", 2.0, -0.1):
        assert call(port, "PATCH", path, {"target": wrong})[0] == 422, wrong
    assert call(port, "PUT", "/v1/experiments/goal", spec | {"target": "control"})[0] == 201
    del spec["control"]
    spec["share"] = 0.05
    status, answer = call(port, "PUT", "/v1/experiments/alone", spec | {"target": "control"})
    assert (status, answer["parameter"]) == (422, "target")
    assert call(port, "PUT", "/v1/experiments/alone", spec)[0] == 201
    assert call(port, "PATCH", "/v1/experiments/alone", {"target": "control"})[0] == 422


def test_a_finished_experiment_may_be_deleted(served: InThread) -> None:
    port, path = served.port, "/v1/experiments/short"
    call(port, "PUT", path, {"policy": "moss", "horizon": 1, "n_arms": 3})
    assert call(port, "DELETE", path)[0] == 409
    call(port, "POST", f"{path}/asks", {})
    assert call(port, "DELETE", path)[0] == 200
