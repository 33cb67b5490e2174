"""The lower bound made visible: the same policies, with and without a hidden group.

Each function returns settings, nothing else: what is played on what.
"""

from __future__ import annotations

from typing import NamedTuple

from manyarms.experiments.setting import Setting
from manyarms.instances.lower_bound import lower_bound_instance
from manyarms.policies import MOSSOracle, MOSSPlusPlus
from manyarms.protocol import Policy
from manyarms.theory.lower_bound_family import LowerBoundFamily

__all__ = ["TradeOffSetting", "lower_bound_trade_off"]

HORIZON = 2**22
ALPHA = 0.25
ALPHA_PRIME = 0.0
BETAS = (0.5, 0.6, 0.75, 1.0)
DOUBLINGS = 8  # of the budget, from T^alpha up


class TradeOffSetting(NamedTuple):
    """The two instances of one budget; groups are exchangeable, so group 1 stands for all."""

    family: LowerBoundFamily
    names: tuple[str, ...]  # of the policies, with their parameters
    open: Setting  # instance 0
    hidden: Setting  # instance 1


def lower_bound_trade_off() -> list[TradeOffSetting]:
    """Sweep the budget B, and with it the gap, from T^alpha up by doubling.

    The policies are the same on all instances: MOSS Oracle stays tuned to alpha', MOSS++ knows
    no hardness. Policies told the best mean are left out, because the best mean tells them the
    instance, and the theorem is not about them.

    >>> [round(setting.family.budget) for setting in lower_bound_trade_off()][:3]
    [45, 91, 181]
    """
    policies: tuple[Policy, ...] = (
        MOSSOracle(alpha=ALPHA_PRIME),
        *(MOSSPlusPlus(beta=beta) for beta in BETAS),
    )
    names = (f"moss-oracle(alpha={ALPHA_PRIME:g})", *(f"moss++(beta={beta:g})" for beta in BETAS))
    settings = []
    for doubling in range(DOUBLINGS):
        family = LowerBoundFamily(
            horizon=HORIZON,
            alpha=ALPHA,
            alpha_prime=ALPHA_PRIME,
            budget=HORIZON**ALPHA * 2**doubling,
        )
        easy, hard = (
            Setting("lower-bound", alpha, lower_bound_instance(family, hidden), policies, HORIZON)
            for hidden, alpha in ((0, ALPHA_PRIME), (1, ALPHA))
        )
        settings.append(TradeOffSetting(family, names, easy, hard))
    return settings
