"""An experiment that remembers an earlier one."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest
from manyarms.serve.game import Game, ReplayError

import manyarms as ma
from manyarms.client import AsyncRemote
from manyarms.serve import experiment
from manyarms.serve.leader import Leader
from tests.client.same import plain, play
from tests.serve.machines import (
    TOKEN,
    InThread,
    call,
    in_thread,
    made_token,
    new_name,
    node,
    opened,
    path_of,
    row_of,
    wait,
)

KEYS = [f"{'x' * (k % 7 + 1)}{k}" for k in range(30)]


def begun(one: InThread, **spec: Any) -> ma.Remote:
    settings: dict[str, Any] = {"arms": KEYS, "seed": 3} | spec
    return ma.Remote.create(f"http://127.0.0.1:{one.port}", new_name(), token=TOKEN, **settings)


def known(game: ma.Live | ma.Remote) -> list[Any]:
    return sorted(plain(game.arms()))


def test_arms_by_number_and_the_first_ask_answers_nothing(served: InThread) -> None:
    remote = begun(served, arms=None, n_arms=500)
    for _ in range(100):
        pull = remote.ask()
        remote.tell(pull, float(pull.arm % 7 == 0))
    assert remote.add_arms(3) == range(500, 503)
    there = remote.season(new_name())
    seen = there.summary()
    assert (seen["n_arms"], seen["head"], seen["pulls"]) == (503, 0, 100)
    there.ask()
    assert there.summary()["head"] == 1, "the rewards of all earlier pulls are there already"


def test_others_have_their_turn_while_rewards_answer_pulls(
    served: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "_MOST_ANSWERED", 10)
    live = ma.Prospector().live(arms=KEYS, control="today", seed=3)
    remote = begun(served, control="today")
    for game in (live, remote):
        game.observe(KEYS[3], [1.0] * 95)
    commits: list[int] = []
    commit = Leader._commit

    async def counted(leader: Leader) -> None:
        commits.append(1)
        await commit(leader)

    monkeypatch.setattr(Leader, "_commit", counted)
    asked = remote.ask(3)
    assert [pull.arm for pull in asked] == [pull.arm for pull in live.ask(3)]
    assert len(commits) >= 9, "one for ten answers"
    assert [remote.ask().arm for _ in range(5)] == [live.ask().arm for _ in range(5)]


def test_the_same_again_is_no_mistake(served: InThread) -> None:
    remote = begun(served, policy="moss", horizon=50)
    path, name = path_of(remote.experiment), new_name()
    wanted = {"name": name, "horizon": 40}
    assert call(served.port, "POST", f"{path}/season", wanted)[0] == 201
    remote.tell(remote.ask(), 1.0)
    status, seen = call(served.port, "POST", f"{path}/season", wanted)
    assert (status, seen["horizon"], seen["head"]) == (200, 40, 0)
    for other in ({"horizon": 41}, {"horizon": 40, "seed": 1}, {"horizon": 40, "policy": "ucb1"}):
        status, said = call(served.port, "POST", f"{path}/season", {"name": name} | other)
        assert (status, said["code"]) == (409, "exists")
    status, said = call(served.port, "POST", f"{path_of(name)}/season", {"name": remote.experiment})
    assert (status, said["code"]) == (409, "exists")


def test_what_is_refused(served: InThread) -> None:
    port, empty = served.port, path_of(new_name())
    assert call(port, "PUT", empty, {})[0] == 201
    path = path_of(begun(served).experiment)
    said = {
        "no arms": (call(port, "POST", f"{empty}/season", {"name": "s1"}), 409, "no arms yet"),
        "unknown": (
            call(port, "POST", "/v1/experiments/nobody/season", {"name": "s1"}), 404, "nobody"
        ),
        "a name": (call(port, "POST", f"{path}/season", {"name": "a b"}), 422, "`name`"),
        "horizon": (
            call(port, "POST", f"{path}/season", {"name": "s1", "policy": "moss"}),
            422,
            "`horizon` must be given to moss",
        ),
        "policy": (
            call(port, "POST", f"{path}/season", {"name": "s1", "policy": "mos"}), 422, "'moss'"
        ),
        "put": (
            call(port, "PUT", "/v1/experiments/s1", {"season": {"of": "x", "head": 1}}),
            422,
            "`season` is set by the service",
        ),
    }  # fmt: skip
    for what, ((status, answer), expected, words) in said.items():
        assert (status, words in answer["message"]) == (expected, True), (what, answer)
    assert call(port, "GET", "/v1/experiments/s1")[0] == 404


def test_who_may(served: InThread) -> None:
    port, remote = served.port, begun(served)
    path = path_of(remote.experiment)
    for role, only, expected in (
        ("client", None, 403),
        ("admin", remote.experiment, 403),  # it may make no other experiment
        ("admin", None, 201),
    ):
        token = made_token(served.store, new_name(), role, experiment=only)
        status, _ = call(port, "POST", f"{path}/season", {"name": new_name()}, token=token)
        assert status == expected, role


@pytest.mark.slow
def test_the_first_snapshot_is_kept(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_thread(store) as one:
        remote = begun(one)
        play(remote, 1)
        there = remote.season(new_name())
        for k in range(4):
            play(there, k)
            there.pause()  # which keeps a snapshot
            with opened(store) as database:
                x = row_of(database, there.experiment)
                newest = "SELECT max(seq) FROM snapshots WHERE experiment = :x"
                wait(lambda: database.first(newest, x=x.id)[0] == x.head)  # noqa: B023
            there.resume()
    with opened(store) as database:
        row = row_of(database, there.experiment)
        kept = database.run("SELECT seq FROM snapshots WHERE experiment = :x ORDER BY 1", x=row.id)
        assert len(kept) == 3
        assert kept[0][0] == 0
        Game.replayed(database, row)
        database.run("DELETE FROM snapshots WHERE experiment = :x AND seq = 0", x=row.id)
        with pytest.raises(ReplayError, match="has lost the snapshot that it began with"):
            Game.replayed(database, row)


def test_with_an_event_loop(served: InThread) -> None:
    name, url = begun(served).experiment, f"http://127.0.0.1:{served.port}"

    async def go() -> None:
        async with AsyncRemote(url, name, token=TOKEN) as remote:
            pull = await remote.ask()
            await remote.tell(pull, 1.0)
            async with await remote.season(new_name(), seed=4) as there:
                assert [arm.arm for arm in await there.arms()] == [pull.arm]

    asyncio.run(go())


@pytest.mark.slow
def test_killed_in_the_middle(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/serve.db"
    arms = b"".join(b'"item %d"\n' % k for k in range(60_000))
    path = path_of("shop")
    with node(store) as one:
        assert call(one.port, "PUT", path, {"seed": 2})[0] == 201
        kind: dict[str, Any] = {"Content_Type": "application/x-ndjson"}
        assert call(one.port, "POST", f"{path}/arms", arms, timeout=120, **kind)[0] == 200

        def ask_for_it() -> None:
            with contextlib.suppress(OSError):
                call(one.port, "POST", f"{path}/season", {"name": "next"}, timeout=60)

        asking = threading.Thread(target=ask_for_it)
        asking.start()
        with opened(store) as database:
            wait(lambda: database.first("SELECT count(*) FROM arms")[0] > 60_000)
            one.kill()
            asking.join()
            assert 60_000 < database.first("SELECT count(*) FROM arms")[0] < 120_000
            one.start()
            assert call(one.port, "GET", path_of("next"))[0] == 404
            wait(lambda: database.first("SELECT count(*) FROM arms")[0] == 60_000, 60)
            status, seen = call(one.port, "POST", f"{path}/season", {"name": "next"}, timeout=60)
            assert (status, seen["n_arms"]) == (201, 60_000)
            assert database.first("SELECT count(*) FROM arms")[0] == 120_000
            assert database.first("SELECT count(*) FROM experiments")[0] == 2
