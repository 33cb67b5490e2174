"""QRM1 and restarted QRM2: the sizes of their sets, and their rounds."""

from __future__ import annotations

from fractions import Fraction

import pytest

from manyarms.policies.field import QRM1, QRM2Restarted
from manyarms.policies.field.qrm1 import qrm1_arms
from tests.reference.field.qrm import qrm1_size


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


def test_stages() -> None:
    for policy in (QRM1(rho=0.05), QRM2Restarted()):
        live = policy.live(n_arms=50, seed=1)
        for _ in range(3):
            live.tell(live.ask(), 1.0)
        assert policy.stage(live._experiment.state) == "round 2"
