"""The paper's experiments, as data: what is played on what. Nothing here simulates or prints."""

from manyarms.experiments.fig2a import fig2a
from manyarms.experiments.setting import Setting

__all__ = ["Setting", "fig2a"]
