"""Policies beside the paper's: one policy, one file, its assumptions in its docstring."""

from __future__ import annotations

from collections.abc import Callable

from manyarms.policies.field.best import Best
from manyarms.policies.field.bracketing_halving import BracketingHalving
from manyarms.policies.field.cbt import CBT
from manyarms.policies.field.corral_igw import CorralIGW
from manyarms.policies.field.dynamic_balancing import DynamicBalancing
from manyarms.policies.field.empirical_cbt import EmpiricalCBT
from manyarms.policies.field.greedy import Greedy
from manyarms.policies.field.imoss import IMOSS
from manyarms.policies.field.k_failure import KFailure
from manyarms.policies.field.kl_ucb import KLUCB
from manyarms.policies.field.m_run import NON_RECALLING, MRun
from manyarms.policies.field.qrm1 import QRM1
from manyarms.policies.field.qrm2_restarted import QRM2Restarted
from manyarms.policies.field.satisficing import SatisficingTS
from manyarms.policies.field.sequential_halving import SequentialHalving
from manyarms.policies.field.siri import SiRI
from manyarms.policies.field.ss_greedy_oracle import SSGreedyOracle
from manyarms.policies.field.ss_ucb_oracle import SSUCBOracle
from manyarms.policies.field.sub_sampled import SUB_SAMPLED, SubSampled
from manyarms.policies.field.thompson import Thompson
from manyarms.policies.field.two_target import TwoTarget
from manyarms.policies.field.ucb import UCB, UCB1
from manyarms.policies.field.ucb_air import UCBAIR
from manyarms.policies.field.ucb_f import UCBF
from manyarms.policies.field.uniform import Uniform
from manyarms.policies.moss import KL_FORMS
from manyarms.protocol import Policy

__all__ = [
    "CBT",
    "FIELD",
    "IMOSS",
    "KLUCB",
    "QRM1",
    "UCB",
    "UCB1",
    "UCBAIR",
    "UCBF",
    "Best",
    "BracketingHalving",
    "CorralIGW",
    "DynamicBalancing",
    "EmpiricalCBT",
    "Greedy",
    "KFailure",
    "MRun",
    "QRM2Restarted",
    "SSGreedyOracle",
    "SSUCBOracle",
    "SatisficingTS",
    "SequentialHalving",
    "SiRI",
    "SubSampled",
    "Thompson",
    "TwoTarget",
    "Uniform",
]

# By name; lists show them in this order.
FIELD: dict[str, Callable[..., Policy]] = {
    "ucb1": UCB1,
    "ucb": UCB,
    "kl-ucb": KLUCB,
    **KL_FORMS,
    "thompson": Thompson,
    "satisficing-ts": SatisficingTS,
    "greedy": Greedy,
    **SUB_SAMPLED,
    "ss-greedy-oracle": SSGreedyOracle,
    "ss-ucb-oracle": SSUCBOracle,
    "qrm1": QRM1,
    "qrm2-restarted": QRM2Restarted,
    "imoss": IMOSS,
    "ucb-f": UCBF,
    "ucb-air": UCBAIR,
    "corral-igw": CorralIGW,
    "dynamic-balancing": DynamicBalancing,
    "k-failure": KFailure,
    "m-run": MRun,
    "non-recalling-m-run": NON_RECALLING,
    "two-target": TwoTarget,
    "cbt": CBT,
    "empirical-cbt": EmpiricalCBT,
    "sequential-halving": SequentialHalving,
    "bracketing-halving": BracketingHalving,
    "siri": SiRI,
    "uniform": Uniform,
    "best": Best,
}
