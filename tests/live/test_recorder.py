"""Calls are atomic: signals, Ctrl-C, forks, and policies that raise."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import manyarms as ma
from manyarms.core.gc_pause import gc_paused
from manyarms.core.memory import Ints, Memory
from manyarms.live import recorder
from manyarms.protocol import plays
from tests.inference.random_events import in_turn, new
from tests.live.forking import what_forks_say
from tests.live.stores import copied, known

Action = Callable[[], object]


def calls(live: ma.Live, pull: ma.Pull) -> list[Action]:
    """Return all calls that change a handle."""
    return [
        live.ask,
        lambda: live.ask(2),
        lambda: live.tell(pull, 1.0),
        lambda: live.tell_many([(pull, 1.0)]),
        lambda: live.abandon(pull),
        lambda: live.observe(0, 1.0),
        lambda: live.add_arms(1),
        lambda: live.retire(0),
        lambda: live.season(horizon=9),
    ]


def views(live: ma.Live) -> list[Action]:
    """Return all queries of a handle except `repr`, which must never fail."""
    return [
        *(live.recommend, live.arms, live.progress, live.to_dataframe, live.verdict),
        *(lambda: live.top(2), lambda: live.pending, lambda: live.pulls, lambda: live.n_arms),
        *(lambda: str(live), live._repr_html_),
    ]


LINES = re.compile(r"manyarms/(live/(?!snapshots|packing)|store/|protocol/pending)")


class _AtLine:
    """Runs a function before the given line of an action; a snapshot counts as one line."""

    def __init__(self, line: int, what: Action) -> None:
        self.left, self.what = line, what

    def __call__(self, frame: Any, event: str, _: Any) -> Any:
        if not LINES.search(frame.f_code.co_filename.replace("\\", "/")):
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                self.what()
        return self

    def happens(self, action: Action) -> bool:
        """Run the action; return whether it had that many lines."""
        before = sys.gettrace()
        with gc_paused(), contextlib.suppress(KeyboardInterrupt):
            sys.settrace(self)
            try:
                action()
            finally:
                sys.settrace(before)
        return self.left <= 0


# every eleventh line in `make test`, and each line every night
some_or_all_lines = pytest.mark.parametrize(
    "apart", [11, pytest.param(1, marks=[pytest.mark.long, pytest.mark.slow])]
)


def _at_lines(apart: int, case: Callable[[int], tuple[bool, bool]]) -> int:
    """Run a case at lines 1, 1 + apart, …; return how many calls were refused."""
    refused = 0
    for line in itertools.count(1, apart):
        more, stopped = case(line)
        refused += stopped
        if not more:
            break
    return refused


def _interrupt() -> None:
    raise KeyboardInterrupt


def _are_refused(
    live: ma.Live, pull: ma.Pull, error: type[Exception], words: str, *, looks: bool = True
) -> None:
    for action in (*calls(live, pull), *(views(live) if looks else ())):
        with pytest.raises(error, match=words):
            action()
    assert repr(live)


ACTIONS: dict[str, Callable[[ma.Live, list[ma.Pull]], object]] = {
    "ask": lambda live, pulls: live.ask(),
    "ask 3": lambda live, pulls: live.ask(3),
    "tell": lambda live, pulls: live.tell(pulls[0], 1.0),
    "tell_many": lambda live, pulls: live.tell_many([(pulls[0], 1.0), (pulls[1], 0.0)]),
    "abandon": lambda live, pulls: live.abandon(pulls[0]),
    "add_arms": lambda live, pulls: live.add_arms(2),
    "retire": lambda live, pulls: live.retire(pulls[2].arm),
}


@pytest.mark.patient
@pytest.mark.filterwarnings("ignore:Exception ignored in.*FileIO")  # interrupted while closing
@some_or_all_lines
@pytest.mark.parametrize("happens", ACTIONS)
def test_an_interrupted_recorded_call_loses_nothing(
    happens: str, apart: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handle refuses further calls or is intact, and its record can be continued."""
    monkeypatch.setattr(recorder, "SNAPSHOT_EVERY", 5)

    def case(line: int) -> tuple[bool, bool]:
        path = tmp_path / f"{line}.db"
        live = new(ma.MOSS(count_late=True), store=path)
        in_turn(live, 1)
        pulls = live.ask(3)  # five events; after the next one a snapshot is stored
        more = _AtLine(line, _interrupt).happens(partial(ACTIONS[happens], live, pulls))
        last = None
        try:
            for pull in live.pending:
                live.tell(pull, 0.5, again="ignore")
            in_turn(live, 2)
            last = known(live)
        except ma.StoreError:
            # a handle that was interrupted during recording still answers queries
            _are_refused(live, pulls[1], ma.StoreError, "[Oo]pen it again", looks=False)
        live.close()
        with ma.load(path) as again:
            assert last in (None, known(again))
            for pull in again.pending:
                again.tell(pull, 0.5)
            in_turn(again, 2)
        return more, last is None

    assert _at_lines(apart, case) > 5 // apart
    gc.collect()  # warn about open files here, not in a later test


@pytest.mark.patient
@some_or_all_lines
@pytest.mark.parametrize("happens", ACTIONS)
def test_an_interrupted_handle_without_a_store_refuses(happens: str, apart: int) -> None:
    def case(line: int) -> tuple[bool, bool]:
        live = new(ma.MOSS(count_late=True), now=lambda: 1e9)
        pulls = live.ask(3)
        before, done = known(live), copied(live)
        ACTIONS[happens](done, pulls)
        more = _AtLine(line, _interrupt).happens(partial(ACTIONS[happens], live, pulls))
        try:
            live.progress()
            assert known(live) in (before, known(done))
        except ma.TurnError:
            _are_refused(live, pulls[1], ma.TurnError, "was interrupted|has not finished")
            return more, True
        return more, False

    assert _at_lines(apart, case) > 5 // apart


@pytest.mark.patient
@some_or_all_lines
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("happens", ACTIONS)
def test_calls_in_a_signal_handler_are_refused_or_see_a_consistent_handle(
    happens: str, recorded: bool, apart: int, tmp_path: Path
) -> None:
    def case(line: int) -> tuple[bool, bool]:
        path = tmp_path / f"{line}.db"
        live = new(ma.MOSS(count_late=True), store=path if recorded else None)
        pulls = live.ask(3)
        seen: list[Any] = []

        def handler() -> None:
            try:
                seen[:] = [live.pulls, live.ask()]
            except (ma.TurnError, ma.StoreError) as error:
                seen[:] = [str(error)]

        more = _AtLine(line, handler).happens(partial(ACTIONS[happens], live, pulls))
        progress, ids = live.progress(), [pull.id for pull in live.pending]
        assert sorted(set(ids)) == ids
        assert progress.pulls == progress.told + len(ids) + progress.abandoned
        if len(seen) == 2:
            assert seen[1].id == seen[0]
        elif seen:
            assert "has not finished" in seen[0]
        if recorded:
            live.close()
            with ma.load(path) as again:
                assert known(again) == known(live)
        return more, len(seen) == 1

    assert _at_lines(apart, case) > 10 // apart


@pytest.mark.patient
@some_or_all_lines
@pytest.mark.parametrize("look", ["arms", "progress", "__str__"])
def test_calls_in_a_signal_handler_do_not_disturb_queries(look: str, apart: int) -> None:
    played = new()
    in_turn(played, 5)

    def case(line: int) -> tuple[bool, bool]:
        live = copied(played)
        seen: list[Any] = []
        refused = False

        def handler() -> None:
            nonlocal refused
            try:
                live.retire(live.ask().arm)
            except ma.TurnError:
                refused = True

        more = _AtLine(line, handler).happens(lambda: seen.append(getattr(live, look)()))
        before, now = ([getattr(handle, look)()] for handle in (played, live))
        # the call came before or after the query; compare by repr, because estimates may be nan
        assert repr(seen) in (repr(before), repr(now)) or line == 1
        assert not refused or repr(now) == repr(before)
        return more, refused

    assert _at_lines(apart, case) > 5 // apart


@pytest.mark.patient
@some_or_all_lines
def test_a_handle_closed_in_a_signal_handler_acknowledges_nothing_more(
    apart: int, tmp_path: Path
) -> None:
    def case(line: int) -> tuple[bool, bool]:
        live = new(store=tmp_path / f"{line}.db")
        heard: list[ma.Pull] = []
        at_line, refused = _AtLine(line, live.close), False
        try:
            at_line.happens(lambda: heard.append(live.ask()))
        except ma.StoreError:
            refused = True
        live.close()
        with pytest.raises(ma.StoreError, match="[Oo]pen it again"):
            live.ask()
        with ma.load(tmp_path / f"{line}.db") as again:
            assert set(heard) <= set(again.pending)
        return at_line.left <= 0, refused

    assert _at_lines(apart, case) > 10 // apart


# Policies that raise


class TouchyState(NamedTuple):
    pulls: Ints


@dataclass(frozen=True, kw_only=True)
class Touchy(ma.Policy):
    name = "touchy"
    anytime = True

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> TouchyState:
        return TouchyState(memory.ints(1))


def _reset(state: TouchyState, key: int, horizon: int) -> None:
    state.pulls[0] = 0


def _ask(state: TouchyState) -> tuple[int, int]:
    state.pulls[0] += 1
    return 0, 0 if state.pulls[0] < 4 else 99


def _tell(state: TouchyState, slot: int, reward: float) -> None:
    state.pulls[0] += 100
    if reward == 0.25:
        raise ValueError("not this one")
    state.pulls[0] -= 100


plays(TouchyState, reset=_reset, ask=_ask, tell=_tell)


@pytest.mark.parametrize("recorded", [False, True])
def test_a_policy_that_raises_does_not_damage_the_record(recorded: bool, tmp_path: Path) -> None:
    def begin() -> ma.Live:
        return Touchy().live(n_arms=3, store=tmp_path / "shop.db" if recorded else None)

    live = begin()
    first, second = live.ask(2)
    with pytest.raises(ValueError, match="not this one"):
        live.tell_many([(first, 1.0), (second, 0.25)])
    for action in (*calls(live, second), *views(live)):
        with pytest.raises(
            (ma.TurnError, ma.StoreError), match="`tell_many` was interrupted by Val"
        ):
            action()
    live.close()
    if recorded:
        with begin() as live:
            assert live.pending == [first, second]
            live.tell(second, 1.0)
            with pytest.raises(ma.ParameterError, match="chose arm 99, but there are 3"):
                live.ask(2)
        with begin() as live:
            assert (live.pulls, live.pending) == (2, [first])


# Forks


@pytest.mark.patient
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_never_hangs_and_does_not_use_the_parents_store(tmp_path: Path) -> None:
    said = what_forks_say(20, tmp_path / "shop.db")
    assert [line.count("and this is a forked process") for line in said] == [2] * 20
    with ma.load(tmp_path / "shop.db") as live:
        assert live.pulls > 0
        assert len(live.pending) <= 4
    said = what_forks_say(20)
    assert len(said) == 20
    assert all("went on" in line or "not finished" in line for line in said)
