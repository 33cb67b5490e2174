"""Attempts that succeed are counted, also if the attack fails, crashes or hangs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.attack.runner import Attack, Attempt, Workspace, in_child, run_attacks, survives


def _held(workspace: Workspace) -> Iterator[Attempt]:
    yield "one", workspace.new().is_dir()
    yield "two", survives(lambda: int("x"), ValueError)


def _lost(workspace: Workspace) -> Iterator[Attempt]:
    yield "one", True
    yield "two", survives(lambda: int("x"), OSError)


def _slow(workspace: Workspace) -> Iterator[Attempt]:
    yield "one", survives(lambda: None, seconds=0.0)


def _broken(workspace: Workspace) -> Iterator[Attempt]:
    yield "one", True
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("function", "code", "words"),
    [
        (_held, 0, ["2          2", "All attacks were withstood."]),
        (_lost, 1, ["2          1", "not withstood: two", "1 attacks were not withstood."]),
        (_slow, 1, ["1          0"]),
        (_broken, 1, ["2          1", "not withstood: ZeroDivisionError"]),
    ],
)
def test_successful_attempts_are_counted(
    function: Attack, code: int, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_attacks({"some: attack": function}) == code
    shown = capsys.readouterr().out
    assert all(word in shown for word in words)


def test_an_unknown_attack_is_an_error() -> None:
    assert run_attacks({"some: attack": _held}, ["other"]) == 1


def _child(what: str) -> Iterator[Attempt]:
    if what == "hangs":
        time.sleep(1000)
    yield "one", True
    if what == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif what == "raises":
        raise ZeroDivisionError
    yield "two", True


@pytest.mark.parametrize(
    ("what", "last"),
    [
        ("ends", ("two", True)),
        ("crashes", ("it ended with code -11 after one", False)),
        ("raises", ("it ended with code 1 after one", False)),
    ],
)
def test_a_crash_of_a_child_is_reported(what: str, last: Attempt) -> None:
    assert list(in_child(_child, what)) == [("one", True), last]


def test_a_hanging_child_is_reported() -> None:
    (last,) = in_child(_child, "hangs", seconds=0.2)
    assert last == ("it hangs after the beginning", False)
