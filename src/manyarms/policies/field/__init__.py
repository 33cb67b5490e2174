"""Policies beside the paper's: one policy, one file, its assumptions in its docstring."""

from __future__ import annotations

from manyarms.policies.field.best import Best
from manyarms.policies.field.bracketing_halving import BracketingHalving
from manyarms.policies.field.cbt import CBT
from manyarms.policies.field.corral_igw import CorralIGW
from manyarms.policies.field.dynamic_balancing import DynamicBalancing
from manyarms.policies.field.empirical_cbt import EmpiricalCBT
from manyarms.policies.field.greedy import Greedy
from manyarms.policies.field.imoss import IMOSS
from manyarms.policies.field.k_failure import KFailure
from manyarms.policies.field.kl_moss import KLMOSS
from manyarms.policies.field.kl_ucb import KLUCB
from manyarms.policies.field.kl_ucb_plus_plus import KLUCBPlusPlus
from manyarms.policies.field.kl_ucb_switch import KLUCBSwitch
from manyarms.policies.field.m_run import MRun, NonRecallingMRun
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
from manyarms.protocol import Policy
from manyarms.protocol.registry import Form

__all__ = [
    "CBT",
    "FIELD",
    "IMOSS",
    "KLMOSS",
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
    "KLUCBPlusPlus",
    "KLUCBSwitch",
    "MRun",
    "NonRecallingMRun",
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

# Lists show them in this order.
FIELD: tuple[type[Policy] | Form, ...] = (
    UCB1,
    UCB,
    KLUCB,
    KLMOSS,
    KLUCBPlusPlus,
    KLUCBSwitch,
    Thompson,
    SatisficingTS,
    Greedy,
    *SUB_SAMPLED,
    SSGreedyOracle,
    SSUCBOracle,
    QRM1,
    QRM2Restarted,
    IMOSS,
    UCBF,
    UCBAIR,
    CorralIGW,
    DynamicBalancing,
    KFailure,
    MRun,
    NonRecallingMRun,
    TwoTarget,
    CBT,
    EmpiricalCBT,
    SequentialHalving,
    BracketingHalving,
    SiRI,
    Uniform,
    Best,
)
