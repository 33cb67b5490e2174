"""The policies, one per file; `CATALOGUE` lists them."""

from __future__ import annotations

from functools import partial

from manyarms.policies.catalogue import CATALOGUE
from manyarms.policies.doubling import Doubling
from manyarms.policies.emp_moss_plus_plus import EmpMOSSPlusPlus
from manyarms.policies.field import (
    CBT,
    KLUCB,
    UCB,
    UCB1,
    EmpiricalCBT,
    Greedy,
    SequentialHalving,
    SubSampled,
    Thompson,
    Uniform,
)
from manyarms.policies.guarded import Guarded
from manyarms.policies.moss import MOSS
from manyarms.policies.moss_oracle import MOSSOracle
from manyarms.policies.moss_plus_plus import MOSSPlusPlus
from manyarms.policies.parallel import Parallel
from manyarms.policies.patience import Patience
from manyarms.policies.prospector import Prospector
from manyarms.policies.quantile import Quantile
from manyarms.policies.scout import Scout
from manyarms.protocol.registry import list_combined, register

__all__ = [
    "CATALOGUE",
    "CBT",
    "KLUCB",
    "MOSS",
    "PAPER_POLICIES",
    "UCB",
    "UCB1",
    "Doubling",
    "EmpMOSSPlusPlus",
    "EmpiricalCBT",
    "Greedy",
    "Guarded",
    "MOSSOracle",
    "MOSSPlusPlus",
    "Parallel",
    "Patience",
    "Prospector",
    "Quantile",
    "Scout",
    "SequentialHalving",
    "SubSampled",
    "Thompson",
    "Uniform",
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

for _make in (Doubling, Guarded, SubSampled):
    register(_make.prefix, _make)
for _kind in (
    *(MOSSOracle, Quantile, MOSSPlusPlus, EmpMOSSPlusPlus, Parallel, Prospector, Patience, Scout),
    *(UCB1, UCB, KLUCB, Thompson, CBT, EmpiricalCBT, SequentialHalving, Uniform),
):
    register(_kind.name, _kind)
register("moss", MOSS)
register("greedy", Greedy, listed=False)
for _name, _index in (("kl-moss", "kl"), ("kl-ucb++", "kl++"), ("kl-ucb-switch", "switch")):
    register(_name, partial(MOSS, index=_index))
for _name in CATALOGUE:
    list_combined(_name)
