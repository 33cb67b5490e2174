"""Every policy beside its slow reference: what the oracle, parity, contract and other tests play.

A new policy is one line in `PAIRS`. Those in `EVERYWHERE` are also played by the tests of parity,
of contracts, of the law, of live handles, and by the golden runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import manyarms as ma
from manyarms.policies import field
from manyarms.policies.field import SubSampled
from manyarms.protocol import described
from tests.reference.doubling import Doubling
from tests.reference.emp_moss_plus_plus import EmpMossPlusPlus
from tests.reference.field import dropping, finding, infinite, qrm, thompson, ucb
from tests.reference.field.kl import KLIndex
from tests.reference.field.sub_sampled import SubSampled as OnSubset
from tests.reference.field.sub_sampled import by_exponent, by_share, fixed, for_greedy
from tests.reference.guarded import GuardedPlayer
from tests.reference.hybrid_moss_plus_plus import HybridMossPlusPlus
from tests.reference.late import (
    LateBalancing,
    LateEmpMossPlusPlus,
    LateGame,
    LateMoss,
    LateMossPlusPlus,
    LateParallel,
    LateQuantile,
)
from tests.reference.moss import Index, Moss, MossOracle, Player
from tests.reference.moss_plus_plus import MossPlusPlus
from tests.reference.parallel import Balance, DynamicBalancing, Parallel
from tests.reference.patience import Patience
from tests.reference.prospector import Prospector
from tests.reference.quantile import Quantile

__all__ = ["ALL_POLICIES", "EVERY_POLICY", "PAIRS", "Pair", "label"]

WIDE = Index(sigma=1.0)
SHY = Index(exploration=0.5)
BOTH = Index(sigma=1.0, exploration=0.5)


@dataclass(frozen=True)
class Pair:
    """A policy, its reference, and how large the games are that they play."""

    policy: ma.Policy
    reference: Player
    late: Callable[..., LateGame] | None = None  # the reference where rewards are late
    arms: tuple[int, ...] = (1, 2, 3, 17, 150)
    horizons: tuple[int, ...] = (1, 2, 3, 4, 16, 50, 257, 400)
    simulated: bool = True  # False where compiling is slow, and the policy within is simulated

    @property
    def label(self) -> str:
        return self.policy.label


Large = partial(Pair, arms=(1, 2, 3, 5, 17, 60, 300), horizons=(1, 2, 3, 4, 7, 16, 50, 257, 1000))
Small = partial(Pair, arms=(1, 2, 3, 17, 60), horizons=(1, 2, 3, 7, 50, 257))  # slow references
LiveOnly = partial(Pair, simulated=False)


def label(what: ma.Policy | Pair) -> str:
    return what.label


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
    Large(ma.HybridMOSSPlusPlus(beta=0.5), HybridMossPlusPlus(beta="0.5")),
    Large(ma.Patience(best_mean=0.9), Patience(0.9)),
    Large(ma.Prospector(), Prospector()),
    Large(ma.Guarded(ma.MOSS()), GuardedPlayer(Moss())),
    Large(field.DynamicBalancing(), DynamicBalancing(), LateBalancing),
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
    Large(
        ma.HybridMOSSPlusPlus(beta=0.6, sigma=1.0, exploration=0.5),
        HybridMossPlusPlus(BOTH, beta="0.6"),
    ),
    Large(ma.HybridMOSSPlusPlus(beta=0.75), HybridMossPlusPlus(beta="0.75")),
    Large(ma.HybridMOSSPlusPlus(beta=1.0), HybridMossPlusPlus(beta="1")),
    Large(ma.HybridMOSSPlusPlus(index="kl"), HybridMossPlusPlus(KLIndex())),
    Large(ma.HybridMOSSPlusPlus(index="kl++"), HybridMossPlusPlus(KLIndex(plus=True))),
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
    Large(ma.Doubling(ma.HybridMOSSPlusPlus()), Doubling(HybridMossPlusPlus())),
    Large(ma.Doubling(ma.Patience(best_mean=0.9)), Doubling(Patience(0.9))),
    Small(ma.Prospector(bold=True, beta=0.6), Prospector(0.6, bold=True)),
    Small(ma.Prospector(guess_horizon=True), Prospector(guess=True)),
    LiveOnly(ma.Guarded(ma.Quantile(), beta=0.75), GuardedPlayer(Quantile(), 0.75)),
    LiveOnly(ma.Guarded(ma.HybridMOSSPlusPlus()), GuardedPlayer(HybridMossPlusPlus())),
    LiveOnly(ma.Guarded(ma.Doubling(ma.MOSS())), GuardedPlayer(Doubling(Moss()))),
    LiveOnly(ma.Guarded(ma.EmpMOSSPlusPlus()), GuardedPlayer(EmpMossPlusPlus(beta="0.5"))),
    LiveOnly(
        ma.Guarded(SubSampled(field.Greedy(), exponent=0.5)),
        GuardedPlayer(OnSubset(dropping.Greedy(), by_exponent("1/2"))),
    ),
    # the field
    Small(field.UCB1(), ucb.Ucb1()),
    Small(field.UCB1(exploration=0.1), ucb.Ucb1(0.1)),
    Small(field.UCB(), ucb.Ucb()),
    Small(field.UCB(sigma=1.0), ucb.Ucb(1.0)),
    Small(field.KLUCB(), ucb.KlUcb()),
    Small(field.KLUCB(c=3.0), ucb.KlUcb(3.0)),
    Small(field.IMOSS(), ucb.Imoss()),
    Small(field.IMOSS(a=0.5, b=0.8), ucb.Imoss(0.5, 0.8)),
    Small(field.IMOSS(a=0.0, b=1.0), ucb.Imoss(0.0, 1.0)),
    Pair(ma.MOSS(index="kl"), Moss(KLIndex())),
    Pair(ma.MOSS(index="kl", exploration=2.0), Moss(KLIndex(exploration=2.0))),
    Pair(ma.MOSS(index="kl++"), Moss(KLIndex(plus=True))),
    Pair(ma.MOSS(index="kl++", exploration=0.5), Moss(KLIndex(plus=True, exploration=0.5))),
    Pair(ma.MOSS(index="switch"), Moss(KLIndex(switch=True))),
    Pair(ma.MOSS(index="switch", exploration=0.5), Moss(KLIndex(switch=True, exploration=0.5))),
    Small(field.Thompson(), thompson.Thompson()),
    Small(field.SatisficingTS(target=0.5), thompson.Satisficing(0.5)),
    Small(field.SatisficingTS(target=0.8), thompson.Satisficing(0.8)),
    Small(field.SatisficingTS(target=0.0), thompson.Satisficing(0.0)),
    Small(field.SatisficingTS(target=1.0), thompson.Satisficing(1.0)),
    Pair(field.Greedy(), dropping.Greedy()),
    Pair(SubSampled(ma.MOSS(), exponent=0.5), OnSubset(Moss(), by_exponent("1/2"))),
    Pair(SubSampled(ma.MOSS(), exponent=2 / 3), OnSubset(Moss(), by_exponent("2/3"))),
    Pair(SubSampled(ma.MOSS(), size=7), OnSubset(Moss(), fixed(7))),
    Pair(SubSampled(field.Greedy(), exponent=0.5), OnSubset(dropping.Greedy(), by_exponent("1/2"))),
    Small(SubSampled(field.UCB(), exponent=0.5), OnSubset(ucb.Ucb(), by_exponent("1/2"))),
    Small(
        SubSampled(field.Thompson(), exponent=0.5),
        OnSubset(thompson.Thompson(), by_exponent("1/2")),
    ),
    Pair(SubSampled(ma.HybridMOSSPlusPlus(), size=20), OnSubset(HybridMossPlusPlus(), fixed(20))),
    LiveOnly(SubSampled(ma.Quantile(), size=20), OnSubset(Quantile(), fixed(20))),
    LiveOnly(
        SubSampled(SubSampled(ma.MOSS(), size=5), size=25),
        OnSubset(OnSubset(Moss(), fixed(5)), fixed(25)),
    ),
    LiveOnly(SubSampled(ma.Doubling(ma.MOSS()), size=9), OnSubset(Doubling(Moss()), fixed(9))),
    LiveOnly(ma.Doubling(SubSampled(ma.MOSS(), size=9)), Doubling(OnSubset(Moss(), fixed(9)))),
    Pair(field.SSGreedyOracle(alpha=0), OnSubset(dropping.Greedy(), for_greedy("0"))),
    Pair(field.SSGreedyOracle(alpha=0.4), OnSubset(dropping.Greedy(), for_greedy("0.4"))),
    Pair(field.SSGreedyOracle(alpha=0.8), OnSubset(dropping.Greedy(), for_greedy("0.8"))),
    Small(field.SSUCBOracle(share=0.1), OnSubset(ucb.Ucb(), by_share("0.1"))),
    Small(field.SSUCBOracle(share=0.5, sigma=1.0), OnSubset(ucb.Ucb(1.0), by_share("0.5"))),
    Pair(field.QRM1(rho=0.05), qrm.Qrm1(Fraction(1, 20))),
    Pair(field.QRM1(rho=0.5, exploration=0.5), qrm.Qrm1(Fraction(1, 2), SHY)),
    Pair(field.QRM1(rho=1.0), qrm.Qrm1(Fraction(1))),
    Pair(field.QRM2Restarted(), qrm.Qrm2Restarted()),
    Pair(field.QRM2Restarted(exponent=0.6, exploration=0.5), qrm.Qrm2Restarted(SHY, "0.6")),
    Pair(field.QRM2Restarted(exponent=1.0), qrm.Qrm2Restarted(exponent="1")),
    Pair(field.UCBF(), infinite.UcbF()),
    Pair(field.UCBF(b=0.5), infinite.UcbF(1, 4)),
    Pair(field.UCBF(b=0.5, perfect_best=True), infinite.UcbF(1, 3)),
    Pair(field.UCBF(b=2.0), infinite.UcbF(2, 3)),
    Pair(field.UCBAIR(), infinite.UcbAir()),
    Pair(field.UCBAIR(b=0.5), infinite.UcbAir(1, 4)),
    Pair(field.UCBAIR(b=0.5, perfect_best=True), infinite.UcbAir(1, 3)),
    Pair(field.UCBAIR(b=3.0), infinite.UcbAir(3, 4)),
    Small(field.CorralIGW(), infinite.CorralIgw()),
    Small(
        field.CorralIGW(bases=3, gamma_low=1.0, gamma_high=1e4, eta=0.5),
        infinite.CorralIgw(3, 1.0, 1e4, 0.5),
    ),
    Small(field.CorralIGW(bases=1), infinite.CorralIgw(1)),
    Pair(field.DynamicBalancing(c=0.1), DynamicBalancing(Balance(0.1))),
    Pair(
        field.DynamicBalancing(c=0.25, regret_factor=0.5, exploration=0.5),
        DynamicBalancing(Balance(0.25, 0.5), SHY),
    ),
    Pair(field.KFailure(), dropping.KFailure(1)),
    Pair(field.KFailure(k=3), dropping.KFailure(3)),
    Pair(field.MRun(), dropping.MRun()),
    Pair(field.MRun(m=4), dropping.MRun(4)),
    Pair(field.MRun(recall=False), dropping.NonRecallingMRun()),
    Pair(field.MRun(recall=False, m=3), dropping.NonRecallingMRun(3)),
    Pair(field.TwoTarget(), dropping.TwoTarget()),
    Pair(field.TwoTarget(m=1), dropping.TwoTarget(m=1)),
    Pair(field.TwoTarget(m=2, b=2.0, weight=0.5), dropping.TwoTarget(2, 2, "1/2")),
    Pair(field.CBT(), dropping.Cbt()),
    Pair(field.CBT(b=2.0, weight=0.5, factor=1.5), dropping.Cbt(2.0, 0.5, factor=1.5)),
    Pair(field.CBT(target=0.4), dropping.Cbt(target=0.4)),
    Pair(field.EmpiricalCBT(), infinite.EmpiricalCbt()),
    Pair(field.EmpiricalCBT(factor=2.0), infinite.EmpiricalCbt(2.0)),
    Small(ma.Scout(), finding.Scout()),
    Small(ma.Scout(search=0.5), finding.Scout(0.5)),
    Small(field.SequentialHalving(), finding.SequentialHalving()),
    Small(field.SequentialHalving(size=13), finding.SequentialHalving(13)),
    Small(field.BracketingHalving(), finding.BracketingHalving()),
    Small(field.SiRI(), finding.Siri()),
    Small(field.SiRI(beta=3.0, constant=2.0), finding.Siri(3.0, 2.0)),
    Pair(field.Uniform(), dropping.Uniform()),
    Pair(field.Best(arm=0), dropping.Best(0)),
]

ALL_POLICIES = [pair.policy for pair in EVERYWHERE]
_by_name = {pair.policy.name: pair.policy for pair in reversed(PAIRS)}  # the first of each name
EVERY_POLICY = [_by_name[name] for name in described()]
