"""One policy, one file. The names here are the ones the registry knows."""

from __future__ import annotations

from collections.abc import Callable

from manyarms.policies.doubling import ANYTIME, Doubling
from manyarms.policies.emp_moss_plus_plus import EmpMOSSPlusPlus
from manyarms.policies.field import FIELD, Greedy, SubSampled
from manyarms.policies.guarded import GUARDED_FORMS, Guarded
from manyarms.policies.moss import MOSS
from manyarms.policies.moss_oracle import MOSSOracle
from manyarms.policies.moss_plus_plus import MOSSPlusPlus
from manyarms.policies.parallel import Parallel
from manyarms.policies.patience import Patience
from manyarms.policies.prospector import Prospector
from manyarms.policies.quantile import Quantile
from manyarms.policies.scout import Scout
from manyarms.protocol import Policy, register

__all__ = [
    "MOSS",
    "PAPER_POLICIES",
    "Doubling",
    "EmpMOSSPlusPlus",
    "Guarded",
    "MOSSOracle",
    "MOSSPlusPlus",
    "Parallel",
    "Patience",
    "Prospector",
    "Quantile",
    "Scout",
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

# By name; lists show them in this order.
_NAMED: dict[str, Callable[..., Policy]] = {
    "moss": MOSS,
    "moss-oracle": MOSSOracle,
    "quantile": Quantile,
    "moss++": MOSSPlusPlus,
    "empmoss++": EmpMOSSPlusPlus,
    "parallel": Parallel,
    **ANYTIME,
    "prospector": Prospector,
    **GUARDED_FORMS,
    "patience": Patience,
    "scout": Scout,
    **FIELD,
}
for _name, _make in _NAMED.items():
    register(_name, _make)
register("doubling", Doubling, listed=False)
register("greedy", Greedy, listed=False)
register("guarded", Guarded, listed=False)
register("sub-sampled", SubSampled, listed=False)
