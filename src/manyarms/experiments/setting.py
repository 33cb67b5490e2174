"""One point of an experiment."""

from __future__ import annotations

from dataclasses import dataclass

from manyarms.instances import Instance
from manyarms.live import Policy

__all__ = ["Setting"]


@dataclass(frozen=True)
class Setting:
    """Policies, what they are played on, and for how long."""

    alpha: float
    instance: Instance
    policies: tuple[Policy, ...]
    horizon: int
