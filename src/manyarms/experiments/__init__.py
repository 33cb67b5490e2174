"""The paper's experiments, as data: what is played on what. Nothing here simulates or prints."""

from manyarms.experiments.best_mean import wrong_best_mean
from manyarms.experiments.late import LateSetting, late_rewards, late_rewards_short
from manyarms.experiments.paper import (
    fig2a,
    fig2b,
    fig3,
    larger_betas,
    oracle_sizes,
    quantile_as_moss,
)
from manyarms.experiments.setting import Setting

__all__ = [
    "LateSetting",
    "Setting",
    "fig2a",
    "fig2b",
    "fig3",
    "larger_betas",
    "late_rewards",
    "late_rewards_short",
    "oracle_sizes",
    "quantile_as_moss",
    "wrong_best_mean",
]
