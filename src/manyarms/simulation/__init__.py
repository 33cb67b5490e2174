"""Simulation: experiments, how they are played, and their results.

>>> experiment = parse_spec('''
... [experiment]
... name = "two hardnesses"
... horizon = 2000
... replications = 10
...
... [instance]
... family = "planted"
... n = 1000
... alpha = [0.1, 0.2]
...
... [[policy]]
... name = "moss++"
... ''')
>>> [cell.parameters for cell in experiment.cells]
[{'alpha': 0.1}, {'alpha': 0.2}]
>>> experiment.pulls
40000
"""

from manyarms.simulation.experiment import Cell, Experiment, cell
from manyarms.simulation.logged import ReplayedPolicy, ReplayResult, replay
from manyarms.simulation.players import Player
from manyarms.simulation.results import Result
from manyarms.simulation.run import run
from manyarms.simulation.simulate import run_in_memory, simulate
from manyarms.simulation.spec import experiment_from, load_spec, parse_spec
from manyarms.simulation.summary import PairedDifference, PolicySummary, Summary
from manyarms.simulation.tables import ResultsFolder, read_results

__all__ = [
    "Cell",
    "Experiment",
    "PairedDifference",
    "Player",
    "PolicySummary",
    "ReplayResult",
    "ReplayedPolicy",
    "Result",
    "ResultsFolder",
    "Summary",
    "cell",
    "experiment_from",
    "load_spec",
    "parse_spec",
    "read_results",
    "replay",
    "run",
    "run_in_memory",
    "simulate",
]
