"""Kill and freeze leaders and crash the database while clients retry; nothing may be lost.

`python -m tests.serve.chaos sqlite --kills 50 --freezes 20 --crashes 15` prints a summary, and
fails if an acknowledged event was lost or repeated, or if a log cannot be replayed.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyarms.live.kinds import ASKED, TOLD
from manyarms.live.opening import continue_experiment, replayed
from manyarms.live.snapshots import snapshot
from manyarms.store import EventStore, open_store
from tests.serve.machines import TOKEN, Node, Postgres, call, postgres

EXPERIMENT = "chaos"
ARMS = 5000


@dataclass
class Acknowledged:
    """The answers that clients got, which must stay true."""

    asks: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)
    tells: dict[int, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0


class Client(threading.Thread):
    """A client that asks and tells until it is stopped, and retries unanswered requests."""

    def __init__(
        self, ports: list[int], acknowledged: Acknowledged, stop: threading.Event, number: int
    ) -> None:
        super().__init__(daemon=True)
        self._ports, self._acknowledged, self._stop_event = ports, acknowledged, stop
        self._chance = random.Random(number)
        self._link: http.client.HTTPConnection | None = None

    def run(self) -> None:
        try:
            while not self._stop_event.is_set():
                self._turn()
        except Exception as error:
            self._acknowledged.wrong.append(f"a client failed: {error!r}")
        finally:
            self._close()

    def _turn(self) -> None:
        key = uuid.uuid4().hex
        k = self._chance.choice((1, 1, 1, 3))
        answer = self._insist("asks", {"k": k}, key)
        if answer is None:
            return
        pulls = [(one["pull"], one["arm"]) for one in answer["pulls"]]
        self._acknowledged.asks[key] = pulls
        if self._chance.random() < 0.05:  # as if the answer was lost, so it is requested again
            repeated = self._insist("asks", {"k": k}, key)
            if repeated is not None and repeated["pulls"] != answer["pulls"]:
                self._acknowledged.wrong.append(
                    f"{key} was given {pulls} and then {repeated['pulls']}"
                )
        tells = [{"pull": pull, "reward": reward_of(pull, arm)} for pull, arm in pulls]
        told = self._insist("tells", {"tells": tells}, None)
        for one, result in zip(tells, told["results"] if told else (), strict=bool(told)):
            if result.get("status", 200) != 200:
                self._acknowledged.wrong.append(f"{one} was answered {result}")
            self._acknowledged.tells[one["pull"]] = one["reward"]

    def _insist(self, what: str, body: Any, key: str | None) -> Any:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        begun = time.monotonic()
        while not self._stop_event.is_set():
            try:
                if self._link is None:
                    port = self._chance.choice(self._ports)
                    self._link = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
                path = f"/v1/experiments/{EXPERIMENT}/{what}"
                self._link.request("POST", path, json.dumps(body), headers)
                reply = self._link.getresponse()
                answer = json.loads(reply.read())
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._acknowledged.answers[type(error).__name__] += 1
                self._close()
                time.sleep(0.05)
                continue
            self._acknowledged.answers[f"{reply.status} {answer.get('code', '')}"] += 1
            if reply.status == 200:
                self._acknowledged.slowest = max(
                    self._acknowledged.slowest, time.monotonic() - begun
                )
                return answer
            if reply.status != 503:
                self._acknowledged.wrong.append(f"{what} was answered {reply.status} {answer}")
                return None
            self._close()
            time.sleep(0.05)
        return None

    def _close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None


def reward_of(pull: int, arm: int) -> float:
    return float(random.Random(f"{pull} {arm}").random() < (arm % 7) / 7)


class Chaos:
    """A leader and a standby on one database, and their failures."""

    def __init__(self, store: str, server: Postgres | None) -> None:
        self._store, self._server = store, server
        self.nodes = [Node(store).start(wait=False) for _ in range(2)]
        self._chance = random.Random(7)
        self.gaps: dict[str, list[float]] = {}

    def leader(self, seconds: float = 120.0, *, but: Node | None = None) -> Node:
        """Wait until a process leads, and return it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for one in self.nodes:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    if one is not but and call(one.port, "GET", "/readyz", timeout=10)[0] == 200:
                        return one
            time.sleep(0.01)
        raise TimeoutError("no process leads")

    def _until_led(self, what: str, begun: float, *, but: Node | None = None) -> None:
        self.leader(but=but)
        self.gaps.setdefault(what, []).append(time.monotonic() - begun)

    def _stands_by(self, one: Node) -> bool:
        """Return whether a process has started, which may take seconds on a busy machine."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            return call(one.port, "GET", "/healthz", timeout=10)[0] == 200
        return False

    def kill(self) -> None:
        one = self.leader()
        (other,) = (node for node in self.nodes if node is not one)
        what = "kill" if self._stands_by(other) else "kill without a standby"
        one.kill()
        self._until_led(what, time.monotonic(), but=one)
        time.sleep(self._chance.uniform(0.0, 0.6))
        one.start(wait=False)
        time.sleep(self._chance.uniform(0.1, 0.8))

    def freeze(self) -> None:
        """On PostgreSQL the standby ends the leader's session; on SQLite only an operator can."""
        one = self.leader()
        one.signal(signal.SIGSTOP)
        begun = time.monotonic()
        if self._server is not None and self._chance.random() < 0.7:
            self._until_led("freeze", begun, but=one)
            time.sleep(self._chance.uniform(0.0, 1.0))
            one.signal(signal.SIGCONT)
        else:
            time.sleep(self._chance.uniform(0.2, 3.0))
            one.signal(signal.SIGCONT)
            if self._server is None:
                self._until_led("freeze", time.monotonic())
        time.sleep(self._chance.uniform(0.1, 0.5))

    def crash(self) -> None:
        begun = time.monotonic()
        if self._server is None:  # the database is in the processes, so all are killed
            for one in self.nodes:
                one.kill()
            for one in self.nodes:
                one.start(wait=False)
        else:
            self._server.crash()
            time.sleep(self._chance.uniform(0.0, 1.0))
            self._server.start()
            begun = time.monotonic()
        self._until_led("crash", begun)
        time.sleep(0.3)

    def play(self, kills: int, freezes: int, crashes: int) -> None:
        what = [self.kill] * kills + [self.freeze] * freezes + [self.crash] * crashes
        self._chance.shuffle(what)
        for one in what:
            time.sleep(self._chance.uniform(0.1, 0.5))
            one()

    def end(self) -> None:
        for one in self.nodes:
            one.stop()


def check(store: str, acknowledged: Acknowledged) -> tuple[list[str], int]:
    """Return all errors, and the number of events."""
    wrong = list(acknowledged.wrong)
    with open_store(store) as opened:
        record = opened.find(EXPERIMENT)
        assert record is not None
        rows = list(opened.events(record.id))  # this verifies that there is no gap
        wrong += different(opened)
    asked = {one.pull: one.arm for one in rows if one.kind == ASKED}
    told = [one for one in rows if one.kind == TOLD]
    rewards = {one.pull: one.reward for one in told}
    if len(rewards) != len(told):
        wrong.append(f"{len(told) - len(rewards)} tells are doubled")
    owners: dict[int, set[str]] = {}
    for key, pulls in acknowledged.asks.items():
        for pull, arm in pulls:
            owners.setdefault(pull, set()).add(key)
            if asked.get(pull) != arm:
                wrong.append(f"ask {key} of pull {pull} and arm {arm} was lost")
    for pull, reward in acknowledged.tells.items():
        if rewards.get(pull) != reward:
            wrong.append(f"the tell of pull {pull} was lost: {reward} became {rewards.get(pull)}")
    return wrong, len(rows)


def different(store: EventStore, name: str = EXPERIMENT) -> Iterator[str]:
    """Yield differences between a replay of the whole log and one from a snapshot."""
    if trouble := replayed(store, name):
        yield trouble
    loaded, _ = continue_experiment(store, name, None)
    record = store.find(name)
    assert record is not None
    with store.writing() as link:
        link.run("DELETE FROM snapshots WHERE experiment = ?", record.id)
    whole, _ = continue_experiment(store, name, None)
    if snapshot(loaded.experiment) != snapshot(whole.experiment):
        yield "snapshot and tail make another state than the whole log"


def run(
    store: str,
    server: Postgres | None,
    *,
    kills: int,
    freezes: int,
    crashes: int,
    clients: int = 24,
    say: Callable[[str], None] = lambda line: None,
) -> list[str]:
    """Play; return all errors."""
    chaos = Chaos(store, server)
    acknowledged, stop = Acknowledged(), threading.Event()
    try:
        spec = {"policy": "moss++", "n_arms": ARMS, "horizon": 1_000_000, "seed": 3}
        status, answer = call(chaos.leader().port, "PUT", f"/v1/experiments/{EXPERIMENT}", spec)
        assert status == 201, answer
        ports = [one.port for one in chaos.nodes]
        threads = [Client(ports, acknowledged, stop, k) for k in range(clients)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        chaos.play(kills, freezes, crashes)
        time.sleep(1.0)
        stop.set()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive()
    finally:
        stop.set()
        chaos.end()
    wrong, events = check(store, acknowledged)
    if not acknowledged.tells:
        wrong.append("nothing was told")
    say(
        f"{kills} kills, {freezes} freezes, {crashes} crashes of the database under {clients} "
        f"clients: {len(acknowledged.asks)} asks and {len(acknowledged.tells)} tells, {events} "
        f"events, slowest answer {acknowledged.slowest:.1f} s, {len(wrong)} wrong"
    )
    for what, gaps in chaos.gaps.items():
        middle = statistics.median(gaps)
        say(
            f"a leader after a {what} ({len(gaps)}): median {middle:.2f} s, worst {max(gaps):.2f} s"
        )
    say(f"answers: {dict(acknowledged.answers)}")
    return wrong


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", choices=("sqlite", "postgres"))
    for name, default in (("kills", 50), ("freezes", 20), ("crashes", 15), ("clients", 24)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = vars(parser.parse_args())
    kind = given.pop("store")
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            wrong = run(f"sqlite:///{Path(folder)}/chaos.db", None, say=say, **given)
    else:
        with postgres() as server:
            wrong = run(server.url, server, say=say, **given)
    for line in wrong[:20]:
        say(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
