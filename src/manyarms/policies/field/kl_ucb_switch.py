"""kl-UCB-switch: the KL index for an arm's first pulls, then MOSS (Garivier et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from manyarms.policies.field.kl_moss import KLMOSS


@dataclass(frozen=True, kw_only=True)
class KLUCBSwitch(KLMOSS):
    r"""Over all n arms: the index of `KLMOSS` for an arm's first pulls, that of MOSS afterwards.

    The index is the largest q in [0, 1] with

    .. math:: N\,\mathrm{kl}(\bar x, q) \le \max(0, \log(T / (n N)))
              \quad\text{while}\quad N \le \lfloor (T/n)^{1/5} \rfloor

    and from then on :math:`\bar x + \sqrt{\max(0, \log(T / (n N))) / (2N)}`.

    Parameters
    ----------
    exploration
        Scales both logarithms.
    count_late
        As for `MOSS`.

    Notes
    -----
    For rewards in [0, 1], and needs the horizon. Source: as for `KLMOSS`. It is optimal up to
    constants for every problem and in the worst case at once. That is for the source's index over
    all laws on [0, 1], which is this one for rewards 0 and 1 and is smaller for others. With
    n > T/32 the KL index decides about an arm's second pull only. Cost per pull: O(log of the arms
    pulled).

    Examples
    --------
    >>> from manyarms.policies.field import KLUCBSwitch
    >>> live = KLUCBSwitch().live(n_arms=3, horizon=100, seed=1)
    >>> sorted(pull.arm for pull in live.ask(3))
    [0, 1, 2]
    """

    name = "kl-ucb-switch"
    about = replace(
        KLMOSS.about,
        guarantee="optimal per problem and minimax over n arms",
        nanoseconds=54,
        good_at="few arms, best of both guarantees",
    )

    @property
    def spread(self) -> float:
        return 0.5 * self.exploration

    @property
    def switch(self) -> bool:
        return True
