"""Everything that a verdict advises can be done, and helps.

Random experiments, with and without retired arms, history, a control, windows and other confidence
levels. A call in an advice is run as a user would paste it. It must not be refused, and must change
the outcome or reduce the pulls that are missing. The seeds are fixed, so no run differs by chance.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import RewardWarning

POLICIES = [ma.Prospector(), ma.MOSS(), ma.Scout(), ma.EmpMOSSPlusPlus(), ma.policy("uniform")]
_CALL = re.compile(r"live\.(\w+)\((.*?)\)(?=\.(?: |$))")


class Experiment:
    """A random experiment, and the question that is asked about it."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.policy = POLICIES[seed % len(POLICIES)]
        self.arms = int(rng.choice([2, 3, 9, 40, 300, 2000]))
        self.means = rng.beta(2, 5, self.arms)
        self.horizon = int(rng.choice([300, 1000, 2500]))
        self.time = 1000.0
        options: dict[str, Any] = {}
        if rng.random() < 0.25:
            options |= {"control": "now", "share": 0.2}
        if rng.random() < 0.3:
            options |= {"window": 600.0, "missing": 0.0, "hold": bool(rng.random() < 0.6)}
        if self.policy.name in ("moss", "empmoss++", "scout") or rng.random() < 0.5:
            options["horizon"] = self.horizon
        self.live = self.policy.live(
            n_arms=self.arms, seed=seed, now=lambda: self.time, reward="clicks", **options
        )
        self.question: dict[str, Any] = {}
        if rng.random() < 0.5:
            self.question["target"] = float(rng.choice([0.2, 0.45, 0.7]))
            if "control" in options and rng.random() < 0.6:
                self.question["target"] = "control"
            elif rng.random() < 0.3:
                self.question["target"] = str(rng.integers(self.arms))
        elif rng.random() < 0.5:
            self.question["epsilon"] = "25%"
        if rng.random() < 0.4:
            self.question["confidence"] = 0.8
        self._change_arms()

    def _change_arms(self) -> None:
        rng, live, few = self.rng, self.live, max(1, self.arms // 8)
        if rng.random() < 0.3 and self.arms > 2:
            for arm in rng.choice(self.arms, few, replace=False).tolist():
                live.observe(arm, (rng.random(12) < self.means[arm]).astype(float).tolist())
        if rng.random() < 0.4 and self.arms > 2 and self.policy.name != "scout":
            live.retire(rng.choice(self.arms, few, replace=False).tolist())

    def play(self, pulls: int) -> None:
        live = self.live
        left = pulls if live.horizon is None else min(pulls, live.horizon - live.pulls)
        for _ in range(left):
            pull = live.ask()
            self.time += 1.0
            mean = 0.25 if pull.arm == "now" else self.means[pull.arm]
            live.tell(pull, float(self.rng.random() < mean))

    def verdict(self) -> Any:
        return self.live.verdict(**self.question)


def follow(experiment: Experiment, said: Any) -> str:
    """Follow an advice; return its kind, with "in vain" if it did not help."""
    live, calls = experiment.live, _CALL.findall(said.advice)
    assert len(calls) <= 1, said.advice
    if said.advice.startswith("First report"):
        assert len(live.pending) > len(live._experiment.ledger.held)
    elif said.advice.startswith("First wait"):
        experiment.time += 601.0
        assert live.pending == []
    if not calls:
        assert said.advice == ""
        return "none"
    name, given = map(str, calls[0])
    result = eval(f"live.{name}({given})", {"live": live, "ma": ma})
    if name == "verdict":
        assert result.stop, (said, result)
        return name
    kind = "uniform" if "uniform" in given else "season"
    if kind == "uniform" or experiment.verdict().outcome == said.outcome:
        experiment.play(int(re.findall(r"horizon=(\d+)", given)[0]))
    later = experiment.verdict()
    less = later.more is not None and (said.more is None or later.more < said.more)
    return kind if later.outcome != said.outcome or less else f"{kind} in vain"


def followed(seeds: range) -> Counter[str]:
    kinds: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RewardWarning)
        for seed in seeds:
            experiment = Experiment(seed)
            experiment.play(int(experiment.horizon * experiment.rng.choice([0.4, 0.8, 1.0])))
            said = experiment.verdict()
            if not said.stop:
                kinds[follow(experiment, said)] += 1
    return kinds


def test_every_advice_can_be_followed_and_helps() -> None:
    kinds = followed(range(60))
    assert kinds.keys() == {"none", "verdict", "season", "uniform"}


@pytest.mark.long
def test_advice_helps_in_many_experiments() -> None:
    """A target always leads to "stop". Equal pulls need luck, too: at most 1 of 10 is in vain."""
    kinds = followed(range(60, 1500))
    assert kinds["season in vain"] == 0
    assert kinds["uniform in vain"] <= 0.1 * kinds["uniform"]
    assert min(kinds["verdict"], kinds["season"], kinds["uniform"]) >= 10
