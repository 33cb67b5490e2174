"""Columns of parameters in tables and files: values, names, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import manyarms as ma
from manyarms.instances import Gaussian
from manyarms.policies import SubSampled
from manyarms.simulation import Player, PolicySummary, Sweep, cell, read_results, run, run_in_memory
from manyarms.simulation.columns import RESERVED
from tests.fixed import Fixed

COINS = ma.instances.planted(n=50, m=5)


class Stay:
    """Always pulls arm 0."""

    def __init__(self, n_arms: int, low: float = 0.25) -> None:
        pass

    def ask(self) -> int:
        return 0

    def tell(self, arm: int, reward: float) -> None:
        pass


def _cell(*policies: Any, **changes: Any) -> Any:
    return cell(list(policies), COINS, **{"horizon": 20, "replications": 2, **changes})


def _rows(*policies: Any, **changes: Any) -> list[dict[str, Any]]:
    """Return the parameters of each policy of a sweep of one cell."""
    made = Sweep("x", (_cell(*policies, **changes),))
    return [dict(player.parameters) for player in made.cells[0].players]


BETAS = (0.5, 0.6, 0.7)
FORMS = [ma.MOSSPlusPlus(beta=beta) for beta in BETAS]


def test_a_column_has_the_default_too() -> None:
    assert _rows(*FORMS, ma.MOSS()) == [{"beta": 0.5}, {"beta": 0.6}, {"beta": 0.7}, {}]
    assert _rows(ma.MOSSPlusPlus(), ma.EmpMOSSPlusPlus()) == [{}, {}]  # nothing is varied
    assert _rows(Stay, ma.plain_policy(Stay, low=0.5)) == [{"Stay.low": 0.25}, {"Stay.low": 0.5}]


def test_a_column_has_the_values_of_policies_inside_others() -> None:
    inside = [ma.Doubling(ma.MOSSPlusPlus()), SubSampled(ma.Guarded(FORMS[2], beta=0.8), size=7)]
    assert _rows(FORMS[1], *inside) == [
        {"moss++.beta": 0.6},
        {"moss++.beta": 0.5},
        {"size": 7, "guarded.beta": 0.8, "moss++.beta": 0.7},
    ]
    assert _rows(FORMS[1], inside[0]) == [{"beta": 0.6}, {"beta": 0.5}]


def test_a_column_of_one_class_has_a_short_name() -> None:
    emp = ma.EmpMOSSPlusPlus(beta=0.75)
    assert _rows(*FORMS, emp) == [
        *({"moss++.beta": beta} for beta in BETAS),
        {"empmoss++.beta": 0.75},
    ]
    assert _rows(FORMS[1], ma.EmpMOSSPlusPlus()) == [{"beta": 0.6}, {}]  # emp's is not varied
    assert _rows(FORMS[1], parameters={"beta": 3}) == [{"moss++.beta": 0.6}]
    fixed = Player(ma.MOSS(), "mine", 2, {"beta": 1.5})
    assert _rows(fixed, FORMS[1]) == [{"beta": 1.5}, {"moss++.beta": 0.6}]


def test_columns_of_two_classes_of_the_same_name_are_not_mixed() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Other(Fixed):
        arm: int

    names = [f"{kind.__module__}:{kind.__qualname__}.arm" for kind in (Fixed, Other)]
    assert _rows(Fixed(arm=1), Other(arm=2)) == [{names[0]: 1}, {names[1]: 2}]


def test_a_column_has_the_value_that_is_played() -> None:
    assert _rows(ma.Parallel(), ma.Parallel(best_mean=0.95)) == [
        {"best_mean": 0.9},
        {"best_mean": 0.95},
    ]


def test_all_tables_and_files_have_the_same_columns(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    policies = [*FORMS, ma.Doubling(FORMS[1]), ma.EmpMOSSPlusPlus(beta=0.6), Stay, ma.MOSS()]
    noisy = ma.instances.planted(n=50, m=5, rewards=Gaussian(2.0))
    cells = (
        _cell(*policies, parameters={"noise": 0.5}),
        cell(ma.MOSSPlusPlus(), noisy, horizon=20, replications=3, parameters={"noise": 2}),
    )
    sweep = Sweep("x", cells)
    results = run(sweep, tmp_path, progress=False)
    frame = pandas.read_parquet(tmp_path)
    names = ["moss++.beta", "empmoss++.beta"]
    assert list(frame)[:4] == ["noise", *names, "policy"]
    counts = frame.groupby("moss++.beta")["regret"].count()
    assert counts.to_dict() == {0.5: 5, 0.6: 4, 0.7: 2}
    tables = [results, read_results(tmp_path), run_in_memory(sweep, progress=False)]
    for each in tables:
        table = each.to_dataframe(library="pandas")
        assert list(table)[:4] == ["noise", *names, "policy"]
        assert table[names[0]].tolist()[:4] == [0.5, 0.6, 0.7, 0.6]
        assert table[names[0]].tolist()[-1] == 0.5
        assert math.isnan(table[names[0]][6])
        by_run = frame.groupby(["noise", "policy"])["regret"].mean()
        for _, row in table.iterrows():
            assert by_run[row["noise"], row["policy"]] == pytest.approx(row["mean"])
    stored = json.loads((tmp_path / "_provenance.json").read_text())["cells"][0]["policies"]
    assert stored["moss++"]["parameters"] == {"moss++.beta": 0.5}


def test_values_that_no_column_holds_become_text(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    values = [1, math.inf, math.nan, 1 << 63, 10**400, "\ud800", (1, 2), None]
    policies = [ma.plain_policy(Stay, low=value) for value in values]
    players = [Player(policy, str(k), 2) for k, policy in enumerate(policies)]
    sweep = Sweep("x", (cell(players, COINS, horizon=20),))
    results = run(sweep, tmp_path, progress=False)
    shown = [own["Stay.low"] for own in results.cells[0].policy_parameters]
    assert shown[:4] == [1, "inf", "nan", "9223372036854775808"]
    assert shown[5:] == ["\\ud800", "(1, 2)", None]
    assert sweep.columns == {"Stay.low": "string"}


def test_names_of_results_are_reserved() -> None:
    assert set(PolicySummary._fields) <= set(RESERVED)
    for name in RESERVED:
        with pytest.raises(ma.ParameterError, match=f"another column .*got '{name}'. Choose"):
            _cell(ma.MOSS(), parameters={name: 1})
        with pytest.raises(ma.ParameterError, match=f"another column .*got '{name}'. Choose"):
            _rows(Player(ma.MOSS(), "mine", 2, {name: 1}))
    with pytest.raises(ma.ParameterError, match="another column of the tables, got 'm'"):
        _rows(Player(ma.MOSS(), "mine", 2, {"m": 1}), parameters={"m": 3})


LARGE = 2**53 + 1


REFUSED: dict[str, tuple[Any, str]] = {
    "not a number": (math.nan, "must have finite numbers, .* got x=nan. Pass a string"),
    "infinite": (-math.inf, "must have finite numbers, .* got x=-inf. Pass a string"),
    "2^63": (2**63, "integers between -2.63 and 2.63, got x=9223372036854775808. Pass"),
    "10^400": (10**400, "integers between .* got x=1000"),
    "10^5000": (10**5000, "integers between .* got x=an integer of 16610 bits"),
    "lone surrogate": ("\ud800", "must be text that UTF-8 can encode, .* Remove lone surrogates"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_values_that_files_cannot_hold_are_refused_before_the_run(what: str) -> None:
    value, message = REFUSED[what]
    with pytest.raises(ma.ParameterError, match=f"`parameters` .*{message}"):
        _cell(ma.MOSS(), parameters={"x": value})
    with pytest.raises(ma.ParameterError, match=f"`parameters` .*{message}"):
        _rows(Player(ma.MOSS(), "mine", 2, {"x": value}))


def test_large_integers_beside_fractions_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for other in (0.5, 2.0):
        with pytest.raises(ma.ParameterError, match=f"integers up to 2.53 .* got x={LARGE}. Pass"):
            Sweep("x", tuple(_cell(ma.MOSS(), parameters={"x": x}) for x in (LARGE, other)))
    values = [LARGE, LARGE - 1, -LARGE, 2**63 - 1]
    cells = [_cell(ma.MOSS(), parameters={"x": x, "y": str(x), "z": x / 2}) for x in values]
    results = run(Sweep("x", tuple(cells)), tmp_path, progress=False)
    assert [each.parameters["x"] for each in results.cells] == values
    frame = pytest.importorskip("pandas").read_parquet(tmp_path)
    assert frame["x"].unique().tolist() == values
    assert frame["y"].unique().tolist() == [*map(str, values)]


def test_other_texts_are_refused_before_the_run() -> None:
    with pytest.raises(ma.ParameterError, match="`name` must be text that UTF-8 can encode"):
        Sweep("\ud800", (_cell(ma.MOSS()),))
    with pytest.raises(ma.ParameterError, match="`label` must be text that UTF-8 can encode"):
        _cell(Player(ma.MOSS(), "\ud800", 2))
    with pytest.raises(ma.ParameterError, match="`parameters` must be text that UTF-8 can encode"):
        _cell(ma.MOSS(), parameters={"\ud800": 2})
    with pytest.raises(ma.ParameterError, match="`parameters` must be a string, got 3"):
        _cell(ma.MOSS(), parameters={3: 2})
