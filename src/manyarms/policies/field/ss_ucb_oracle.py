"""SS-UCB that knows the share of best arms: UCB on just enough (after de Heide et al. 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from manyarms.policies.field.sub_sampled import OnSubset
from manyarms.policies.field.ucb import UCB
from manyarms.policies.parts.parameters import SigmaPolicy
from manyarms.protocol import About, Policy
from manyarms.protocol.parameters import Share


@dataclass(frozen=True, kw_only=True)
class SSUCBOracle(OnSubset, SigmaPolicy):
    r"""`UCB` on a random subset that holds a best arm all but surely, for those who know how many.

    .. math:: s = \lceil \log(T) / p \rceil

    Parameters
    ----------
    share
        p, the share of best arms, or a lower bound on it.
    sigma
        As for `UCB`.

    Notes
    -----
    The size is in the manner of Sampling-UCB (R. de Heide, J. Cheshire, P. Ménard, A. Carpentier,
    "Bandits with many optimal arms", NeurIPS 2021): no best arm is among the s with probability at
    most :math:`e^{-ps} \le 1/T`, which costs 1. Sampling-UCB's index could not be checked, and
    is not this one: its regret is of order :math:`\log(T) \log(1/\Delta) / (p \Delta)`, all gaps
    being at least :math:`\Delta`, while `UCB` on s arms has :math:`\log T` for
    :math:`\log(1/\Delta)`. Their lower bound has no such factor, and they show that p must be
    known. Needs the horizon. Cost per pull: that of `UCB` on s arms.

    Examples
    --------
    >>> from manyarms.policies.field import SSUCBOracle
    >>> SSUCBOracle(share=0.05).set_size(1_000_000, 20_000)
    199
    """

    name = "ss-ucb-oracle"
    about = About(
        needs="horizon, share of best arms",
        guarantee="(log T)²/(share · smallest gap)",
        nanoseconds=390,
        page="docs/policies/subsets.md",
        scaling="distinct pull counts",
        good_at="many best arms, of known share",
        source="size: de Heide et al. 2021",
        knowledge="m",
    )

    share: Share

    @property
    def runs(self) -> Policy:
        return UCB(sigma=self.sigma)

    def wanted(self, n_arms: int, pulls: int) -> float:
        return math.log(pulls) / self.share
