"""The loop over attacks: it must not miss one that got through."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attack.arena import Arena, Attack, Attempt, run_attacks, survives


def _held(arena: Arena) -> Iterator[Attempt]:
    yield "one", arena.new().is_dir()
    yield "two", survives(lambda: int("x"), ValueError)


def _lost(arena: Arena) -> Iterator[Attempt]:
    yield "one", True
    yield "two", survives(lambda: int("x"), OSError)


def _slow(arena: Arena) -> Iterator[Attempt]:
    yield "one", survives(lambda: None, seconds=0.0)


def _broken(arena: Arena) -> Iterator[Attempt]:
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
def test_what_gets_through_is_counted(
    function: Attack, code: int, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_attacks({"some: attack": function}) == code
    shown = capsys.readouterr().out
    assert all(word in shown for word in words)


def test_a_name_that_is_no_attack_is_an_error() -> None:
    assert run_attacks({"some: attack": _held}, ["other"]) == 1
