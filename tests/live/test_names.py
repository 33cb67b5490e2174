"""Names of arms: valid and invalid ones."""

from __future__ import annotations

import enum
from itertools import count
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from tests.helpers import play_live


def test_arms_are_known_by_name() -> None:
    names: list[Any] = ["red", "grün", "🍎 apple", "x" * 20_000, " ", "17", "18"]
    live = ma.MOSS().live(arms=names, horizon=100, seed=1)
    assert set(play_live(live, 100, lambda arm, k: 0.5)) == set(names)
    assert live.add_arms(["new", "19"]) == ["new", "19"]
    assert live.add_arms([]) == []
    assert live.n_arms == 9
    live.retire("🍎 apple")
    assert live.n_arms == 8
    with pytest.raises(ma.TurnError, match="Cannot retire arm '🍎 apple': it is already retired"):
        live.retire("🍎 apple")
    with pytest.raises(ma.UnknownArmError, match=r"Unknown arm 'rad'. Did you mean 'red'\?"):
        live.retire("rad")
    with pytest.raises(ma.UnknownArmError, match=r"Unknown arm 17. Did you mean '17'\?"):
        live.retire(17)
    with pytest.raises(ma.UnknownArmError, match=r"Unknown arm \['red'\]"):
        live.retire([["red"]])  # type: ignore[list-item]
    with pytest.raises(ma.UnknownArmError, match="Correct the name, or add it"):
        live.retire("y" * 100)
    with pytest.raises(ma.UnknownArmError) as caught:
        live.retire("y" * 100_000)
    assert len(str(caught.value)) < 200


def test_names_of_other_types_become_strings_and_integers() -> None:
    class Colour(str, enum.Enum):  # noqa: UP042  the old way is around
        RED = "red"

    texts: list[Any] = [np.str_("a"), Colour.RED]
    live = ma.MOSS().live(arms=texts, horizon=9)
    assert {type(pull.arm) for pull in live.ask(2)} == {str}
    live.retire(Colour.RED)
    integers: list[Any] = [np.int64(3), np.uint64(2**63), -4, 2**70]
    live = ma.MOSS().live(arms=integers, horizon=9)
    assert {type(pull.arm) for pull in live.ask(4)} == {int}
    live.retire(np.int64(3))  # type: ignore[arg-type]
    assert {pull.arm for pull in live.ask(4)} == {2**63, -4, 2**70}


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([], "`arms` must hold at least one name, got none"),
        (["a", "b", "a"], "`arms` must not repeat a name, got 'a' twice"),
        ([1, True], "`arms` must hold strings or integers, got True"),
        (["half \ud83c"], "without lone surrogates, got 'half"),
        (["a", ""], "a text of 1 to 20,000 characters"),
        (["a", 7], "names of one kind, all strings or all integers, got 7 among strings"),
        ("abc", "`arms` must be a list of names, got 'abc'"),
        ({"a", "b"}, r"order .* got a set.*Sort it first"),
    ],
)
def test_invalid_names_are_refused(arms: Any, message: str) -> None:
    with pytest.raises(ma.ParameterError, match=message):
        ma.MOSS().live(arms=arms, horizon=10)
    live = ma.MOSS().live(arms=["a"], horizon=10)
    if arms != []:
        with pytest.raises(ma.ParameterError):
            live.add_arms(arms)
    assert live.n_arms == 1
    assert live._experiment.ledger.n_all == 1


def test_numbered_arms() -> None:
    live = ma.MOSS().live(n_arms=3, horizon=10)
    assert live.add_arms(2) == range(3, 5)
    assert live.add_arms(range(5, 7)) == range(5, 7)
    assert list(live.add_arms([])) == []
    for arms in (0, -1, 2.5, "two", [9], range(6, 8), True):
        with pytest.raises(ma.ParameterError, match="`arms` must be"):
            live.add_arms(arms)  # type: ignore[arg-type]
    for arm in (7, -1, "a", 1.5, None):
        with pytest.raises(ma.UnknownArmError, match="Arms are numbered from 0 to 6"):
            live.retire(arm)  # type: ignore[arg-type]
    assert live.n_arms == 7
    with pytest.raises(ma.ParameterError, match="must be given, got both. Leave out `n_arms`"):
        ma.MOSS().live(n_arms=3, arms=["a"], horizon=10)
    with pytest.raises(
        ma.ParameterError, match="must be given, got neither. Pass the number of arms"
    ):
        ma.MOSS().live(horizon=10)


def test_a_billion_numbered_arms_are_added_at_once() -> None:
    live = ma.MOSS().live(n_arms=3, horizon=10)
    assert live.add_arms(10**9) == range(3, 10**9 + 3)
    assert live.add_arms(iter([10**9 + 3, 10**9 + 4])) == range(10**9 + 3, 10**9 + 5)
    assert live.n_arms == 10**9 + 5


def test_an_endless_iterator_of_names_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    live = ma.MOSS().live(arms=[0], horizon=10)
    monkeypatch.setattr("manyarms.live.arms.MOST_NAMES", 1000)
    assert len(live.add_arms(range(1, 1000))) == 999
    for begin in (lambda: live.add_arms([-1]), lambda: ma.MOSS().live(arms=count(), horizon=9)):
        with pytest.raises(ma.ParameterError, match=r"at most 1000 names in all.*`n_arms`"):
            begin()
    assert live.n_arms == 1000
    with pytest.raises(ma.ParameterError, match="names in all"):
        ma.MOSS().live(n_arms=3, horizon=10).add_arms(count(3))


@pytest.mark.parametrize("arm", [True, 1.0, np.float64(1.0), False, np.bool_(True), [[1]]])
def test_a_value_equal_to_a_name_is_not_a_name(arm: Any) -> None:
    live = ma.MOSS().live(arms=[1, 0, 2], horizon=10)
    with pytest.raises(ma.UnknownArmError, match="Unknown arm"):
        live.retire(arm)
    live.retire(np.int8(1))  # type: ignore[arg-type]
    assert live.n_arms == 2
