"""Each policy gets the scale of the rewards, or refuses them: all policies x reward models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import manyarms as ma
from manyarms.instances import BetaRewards, Gaussian, Instance, from_means, from_rewards, reward
from manyarms.kit import unit
from manyarms.policies import CATALOGUE
from manyarms.protocol.policy import layers
from manyarms.simulation import Sweep, cell, run
from manyarms.simulation.sweep import informed_policy
from tests.helpers import EVERY_POLICY, label


class Ranged(NamedTuple):
    """Rewards of -20 or 50."""

    @property
    def reward_range(self) -> tuple[float, float]:
        return -20.0, 50.0


class Spread(NamedTuple):
    """The mean, plus or minus 4, with the sigma that is known for it."""

    @property
    def reward_sigma(self) -> float:
        return 4.0


class Unknown(NamedTuple):
    """The mean, plus or minus 4, of which nothing is known."""


@reward.register(Ranged)
def ranged(law: Ranged, arm: int, mean: float, word: int) -> float:
    return 50.0 if unit(word) < (mean + 20.0) / 70.0 else -20.0


def apart(law: Any, arm: int, mean: float, word: int) -> float:
    return mean + 4.0 if unit(word) < 0.5 else mean - 4.0


for law in (Spread, Unknown):
    reward.register(law)(apart)

MEANS = [0.2, 0.9, 0.4]
MODELS: dict[str, tuple[Instance, float | None]] = {  # with the sigma that policies should get
    "coins": (from_means(MEANS), 0.5),
    "betas": (from_means(MEANS, rewards=BetaRewards(1.0)), 0.5),
    "table in [0, 1]": (from_rewards({"a": [0, 0.5], "b": [1, 0.2]}), 0.5),
    "table": (from_rewards({"a": [0, 60], "b": [5]}), 30.0),
    "own range": (from_means(MEANS, rewards=Ranged()), 35.0),
    "normal": (from_means(MEANS, rewards=Gaussian(3.0)), 3.0),
    "own sigma": (from_means(MEANS, rewards=Spread()), 4.0),
    "own law": (from_means(MEANS, rewards=Unknown()), None),
}
IN_UNIT = ("coins", "betas", "table in [0, 1]")
UNIT_ONLY = {  # their source is for rewards in [0, 1]
    *("ucb1", "kl-ucb", "kl-moss", "kl-ucb++", "kl-ucb-switch", "thompson", "cbt"),
    *("empirical-cbt", "scout"),
}
SCALE_FREE = {"uniform", "ss-greedy", "sequential-halving"}
GUARDED = {"prospector", "guarded-ss-greedy", "guarded-empmoss++"}


def is_refused(name: str, model: str) -> bool:
    """Return whether a policy must refuse a reward model."""
    if model in IN_UNIT or name in SCALE_FREE:
        return False
    bounded = MODELS[model][0].rewards.reward_range is not None
    return name in UNIT_ONLY or (name in GUARDED and not bounded) or model == "own law"


@pytest.mark.interpreted
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("policy", EVERY_POLICY, ids=label)
def test_every_policy_with_every_reward_model(policy: ma.Policy, model: str) -> None:
    instance, sigma = MODELS[model]
    limits = instance.rewards.reward_range
    policy = policy.with_best_mean(instance.best_mean)
    size: dict[str, Any] = {"horizon": 20, "seed": 1}
    if is_refused(policy.name, model):
        fix = r"Use a policy with `si|Tell \(reward|Give the `si|must be given to .* Or give"
        with pytest.raises(ma.ParameterError, match=fix):
            ma.simulate(policy, instance, replications=2, **size)
        with pytest.raises(ma.ParameterError, match=fix):
            policy.live(n_arms=3, reward_range=limits, **size)
        return
    played = ma.simulate(policy, instance, replications=2, record_arms=True, **size)
    assert played.arms is not None
    informed = informed_policy(policy, instance)
    for one in layers(informed):
        if getattr(one, "sigma", None) is not None:
            assert one.sigma == sigma  # type: ignore[attr-defined]
    again = ma.simulate(informed, instance, replications=2, record_arms=True, **size)
    assert again.arms is not None
    assert again.arms.tolist() == played.arms.tolist()
    given = policy if limits is not None else informed
    if limits is None and policy.name in SCALE_FREE:  # intervals need a scale, and it has none
        with pytest.raises(ma.ParameterError, match="`reward_range` must be given"):
            given.live(n_arms=3, reward_range=None, **size)
        return
    assert given.live(n_arms=3, reward_range=limits, **size).ask().arm in range(3)


def test_the_lists_above_cover_the_catalogue() -> None:
    named = {name for name, entry in CATALOGUE.items() if entry.rewards == "[0, 1]"}
    assert named == UNIT_ONLY | GUARDED


@pytest.mark.interpreted
def test_the_policy_that_was_played_is_recorded(tmp_path: Path) -> None:
    """A sigma of 1/2 is one like others; on rewards in [0, 60] it is not the default."""
    shop = from_rewards({k: [0] * (k % 5 + 1) + [60] for k in range(40)})
    policies = [ma.MOSS(), ma.MOSS(sigma=0.5), ma.MOSS(sigma=0.51), ma.MOSS(sigma=30.0)]
    sweep = Sweep("shop", (cell(policies, shop, horizon=400, replications=2),))
    found = run(sweep, tmp_path / "shop", progress=False).cells[0]
    default, half, near, wide = found.regret[:, :, -1]
    assert found.policies == ("moss", "moss(sigma=0.5)", "moss(sigma=0.51)", "moss(sigma=30.0)")
    assert (default == wide).all()
    assert (half != wide).all()
    assert abs(half - near).mean() < 0.2 * abs(half - wide).mean()
    facts = json.loads((tmp_path / "shop" / "_provenance.json").read_text())
    played = [one["played"] for one in facts["cells"][0]["policies"].values()]
    sigmas = [30.0, 0.5, 0.51, 30.0]
    assert played == [repr(ma.MOSS(sigma=sigma)) for sigma in sigmas]
    given = [one["policy"] for one in facts["cells"][0]["policies"].values()]
    assert given == [repr(policy) for policy in policies]
