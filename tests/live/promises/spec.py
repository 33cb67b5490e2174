"""The settings of an experiment, and random ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import manyarms as ma
from tests.live.promises.own_policy import OwnGreedy

TEXTS = [
    *("red", "control", "5%", "0.7", "-1", "7", " a", "A", "a\nb", "é", "e\u0301", "1e5", "None"),
    *("a/b", "..", "?k=1", "%2F", "#", "x" * 70, "\u202e", "true", "nan", "007", "٣", "today"),
]
INTEGERS = [0, 1, 7, -1, -25, 10**25, 2**63, 12, 99, 1000, -(10**30), 5, 2**64]
UNIT = (0.0, 1.0)


class Kind(NamedTuple):
    """A policy, by its `sigma`, and what the model must know about it."""

    make: Callable[[float | None], ma.Policy]
    finder: bool = False  # it recommends by a rule of its own
    changes: bool = True  # arms may come and go
    ranges: tuple[Any, ...] = (UNIT,)  # of rewards, that the random specs use


_ANY = (UNIT, (-5.0, 5.0), None)
POLICIES: dict[str, Kind] = {
    "prospector": Kind(lambda sigma: ma.Prospector(), ranges=(UNIT, (-5.0, 5.0))),
    "scout": Kind(lambda sigma: ma.Scout(), finder=True, changes=False),
    "moss": Kind(lambda sigma: ma.MOSS(sigma=sigma), ranges=_ANY),
    "moss++": Kind(lambda sigma: ma.MOSSPlusPlus()),
    "empmoss++": Kind(lambda sigma: ma.EmpMOSSPlusPlus()),
    "quantile": Kind(lambda sigma: ma.Quantile(sigma=sigma), ranges=_ANY),
    "moss-oracle": Kind(lambda sigma: ma.MOSSOracle(size=3, sigma=sigma), ranges=_ANY),
    "parallel": Kind(lambda sigma: ma.Parallel(best_mean=0.9)),
    "doubling": Kind(lambda sigma: ma.Doubling(ma.MOSSPlusPlus())),
    "guarded": Kind(lambda sigma: ma.Guarded(ma.MOSS())),
    "patience": Kind(lambda sigma: ma.Patience(best_mean=0.9)),
    "own": Kind(lambda sigma: OwnGreedy(), changes=False),
}
SCALED = [name for name, kind in POLICIES.items() if None in kind.ranges]  # they have a `sigma`
_OFTEN = ["prospector", "prospector", "moss", "moss", "empmoss++", "scout"]


@dataclass(frozen=True)
class Spec:
    """The settings of an experiment."""

    policy: str = "moss"
    arms: tuple[Any, ...] = ("a", "b")
    named: bool = True
    horizon: int | None = 400
    seed: int = 5
    reward_range: tuple[float, float] | None = UNIT
    sigma: float | None = None  # of rewards without a range
    control: str | None = None
    window: float | None = None
    missing: float | None = None
    hold: bool = False

    @property
    def kind(self) -> Kind:
        return POLICIES[self.policy]

    @property
    def shares_a_name(self) -> bool:
        """Whether an arm may have the name of the control, so that names do not tell them apart."""
        return self.control in TEXTS

    def settings(self) -> dict[str, Any]:
        """Return the arguments of `live`."""
        names = ("horizon", "seed", "reward_range", "control", "window", "missing", "hold")
        settings = {name: getattr(self, name) for name in names}
        if self.control is not None:
            settings["share"] = 0.3
        arms = {"arms": list(self.arms)} if self.named else {"n_arms": len(self.arms)}
        return settings | arms

    def policy_object(self) -> ma.Policy:
        return self.kind.make(self.sigma)


def random_spec(dice: random.Random, without: frozenset[str] = frozenset()) -> Spec:
    """Return random settings; `without` may name "window", "integers" and policies."""
    kinds = ["numbers", "texts", "texts", "integers"]
    kind = dice.choice([name for name in kinds if name not in without])
    count = dice.randint(1, 8)
    pools: dict[str, list[Any]] = {"texts": TEXTS, "integers": INTEGERS}
    pool = pools.get(kind, [])
    policy = dice.choice([p for p in [*_OFTEN, *POLICIES] if p not in without])
    limits = dice.choice([UNIT, *POLICIES[policy].ranges])
    sigma = dice.choice([1.0, 3.0]) if limits is None else None
    window = dice.choice([None, None, 10.0])
    window = None if "window" in without else window
    horizons = [8, 40, 400, *([None] if POLICIES[policy].make(sigma).anytime else [])]
    return Spec(
        policy=policy,
        arms=tuple(dice.sample(pool, count) if pool else range(count)),
        named=bool(pool),
        horizon=dice.choice(horizons),
        seed=dice.randrange(100),
        reward_range=limits,
        sigma=sigma,
        control=dice.choice([None, None, "the control", "today"]),
        window=window,
        missing=None if window is None else dice.choice([None, 0.0]),
        hold=window is not None and dice.random() < 0.5,
    )


def simpler_specs(spec: Spec) -> list[dict[str, Any]]:
    """Return changes that make a spec simpler."""
    without_window = {"window": None, "missing": None, "hold": False}
    plain: list[dict[str, Any]] = [{"control": None}, {"hold": False}, {"missing": None}]
    changes = [
        change
        for change in [without_window, *plain]
        if any(getattr(spec, name) != value for name, value in change.items())
    ]
    if spec.policy != "moss":
        changes.append({"policy": "moss", "horizon": spec.horizon or 400})
    if len(spec.arms) > 1:
        changes.append({"arms": spec.arms[:-1]})
    return changes
