"""Over HTTP, `sync_arms` leaves exactly the listed arms in play, as in a handle."""

from __future__ import annotations

import random
from typing import Any

import pytest

import manyarms as ma
from manyarms.live import search
from manyarms.live.opening import replayed
from manyarms.protocol.policy import arrive
from manyarms.serve import importing
from manyarms.serve.errors import RefusedError, refuse
from manyarms.serve.service import Service
from tests.serve.machines import TOKEN, InThread, call, in_thread, new_name, opened, path_of


def begun(one: InThread, keys: list[str], **spec: Any) -> str:
    path = path_of(new_name())
    assert call(one.port, "PUT", path, {"policy": "prospector", "seed": 5} | spec)[0] == 201
    if keys:
        assert call(one.port, "POST", f"{path}/arms", {"names": keys})[0] == 200
    return path


def in_play(one: InThread, path: str) -> set[str]:
    _, page = call(one.port, "GET", f"{path}/arms?sort=arm&limit=1000")
    return {arm["arm"] for arm in page["arms"] if not arm["retired"]}


def test_syncing_a_list(served: InThread) -> None:
    path = begun(served, ["red", "blue", "black"])
    status, done = call(served.port, "PUT", f"{path}/arms", {"names": ["blue", "green"]})
    assert (status, done) == (
        200,
        {"added": ["green"], "restored": [], "retired": ["red", "black"], "n_arms": 2},
    )
    head = call(served.port, "GET", path)[1]["seq"]
    status, done = call(served.port, "PUT", f"{path}/arms", {"names": ["green", "blue"]})
    assert (status, done) == (200, {"added": [], "restored": [], "retired": [], "n_arms": 2})
    assert call(served.port, "GET", path)[1]["seq"] == head
    kind: dict[str, Any] = {"Content_Type": "application/x-ndjson"}
    status, done = call(served.port, "PUT", f"{path}/arms", b'"red"\n"blue"\n"red"\n', **kind)
    assert (status, done["restored"], done["retired"]) == (200, ["red"], ["green"])
    assert in_play(served, path) == {"red", "blue"}
    asked = {call(served.port, "POST", f"{path}/asks", {})[1]["pulls"][0]["arm"] for _ in range(4)}
    assert asked == {"red", "blue"}


def test_a_preview_changes_nothing(served: InThread) -> None:
    path = begun(served, ["red", "blue", "black"])
    call(served.port, "POST", f"{path}/retirements", {"arm": "black"})
    head = call(served.port, "GET", path)[1]["seq"]
    wanted = {"names": ["blue", "green", "white", "black"]}
    seen = call(served.port, "PUT", f"{path}/arms?preview=true", wanted)[1]
    assert seen == {"added": 2, "restored": 1, "retired": 1}
    assert call(served.port, "GET", path)[1]["seq"] == head
    assert in_play(served, path) == {"red", "blue"}
    done = call(served.port, "PUT", f"{path}/arms", wanted)[1]
    assert {name: len(done[name]) for name in seen} == seen
    empty = begun(served, [])
    seen = call(served.port, "PUT", f"{empty}/arms?preview=true", wanted)[1]
    assert seen == {"added": 4, "restored": 0, "retired": 0}
    assert call(served.port, "GET", empty)[1]["state"] == "empty"


def test_known_names_are_skipped(served: InThread) -> None:
    path = begun(served, ["red", "blue"])
    assert call(served.port, "POST", f"{path}/retirements", {"arm": "red"})[0] == 200
    keys = {"names": ["red", "green", "green"]}
    for added, skipped in ((1, 1), (0, 2)):
        expected = {"added": added, "n_arms": 3, "skipped": skipped}
        assert call(served.port, "POST", f"{path}/arms", keys) == (200, expected)
    assert in_play(served, path) == {"blue", "green"}  # a retired arm stays retired


def test_integer_names_have_one_spelling() -> None:
    assert importing._checked([7, "7", "-8"], "integers") == [7, -8]
    for name in ("1_0", " 7", "07", "7.0", "red"):
        with pytest.raises(RefusedError) as refusal:
            importing._checked([name], "integers")
        assert "The names of these arms are integers" in refusal.value.failure.message


@pytest.mark.parametrize("seed", range(2))
def test_a_remote_picks_the_arms_of_a_handle(
    store: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "_AT_ONCE", 3)
    dice = random.Random(seed)
    first = [f"item {k}" for k in range(8)]
    with in_thread(store) as one:
        url, name = f"http://127.0.0.1:{one.port}", new_name()
        remote = ma.Remote.create(url, name, "prospector", arms=first, seed=seed, token=TOKEN)
        live = ma.Prospector().live(arms=first, seed=seed)
        for _ in range(6):
            wanted = [f"item {k}" for k in dice.sample(range(20), dice.randint(1, 20))]
            assert remote.sync_arms(wanted) == live.sync_arms(wanted)
            for _ in range(8):
                pull = remote.ask()
                assert pull == live.ask()
                reward = float(dice.random() < 0.5)
                remote.tell(pull, reward)
                live.tell(pull, reward)
        assert remote.n_arms == live.n_arms
        known = remote.arms()
        remote.close()
    with in_thread(store) as one:  # replaying the log gives the same experiment
        remote = ma.Remote(f"http://127.0.0.1:{one.port}", name, token=TOKEN)
        assert remote.arms() == known
        assert not remote.sync_arms(wanted)
        remote.close()


def test_a_sync_in_pieces_is_one_arrival(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although asks come in between, and also if the process ends before the last piece."""
    monkeypatch.setattr(importing, "_AT_ONCE", 1)
    groups, apply, sizes = list[int](), Service.apply, list[int]()

    async def asking(self: Service, name: str, change: Any) -> Any:
        done = await apply(self, name, change)
        await self.ask(name, 1, None)
        return done

    def counted(state: Any, count: int) -> None:
        sizes.append(count)
        arrive(state, count)

    first = [f"item {k}" for k in range(6)]
    with in_thread(store) as one:
        url, name = f"http://127.0.0.1:{one.port}", new_name()
        remote = ma.Remote.create(url, name, "prospector", arms=first, seed=1, token=TOKEN)
        remote.sync_arms(first[3:])
        for pull in remote.ask(9):
            remote.tell(pull, 0.0)
        monkeypatch.setattr(search, "arrive", counted)
        monkeypatch.setattr(Service, "apply", asking)
        remote.sync_arms([*first, "new 1", "new 2"])
        monkeypatch.setattr(Service, "apply", apply)
        remote.ask()
        assert sizes == [5]
        remote.sync_arms(first[3:])
        remote.ask()

        async def failing(self: Service, name: str, change: Any) -> Any:
            groups.append(len(groups))
            if len(groups) == 3:
                raise refuse(503, "unknown", "as if the process had ended")
            return await asking(self, name, change)

        monkeypatch.setattr(Service, "apply", failing)
        assert (
            call(one.port, "PUT", f"{path_of(name)}/arms", {"names": [*first, "new 3"]})[0] == 503
        )
        monkeypatch.setattr(Service, "apply", apply)
        assert sizes == [5]
        remote.ask()  # nothing more will come
        assert sizes == [5, 2]
        remote.close()
    with opened(store) as log:
        monkeypatch.undo()
        assert replayed(log, name) == ""


def test_added_arms_are_tried(served: InThread) -> None:
    """Prospector keeps an arm with mean 0.5 of 5000; then five with mean 0.9 are added."""
    earns = {f"old {k}": 0.5 if k % 10 == 0 else 0.1 for k in range(5000)}
    path = begun(served, list(earns))

    def play(pulls: int) -> list[str]:
        asked: list[str] = []
        for _ in range(pulls // 50):
            given = call(served.port, "POST", f"{path}/asks", {"k": 50})[1]["pulls"]
            tells = [{"pull": one["pull"], "reward": earns[one["arm"]]} for one in given]
            assert call(served.port, "POST", f"{path}/tells", {"tells": tells})[0] == 200
            asked += [one["arm"] for one in given]
        return asked

    assert earns[play(4000)[-1]] == 0.5
    earns |= {f"new {k}": 0.9 for k in range(5)}
    assert call(served.port, "PUT", f"{path}/arms", {"names": list(earns)})[0] == 200
    assert earns[play(500)[-1]] == 0.9


@pytest.mark.parametrize("history", ["", "season", "observed"])
def test_most_of_the_new_arms_of_a_day_are_tried_on_it(
    served: InThread, history: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On average 76 %, with syncs in pieces; 1000 visitors have 20 trials, for 25 arms."""
    monkeypatch.setattr(importing, "_AT_ONCE", 7)
    dice, there, away, tried = random.Random(5), [f"old {k}" for k in range(1200)], list[str](), 0
    path = begun(served, there)
    for day in range(6):
        new = [f"day {day}, {k}" for k in range(24)] if day else []
        if day:
            away += (gone := dice.sample(there, 15))
            there = [*({*there} - {*gone}), away.pop(0), *new]
            assert call(served.port, "PUT", f"{path}/arms", {"names": there})[0] == 200
        if history == "season" and day == 3:
            assert call(served.port, "POST", f"{path}/season", {})[0] == 200
        if history == "observed" and day in (1, 3):
            counts = {arm: [40, dice.randrange(4)] for arm in dice.sample(there, 100)}
            assert call(served.port, "POST", f"{path}/observations", {"counts": counts})[0] == 200
        asked = set()
        for _ in range(100):
            given = call(served.port, "POST", f"{path}/asks", {"k": 10})[1]["pulls"]
            asked |= {one["arm"] for one in given}
            tells = [
                {
                    "pull": one["pull"],
                    "reward": float(dice.random() < (0.05, 0.2)[len(one["arm"]) % 2]),
                }
                for one in given
            ]
            assert call(served.port, "POST", f"{path}/tells", {"tells": tells})[0] == 200
        tried += len(asked & set(new))
    assert tried >= 0.76 * 120
