"""The lab: experiments, how they are played, and their results.

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

from manyarms.lab.experiment import Cell, Experiment, cell
from manyarms.lab.logged import ReplayedPolicy, ReplayResult, replay
from manyarms.lab.players import Player
from manyarms.lab.results import Result
from manyarms.lab.run import run
from manyarms.lab.simulate import run_in_memory, simulate
from manyarms.lab.spec import experiment_from, load_spec, parse_spec
from manyarms.lab.summary import PairedDifference, PolicySummary, Summary
from manyarms.lab.tables import ResultsFolder, read_results

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
