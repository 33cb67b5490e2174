"""What a user can read of an experiment, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import manyarms as ma

Handle = Any  # `Live` or `Remote`


@dataclass
class Answers:
    """The answers to all queries, at one time."""

    pulls: int
    horizon: int | None
    told: int
    pending: int
    abandoned: int
    n_arms: int
    control_pulls: int
    control_mean: float
    waiting: dict[int, Any]
    arms: dict[Any, dict[str, Any]]  # of each tried arm
    recommended: Any  # None if no available arm has a reward
    above: tuple[Any, float, bool]  # arm, lower bound and stop of a verdict with a target
    best: tuple[Any, float, bool]  # of a verdict that compares with every arm
    default: tuple[Any, float, bool]  # of a verdict without arguments
    uplift: tuple[Any, float, float, float]  # arm, difference and its interval
    texts: dict[str, str]
    finder: bool  # whether the present policy recommends by a rule of its own
    target: float
    epsilon: float

    def statistics(self) -> dict[str, Any]:
        """Return what rewards and settings determine, whatever the policy is."""
        names = ["told", "pending", "abandoned", "n_arms", "control_pulls", "control_mean"]
        if not self.finder:
            names += ["recommended", "above", "best", "uplift"]
        return {name: getattr(self, name) for name in ["pulls", "waiting", "arms", *names]}

    def everything(self) -> dict[str, Any]:
        return vars(self)

    def numbers(self) -> dict[str, Any]:
        """Return everything but texts."""
        return {name: value for name, value in vars(self).items() if name != "texts"}


def read(handle: Handle, *, finder: bool, target: float = 0.3, epsilon: float = 0.3) -> Answers:
    """Ask all queries."""
    pending = {pull.id: pull.arm for pull in handle.pending}
    progress, uplift = handle.progress(), handle.uplift()
    verdicts = {
        "above": handle.verdict(target=target),
        "best": handle.verdict(epsilon=epsilon, quantile=0),
        "default": handle.verdict(),
    }
    try:
        recommended = handle.recommend().arm
    except ma.TurnError:
        recommended = None
    queries = {"progress": progress, "uplift": uplift, **verdicts}
    return Answers(
        pulls=progress.pulls,
        horizon=progress.horizon,
        told=progress.told,
        pending=progress.pending,
        abandoned=progress.abandoned,
        n_arms=progress.n_arms,
        control_pulls=progress.control_pulls,
        control_mean=progress.control_mean,
        waiting=pending,
        arms={estimate.arm: _fields(estimate) for estimate in handle.arms()},
        recommended=recommended,
        **{name: (v.arm, v.lower_bound, v.stop) for name, v in verdicts.items()},
        uplift=(uplift.arm, uplift.difference, *uplift.interval),
        texts={name: str(answer) for name, answer in queries.items()},
        finder=finder,
        target=target,
        epsilon=epsilon,
    )


def _fields(estimate: ma.ArmEstimate) -> dict[str, Any]:
    return {name: getattr(estimate, name) for name in ("pulls", "told", "retired", "rate")} | {
        "estimate": estimate.estimate,
        "low": estimate.interval[0],
        "high": estimate.interval[1],
    }
