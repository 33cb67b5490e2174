"""The experiments of the paper and of its theory, as data. Nothing here simulates or prints."""

from manyarms.experiments.best_mean import wrong_best_mean
from manyarms.experiments.exponents import ExponentSetting, exponent_settings
from manyarms.experiments.late import LateSetting, late_rewards, late_rewards_short
from manyarms.experiments.lower_bound import TradeOffSetting, lower_bound_trade_off
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
    "ExponentSetting",
    "LateSetting",
    "Setting",
    "TradeOffSetting",
    "exponent_settings",
    "fig2a",
    "fig2b",
    "fig3",
    "larger_betas",
    "late_rewards",
    "late_rewards_short",
    "lower_bound_trade_off",
    "oracle_sizes",
    "quantile_as_moss",
    "wrong_best_mean",
]
