"""Policies beside the paper's and ours; each names the source that it was checked against."""

from __future__ import annotations

from collections.abc import Callable

from manyarms.policies.field.cbt import CBT
from manyarms.policies.field.empirical_cbt import EmpiricalCBT
from manyarms.policies.field.scans import KLUCB, UCB, UCB1, Thompson
from manyarms.policies.field.sequential_halving import SequentialHalving
from manyarms.policies.field.sub_sampled import SUB_SAMPLED, Greedy, SubSampled
from manyarms.policies.field.uniform import Uniform
from manyarms.policies.moss import KL_FORMS
from manyarms.protocol import Policy

__all__ = [
    "CBT",
    "FIELD",
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

# By name; lists show them in this order.
FIELD: dict[str, Callable[..., Policy]] = {
    "ucb1": UCB1,
    "ucb": UCB,
    "kl-ucb": KLUCB,
    **KL_FORMS,
    "thompson": Thompson,
    **SUB_SAMPLED,
    "cbt": CBT,
    "empirical-cbt": EmpiricalCBT,
    "sequential-halving": SequentialHalving,
    "uniform": Uniform,
}
