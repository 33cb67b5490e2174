"""Every policy, with its slow reference.

A new policy needs one line in `PAIRS`. The policies in `EVERYWHERE` are also played by the tests of
parity, of the contract, of distributions and of live handles, and by the golden runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import manyarms as ma
from manyarms.policies import CATALOGUE, SubSampled, field
from tests.reference.doubling import Doubling
from tests.reference.emp_moss_plus_plus import EmpMossPlusPlus
from tests.reference.field import dropping, finding, scans
from tests.reference.field.kl import KLIndex
from tests.reference.field.sub_sampled import SubSampled as OnSubset
from tests.reference.field.sub_sampled import by_exponent, fixed
from tests.reference.guarded import GuardedPlayer
from tests.reference.late import (
    LateEmpMossPlusPlus,
    LateMoss,
    LateMossPlusPlus,
    LateParallel,
    LateQuantile,
    LateReference,
)
from tests.reference.moss import Index, Moss, MossOracle, Player
from tests.reference.moss_plus_plus import MossPlusPlus
from tests.reference.parallel import Parallel
from tests.reference.patience import Patience
from tests.reference.prospector import Prospector
from tests.reference.quantile import Quantile

__all__ = ["ALL_POLICIES", "EVERY_POLICY", "PAIRS", "Pair", "label", "unit_only"]

WIDE = Index(sigma=1.0)
SHY = Index(exploration=0.5)
BOTH = Index(sigma=1.0, exploration=0.5)


@dataclass(frozen=True)
class Pair:
    """A policy, its reference, and the sizes of the problems that both play."""

    policy: ma.Policy
    reference: Player
    late: Callable[..., LateReference] | None = None  # the reference where rewards are late
    arms: tuple[int, ...] = (1, 2, 3, 17, 150)
    horizons: tuple[int, ...] = (1, 2, 3, 4, 16, 50, 257, 400)
    simulated: bool = True  # False where compiling is slow, and the policy within is simulated

    @property
    def label(self) -> str:
        return str(self.policy)


Large = partial(Pair, arms=(1, 2, 3, 5, 17, 60, 300), horizons=(1, 2, 3, 4, 7, 16, 50, 257, 1000))
Small = partial(Pair, arms=(1, 2, 3, 17, 60), horizons=(1, 2, 3, 7, 50, 257))  # slow references
LiveOnly = partial(Pair, simulated=False)


def unit_only(policy: ma.Policy) -> bool:
    """Return whether a policy refuses rewards without bounds, although their sigma is known."""
    try:
        policy.with_reward_range(None, 0.5)
    except ma.ParameterError:
        return True
    return False


def label(what: ma.Policy | Pair) -> str:
    return str(what.policy if isinstance(what, Pair) else what)


EVERYWHERE = [
    Large(ma.MOSS(), Moss(), LateMoss),
    Large(ma.MOSSOracle(alpha=0.3), MossOracle(alpha="0.3")),
    Large(ma.MOSSOracle(m=1), MossOracle(m=1)),
    Large(ma.MOSSOracle(size=11), MossOracle(size=11), partial(LateMoss, size=11)),
    Large(ma.Quantile(), Quantile(), LateQuantile),
    Large(ma.MOSSPlusPlus(beta=0.5), MossPlusPlus(beta="0.5"), LateMossPlusPlus),
    Large(ma.MOSSPlusPlus(beta=1.0), MossPlusPlus(beta="1")),
    Large(ma.EmpMOSSPlusPlus(beta=0.5), EmpMossPlusPlus(beta="0.5"), LateEmpMossPlusPlus),
    Large(
        ma.EmpMOSSPlusPlus(beta=0.75, rank="pulled"), EmpMossPlusPlus(beta="0.75", rank="pulled")
    ),
    Large(ma.Parallel(best_mean=0.9), Parallel(0.9), partial(LateParallel, best_mean=0.9)),
    Large(ma.Parallel(best_mean=0.9, subset_factor=1), Parallel(0.9, subset_factor=1)),
    Large(ma.Doubling(ma.MOSSPlusPlus()), Doubling(MossPlusPlus())),
    Large(ma.Doubling(ma.Parallel(best_mean=0.9)), Doubling(Parallel(0.9))),
    Large(ma.Patience(best_mean=0.9), Patience(0.9)),
    Large(ma.Prospector(), Prospector()),
    Large(ma.Guarded(ma.MOSS()), GuardedPlayer(Moss())),
]

PAIRS: list[Pair] = [
    *EVERYWHERE,
    Large(ma.MOSS(sigma=1.0), Moss(WIDE)),
    Large(ma.MOSS(exploration=0.5), Moss(SHY)),
    Large(ma.MOSS(sigma=1.0, exploration=0.5), Moss(BOTH)),
    Large(ma.MOSSOracle(alpha=0.0), MossOracle(alpha="0")),
    Large(ma.MOSSOracle(alpha=0.8, sigma=1.0, exploration=0.5), MossOracle(BOTH, alpha="0.8")),
    Large(ma.Quantile(sigma=1.0), Quantile(WIDE)),
    Large(ma.Quantile(exploration=0.5, exponent=0.6), Quantile(SHY, exponent="0.6")),
    Large(ma.Quantile(sigma=1.0, exploration=0.5, exponent=1.0), Quantile(BOTH, exponent="1")),
    Large(ma.MOSSPlusPlus(beta=0.6), MossPlusPlus(beta="0.6")),
    Large(
        ma.MOSSPlusPlus(beta=0.75),
        MossPlusPlus(beta="0.75"),
        partial(LateMossPlusPlus, beta="0.75"),
    ),
    Large(ma.MOSSPlusPlus(sigma=1.0), MossPlusPlus(WIDE)),
    Large(ma.MOSSPlusPlus(beta=0.6, exploration=0.5), MossPlusPlus(SHY, beta="0.6")),
    Large(ma.EmpMOSSPlusPlus(beta=0.6), EmpMossPlusPlus(beta="0.6")),
    Large(
        ma.EmpMOSSPlusPlus(beta=0.75),
        EmpMossPlusPlus(beta="0.75"),
        partial(LateEmpMossPlusPlus, beta="0.75"),
    ),
    Large(ma.EmpMOSSPlusPlus(beta=1.0), EmpMossPlusPlus(beta="1")),
    Large(ma.EmpMOSSPlusPlus(sigma=1.0), EmpMossPlusPlus(WIDE)),
    Large(ma.EmpMOSSPlusPlus(beta=0.6, exploration=0.5), EmpMossPlusPlus(SHY, beta="0.6")),
    Large(ma.EmpMOSSPlusPlus(rank="pulled"), EmpMossPlusPlus(rank="pulled")),
    Large(
        ma.EmpMOSSPlusPlus(beta=0.6, rank="pulled", sigma=1.0, exploration=0.5),
        EmpMossPlusPlus(BOTH, beta="0.6", rank="pulled"),
    ),
    Large(ma.EmpMOSSPlusPlus(index="kl"), EmpMossPlusPlus(KLIndex(), beta="0.5")),
    Pair(ma.MOSSPlusPlus(index="kl++"), MossPlusPlus(KLIndex(plus=True), beta="0.5")),
    Pair(ma.Quantile(index="kl"), Quantile(KLIndex())),
    Pair(ma.MOSSOracle(m=1, index="kl++"), MossOracle(KLIndex(plus=True), m=1)),
    LiveOnly(ma.Parallel(best_mean=0.9, index="kl"), Parallel(0.9, KLIndex())),
    LiveOnly(ma.Guarded(ma.MOSS(index="kl")), GuardedPlayer(Moss(KLIndex()))),
    LiveOnly(ma.Doubling(ma.MOSSPlusPlus(index="kl")), Doubling(MossPlusPlus(KLIndex()))),
    Large(ma.Patience(best_mean=1.0, sigma=0.25), Patience(1.0, sigma=0.25)),
    Large(ma.Patience(best_mean=0.5), Patience(0.5)),
    Large(ma.Patience(best_mean=0.75, bound="kl"), Patience(0.75, kl=True)),
    Large(ma.Parallel(best_mean=0.5), Parallel(0.5)),
    Large(ma.Parallel(best_mean=1.0, subset_factor=1), Parallel(1.0, subset_factor=1)),
    Large(
        ma.Parallel(best_mean=0.75, subset_factor=1, sigma=1.0),
        Parallel(0.75, WIDE, subset_factor=1),
    ),
    Large(ma.Parallel(best_mean=0.9, exploration=0.5), Parallel(0.9, SHY)),
    Large(ma.Doubling(ma.MOSS()), Doubling(Moss())),
    Large(ma.Doubling(ma.MOSSOracle(m=1)), Doubling(MossOracle(m=1))),
    Large(ma.Doubling(ma.EmpMOSSPlusPlus(beta=0.6)), Doubling(EmpMossPlusPlus(beta="0.6"))),
    Large(ma.Doubling(ma.Patience(best_mean=0.9)), Doubling(Patience(0.9))),
    Small(ma.Prospector(bold=True, beta=0.6), Prospector(0.6, bold=True)),
    Small(ma.Prospector(guess_horizon=True), Prospector(guess=True)),
    LiveOnly(ma.Guarded(ma.Quantile(), beta=0.75), GuardedPlayer(Quantile(), 0.75)),
    LiveOnly(ma.Guarded(ma.Doubling(ma.MOSS())), GuardedPlayer(Doubling(Moss()))),
    LiveOnly(ma.Guarded(ma.EmpMOSSPlusPlus()), GuardedPlayer(EmpMossPlusPlus(beta="0.5"))),
    LiveOnly(
        ma.Guarded(SubSampled(field.Greedy(), exponent=0.5)),
        GuardedPlayer(OnSubset(dropping.Greedy(), by_exponent("1/2"))),
    ),
    # policies for comparison
    Small(field.UCB1(), scans.Ucb1()),
    Small(field.UCB1(exploration=0.1), scans.Ucb1(0.1)),
    Small(field.UCB(), scans.Ucb()),
    Small(field.UCB(sigma=1.0), scans.Ucb(1.0)),
    Small(field.KLUCB(), scans.KlUcb()),
    Pair(ma.MOSS(index="kl"), Moss(KLIndex())),
    Pair(ma.MOSS(index="kl", exploration=2.0), Moss(KLIndex(exploration=2.0))),
    Pair(ma.MOSS(index="kl++"), Moss(KLIndex(plus=True))),
    Pair(ma.MOSS(index="kl++", exploration=0.5), Moss(KLIndex(plus=True, exploration=0.5))),
    Pair(ma.MOSS(index="switch"), Moss(KLIndex(switch=True))),
    Pair(ma.MOSS(index="switch", exploration=0.5), Moss(KLIndex(switch=True, exploration=0.5))),
    Small(field.Thompson(), scans.Thompson()),
    Pair(field.Greedy(), dropping.Greedy()),
    Pair(SubSampled(ma.MOSS(), exponent=0.5), OnSubset(Moss(), by_exponent("1/2"))),
    Pair(SubSampled(ma.MOSS(), exponent=2 / 3), OnSubset(Moss(), by_exponent("2/3"))),
    Pair(SubSampled(ma.MOSS(), size=7), OnSubset(Moss(), fixed(7))),
    Pair(SubSampled(field.Greedy(), exponent=0.5), OnSubset(dropping.Greedy(), by_exponent("1/2"))),
    Small(SubSampled(field.UCB(), exponent=0.5), OnSubset(scans.Ucb(), by_exponent("1/2"))),
    Small(
        SubSampled(field.Thompson(), exponent=0.5),
        OnSubset(scans.Thompson(), by_exponent("1/2")),
    ),
    LiveOnly(SubSampled(ma.Quantile(), size=20), OnSubset(Quantile(), fixed(20))),
    LiveOnly(
        SubSampled(SubSampled(ma.MOSS(), size=5), size=25),
        OnSubset(OnSubset(Moss(), fixed(5)), fixed(25)),
    ),
    LiveOnly(SubSampled(ma.Doubling(ma.MOSS()), size=9), OnSubset(Doubling(Moss()), fixed(9))),
    LiveOnly(ma.Doubling(SubSampled(ma.MOSS(), size=9)), Doubling(OnSubset(Moss(), fixed(9)))),
    Pair(field.CBT(), dropping.Cbt()),
    Pair(field.CBT(b=2.0, weight=0.5, factor=1.5), dropping.Cbt(2.0, 0.5, factor=1.5)),
    Pair(field.CBT(target=0.4), dropping.Cbt(target=0.4)),
    Pair(field.EmpiricalCBT(), dropping.EmpiricalCbt()),
    Pair(field.EmpiricalCBT(factor=2.0), dropping.EmpiricalCbt(2.0)),
    Small(ma.Scout(), finding.Scout()),
    Small(ma.Scout(search=0.5), finding.Scout(0.5)),
    Small(field.SequentialHalving(), finding.SequentialHalving()),
    Small(field.SequentialHalving(size=13), finding.SequentialHalving(13)),
    Pair(field.Uniform(), dropping.Uniform()),
]

ALL_POLICIES = [pair.policy for pair in EVERYWHERE]
_by_name = {pair.policy.name: pair.policy for pair in reversed(PAIRS)}  # the first of each name
EVERY_POLICY = [_by_name[name] for name in CATALOGUE]
