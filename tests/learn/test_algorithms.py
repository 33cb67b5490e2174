"""The plain Python files of docs/learn play like the package.

With the package's random words they are the references of tests/policies/test_oracle.py. Here each
is compared once, and once as a distribution with Python's random numbers.
"""

from __future__ import annotations

import importlib
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from tests.policies.compare import check_live
from tests.policies.pairs import Pair
from tests.reference.emp_moss_plus_plus import EmpMossPlusPlus
from tests.reference.moss import Moss, Player
from tests.reference.moss_plus_plus import MossPlusPlus
from tests.reference.parallel import Parallel
from tests.statistical.test_distribution import same_distribution

LEARN = Path(__file__).parents[2] / "docs" / "learn"
FILES = ["moss", "moss_plus_plus", "emp_moss_plus_plus", "parallel"]
MEANS = [0.9] * 4 + [0.1, 0.3, 0.5] * 20
T = 600


def learned(name: str) -> Any:
    return importlib.import_module(name)


@pytest.mark.parametrize("name", FILES)
def test_the_files_run_as_scripts(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(LEARN / f"{name}.py"), run_name="__main__")
    title, _, head, *rows, _, last = capsys.readouterr().out.splitlines()
    assert title.endswith(": 1000 arms, 50 of them best (mean 0.9), 2000 pulls")
    assert len(rows) == 8
    assert int(rows[-1].split()[0]) == learned("simulate").T
    assert float(rows[-1].split()[-1]) < 1000  # random pulls lose 1140
    assert last.endswith("which has mean 0.9.")
    if name == "moss_plus_plus":
        shown = "\n".join([title, "", head, *rows, "", last])
        assert f"```text\n{shown}\n```" in (LEARN / "index.md").read_text(encoding="utf-8")


PAIRS: dict[str, tuple[ma.Policy, Player, Callable[[Any], Any]]] = {
    "moss": (ma.MOSS(), Moss(), lambda luck: learned("moss").moss(len(MEANS), T, luck)),
    "moss_plus_plus": (
        ma.MOSSPlusPlus(beta=0.6),
        MossPlusPlus(beta="0.6"),
        lambda luck: learned("moss_plus_plus").moss_plus_plus(len(MEANS), T, 0.6, luck),
    ),
    "emp_moss_plus_plus": (
        ma.EmpMOSSPlusPlus(beta=0.6),
        EmpMossPlusPlus(beta="0.6"),
        lambda luck: learned("emp_moss_plus_plus").emp_moss_plus_plus(len(MEANS), T, 0.6, luck),
    ),
    "parallel": (
        ma.Parallel(best_mean=0.9),
        Parallel(0.9),
        lambda luck: learned("parallel").parallel(len(MEANS), T, 0.9, luck),
    ),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("problem", ["spread", "equal", "one best"])
def test_the_same_words_give_the_same_arms(name: str, problem: str) -> None:
    policy, reference, _ = PAIRS[name]
    check_live(Pair(policy, reference), 300, 700, problem)


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("name", FILES)
def test_the_distribution_with_random_numbers_of_python(name: str) -> None:
    """With rewards of 0 and 1, ties are frequent. False alarms: 2e-6 for each policy."""
    policy, _, begin = PAIRS[name]
    instance = ma.instances.from_means(MEANS)
    ours = ma.simulate(policy, instance, horizon=T, replications=4000).regret[0, :, -1]
    luck, play = learned("luck").Luck, learned("simulate").play
    plain = [play(begin(luck(seed)), MEANS, T, seed=1000 + seed) for seed in range(250)]
    same_distribution(ours, np.array(plain))
