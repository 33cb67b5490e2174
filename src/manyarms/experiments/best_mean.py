"""What a wrong best mean costs Parallel, which is told it."""

from __future__ import annotations

from manyarms.experiments.setting import Setting
from manyarms.instances import planted
from manyarms.policies import Parallel

__all__ = ["wrong_best_mean"]

ALPHAS = (0.1, 0.25, 0.4)
TOLD = (0.5, 0.6, 0.7, 0.8, 0.85, 0.88, 0.9, 0.92, 0.95, 1.0, 1.1)  # the truth is 0.9
N_ARMS, HORIZON = 20_000, 50_000


def wrong_best_mean() -> list[Setting]:
    """Figure 2(a)'s problems with Parallel told best means from far too low to too high.

    >>> [setting.alpha for setting in wrong_best_mean()]
    [0.1, 0.25, 0.4]
    """
    policies = tuple(Parallel(best_mean=best_mean) for best_mean in TOLD)
    return [
        Setting(
            "best_mean",
            alpha,
            planted(n=N_ARMS, alpha=alpha, horizon=HORIZON),
            policies,
            HORIZON,
        )
        for alpha in ALPHAS
    ]
