"""Views of the service agree with a handle, and both use the same stores."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import manyarms as ma
from tests.serve.machines import TOKEN, call, in_thread, new_name, opened, path_of

pytestmark = pytest.mark.interpreted
NAMES = [f"item {k:03}" for k in range(200)]


class Played:
    """An experiment with names over HTTP, and a handle with the same events."""

    def __init__(self, port: int, live: ma.Live) -> None:
        self.port, self.live = port, live

    def __call__(self, path: str) -> Any:
        status, answer = call(self.port, "GET", f"{path_of('x')}{path}")
        assert status == 200, answer
        return answer


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    folder: Path = tmp_path_factory.mktemp("views")
    live = ma.MOSS().live(arms=NAMES, horizon=1000, seed=5)
    with in_thread(f"sqlite:///{folder}/x.db") as one:
        spec = {"policy": "moss", "horizon": 1000, "seed": 5}
        path = path_of("x")
        assert call(one.port, "PUT", path, spec)[0] == 201
        for what in ("", "/leaders", "/uplift", "/arms", "/course", "/pending"):
            assert call(one.port, "GET", path + what)[0] == 200, what  # without events
        assert call(one.port, "POST", f"{path}/arms", {"names": NAMES})[0] == 200
        pulls = call(one.port, "POST", f"{path}/asks", {"k": 60})[1]["pulls"]
        assert [p["arm"] for p in pulls] == [p.arm for p in live.ask(60)]
        tells = [{"pull": p, "reward": p % 4 / 3} for p in range(40)]
        call(one.port, "POST", f"{path}/tells", {"tells": tells})
        live.tell_many((p, p % 4 / 3) for p in range(40))
        call(one.port, "POST", f"{path}/abandons", {"pulls": [41]})
        live.abandon(41)
        assert call(one.port, "POST", f"{path}/retirements", {"arm": pulls[3]["arm"]})[0] == 200
        live.retire(pulls[3]["arm"])
        yield Played(one.port, live)


def test_summary(played: Played) -> None:
    seen, progress, best = played(""), played.live.progress(), played.live.recommend()
    counts = (seen["pulls"], seen["told"], seen["pending"], seen["abandoned"])
    assert counts == (60, 40, 19, 1)
    assert seen["mean_reward"] == progress.mean_reward
    assert seen["recommended"]["arm"] == best.arm
    assert (seen["recommended"]["low"], seen["recommended"]["high"]) == best.interval
    others = [a for a in played.live.arms() if a.told and not a.retired and a.arm != best.arm]
    assert seen["rivals"] == sum(a.interval[1] > best.interval[0] for a in others)
    assert seen["untried"] == 200 - 60
    assert (seen["state"], seen["policy"], seen["alarm"]) == ("running", "moss", "")


def test_leaders_and_arms(played: Played) -> None:
    live = played.live
    assert [a["arm"] for a in played("/leaders?k=7")["arms"]] == [a.arm for a in live.top(7)]
    tried = {a.arm: a for a in live.arms()}
    assert sum(a["recent"] for a in played("/arms?limit=100")["arms"]) == pytest.approx(1)
    page = played("/arms?sort=arm&limit=150")
    assert [a["arm"] for a in page["arms"]] == NAMES[:150]
    assert (page["cursor"], page["total"]) == ("150", 200)
    for seen in page["arms"]:
        known = tried.get(seen["arm"])
        assert seen["pulls"] == (0 if known is None else known.pulls)
        assert seen["retired"] == (known is not None and known.retired)
    rest = played(f"/arms?sort=arm&limit=150&cursor={page['cursor']}")
    assert [a["arm"] for a in rest["arms"]] == NAMES[150:]
    found = played("/arms?search=item%2000&sort=pulls")
    assert {a["arm"] for a in found["arms"]} == {name for name in NAMES[:10] if name in tried}
    assert played(f"/arms/{quote(NAMES[0])}")["arm"] == NAMES[0]
    assert call(played.port, "GET", f"{path_of('x')}/arms/nobody")[0] == 404


def test_course_and_pending_pulls(played: Played) -> None:
    points = played("/course")["points"]
    assert sum(p["asked"] for p in points) == sum(p["fresh"] for p in points) == 60
    assert sum(p["told"] for p in points) == 40
    assert sum(p["reward"] for p in points) == pytest.approx(played.live.progress().reward)
    waiting = played("/pending")
    assert waiting["count"] == sum(b["count"] for b in waiting["ages"]) == 19
    assert sum(b["count"] for b in waiting["delays"]) == 40
    assert [p["pull"] for p in waiting["oldest"]] == [p.id for p in played.live.pending][:20]


@pytest.mark.parametrize("name", ["a/b", "naïve ☕"])
def test_scripts_and_the_service_share_a_store(tmp_path: Path, name: str) -> None:
    """The service serves what a script recorded, and a script loads what the service did."""
    path, twin = tmp_path / "shop.db", ma.Prospector().live(arms=NAMES, control="now", seed=3)
    rewards = iter(range(10**6))

    def play(*handles: Any) -> None:
        for _ in range(40):
            pulls = [handle.ask() for handle in handles]
            assert pulls[0] == pulls[1]
            for handle in handles:
                handle.tell(pulls[0], float(next(rewards) // 2 % 3 == 0))

    with ma.Prospector().live(arms=NAMES, control="now", seed=3, store=path, name=name) as live:
        play(live, twin)
        live.observe(NAMES[7], [1.0, 0.0])
        twin.observe(NAMES[7], [1.0, 0.0])
        live.retire(NAMES[9])
        twin.retire(NAMES[9])
    with in_thread(f"sqlite:///{path}") as one:
        with ma.Remote(f"http://127.0.0.1:{one.port}", name, token=TOKEN) as remote:
            play(remote, twin)
            assert repr(remote.progress()) == repr(twin.progress())
            events = call(one.port, "GET", f"{path_of(name)}/events?limit=10000")[1]["events"]
        observed = [event for event in events if event["kind"] == "observed"]
        assert [(event["arm"], event["reward"]) for event in observed] == [
            (NAMES[7], 1.0), (NAMES[7], 0.0)]  # fmt: skip
        page = call(one.port, "GET", f"/experiments/{quote(name, safe='')}", Accept="text/html")
        assert page[0] == 200
    with ma.load(path, name=name) as live:
        play(live, twin)
        assert repr(live.progress()) == repr(twin.progress())


def test_filled_in_rewards_are_not_late_with_hold(tmp_path: Path) -> None:
    """With `window`, `missing=0` and `hold`, clicks are early, and zeros come at the end."""
    at = 1_000_000.0
    path = tmp_path / "clicks.db"
    given: dict[str, Any] = {"window": 600.0, "missing": 0, "hold": True, "seed": 1}
    with ma.Prospector().live(
        n_arms=50, store=path, name="clicks", now=lambda: at, **given
    ) as live:
        for k in range(400):
            pull = live.ask()
            at += 1.0
            if k % 4 == 0:
                live.tell(pull, 1.0)
    with in_thread(f"sqlite:///{path}") as one:
        seen = call(one.port, "GET", f"{path_of('clicks')}/pending")[1]
        while seen["count"]:  # all windows have ended; they are processed in batches
            seen = call(one.port, "GET", f"{path_of('clicks')}/pending")[1]
        assert (seen["expired"], seen["alarm"]) == (300, "")
        summary = call(one.port, "GET", path_of("clicks"))[1]
        assert (summary["told"], summary["reward"], summary["alarm"]) == (400, 100.0, "")
        page = call(one.port, "GET", "/experiments/clicks", Accept="text/html")[1].decode()
        assert "Late rewards differ" not in page
        assert "Early and late rewards differ no more" not in page  # they differ, as expected
        assert "Each reward counts when its window ends, so late rewards cannot bias" in page
        assert "<strong>300</strong> windows ended without a reward, which count as 0" in page
    with ma.load(path, now=lambda: at) as live:
        assert live.progress().warning == summary["warning"] == ""


@pytest.mark.parametrize("late", [False, True])
def test_all_views_give_the_same_warning(tmp_path: Path, late: bool) -> None:
    """Handle, client, API, list and page warn if only clicks are told, or if zeros are late."""
    at = 1_000_000.0
    path = tmp_path / "clicks.db"
    with ma.Prospector().live(n_arms=5, seed=1, store=path, name="clicks", now=lambda: at) as live:
        pulls = live.ask(400)
        at += 0.5
        for pull in pulls[::4]:
            live.tell(pull, 1.0)
        at += 100.0
        for pull in (pull for pull in pulls if pull.id % 4) if late else ():
            live.tell(pull, 0.0)
        said = live.progress().warning
        assert ("with `window` and `hold`" in said) == late
        assert ("Nearly all 100 rewards told are 1" in said) == (not late)
    with in_thread(f"sqlite:///{path}") as one:
        url = f"http://127.0.0.1:{one.port}"
        with ma.Remote(url, "clicks", token=TOKEN) as remote:
            assert remote.progress().warning == said
        (listed,) = call(one.port, "GET", "/v1/experiments")[1]["experiments"]
        assert listed["warning"] == call(one.port, "GET", path_of("clicks"))[1]["warning"] == said
        assert (call(one.port, "GET", f"{path_of('clicks')}/pending")[1]["alarm"] != "") == late
        for page in ("/", "/experiments/clicks"):
            text = call(one.port, "GET", page, Accept="text/html")[1].decode()
            assert text.replace("<code>", "`").replace("</code>", "`").count(escape(said)) == 1


def test_filled_in_rewards_count_as_late_without_hold(tmp_path: Path) -> None:
    """Without `hold`, they count as late, although they were not reported."""
    at = 1_000_000.0
    path = tmp_path / "clicks.db"
    with ma.Prospector().live(
        n_arms=50, store=path, name="clicks", now=lambda: at, window=600.0, missing=0
    ) as live:
        for pull in live.ask(100)[:40]:
            live.tell(pull, 1.0)
        at += 601.0
        live.ask()
    with in_thread(f"sqlite:///{path}") as one:
        page = call(one.port, "GET", "/experiments/clicks", Accept="text/html")[1].decode()
        assert "Rewards of ended windows count late" in page
        assert "rewards of 0 for windows that ended count late. With `hold`" in page


def test_an_unreadable_experiment_does_not_hide_others(store: str) -> None:
    good, bad = new_name(), new_name()
    with in_thread(store) as one:
        for name in (good, bad):
            assert call(one.port, "PUT", path_of(name), {"n_arms": 9})[0] == 201
    with opened(store) as other, other.writing() as link:
        link.run("UPDATE experiments SET spec = '{}' WHERE name = ?", bad)
    with in_thread(store) as one:
        listed = call(one.port, "GET", "/v1/experiments")[1]["experiments"]
        alarms = {x["name"]: x["alarm"] for x in listed if x["name"] in (good, bad)}
        assert alarms[good] == ""
        assert "settings that this version of manyarms cannot use" in alarms[bad]
        assert call(one.port, "DELETE", path_of(bad))[0] == 200
