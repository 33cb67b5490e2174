"""The experiments of the paper and of its theory, as data. Nothing here simulates or prints."""

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
    "Setting",
    "fig2a",
    "fig2b",
    "fig3",
    "larger_betas",
    "oracle_sizes",
    "quantile_as_moss",
]
