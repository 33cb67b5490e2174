"""Policies beside the paper's: one policy, one file, its assumptions in its docstring.

`SUB_SAMPLED` are those that are known by a name of their own on a random subset of the arms:

>>> SUB_SAMPLED["ss-greedy"]().label, SUB_SAMPLED["ss-moss"](size=100).label
('ss-greedy(exponent=0.5)', 'ss-moss(size=100)')
"""

from __future__ import annotations

from collections.abc import Callable

from manyarms.live.protocol import Policy
from manyarms.policies.baselines.best import Best
from manyarms.policies.baselines.cbt import CBT
from manyarms.policies.baselines.corral_igw import CorralIGW
from manyarms.policies.baselines.empirical_cbt import EmpiricalCBT
from manyarms.policies.baselines.greedy import Greedy
from manyarms.policies.baselines.imoss import IMOSS
from manyarms.policies.baselines.k_failure import KFailure
from manyarms.policies.baselines.kl_moss import KLMOSS
from manyarms.policies.baselines.kl_ucb import KLUCB
from manyarms.policies.baselines.kl_ucb_switch import KLUCBSwitch
from manyarms.policies.baselines.m_run import MRun, NonRecallingMRun
from manyarms.policies.baselines.qrm1 import QRM1
from manyarms.policies.baselines.qrm2_restarted import QRM2Restarted
from manyarms.policies.baselines.satisficing import SatisficingTS
from manyarms.policies.baselines.ss_greedy_oracle import SSGreedyOracle
from manyarms.policies.baselines.sub_sampled import SubSampled, sub_sampling
from manyarms.policies.baselines.thompson import Thompson
from manyarms.policies.baselines.two_target import TwoTarget
from manyarms.policies.baselines.ucb import UCB
from manyarms.policies.baselines.ucb1 import UCB1
from manyarms.policies.baselines.ucb_air import UCBAIR
from manyarms.policies.baselines.ucb_f import UCBF
from manyarms.policies.baselines.uniform import Uniform
from manyarms.policies.moss import MOSS

__all__ = [
    "BASELINES",
    "CBT",
    "IMOSS",
    "KLMOSS",
    "KLUCB",
    "QRM1",
    "SUB_SAMPLED",
    "UCB",
    "UCB1",
    "UCBAIR",
    "UCBF",
    "Best",
    "CorralIGW",
    "EmpiricalCBT",
    "Greedy",
    "KFailure",
    "KLUCBSwitch",
    "MRun",
    "NonRecallingMRun",
    "QRM2Restarted",
    "SSGreedyOracle",
    "SatisficingTS",
    "SubSampled",
    "Thompson",
    "TwoTarget",
    "Uniform",
]

BASELINES: tuple[type[Policy], ...] = (
    UCB1,
    UCB,
    KLUCB,
    KLMOSS,
    KLUCBSwitch,
    Thompson,
    Greedy,
    SSGreedyOracle,
    QRM1,
    QRM2Restarted,
    UCBF,
    UCBAIR,
    KFailure,
    MRun,
    NonRecallingMRun,
    TwoTarget,
    CBT,
    EmpiricalCBT,
    SatisficingTS,
    IMOSS,
    CorralIGW,
    Uniform,
    Best,
)

SUB_SAMPLED: dict[str, Callable[..., SubSampled]] = {
    "ss-greedy": sub_sampling(Greedy),
    "ss-moss": sub_sampling(MOSS),
    "ss-ts": sub_sampling(Thompson),
    "ss-ucb": sub_sampling(UCB),
}
