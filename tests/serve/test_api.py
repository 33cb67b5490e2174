"""The HTTP API: the same pulls as a handle, repeated requests, and errors."""

from __future__ import annotations

import itertools
import json
import re
import socket
from typing import Any

import pytest

import manyarms as ma
from manyarms.client.calls import spec_of
from manyarms.serve import clock
from manyarms.serve.routes import ROUTES
from tests.helpers import ALL_POLICIES, label
from tests.serve.machines import TOKEN, InThread, call, request, wait

pytestmark = pytest.mark.interpreted
_names = (f"x{k}" for k in itertools.count())


class HttpExperiment:
    """An experiment over HTTP, with short calls for tests."""

    def __init__(self, served: InThread, **spec: Any) -> None:
        self.port, self.name = served.port, next(_names)
        start = {"policy": "moss", "n_arms": 50, "horizon": 1000} | spec
        if start["n_arms"] is None:
            del start["n_arms"]
        status, answer = self("PUT", "", start)
        assert status == 201, answer

    def __call__(self, method: str, path: str, body: Any = None, **headers: Any) -> tuple[int, Any]:
        return call(self.port, method, f"/v1/experiments/{self.name}{path}", body, **headers)

    def ask(self, k: int = 1, key: str = "") -> list[dict[str, Any]]:
        headers = {"Idempotency_Key": key} if key else {}
        status, answer = self("POST", "/asks", {"k": k}, **headers)
        assert status == 200, answer
        pulls: list[dict[str, Any]] = answer["pulls"]
        return pulls

    def tell(self, pull: int, reward: float) -> dict[str, Any]:
        status, answer = self("POST", "/tells", {"tells": [{"pull": pull, "reward": reward}]})
        assert status == 200, answer
        result: dict[str, Any] = answer["results"][0]
        return result


@pytest.mark.patient
@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_the_api_picks_the_arms_of_a_handle(served: InThread, policy: ma.Policy) -> None:
    live = policy.live(n_arms=300, horizon=400, seed=9)
    experiment = HttpExperiment(served, **spec_of(policy, n_arms=300, horizon=400, seed=9))
    waiting: list[int] = []
    for turn in range(24):
        ours, theirs = experiment.ask(1 + turn % 3), live.ask(1 + turn % 3)
        assert [(p["pull"], p["arm"]) for p in ours] == [(p.id, p.arm) for p in theirs]
        waiting += [p.id for p in theirs]
        while len(waiting) > turn % 7:  # some rewards are late and out of order
            pull = waiting.pop(turn % len(waiting))
            if pull % 11 == 5:
                live.abandon(pull)
                assert experiment("POST", "/abandons", {"pulls": [pull]})[1]["results"][0][
                    "applied"
                ]
            else:
                live.tell(pull, float(pull % 3 == 0))
                assert experiment.tell(pull, float(pull % 3 == 0))["applied"]
    summary = experiment("GET", "")[1]
    best = live.recommend()
    assert summary["pulls"] == live.pulls
    assert summary["pending"] == len(live.pending)
    assert summary["recommended"]["arm"] == best.arm
    assert summary["recommended"]["low"] == best.interval[0]


def test_asks_with_a_key_are_applied_once(served: InThread) -> None:
    experiment = HttpExperiment(served)
    first = experiment.ask(3, key="a")
    assert experiment.ask(3, key="a") == first
    for one in first[:2]:
        experiment.tell(one["pull"], 1.0)
    assert experiment.ask(3, key="a") == first  # also after they have ended
    assert [p["pull"] for p in experiment.ask(1, key="b")] == [3]
    status, answer = experiment("POST", "/asks", {"k": 2}, Idempotency_Key="a")
    assert (status, answer["code"]) == (422, "key_reused")


def test_tells_are_applied_once(served: InThread) -> None:
    experiment = HttpExperiment(served)
    pull, other = (p["pull"] for p in experiment.ask(2))
    assert experiment.tell(pull, 1.0) == {"pull": pull, "applied": True}
    assert experiment.tell(pull, 1.0) == {"pull": pull, "applied": False}
    again = experiment.tell(pull, 0.5)
    assert (again["status"], again["code"]) == (409, "told")
    assert experiment.tell(999, 0.5)["status"] == 404
    assert experiment.tell(other, 1.5)["status"] == 422
    abandon = {"pulls": [other, other, pull, 999]}
    results = experiment("POST", "/abandons", abandon)[1]["results"]
    assert [r["applied"] for r in results] == [True, False, False, False]
    assert [r.get("status") for r in results] == [None, None, 409, 404]
    assert experiment.tell(other, 1.0)["status"] == 410


def test_pause_resume_stop(served: InThread) -> None:
    experiment = HttpExperiment(served)
    pull = experiment.ask()[0]["pull"]
    assert experiment("POST", "/pause")[1]["state"] == "paused"
    assert experiment("POST", "/asks")[1]["code"] == "paused"
    assert experiment.tell(pull, 1.0)["applied"]  # rewards still count
    experiment("POST", "/resume")
    experiment.ask()
    assert experiment("DELETE", "")[1]["code"] == "not_stopped"
    experiment("POST", "/stop")
    status, answer = experiment("POST", "/asks")
    assert (status, answer["code"]) == (409, "stopped")
    assert answer["recommended"]["arm"] is not None
    assert experiment("POST", "/resume")[1]["code"] == "stopped"
    assert experiment("DELETE", "")[0] == 200
    assert experiment("GET", "")[0] == 404
    assert experiment("POST", "/asks")[0] == 404


# Windows


def test_a_window_abandons_or_fills_in_missing_rewards(served: InThread) -> None:
    lost = HttpExperiment(served, window=0.3)
    zero = HttpExperiment(served, window=0.3, missing=0.25)
    pulls = [lost.ask()[0]["pull"], zero.ask()[0]["pull"]]
    wait(lambda: not lost("GET", "")[1]["pending"] and not zero("GET", "")[1]["pending"])
    assert lost("GET", "")[1]["abandoned"] == 1
    assert lost.tell(pulls[0], 1.0)["status"] == 410
    assert zero("GET", "")[1]["reward"] == 0.25
    assert zero.tell(pulls[1], 0.25) == {"pull": pulls[1], "applied": False}
    for experiment in (lost, zero):
        assert experiment("GET", "/pending")[1]["expired"] == 1


@pytest.mark.patient
def test_held_rewards_count_at_the_end_of_the_window(
    served: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = HttpExperiment(served, window=3600, hold=True)
    pull = experiment.ask()[0]["pull"]
    assert experiment.tell(pull, 1.0) == {"pull": pull, "applied": True, "held": True}
    assert experiment.tell(pull, 1.0) == {"pull": pull, "applied": False, "held": True}
    assert experiment.tell(pull, 0.0)["status"] == 409
    assert experiment("GET", "")[1]["told"] == 0
    passed = clock._passed
    monkeypatch.setattr(clock, "_passed", lambda: passed() + 3600)
    wait(lambda: experiment("GET", "")[1]["told"])
    summary = experiment("GET", "")[1]
    assert (summary["told"], summary["reward"], summary["held"]) == (1, 1.0, 0)
    assert experiment.tell(pull, 1.0)["applied"] is False
    kinds = [event["kind"] for event in experiment("GET", "/events")[1]["events"]]
    assert kinds == ["asked", "held", "told"]
    assert call(served.port, "PUT", "/v1/experiments/no", {"hold": True, "n_arms": 2})[0] == 422


# Changing arms


def test_named_arms_are_added_as_a_stream(served: InThread) -> None:
    experiment = HttpExperiment(served, policy="prospector", n_arms=None, horizon=None, seed=0)
    assert experiment("POST", "/asks")[1]["code"] == "no_arms"
    lines = b"".join(json.dumps(f"arm {k}").encode() + b"\n" for k in range(3000))
    kind = {"Content_Type": "application/x-ndjson"}
    assert experiment("POST", "/arms", lines, **kind) == (
        200,
        {"added": 3000, "n_arms": 3000, "skipped": 0},
    )
    live = ma.Prospector().live(n_arms=3000, seed=0)
    keys = [p["arm"] for p in experiment.ask(20)]
    assert keys == [f"arm {p.arm}" for p in live.ask(20)]
    more = {"names": ["a, b", "arm 7", "<script>alert(1)</script>", "a, b"]}
    assert experiment("POST", "/arms", more)[1] == {"added": 2, "n_arms": 3002, "skipped": 1}
    live.add_arms(2)
    for mine, yours in zip(experiment.ask(5), live.ask(5), strict=True):
        assert mine["arm"] == f"arm {yours.arm}"
    found = experiment("GET", "/arms?sort=arm&search=%3Cscr")[1]["arms"]
    assert [a["arm"] for a in found] == ["<script>alert(1)</script>"]
    assert experiment("POST", "/retirements", {"arm": "a, b"})[0] == 200
    assert experiment("GET", "/arms/a,%20b")[1]["retired"] is True
    assert experiment("POST", "/retirements", {"arm": "nobody"})[0] == 404


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        ("application/x-ndjson", b'"new"\n{"key": "b"}\n', "Line 2 must be one name as JSON"),
        ("application/x-ndjson", b'"new"\n{"key": ' + b"[" * 5000 + b"]" * 5000 + b"}", "Line 2"),
        ("application/json", b'{"count": 3}', "have names: send the names of the new arms"),
        ("application/json", b'{"names": ["new", ""]}', "Name 2: The name of an arm must be"),
        (
            "application/json",
            b'{"names": ["new", "%s"]}' % (b"x" * 20_001),
            "Name 2: The name of an arm must be",
        ),
    ],
)
def test_a_failed_import_adds_nothing(
    served: InThread, kind: str, body: bytes, message: str
) -> None:
    experiment = HttpExperiment(served, n_arms=None)
    experiment("POST", "/arms", {"names": ["a", "b"]})
    status, answer = experiment("POST", "/arms", body, Content_Type=kind)
    assert status in (409, 422)
    assert message in answer["message"]
    assert experiment("GET", "")[1]["n_arms"] == 2
    assert experiment("GET", "/arms/new")[0] == 404
    assert experiment("POST", "/arms", {"names": ["new"]})[1]["n_arms"] == 3


def test_pages_of_arms_contain_each_arm_once(served: InThread) -> None:
    experiment = HttpExperiment(served, n_arms=None)
    experiment("POST", "/arms", {"names": [f"k{n:03}" for n in range(120)]})
    for one in experiment.ask(30):
        experiment.tell(one["pull"], 1.0)
    for sort, count in (("arm", 120), ("low", 30), ("pulls", 30)):
        seen: list[str] = []
        cursor = ""
        while cursor is not None:
            page = experiment("GET", f"/arms?sort={sort}&limit=7&cursor={cursor}")[1]
            seen += [a["arm"] for a in page["arms"]]
            cursor = page["cursor"]
        assert len(seen) == len(set(seen)) == count


def test_pages_of_events(served: InThread) -> None:
    experiment = HttpExperiment(served, n_arms=None)
    experiment("POST", "/arms", {"names": [f"k {n}" for n in range(40)]})
    pulls = experiment.ask(10)
    for one in pulls:
        experiment.tell(one["pull"], 0.5)
    experiment("POST", "/retirements", {"arm": "k 3"})
    seen: list[dict[str, Any]] = []
    after = 0
    while after is not None:
        page = experiment("GET", f"/events?after={after}&limit=7")[1]
        seen += page["events"]
        after = page["after"]
    assert [event["seq"] for event in seen] == list(range(1, 23))
    assert [event["arm"] for event in seen[1:11]] == [one["arm"] for one in pulls]
    assert {(event["kind"], event["reward"]) for event in seen[11:21]} == {("told", 0.5)}
    last = {"seq": 22, "kind": "retired", "pull": None, "arm": "k 3", "reward": None}
    assert last.items() <= seen[21].items()
    assert len(experiment("GET", "/events")[1]["events"]) == 22
    for after in (22, 23, 10**15):
        assert experiment("GET", f"/events?after={after}") == (200, {"events": [], "after": None})
    for wrong in ("limit=0", "limit=10001", "after=-1", "after=x"):
        assert experiment("GET", f"/events?{wrong}")[0] == 422
    assert call(served.port, "GET", "/v1/experiments/nobody/events")[0] == 404


# Errors


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"policy": "moss++(betta=1)"}, "betta"),
        ({"policy": "moss"}, "`horizon` must be given to moss, got null. Pass"),
        (
            {"policy": "sequential-halving", "n_arms": 1 << 50, "horizon": 1 << 40},
            "`policy` must draw at most 65536 arms before the first pull",
        ),
        ({"missing": 7.0, "window": 1}, "Cannot fill in reward 7.0"),
        ({"oops": 1}, "There is no field `oops`. Known: control, epsilon"),
    ],
)
def test_impossible_specifications(served: InThread, spec: dict[str, Any], message: str) -> None:
    status, answer = call(served.port, "PUT", "/v1/experiments/no", {"n_arms": 9} | spec)
    assert (status, answer["code"]) == (422, "invalid")
    assert message in answer["message"]


def test_too_many_first_arms_for_the_policy(served: InThread) -> None:
    """The cost of the first state is known when the arms are added."""
    experiment = HttpExperiment(served, policy="sequential-halving", n_arms=None, horizon=1 << 40)
    lines = b"".join(b'"%d"\n' % k for k in range((1 << 16) + 1))
    kind = {"Content_Type": "application/x-ndjson"}
    status, answer = experiment("POST", "/arms", lines, **kind)
    assert status == 422
    assert "would draw 65537 of 65537" in answer["message"]
    assert experiment("POST", "/arms", {"names": ["a", "b"]})[1]["n_arms"] == 2
    assert len(experiment.ask(2)) == 2


def test_creating_the_same_experiment_again_is_allowed(served: InThread) -> None:
    experiment = HttpExperiment(served, seed=4)
    same = {"policy": "moss", "n_arms": 50, "horizon": 1000, "seed": 4}
    assert experiment("PUT", "", same)[0] == 200
    for settings in ({}, {"target": 0.5}, {"epsilon": "20%"}):  # these settings may differ
        status, answer = experiment("PUT", "", same | {"seed": 5} | settings)
        assert (status, answer["code"]) == (409, "exists")
        assert "other settings: seed is 4 in the store, and 5 was given." in answer["message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b'{"tells": [{"pull": 0}]}', 422),
        (b'{"tells": [{"pull": 0, "reward": NaN}]}', 400),
        (b'{"tells": [' + b'{"pull": 0, "reward": 1},' * 10_001 + b"]}", 400),
        (b"x" * (3 << 20), 413),
    ],
)
def test_impossible_bodies(served: InThread, body: bytes, status: int) -> None:
    assert call(served.port, "POST", "/v1/experiments/any/tells", body)[0] == status


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/experiments/a/nothing", 404),
        ("GET", "/v1/experiments/a/asks", 405),
        ("GET", "/v1/experiments/..%2f..%2fetc", 404),
        ("GET", f"/v1/experiments/{'a' * 201}", 422),
        ("PUT", "/v1/experiments/%2e%2E", 422),
        ("PUT", "/v1/experiments/.", 422),
        ("PUT", "/v1/experiments/%FF", 400),
        ("GET", "/v1/experiments/a/arms/%c3", 400),
        ("GET", "/v1/experiments/a/arms?search=%ff", 400),
        ("GET", "/new?like=%ff", 400),
        ("GET", "/v1/experiments/a/leaders?k=", 422),
        ("GET", "/v1/experiments/a/arms?search=&cursor=&limit=5", 404),
        ("GET", "/v1/experiments/a/arms?sort=name", 422),
    ],
)
def test_impossible_paths(served: InThread, method: str, path: str, status: int) -> None:
    assert call(served.port, method, path)[0] == status


def test_names_are_not_replaced(served: InThread) -> None:
    """Bytes that are not UTF-8 must not become the name of another experiment."""
    body = {"n_arms": 9}
    assert call(served.port, "PUT", "/v1/experiments/%EF%BF%BD", body)[0] == 201
    for name in ("%FF", "%FE"):
        status, answer = call(served.port, "PUT", f"/v1/experiments/{name}", body)
        assert (status, answer["code"]) == (400, "malformed")
        assert call(served.port, "GET", f"/experiments/{name}")[0] == 400


def test_a_wrong_method_is_told_the_right_ones(served: InThread) -> None:
    for path, allowed in (
        ("/v1/experiments/a", "DELETE, GET, HEAD, PATCH, PUT"),
        ("/v1/experiments/a/asks", "POST"),
        ("/experiments/a", "GET, HEAD"),
        ("/login", "GET, HEAD, POST"),
    ):
        answer, body = request(served.port, "TRACE", path)
        assert (answer.status, answer.headers["allow"]) == (405, allowed)
        assert f"{path} accepts {allowed}, not TRACE." in body.decode()


def test_clients_that_disconnect_or_are_slow_do_not_block_others(served: InThread) -> None:
    experiment = HttpExperiment(served)
    links = []
    for _ in range(20):
        link = socket.create_connection(("127.0.0.1", served.port))
        head = f"POST /v1/experiments/{experiment.name}/asks HTTP/1.1\r\n"
        head += "Host: x\r\nAuthorization: Bearer "
        link.sendall(f"{head}{TOKEN}\r\nContent-Length: 100\r\n\r\n{{".encode())
        links.append(link)
    assert [p["pull"] for p in experiment.ask()] == [0]
    for link in links:
        link.close()
    assert [p["pull"] for p in experiment.ask()] == [1]


def test_openapi_names_every_route(served: InThread) -> None:
    status, page = call(served.port, "GET", "/openapi.json", token=None)
    assert status == 200
    assert {(r.path, r.method.lower()) for r in ROUTES} == {
        (path, method) for path, methods in page["paths"].items() for method in methods
    }
    text = json.dumps(page)
    for reference in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert reference in page["components"]["schemas"]


def test_health_and_metrics(served: InThread) -> None:
    experiment = HttpExperiment(served)
    experiment.tell(experiment.ask()[0]["pull"], 1.0)
    assert call(served.port, "GET", "/healthz", token=None) == (200, {"ready": True, "reason": ""})
    assert call(served.port, "GET", "/readyz", token=None)[0] == 200
    text = call(served.port, "GET", "/metrics")[1].decode()
    assert 'manyarms_request_seconds_count{route="ask",status="200"}' in text
    assert re.search(r"^manyarms_pending \d+\.0$", text, re.M)
    assert "experiment=" not in text  # names need a token
