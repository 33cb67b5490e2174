"""One point of an experiment."""

from __future__ import annotations

from dataclasses import dataclass

from manyarms.instances import Instance
from manyarms.protocol import Policy

__all__ = ["Setting"]


@dataclass(frozen=True)
class Setting:
    """Policies, what they are played on, for how long, and how often regret is recorded."""

    experiment: str
    alpha: float
    instance: Instance
    policies: tuple[Policy, ...]
    horizon: int
    checkpoints: int = 1

    @property
    def pulls(self) -> int:
        """The pulls of one replication."""
        return len(self.policies) * self.horizon
