"""Simulate policies: sweeps, runs and results.

>>> import manyarms as ma
>>> cells = [
...     cell(
...         ma.MOSSPlusPlus(),
...         ma.instances.planted(n=1000, alpha=alpha, horizon=2000),
...         horizon=2000,
...         replications=10,
...         parameters={"alpha": alpha},
...     )
...     for alpha in (0.1, 0.2)
... ]
>>> Sweep("two hardnesses", tuple(cells)).pulls
40000
"""

from manyarms.simulation.players import Player
from manyarms.simulation.results import Result
from manyarms.simulation.run import run
from manyarms.simulation.simulate import run_in_memory, simulate
from manyarms.simulation.summary import PairedDifference, PolicySummary, Summary
from manyarms.simulation.sweep import Cell, Sweep, cell
from manyarms.simulation.sweep_results import SweepResults
from manyarms.simulation.tables import ResultsFolder, read_results

__all__ = [
    "Cell",
    "PairedDifference",
    "Player",
    "PolicySummary",
    "Result",
    "ResultsFolder",
    "Summary",
    "Sweep",
    "SweepResults",
    "cell",
    "read_results",
    "run",
    "run_in_memory",
    "simulate",
]
