"""The experiments of the paper and of its theory, as data. Nothing here simulates or prints."""

from manyarms.experiments.exponents import ExponentSetting, exponent_settings
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
    "Setting",
    "TradeOffSetting",
    "exponent_settings",
    "fig2a",
    "fig2b",
    "fig3",
    "larger_betas",
    "lower_bound_trade_off",
    "oracle_sizes",
    "quantile_as_moss",
]
