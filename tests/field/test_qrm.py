"""QRM1 and restarted QRM2 beside their slow references."""

from __future__ import annotations

from fractions import Fraction

import pytest

import manyarms as ma
from manyarms.policies.field.qrm1 import QRM1, qrm1_arms
from manyarms.policies.field.qrm2_restarted import QRM2Restarted
from tests.field.oracle import check_all
from tests.reference.field_qrm import Qrm1, Qrm2Restarted, qrm1_size
from tests.reference.moss import Index, Player

SHY = Index(exploration=0.5)
PAIRS: dict[str, tuple[ma.Policy, Player]] = {
    "qrm1-0.05": (QRM1(rho=0.05), Qrm1(Fraction(1, 20))),
    "qrm1-0.5-shy": (QRM1(rho=0.5, exploration=0.5), Qrm1(Fraction(1, 2), SHY)),
    "qrm1-1": (QRM1(rho=1.0), Qrm1(Fraction(1))),
    "qrm2": (QRM2Restarted(), Qrm2Restarted()),
    "qrm2-0.6-shy": (QRM2Restarted(exponent=0.6, exploration=0.5), Qrm2Restarted(SHY, "0.6")),
    "qrm2-1": (QRM2Restarted(exponent=1.0), Qrm2Restarted(exponent="1")),
}


@pytest.mark.parametrize("name", PAIRS)
def test_same_arms_as_the_reference(name: str) -> None:
    check_all(*PAIRS[name])


def test_sizes_are_exact() -> None:
    for denominator in range(1, 200):
        for round_number in (1, 5, 12, 20, 40):
            size = qrm1_arms(round_number, 1 / denominator, 10**9)
            assert size == qrm1_size(Fraction(1, denominator), round_number, 10**9)
    assert qrm1_arms(1, 1e-300, 7) == 7


@pytest.mark.parametrize("late", [0, 1, 5, 40])
def test_late_rewards_of_an_earlier_round_teach_nothing(late: int) -> None:
    live = QRM2Restarted().live(n_arms=1000, seed=late)
    waiting = []
    for _ in range(200):
        waiting.append(live.ask())
        if len(waiting) > late:
            live.tell(waiting.pop(0), 1.0)
    assert live.pulls == 200


def test_parameters() -> None:
    with pytest.raises(ma.ParameterError, match="`rho` must be a number > 0 and <= 1, got 0"):
        QRM1(rho=0)
    with pytest.raises(ma.ParameterError, match="`exponent` must be a number > 0 and <= 1"):
        QRM2Restarted(exponent=1.5)
    assert QRM1(rho=0.05).label == "qrm1(rho=0.05)"
    live = QRM1(rho=0.05).live(n_arms=50, seed=1)
    restarted = QRM2Restarted().live(n_arms=50, seed=1)
    for _ in range(3):
        live.tell(live.ask(), 1.0)
        restarted.tell(restarted.ask(), 1.0)
    for handle in (live, restarted):
        assert handle.policy.stage(handle._game.state) == "round 2"
