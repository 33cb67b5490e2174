"""The documented examples of own policies, live and in simulations."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.policies import SubSampled
from tests.helpers import play_live

ROOT = Path(__file__).parents[2]


def _own(module: str, name: str, **parameters: Any) -> ma.Policy:
    made = getattr(importlib.import_module(module), name)(**parameters)
    assert isinstance(made, ma.Policy)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name"), [("own_policy", "OwnUCB"), ("own_thompson", "OwnThompson")]
)
def test_live_and_simulated_runs_pick_the_same_arms(module: str, name: str) -> None:
    policy = SubSampled(_own(module, name), exponent=0.5)
    # rewards depend only on the arm, so live rewards are known without a tape
    means = np.random.default_rng(1).integers(0, 2, 500).astype(float)
    instance = ma.instances.from_means(means)
    result = ma.simulate(policy, instance, horizon=100, replications=1, seed=4, record_arms=True)
    live = policy.live(n_arms=500, horizon=100, seed=4)
    assert result.arms is not None
    assert play_live(live, 100, lambda arm, k: means[arm]) == result.arms[0, 0].tolist()
    assert 1 < len(set(result.arms[0, 0].tolist())) <= 10


def test_with_late_rewards_each_arm_is_tried_once() -> None:
    live = _own("own_policy", "OwnUCB").live(n_arms=10, horizon=40, seed=4)
    batch = live.ask(10)
    assert sorted(pull.arm for pull in batch) == list(range(10))
    live.tell_many([(pull, float(pull.arm == 7)) for pull in batch])
    assert live.ask().arm == 7


def test_its_parameters_are_checked() -> None:
    with pytest.raises(ma.ParameterError, match="`width` must be"):
        _own("own_policy", "OwnUCB", width=0.0)


def test_the_page_shows_the_example() -> None:
    page = (ROOT / "docs" / "own_policy.md").read_text(encoding="utf-8")
    pieces = page.split("```python\n")[1:]
    shown = [piece.split("```")[0] for piece in pieces if not piece.startswith(">>>")]
    examples = [
        (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
        for name in ("plain_policy", "own_policy", "own_thompson")
    ]
    assert len(shown) > 7
    for piece in shown:
        assert any(piece.rstrip() in text for text in examples), piece


def _is_its_output(output: str) -> bool:
    return "pull 4: arm" in output and "ss-own-ucb - empmoss++" in output


@pytest.mark.slow
@pytest.mark.compiled
def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    importlib.import_module("own_policy").main()
    assert _is_its_output(capsys.readouterr().out)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.compiled
def test_the_example_runs_as_a_script() -> None:
    """Code in a script is compiled again in every process."""
    script = ROOT / "examples" / "own_policy.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert _is_its_output(done.stdout)
