"""The contract of stores: whatever happens, what they hold is what the handle's caller heard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.live.databases import database_of, store_of
from manyarms.live.store import Event, EventKind, Store
from tests.helpers import ALL_POLICIES, label
from tests.inference.games import counts, in_turn, new, play, step
from tests.live.stores import MAKERS, Memory, Watched, leave

Opened = Callable[[], Store]


@pytest.fixture(params=MAKERS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Return a function that opens the same store again and again."""
    return MAKERS[request.param](tmp_path)


# Every event comes back


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("arms", [{"n_arms": 12}, {"n_arms": None, "arms": list("abcdefghijkl")}])
def test_opened_again_after_every_event_of_a_long_game(
    opened: Opened, arms: dict[str, Any]
) -> None:
    """Nothing is written when a handle is closed: what is opened is what a kill would leave."""
    control = new(ma.Quantile(), **arms)
    ma.recorded(opened(), new(ma.Quantile(), **arms)).close()
    for event in range(500):
        with ma.recorded(opened()) as live:
            assert (counts(live), live.pending) == (counts(control), control.pending)
            if event % 50 == 0:
                assert live.to_bytes() == control.to_bytes()
            step(live)
            step(control)
            if event % 150 == 9:
                live.compact()
    assert live.to_bytes() == control.to_bytes()
    assert min(counts(control)) > 2  # of everything that can happen


@pytest.mark.slow
@pytest.mark.parametrize("policy", ALL_POLICIES, ids=label)
def test_every_policy_comes_back(policy: ma.Policy, opened: Opened) -> None:
    control = new(policy)
    play(control, 150)
    with ma.recorded(opened(), new(policy)) as live:
        play(live, 80)
    with ma.recorded(opened()) as live:
        play(live, 70)
        assert live.to_bytes() == control.to_bytes()


def test_what_a_store_is_given(opened: Opened) -> None:
    """One call, one group of events; a call that changes nothing gives none."""
    watched = Watched(opened())
    live = ma.recorded(watched, ma.MOSS().live(arms=["a", "b"], horizon=99, seed=1))
    first, second, third = live.ask(3)
    arms = {"a": 0, "b": 1}
    live.tell_many([(first, 1.0), (second, 0.5)])
    live.tell(first, 0.0, again="ignore")
    live.abandon(third)
    live.add_arms(["c", 7])
    live.add_arms([])
    live.retire("a")
    with pytest.raises(ma.TurnError):
        live.retire("a")
    live.restore("a")
    live.observe(7, [0.5])
    live.observe(7, [])
    returned, other = live.ask(2)
    assert (returned.arm, returned.id, other.id) == ("a", 3, 5)
    assert watched.appended == [
        [Event(EventKind.ASKED, pull.id, arms[pull.arm]) for pull in (first, second, third)],
        [
            Event(EventKind.TOLD, 0, arms[first.arm], 1.0),
            Event(EventKind.TOLD, 1, arms[second.arm], 0.5),
        ],
        [Event(EventKind.ABANDONED, 2, arms[third.arm])],
        [Event(EventKind.ADDED, -1, 2, names=("c", 7))],
        [Event(EventKind.RETIRED, -1, 0)],
        [Event(EventKind.RESTORED, -1, 0)],
        [Event(EventKind.OBSERVED, -1, 3, 0.5)],
        [
            Event(EventKind.ASKED, 3, 0),
            Event(EventKind.ASKED, 4, 3),
            Event(EventKind.ANSWERED, 4, 3, 0.5),
            Event(EventKind.ASKED, 5, live._game.arms.number(other.arm)),
        ],
    ]


# The same script, every time


def test_the_same_script_serves_the_first_start_and_every_other(opened: Opened) -> None:
    for start in range(3):
        fresh = new()
        with ma.recorded(opened(), fresh) as live:
            assert live is fresh
            assert live.pulls == 10 * start
            in_turn(live, 10)
    with ma.recorded(opened()) as live:
        assert live.pulls == 30
        assert f"recorded in {opened()}" in repr(live)


def test_a_script_may_begin_with_the_arms_there_are_now(opened: Opened) -> None:
    with ma.recorded(opened(), ma.MOSS().live(arms=["a", "b"], horizon=9)) as live:
        live.add_arms(["c"])
        live.retire("a")
    for names in (["a", "b"], ["a", "b", "c"]):
        with ma.recorded(opened(), ma.MOSS().live(arms=names, horizon=9)) as live:
            assert live.n_arms == 2
    with pytest.raises(
        ma.ParameterError, match="recorded arms, of which arm 1 is 'b', got 'x'. Change arms"
    ):
        ma.recorded(opened(), ma.MOSS().live(arms=["a", "x"], horizon=9))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 5}, "`live` must be a handle with the recorded seed, 4, got 5"),
        ({"horizon": 9}, "the recorded horizon, 5000, got 9"),
        ({"reward_range": None}, r"the recorded reward_range, \(0.0, 1.0\), got None"),
        ({"n_arms": 13}, "with the recorded arms, 12 numbered, got 13 numbered"),
        ({"policy": ma.Quantile()}, "with the policy moss, not with quantile"),
    ],
)
def test_another_game_is_refused(opened: Opened, changes: dict[str, Any], message: str) -> None:
    with ma.recorded(opened(), new()) as live:
        play(live, 7)
        known = live.to_bytes()
    other = new(**changes)
    with pytest.raises(ValueError, match=message):
        ma.recorded(opened(), other)
    other.ask()  # it is free
    with pytest.raises(ValueError, match="must be a new handle|not with quantile|must be a handle"):
        ma.recorded(opened(), other)
    with ma.recorded(opened()) as live:  # and so is the store
        assert live.to_bytes() == known


def test_a_handle_that_was_used_may_begin_a_store(opened: Opened, tmp_path: Path) -> None:
    used = new()
    play(used, 50)
    with ma.recorded(opened(), used) as live:
        with pytest.raises(ma.ParameterError, match="`live` must be a handle without a store"):
            ma.recorded(tmp_path / "other", live)
        play(live, 20)
    with ma.recorded(opened()) as again:
        assert again.to_bytes() == used.to_bytes()


def test_nothing_is_there_yet(opened: Opened, tmp_path: Path) -> None:
    with pytest.raises(ma.StoreError, match="holds no game yet. To begin one, pass a handle"):
        ma.recorded(opened())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ma.ParameterError, match=r"`live` must be what policy.live\(...\) returns"):
        ma.recorded(opened(), ma.MOSS())  # type: ignore[arg-type]
    ma.recorded(opened(), new()).close()


def test_a_second_opener_is_refused(opened: Opened) -> None:
    with ma.recorded(opened(), new()) as live:
        with pytest.raises(ma.StoreError, match="open already"):
            ma.recorded(opened())
        live.ask()
    with ma.recorded(opened()) as live:
        assert live.pulls == 1


def test_a_closed_handle_may_be_looked_at_and_does_not_move(opened: Opened) -> None:
    with ma.recorded(opened(), new()) as live:
        play(live, 40)
        pull = live.ask()
        known = live.to_bytes()
    for call in calls(live, pull):
        with pytest.raises(ma.StoreError, match="is closed. Open it again"):
            call()
    assert live.to_bytes() == known
    assert live.progress().pulls == live.pulls
    live.close()
    ma.recorded(opened()).close()


# Failures


def calls(live: ma.Live, pull: ma.Pull) -> list[Callable[[], object]]:
    """Everything that changes a handle."""
    return [
        live.ask,
        lambda: live.ask(2),
        lambda: live.tell(pull, 1.0),
        lambda: live.tell_many([(pull, 1.0)]),
        lambda: live.abandon(pull),
        lambda: live.add_arms(1),
        lambda: live.retire(0),
        live.compact,
    ]


def views(live: ma.Live) -> list[Callable[[], object]]:
    """Everything that looks at a handle, but for `repr`, which must never fail."""
    return [
        *(live.recommend, live.arms, live.progress, live.to_dataframe, live.to_bytes),
        *(lambda: live.top(2), lambda: live.pending, lambda: live.pulls, lambda: live.n_arms),
        *(lambda: str(live), live._repr_html_),
    ]


@pytest.mark.parametrize("which", range(7))
@pytest.mark.parametrize("error", [OSError(28, "full"), ma.StoreError("not ours any more.")])
def test_after_a_failed_write_what_must_be_recorded_is_refused(
    opened: Opened, which: int, error: Exception
) -> None:
    watched = Watched(opened())
    live = ma.recorded(watched, new())
    play(live, 40)
    pull, known = live.ask(), live.to_bytes()
    watched.error = error
    with pytest.raises(ma.StoreError, match="could not be written: OSError.*again|not ours"):
        calls(live, pull)[which]()
    watched.error = None
    for _ in range(2):
        for call in calls(live, pull):
            with pytest.raises(ma.StoreError, match="could not be written|not ours any more"):
                call()
        for view in views(live):
            assert view() is not None
        live.close()  # and the same afterwards
    assert repr(live)
    with ma.recorded(opened()) as again:
        assert again.to_bytes() == known
        play(again, 20)


def test_a_failure_between_calls_is_not_overlooked(opened: Opened) -> None:
    watched = Watched(opened())
    live = ma.recorded(watched, new())
    pull = live.ask()
    watched.failure = "somebody else took over"
    for call in calls(live, pull):
        with pytest.raises(ma.StoreError, match="could not be written: somebody else took over"):
            call()
    live.close()
    with pytest.raises(ma.StoreError, match="could not be written"):
        live.ask()
    assert live.progress().pending == 1
    with ma.recorded(opened()) as again:
        assert again.pending == [pull]


def test_a_snapshot_that_fails_does_not_stop_the_game(opened: Opened) -> None:
    watched = Watched(opened())
    with ma.recorded(watched, new()) as live:
        watched.error = OSError(28, "No space left on device")
        with pytest.raises(ma.StoreError, match="could not be compacted: .*No space left"):
            live.compact()
        watched.error = None
        play(live, 30)
        live.compact()
    with ma.recorded(opened()) as again:
        assert again.to_bytes() == live.to_bytes()


@pytest.mark.parametrize("store", [3, b"game", None])
def test_what_is_no_store(store: Any) -> None:
    with pytest.raises(ma.ParameterError, match="`store` must be a path or a store, got"):
        ma.recorded(store)
    with pytest.raises(
        ma.ParameterError, match="`store` must be sqlite:///FILE .* got 'mysql://x'"
    ):
        ma.recorded("mysql://x")


def test_a_store_that_another_process_took_is_refused() -> None:
    """As a database would notice: the shelf has another owner."""
    shelf: dict[str, object] = {}
    live = ma.recorded(Memory(shelf), new())
    pull = live.ask()
    shelf["owner"] = None
    with ma.recorded(Memory(shelf)) as successor:
        successor.tell(pull, 1.0)
        for _ in range(2):
            with pytest.raises(ma.StoreError, match="not ours any more"):
                live.tell(pull, 0.0)


def test_the_numbers_of_events_are_those_that_files_have() -> None:
    words = ["asked", "told", "abandoned", "added", "retired", "observed", "answered", "restored"]
    numbers = {word: number for number, word in enumerate(words, 1)}
    assert {kind.word: int(kind) for kind in EventKind} == numbers | {"reported": 100}


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    database = database_of(f"sqlite:///{tmp_path}/shop.db?sync=never")
    database.open()

    def create(failure: type[BaseException] | None) -> None:
        with database.transaction():
            database.create("game", "{}", "running", "secret")
            if failure is not None:
                raise failure

    for failure in (ValueError, KeyboardInterrupt):
        with pytest.raises(failure):
            create(failure)
        assert database.find("game") is None
    create(None)  # the last transaction has ended
    assert database.find("game") is not None
    database.close()


def test_an_experiment_of_the_service_is_left_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    database = database_of(url)
    database.open()
    database.create("game", '{"n_arms":50}', "running", "secret", n_arms=50)
    before = database.find("game")
    for live in (None, new()):
        with pytest.raises(ma.StoreError, match="is an experiment of the service"):
            ma.recorded(url, live)
    after = database.find("game")
    database.close()
    assert after is not None
    assert after == before


@pytest.mark.parametrize("more", ["[]", "{}", "7", "[null]"])
def test_damaged_names_in_a_database(tmp_path: Path, more: str) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    live = ma.recorded(url, ma.MOSS().live(arms=["a", "b"], horizon=9))
    live.add_arms(["c"])
    leave(live)
    database = database_of(url)
    database.open()
    database.run("UPDATE events SET more = :more", more=more)
    database.close()
    with pytest.raises(ma.SavedFileError, match=r"database is damaged: .* Restore a backup"):
        ma.recorded(url)


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: ma.Journal(folder / "game", sync="never"),
        lambda folder: store_of(f"sqlite:///{folder}/game.db?sync=never"),
    ],
)
def test_stores_compact_by_growth(make: Any, tmp_path: Path) -> None:
    """A snapshot follows more events than there are arms tried, and more than 20000."""

    def recorded_events() -> int:
        store = make(tmp_path)
        held = store.load()
        store.close()
        return len(held.events.kind)

    with ma.recorded(make(tmp_path), ma.MOSS().live(n_arms=30_000, horizon=30_000)) as live:
        pulls = live.ask(20_001)
    assert recorded_events() == 20_001  # and so many arms
    with ma.recorded(make(tmp_path)) as live:
        live.tell(pulls[0], 1.0)
        known = live.to_bytes()
    assert recorded_events() == 0
    with ma.recorded(make(tmp_path)) as live:
        assert live.to_bytes() == known
        live.ask(9)
    assert recorded_events() == 9
