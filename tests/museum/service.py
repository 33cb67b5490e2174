"""The service as a process, filled, killed and looked at, for the museum's writer and its tests.

Only requests are used that every version of the service answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from tests.museum.games import reward_of

TOKEN = "ma_of_the_museum_and_of_nothing_else"
ORIGIN = "https://shop.example"
PATIENCE = 40.0  # seconds
LOGS = ("keys", "numbered", "keyed")  # experiments whose events are looked at: exports take time


class Service:
    """A process of `manyarms serve`, on loopback."""

    def __init__(self, store: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._words = ["serve", "--store", store, "--port", str(self.port), "--quiet"]

    def __enter__(self) -> Service:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "manyarms", *self._words],
            env=os.environ | {"MANYARMS_TOKEN": TOKEN},
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self.insist("GET", "/readyz")
        except BaseException:
            self.process.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(PATIENCE)

    def kill(self) -> None:
        """End it, and whatever it started, at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Send one request; return the status and the answer."""
        named = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, data, named, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                text, status = answer.read(), answer.status
        except urllib.error.HTTPError as error:
            text, status = error.read(), error.code
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text.decode()

    def insist(self, *words: Any, **headers: str) -> Any:
        """Send a request until it is not answered with 503, for some time; return the answer."""
        end = time.monotonic() + PATIENCE
        while True:
            assert self.process.poll() is None, "the service has ended"
            status, answer = 503, "no answer"
            with contextlib.suppress(OSError):
                status, answer = self.send(*words, **headers)
            if status != 503:
                assert status < 300, f"{words} was answered {status}: {answer}"
                return answer
            assert time.monotonic() < end, f"{words} was answered {status}: {answer}"
            time.sleep(0.1)

    def put(self, name: str, **spec: Any) -> None:
        self.insist("PUT", f"/v1/experiments/{name}", spec)

    def add_arms(self, name: str, *keys: str) -> None:
        lines = "".join(f"{json.dumps(key)}\n" for key in keys).encode()
        kind = "application/x-ndjson"
        self.insist("POST", f"/v1/experiments/{name}/arms", lines, Content_Type=kind)

    def ask(self, name: str, key: str = "", **body: Any) -> list[dict[str, Any]]:
        """Ask for pulls."""
        headers = {"Idempotency_Key": key} if key else {}
        given = self.insist("POST", f"/v1/experiments/{name}/asks", body, **headers)
        pulls: list[dict[str, Any]] = given["pulls"]
        return pulls

    def tell(self, name: str, *tells: dict[str, Any]) -> list[dict[str, Any]]:
        """Tell rewards; return the results."""
        body = {"tells": list(tells)}
        told = self.insist("POST", f"/v1/experiments/{name}/tells", body)
        results: list[dict[str, Any]] = told["results"]
        return results

    def do(self, method: str, name: str, what: str, body: Any = None) -> Any:
        return self.insist(method, f"/v1/experiments/{name}/{what}", body)

    def arms(self, name: str) -> list[list[Any]]:
        """Return the tallies of all arms tried."""
        rows: list[list[Any]] = []
        cursor: str | None = ""
        while cursor is not None:
            page = self.do("GET", name, f"arms?limit=100&cursor={urllib.parse.quote(cursor)}")
            rows += [
                [row["arm"], row["pulls"], row["told"], row["estimate"], row["retired"]]
                for row in page["arms"]
                if row["pulls"]
            ]
            cursor = page["cursor"]
        return sorted(rows, key=str)

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the whole log."""
        text = self.insist("GET", f"/v1/experiments/{name}/export?what=events&format=ndjson")
        if isinstance(text, dict):  # a single line is JSON, too
            return [text]
        return [json.loads(line) for line in text.splitlines() if line]


def told(pull: dict[str, Any]) -> dict[str, Any]:
    return {"pull": pull["pull"], "reward": reward_of(pull["pull"], pull["arm"])}


def _play(service: Service, name: str, rounds: int) -> None:
    dice = random.Random(name)
    for k in range(rounds):
        pulls = service.ask(name, f"key {k}", k=dice.choice((1, 1, 3)))
        luck = dice.random()
        if luck < 0.8:
            service.tell(name, *map(told, pulls))
        elif luck < 0.9:
            service.do("POST", name, "abandons", {"pulls": [pull["pull"] for pull in pulls]})


def fill(service: Service) -> dict[str, Any]:
    """Play experiments of all kinds; return what was heard that must stay true."""
    service.put("plain", policy="prospector", n_arms=1000, seed=1)
    _play(service, "plain", 30)
    service.do("POST", "plain", "arms", {"count": 5})
    _play(service, "plain", 35)  # the first 30 rounds repeat their keys, and change nothing
    repeated = service.ask("plain", "a key", k=2)
    given = service.ask("plain", k=2, worker="one of the farm")

    service.put("keys", policy="moss", horizon=1000, seed=2, window=1e9)  # for pages
    service.add_arms("keys", *(f"item {k}" for k in range(20)))
    _play(service, "keys", 20)
    service.do("DELETE", "keys", "arms/item%203")
    service.add_arms("keys", "late 0", 'ä, "quoted"')
    _play(service, "keys", 30)
    (ticket,) = service.ask("keys", tickets=True)

    service.put("held", policy="moss", horizon=1000, seed=3, n_arms=9, window=1e9, early="hold")
    _play(service, "held", 12)
    service.put("missing", policy="moss", horizon=1000, seed=4, n_arms=9, window=0.5, missing=0.0)
    _play(service, "missing", 12)
    service.ask("missing", k=3)
    service.put("expired", policy="moss", horizon=1000, seed=5, n_arms=9, window=0.5)
    _play(service, "expired", 12)
    service.ask("expired", k=3)
    policy = {"name": "moss++", "parameters": {"beta": 0.6}}
    service.put("paused", policy=policy, horizon=500, seed=6, n_arms=50)
    _play(service, "paused", 12)
    service.do("POST", "paused", "pause")
    service.put("stopped", policy="uniform", horizon=500, seed=7, n_arms=5, reward_range=[-1, 2])
    _play(service, "stopped", 12)
    service.do("POST", "stopped", "stop")
    service.put("empty", policy="prospector", seed=8)
    tokens = {}
    for role, more in (
        ("client", {}),
        ("browser", {"experiment": "keys", "origins": [ORIGIN], "rate": 5}),
    ):
        body = {"name": f"a-{role}", "role": role, **more}
        tokens[role] = service.insist("POST", "/v1/tokens", body)["token"]
    return {"repeated": repeated, "worker": given, "ticket": ticket, "tokens": tokens}


def look(service: Service) -> dict[str, Any]:
    """Return what a service knows of its experiments, once no window is over, and what it does."""
    found = {}
    for summary in service.insist("GET", "/v1/experiments")["experiments"]:
        name, state = summary["name"], summary["state"]
        if summary["n_arms"] == 0:
            found[name] = {"state": state}
            continue
        _wait_for_windows(service, name)
        found[name] = {"state": state, "n_arms": summary["n_arms"], "arms": service.arms(name)}
        if name in LOGS:
            found[name]["events"] = [
                [row["kind"], row["pull"], row["arm"], row["key"], row["reward"]]
                for row in service.events(name)
            ]
        if state == "running":
            found[name]["next"] = [pull["arm"] for pull in service.ask(name, k=15)]
    return found


def _wait_for_windows(service: Service, name: str) -> None:
    """Wait until no pull is in flight whose window is short."""
    summary = service.insist("GET", f"/v1/experiments/{name}")
    window = summary["spec"]["window"]
    end = time.monotonic() + PATIENCE
    while window is not None and window < 60:
        if service.do("GET", name, "in-flight?limit=1")["count"] == 0:
            return
        assert time.monotonic() < end, f"{name} has pulls in flight whose window is over"
        time.sleep(0.1)


def load_and_kill(service: Service) -> dict[str, Any]:
    """Kill a service under load; return what its clients had heard by then."""
    service.put("numbered", policy="prospector", n_arms=1000, seed=1)
    service.put("keyed", policy="moss", horizon=10**6, seed=2)
    service.add_arms("keyed", *(f"item {k}" for k in range(50)))
    heard: dict[str, dict[str, Any]] = {
        name: {"asks": {}, "tells": {}} for name in ("numbered", "keyed")
    }

    def client(name: str, number: int) -> None:
        k = 0
        with contextlib.suppress(OSError, AssertionError):
            while True:
                key = f"{number} {k}"
                pulls = service.ask(name, key, k=1 + k % 3)
                heard[name]["asks"][key] = pulls
                tells = [told(pull) for pull in pulls]
                service.tell(name, *tells)
                heard[name]["tells"] |= {str(one["pull"]): one["reward"] for one in tells}
                k += 1

    threads = [threading.Thread(target=client, args=(name, n)) for n in (0, 1) for name in heard]
    for thread in threads:
        thread.start()
    while min(len(some["tells"]) for some in heard.values()) < 100:
        time.sleep(0.01)
    service.kill()
    for thread in threads:
        thread.join()
    return heard
