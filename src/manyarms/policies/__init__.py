"""One policy, one file. The names here are the ones the registry knows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from manyarms.policies import (  # noqa: F401  they register bodies
    _coming_and_going,
    _late,
    _own_policies_live,
)
from manyarms.policies.doubling import Doubling
from manyarms.policies.emp_moss_plus_plus import EmpMOSSPlusPlus
from manyarms.policies.field import BASELINES, SUB_SAMPLED, SubSampled
from manyarms.policies.hybrid_moss_plus_plus import HybridMOSSPlusPlus
from manyarms.policies.moss import MOSS
from manyarms.policies.moss_oracle import MOSSOracle
from manyarms.policies.moss_plus_plus import MOSSPlusPlus
from manyarms.policies.parallel import Parallel
from manyarms.policies.patience import Patience
from manyarms.policies.quantile import Quantile
from manyarms.protocol.policy import Policy
from manyarms.protocol.registry import register

__all__ = [
    "MOSS",
    "PAPER_POLICIES",
    "Doubling",
    "EmpMOSSPlusPlus",
    "HybridMOSSPlusPlus",
    "MOSSOracle",
    "MOSSPlusPlus",
    "Parallel",
    "Patience",
    "Quantile",
]


PAPER_POLICIES = (
    MOSS(),
    MOSSOracle(alpha=0.5),
    Quantile(),
    MOSSPlusPlus(),
    EmpMOSSPlusPlus(),
    Parallel(),
    Doubling(MOSSPlusPlus()),
    Doubling(Parallel()),
)


def _anytime(policy: type[Policy]) -> Callable[..., Doubling]:
    def make(**parameters: Any) -> Doubling:
        return Doubling(policy(**parameters))

    setattr(make, "__signature__", inspect.signature(policy))  # noqa: B010  it is a function's
    make.__doc__ = f"{policy.__name__}, played afresh with horizon 1, 2, 4, 8, …."
    return make


_CLASSES: tuple[type[Policy], ...] = (
    MOSS,
    MOSSOracle,
    Quantile,
    MOSSPlusPlus,
    EmpMOSSPlusPlus,
    Parallel,
    HybridMOSSPlusPlus,
    Patience,
    *BASELINES,
)
for _policy in _CLASSES:
    register(_policy.name, _policy)
for _name, _make in SUB_SAMPLED.items():
    register(_name, _make)
register("anytime-moss++", _anytime(MOSSPlusPlus))
register("anytime-parallel", _anytime(Parallel))
register("doubling", Doubling, listed=False)
register("sub-sampled", SubSampled, listed=False)
