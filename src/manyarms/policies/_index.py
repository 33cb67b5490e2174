"""The parameters that all policies with a MOSS index share."""

from __future__ import annotations

from dataclasses import dataclass

from manyarms.core.checks import check_number
from manyarms.live.protocol import Policy

__all__ = ["IndexPolicy"]


@dataclass(frozen=True, kw_only=True)
class IndexPolicy(Policy):
    """A policy that ranks by the MOSS index."""

    sigma: float = 0.5
    exploration: float = 1.0

    def __post_init__(self) -> None:
        check_number("sigma", self.sigma, above=0.0)
        check_number("exploration", self.exploration, above=0.0)

    @property
    def spread(self) -> float:
        """What stands before the logarithm, under the root: (2 sigma)^2 times exploration."""
        return 4.0 * self.sigma**2 * self.exploration
