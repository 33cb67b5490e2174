"""SS-Greedy that knows the hardness: greedy on a subset of the right size (Jedor et al. 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from manyarms.core.checks import check_int, check_one
from manyarms.core.memory import Memory
from manyarms.policies.field.greedy import Greedy
from manyarms.policies.field.sub_sampled import OnSubset, SubSampledState
from manyarms.protocol import About, Policy
from manyarms.protocol.parameters import Count, Probability


@dataclass(frozen=True, kw_only=True)
class SSGreedyOracle(OnSubset):
    r"""`Greedy` on a random subset, for those who know how rare best arms are: n/m = T^a.

    .. math:: s = \begin{cases}
        \lceil (1 - 2a)\,T^{2a} \log T / 4 \rceil & a < 1/2 \\
        \lceil \sqrt{(1 - a)\,T^{1+a} \log T / 8} \rceil & a \ge 1/2
        \end{cases}

    Parameters
    ----------
    alpha
        The a of the source, log(n/m) / log T: n/m = T^a. (The hardness of `MOSSOracle` is that of
        n/m = 2 T^alpha.)
    m
        The number of best arms, instead of `alpha`.

    Notes
    -----
    M. Jedor, J. Louëdec, V. Perchet, "Be greedy in multi-armed bandits", 2021; the two sizes were
    read in their public notebooks, and their regrets with K = 2000 arms are reproduced by a test.
    Needs the horizon, and the share of best arms. The first size vanishes as a comes close to 1/2,
    and the second as it comes close to 1: there is always one arm at least, and never more than n
    or T. Cost per pull: O(log of the arms pulled).

    Examples
    --------
    >>> from manyarms.policies.field.ss_greedy_oracle import SSGreedyOracle
    >>> SSGreedyOracle(alpha=0.4).set_size(2000, 5000)
    388
    >>> SSGreedyOracle(m=67).live(n_arms=2000, horizon=5000, seed=1).ask().arm < 2000
    True
    """

    name = "ss-greedy-oracle"
    about = About(
        needs="horizon, m",
        guarantee="none stated here",
        nanoseconds=22,
        page="docs/policies/subsets.md",
        scaling="log of arms in the subset",
        good_at="problems whose share of best arms is known",
        source="Jedor et al. 2021",
        knowledge="m",
    )

    alpha: Probability | None = None
    m: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one("An oracle must know how rare best arms are.", alpha=self.alpha, m=self.m)

    @property
    def runs(self) -> Policy:
        return Greedy()

    def wanted(self, n_arms: int, pulls: int) -> float:
        log = math.log(pulls)
        a = self.alpha
        if a is None:
            a = min(1.0, math.log(n_arms / (self.m or 1)) / log) if pulls > 1 else 0.0
        if a < 0.5:
            size = (1 - 2 * a) * math.pow(pulls, 2 * a) * log / 4
        else:
            size = math.sqrt((1 - a) * math.pow(pulls, 1 + a) * log / 8)
        return min(size, pulls)

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> SubSampledState:
        if self.m is not None:
            check_int("m", self.m, at_least=1, at_most=n_arms, fix=f"There are {n_arms} arms.")
        return super().new_state(memory, n_arms=n_arms, pulls=pulls)
