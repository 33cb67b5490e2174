"""The run that the page on Prospector describes is the one in its picture."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import manyarms as ma

PAGE = (Path(__file__).parents[2] / "docs" / "policies" / "prospector.md").read_text(
    encoding="utf-8"
)


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    return importlib.import_module("prospector")


def test_the_run_is_as_described(pictures: ModuleType) -> None:
    best = ma.theory.best_arms(pictures.N_ARMS, pictures.HORIZON, pictures.ALPHA)
    assert f"of which {best} have mean 0.9" in PAGE
    means = pictures.paper_means(pictures.N_ARMS, best)
    run = pictures.play(ma.Prospector(), means, 50_000, 400, pictures.prospecting)
    target, _, cost, own = run.seen.T
    assert int(np.argmax(run.mean > 0.8)) + 1 == 213
    assert len(set(run.arm[:212])) == 153
    assert set(target[:213].round(2)) == {1.0}
    assert int(np.argmax(cost >= 0.5 * 50_000**0.5)) + 1 == 215
    assert target[214] == pytest.approx(0.9, abs=0.005)
    found = run.arm[212]
    assert set(run.arm[212:227]) == {found}
    assert own[226] == pytest.approx(13 / 15)
    assert found not in run.arm[227:341]
    assert len(set(run.arm[227:341]) - set(run.arm[:227])) == 80
    assert set(run.arm[341:]) == {found}
    assert len(set(run.arm)) == 234
    for words in ("Pulls 1 to 212", "153 arms", "Pull 213", "13/15", "80 more", "Pull 342", "234"):
        assert words in PAGE
