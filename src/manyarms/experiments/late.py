"""What late rewards cost: regret against delay, and against the size of batches."""

from __future__ import annotations

from dataclasses import dataclass

from manyarms.instances import Instance, planted
from manyarms.policies import MOSS, EmpMOSSPlusPlus, MOSSOracle, MOSSPlusPlus, Parallel, Quantile
from manyarms.protocol import Policy

__all__ = ["LateSetting", "late_rewards", "late_rewards_short"]

DELAYS = (0, 10, 100, 1000)
BATCHES = (1, 10, 100, 1000)
ALPHA = 0.25  # as in Figure 2(b)


@dataclass(frozen=True)
class LateSetting:
    """Policies, what they are played on, and how late its rewards come."""

    instance: Instance
    policies: tuple[Policy, ...]
    horizon: int
    count_late: bool  # in all the policies
    delay: int = 0
    batch: int = 1

    @property
    def pulls(self) -> int:
        """The pulls of one replication."""
        return len(self.policies) * self.horizon


def late_rewards() -> list[LateSetting]:
    """Return Figure 2(b)'s problem, n = 20000 and T = 50000, with rewards that come late.

    >>> [(s.delay, s.batch) for s in late_rewards() if not s.count_late][1:5]
    [(10, 1), (100, 1), (1000, 1), (0, 10)]
    """
    return _settings(planted(n=20_000, alpha=ALPHA, horizon=50_000), 50_000)


def late_rewards_short() -> list[LateSetting]:
    """Return the same for n = 2000 and T = 5000: a delay of 1000 pulls is a fifth of the game."""
    return _settings(planted(n=2000, alpha=ALPHA, horizon=5000), 5000)


def _settings(instance: Instance, horizon: int) -> list[LateSetting]:
    late = [(delay, 1) for delay in DELAYS] + [(0, batch) for batch in BATCHES if batch > 1]
    return [
        LateSetting(instance, _six(count_late), horizon, count_late, delay, batch)
        for count_late in (False, True)
        for delay, batch in late
    ]


def _six(count_late: bool) -> tuple[Policy, ...]:
    return (
        MOSS(count_late=count_late),
        MOSSOracle(alpha=ALPHA, count_late=count_late),
        Quantile(count_late=count_late),
        Parallel(count_late=count_late),
        MOSSPlusPlus(count_late=count_late),
        EmpMOSSPlusPlus(count_late=count_late),
    )
