"""Sweeps: wrong arguments, and equality."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.simulation import Player, Sweep, cell
from manyarms.simulation.chunks import plan

COINS = ma.instances.planted(n=50, m=5)


def _cell(**changes: Any) -> Any:
    return cell(ma.MOSS(), COINS, **{"horizon": 20, "replications": 2, **changes})


@pytest.mark.parametrize("name", ["policy", "checkpoints", "regret", "replication"])
def test_parameters_must_not_be_names_of_columns(name: str) -> None:
    with pytest.raises(ma.ParameterError, match=f"got '{name}'. Choose another name"):
        _cell(parameters={name: 1})


def test_parameters_are_numbers_or_strings() -> None:
    made = _cell(parameters={"a": np.int64(3), "b": np.float64(0.5), "c": "x"})
    assert {key: type(value) for key, value in made.parameters.items()} == {
        "a": int,
        "b": float,
        "c": str,
    }
    with pytest.raises(ma.ParameterError, match="`parameters` must be numbers or strings"):
        _cell(parameters={"a": [1, 2]})


@pytest.mark.parametrize("other", [1.0, "1", np.int64(1)])
def test_cells_with_the_same_parameters_are_refused(other: Any) -> None:
    with pytest.raises(ma.ParameterError, match="`cells` must differ in their parameters"):
        Sweep("x", (_cell(parameters={"a": 1}), _cell(parameters={"a": other})))


def test_a_sweep_needs_cells_and_replications() -> None:
    with pytest.raises(ma.ParameterError, match="at least one cell, got none"):
        Sweep("x", ())
    with pytest.raises(ma.ParameterError, match="`replications` must be an integer >= 1"):
        cell([Player(ma.MOSS(), "moss", 0)], COINS, horizon=20)


def test_sweeps_with_equal_contents_are_equal() -> None:
    first, second = (Sweep("x", (_cell(),)) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    others = [
        Sweep("y", (_cell(),)),
        Sweep("x", (_cell(),), seed=1),
        Sweep("x", (_cell(delay=1),)),
        Sweep("x", (cell([Player(ma.MOSS(), "moss", 2, {"a": 1})], COINS, horizon=20),)),
    ]
    assert len({first, *others}) == 5


def test_chunks_of_plain_policies_are_small() -> None:
    class Plain:
        def ask(self) -> int:
            return 0

        def tell(self, arm: int, reward: float) -> None:
            pass

    made = cell([ma.MOSS(), Plain], COINS, horizon=10_000, replications=600, checkpoints=1)
    chunks = list(plan(Sweep("x", (made,))))
    sizes = {chunk.player.label: chunk.replications for chunk in reversed(chunks)}
    assert sizes == {"moss": 500, "Plain": 10}
