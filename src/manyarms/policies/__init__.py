"""One policy, one file. The names here are the ones the registry knows."""

from __future__ import annotations

from manyarms.live.registry import register
from manyarms.policies.doubling import Doubling
from manyarms.policies.emp_moss_plus_plus import EmpMOSSPlusPlus
from manyarms.policies.moss import MOSS
from manyarms.policies.moss_oracle import MOSSOracle
from manyarms.policies.moss_plus_plus import MOSSPlusPlus
from manyarms.policies.parallel import Parallel
from manyarms.policies.quantile import Quantile

__all__ = [
    "MOSS",
    "PAPER_POLICIES",
    "Doubling",
    "EmpMOSSPlusPlus",
    "MOSSOracle",
    "MOSSPlusPlus",
    "Parallel",
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


def _anytime_moss_plus_plus(
    *,
    beta: float = 0.5,
    mixture_sigma: float | None = None,
    sigma: float = 0.5,
    exploration: float = 1.0,
) -> Doubling:
    """MOSS++, played afresh with horizon 1, 2, 4, 8, …."""
    inner = MOSSPlusPlus(
        beta=beta, mixture_sigma=mixture_sigma, sigma=sigma, exploration=exploration
    )
    return Doubling(inner)


def _anytime_parallel(
    *,
    best_mean: float | None = None,
    subset_factor: int = 2,
    sigma: float = 0.5,
    exploration: float = 1.0,
) -> Doubling:
    """Parallel, played afresh with horizon 1, 2, 4, 8, …."""
    parallel = Parallel(
        best_mean=best_mean, subset_factor=subset_factor, sigma=sigma, exploration=exploration
    )
    return Doubling(parallel)


for _policy in (MOSS, MOSSOracle, Quantile, MOSSPlusPlus, EmpMOSSPlusPlus, Parallel):
    register(_policy.name, _policy)
register("anytime-moss++", _anytime_moss_plus_plus)
register("anytime-parallel", _anytime_parallel)
