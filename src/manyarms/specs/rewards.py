"""Reward models in a spec: a name, or a table with a name and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from manyarms.instances import Bernoulli, BetaRewards, Gaussian, RewardModel
from manyarms.specs.problems import Problems, suggestion
from manyarms.specs.values import Check, Sweep, number, read_value, shown, text

__all__ = ["RewardsSpec", "build_rewards", "read_rewards"]

_POSITIVE = number(above=0.0)
_MODELS: dict[str, tuple[Callable[..., RewardModel], dict[str, Check]]] = {
    "bernoulli": (Bernoulli, {}),
    "beta": (BetaRewards, {"concentration": _POSITIVE}),
    "gaussian": (Gaussian, {"sigma": _POSITIVE}),
}


@dataclass(frozen=True)
class RewardsSpec:
    """A reward model; its parameters may be sweeps."""

    model: str
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def label(self) -> str:
        """The model with its parameters.

        >>> RewardsSpec("gaussian", (("sigma", 0.5),)).label
        'gaussian(sigma=0.5)'
        """
        inner = ", ".join(f"{key}={value!r}" for key, value in self.parameters)
        return f"{self.model}({inner})" if inner else self.model


def build_rewards(model: str, parameters: Mapping[str, Any]) -> RewardModel:
    """Build a reward model from parameters that are no sweeps."""
    return _MODELS[model][0](**parameters)


def read_rewards(problems: Problems, place: str, value: Any) -> Any:
    """Return a `RewardsSpec`, or a `Sweep` of them if `value` is a list; None if it is wrong."""
    if not isinstance(value, list):
        return _read_model(problems, place, value)
    before = problems.count

    def check(name: str, one: Any) -> RewardsSpec | None:
        model = _read_model(problems, place, one)
        if model and any(isinstance(inner, Sweep) for _, inner in model.parameters):
            problems.add(place, f"must not hold a sweep within a sweep, got {shown(one)}.")
        return model

    # what `check` notes itself must be known before equal Nones look like a value given twice
    for one in value:
        check("rewards", one)
    return None if problems.count > before else read_value(problems, place, value, check)


def _read_model(problems: Problems, place: str, value: Any) -> RewardsSpec | None:
    before = problems.count
    table = value if isinstance(value, dict) else {"model": value}
    if not problems.check_keys(place, table, known=table, required=["model"]):
        return None
    name = table["model"]
    with problems.at(f"{place}.model" if isinstance(value, dict) else place):
        if text("rewards" if table is not value else "model", name) not in _MODELS:
            problems.add(place, f"unknown model {name!r}. {suggestion(name, _MODELS)}")
    if problems.count > before:
        return None
    checks = _MODELS[name][1]
    problems.check_keys(place, table, known=["model", *checks])
    parameters = [
        (key, read_value(problems, f"{place}.{key}", table[key], check))
        for key, check in checks.items()
        if key in table
    ]
    return None if problems.count > before else RewardsSpec(name, tuple(parameters))
