"""The paper's experiments, as data: what is played on what. Nothing here simulates or prints."""

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
