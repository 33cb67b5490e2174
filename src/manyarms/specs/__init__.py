"""Experiments as data: a TOML file, checked as a whole before anything runs.

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
>>> [cell.parameters for cell in experiment.cells()]
[{'alpha': 0.1}, {'alpha': 0.2}]
>>> experiment.cost()
40000
"""

from manyarms.errors import FolderError, SpecError
from manyarms.specs.chunks import Chunk, plan
from manyarms.specs.experiment import Experiment
from manyarms.specs.reading import experiment_from, load_spec, parse_spec
from manyarms.specs.sweep import Cell, Player

__all__ = [
    "Cell",
    "Chunk",
    "Experiment",
    "FolderError",
    "Player",
    "SpecError",
    "experiment_from",
    "load_spec",
    "parse_spec",
    "plan",
]
