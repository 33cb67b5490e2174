"""Figure 2(a): final regret against hardness, for the six policies of the paper."""

from __future__ import annotations

from manyarms.experiments.setting import Setting
from manyarms.instances import planted
from manyarms.policies import MOSS, EmpMOSSPlusPlus, MOSSOracle, MOSSPlusPlus, Parallel, Quantile

__all__ = ["fig2a"]

N_ARMS = 20_000
HORIZON = 50_000
BETA = 0.5
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def fig2a() -> list[Setting]:
    """Return the nine settings of the figure.

    >>> [setting.instance.n_best for setting in fig2a()][:3]
    [3390, 1149, 390]
    """
    return [
        Setting(
            alpha=alpha,
            instance=planted(n=N_ARMS, alpha=alpha, horizon=HORIZON),
            policies=(
                MOSS(),
                MOSSOracle(alpha=alpha),
                Quantile(),
                Parallel(),
                MOSSPlusPlus(beta=BETA),
                EmpMOSSPlusPlus(beta=BETA),
            ),
            horizon=HORIZON,
        )
        for alpha in ALPHAS
    ]
