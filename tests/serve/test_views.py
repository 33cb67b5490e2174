"""Views agree with what the handle says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from manyarms.live.databases import Database
from manyarms.serve.game import Game

import manyarms as ma
from manyarms.serve import views
from manyarms.serve.look import Look
from tests.serve.machines import InThread, call, in_thread, new_name, opened, row_of

pytestmark = pytest.mark.interpreted
KEYS = [f"item {k:03}" for k in range(200)]


class Following(Look):
    """What the database holds, seen from outside; it answers at once."""

    def __init__(self, database: Database) -> None:
        self.load(database)

    def load(self, database: Database) -> None:
        super().__init__(Game.load(database, row_of(database, "x")))
        self._database = database

    def _ask(self, key: str, function: Callable[[Database], Any]) -> Any:
        return function(self._database)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Following, ma.Live]]:
    """An experiment with keys, and a handle that has played the same."""
    folder: Path = tmp_path_factory.mktemp("views")
    store, path = f"sqlite:///{folder}/x.db?sync=never", "/v1/experiments/x"
    live = ma.MOSS().live(arms=KEYS, horizon=1000, seed=5)
    with in_thread(store) as one:
        spec = {"policy": "moss", "horizon": 1000, "seed": 5}
        assert call(one.port, "PUT", path, spec)[0] == 201
        with opened(store) as database:
            look = Following(database)
            chosen: dict[str, Any] = {"arm": {"key": "a"}}
            for name, view in views.VIEWS.items():  # of nothing
                view(look, **chosen.get(name, {}))
            assert call(one.port, "POST", f"{path}/arms", {"names": KEYS})[0] == 200
            pulls = call(one.port, "POST", f"{path}/asks", {"k": 60})[1]["pulls"]
            assert [p["arm"] for p in pulls] == [p.arm for p in live.ask(60)]
            tells = [{"pull": p, "reward": p % 4 / 3} for p in range(40)]
            call(one.port, "POST", f"{path}/tells", {"tells": tells})
            live.tell_many((p, p % 4 / 3) for p in range(40))
            call(one.port, "POST", f"{path}/abandons", {"pulls": [41]})
            live.abandon(41)
            retired = pulls[3]["arm"].replace(" ", "%20")
            assert call(one.port, "DELETE", f"{path}/arms/{retired}")[0] == 200
            live.retire(pulls[3]["arm"])
            look.load(database)
            yield look, live


def test_summary(played: tuple[Following, ma.Live]) -> None:
    look, live = played
    seen, progress, best = views.summary(look), live.progress(), live.recommend()
    assert (seen.pulls, seen.told, seen.pending, seen.abandoned) == (60, 40, 19, 1)
    assert seen.mean_reward == progress.mean_reward
    assert seen.last_hour == pytest.approx(progress.mean_reward)
    assert seen.recommended is not None
    assert seen.recommended.arm == best.arm
    assert (seen.recommended.low, seen.recommended.high) == best.interval
    low = best.interval[0]
    others = [a for a in live.arms() if a.told and not a.retired and a.arm != best.arm]
    assert seen.rivals == sum(a.interval[1] > low for a in others)
    assert seen.untried == 200 - 60
    assert (seen.state, seen.policy, seen.alarm) == ("running", "moss", "")


def test_leaders_and_arms(played: tuple[Following, ma.Live]) -> None:
    look, live = played
    assert [a.arm for a in views.leaders(look, 7).arms] == [a.arm for a in live.top(7)]
    assert sum(a.recent or 0 for a in views.arms(look, limit=100).arms) == pytest.approx(1)
    tried = {a.arm: a for a in live.arms()}
    page = views.arms(look, sort="arm", limit=150)
    assert [a.arm for a in page.arms] == KEYS[:150]
    assert page.cursor == KEYS[149]
    assert page.total == 199
    for seen in page.arms:
        known = tried.get(seen.arm)
        assert seen.pulls == (0 if known is None else known.pulls)
        assert seen.retired == (known is not None and known.retired)
    rest = views.arms(look, sort="arm", cursor=page.cursor, limit=150)
    assert [a.arm for a in rest.arms] == KEYS[150:]
    found = views.arms(look, search="item 00", sort="pulls")
    assert {a.arm for a in found.arms} == {key for key in KEYS[:10] if key in tried}
    one = views.arm(look, KEYS[0])
    assert one is not None
    assert one.arm == KEYS[0]
    assert views.arm(look, "nobody") is None


def test_minutes_and_pending_pulls(played: tuple[Following, ma.Live]) -> None:
    look, live = played
    points = views.minutes(look).points
    assert sum(p.asked for p in points) == sum(p.fresh for p in points) == 60
    assert sum(p.told for p in points) == 40
    assert sum(p.abandoned for p in points) == 1
    assert sum(p.reward for p in points) == pytest.approx(live.progress().reward)
    waiting = views.pending(look)
    assert waiting.count == sum(b.count for b in waiting.ages) == 19
    assert sum(b.count for b in waiting.delays) == 40
    assert [p.pull for p in waiting.oldest] == [p.id for p in live.pending][:20]


def test_a_long_course_has_few_points(played: tuple[Following, ma.Live]) -> None:
    look, _ = played
    now = int(time.time() // 60)
    rows = [(now - 7 * k, 1, 1, 0, 0.5, 0) for k in range(1, 2000)]
    for row in rows:
        look._database.run(
            f"INSERT INTO minutes VALUES ({look.game.id}, {', '.join(map(str, row))})"
        )
    look._cache.clear()
    course = views.minutes(look)
    assert len(course.points) <= 300
    assert sum(p.asked for p in course.points) == 60 + len(rows)
    assert all(p.at % (60 * course.step) == 0 for p in course.points)


def test_the_smallest_reward_breaks_no_view(served: InThread) -> None:
    name = new_name()
    path = f"/v1/experiments/{name}"
    assert call(served.port, "PUT", path, {"policy": "moss", "horizon": 50, "n_arms": 9})[0] < 300
    assert call(served.port, "POST", f"{path}/asks", {})[0] == 200
    told = {"tells": [{"pull": 0, "reward": 5e-324}]}
    assert call(served.port, "POST", f"{path}/tells", told)[0] == 200
    for what in ("", "/leaders", "/verdict", "/arms", "/pending", "/events"):
        status, _ = call(served.port, "GET", path + what)
        assert status == 200, what
    listed = call(served.port, "GET", "/v1/experiments")[1]["experiments"]
    (mine,) = [one for one in listed if one["name"] == name]
    assert mine["recommended"]["low"] == 0.0
    assert mine["recommended"]["told"] == 1
