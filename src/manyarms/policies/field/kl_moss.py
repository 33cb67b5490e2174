"""KL-MOSS: MOSS with the confidence bound of coins (Garivier, Hadiji, Ménard & Stoltz 2022)."""

from __future__ import annotations

from dataclasses import dataclass

from manyarms.core.memory import Memory
from manyarms.policies.moss import MossState
from manyarms.policies.parts.parameters import RankingPolicy
from manyarms.protocol import About
from manyarms.protocol.parameters import Flag, Positive


@dataclass(frozen=True, kw_only=True)
class KLMOSS(RankingPolicy):
    r"""MOSS over all n arms, with the Kullback-Leibler divergence in the place of the square.

    Pull an arm of largest index, which is the largest q in [0, 1] with

    .. math:: N\,\mathrm{kl}(\bar x, q) \le \max(0, \log(T / (n N)))

    where :math:`\mathrm{kl}(p, q) = p \log\frac pq + (1-p) \log\frac{1-p}{1-q}`. It never exceeds
    the MOSS index with `exploration` 1/2, and is far below it where means are close to 0 or 1.

    Parameters
    ----------
    exploration
        Scales the logarithm.
    count_late
        As for `MOSS`.

    Notes
    -----
    For rewards in [0, 1], and needs the horizon. Source: A. Garivier, H. Hadiji, P. Ménard and
    G. Stoltz, "KL-UCB-switch: optimal regret bounds for stochastic bandits from both a
    distribution-dependent and a distribution-free viewpoints", JMLR 2022. Its index for all laws
    on [0, 1] is an optimisation over them; for rewards 0 and 1 it is this one, and for others this
    one is larger: still valid, less sharp. Their worst-case bound is for `KLUCBSwitch`; none is
    claimed here. Cost per pull: O(log of the arms pulled), and while N < T/n a few steps of
    Newton's method.

    Examples
    --------
    >>> import manyarms as ma
    >>> from manyarms.policies.field import KLMOSS
    >>> pair = [each.live(n_arms=9, horizon=99, seed=1) for each in (KLMOSS(), ma.MOSS(index="kl"))]
    >>> one, other = ([pull.arm for pull in live.ask(99)] for live in pair)
    >>> one == other  # the same policy
    True
    """

    name = "kl-moss"
    about = About(
        needs="horizon",
        guarantee="none claimed",
        nanoseconds=81,
        scaling="log of arms pulled",
        good_at="few arms, means near 0 or 1",
        source="Garivier et al. 2022",
        rewards="[0, 1]",
    )

    exploration: Positive = 1.0
    count_late: Flag = False

    @property
    def kl(self) -> float:
        return self.exploration

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> MossState:
        return MossState(self._arms(memory, n_arms, arms=min(n_arms, pulls)))
