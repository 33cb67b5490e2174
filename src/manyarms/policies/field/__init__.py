"""Other published policies; each docstring names the source that it was checked against."""

from __future__ import annotations

from manyarms.policies.field.cbt import CBT
from manyarms.policies.field.empirical_cbt import EmpiricalCBT
from manyarms.policies.field.scans import KLUCB, UCB, UCB1, Thompson
from manyarms.policies.field.sequential_halving import SequentialHalving
from manyarms.policies.field.sub_sampled import Greedy, SubSampled
from manyarms.policies.field.uniform import Uniform

__all__ = [
    "CBT",
    "KLUCB",
    "UCB",
    "UCB1",
    "EmpiricalCBT",
    "Greedy",
    "SequentialHalving",
    "SubSampled",
    "Thompson",
    "Uniform",
]
