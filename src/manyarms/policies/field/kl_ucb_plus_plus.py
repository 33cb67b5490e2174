"""KL-UCB++: the KL index with a level that is minimax for coins (Ménard & Garivier 2017)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from manyarms.policies.field.kl_moss import KLMOSS


@dataclass(frozen=True, kw_only=True)
class KLUCBPlusPlus(KLMOSS):
    r"""Over all n arms: the index of `KLMOSS` with a slightly higher level.

    Pull an arm of largest index, which is the largest q in [0, 1] with

    .. math:: N\,\mathrm{kl}(\bar x, q) \le
              \log_+\!\big(y\,(1 + \log_+^2 y)\big), \qquad y = \frac{T}{n N}

    where :math:`\log_+` is the logarithm, or 0 if that is larger.

    Parameters
    ----------
    exploration
        Scales the level; 1 is the source's.
    count_late
        As for `MOSS`.

    Notes
    -----
    For rewards in [0, 1], and needs the horizon. Source: P. Ménard and A. Garivier, "A minimax and
    asymptotically optimal algorithm for stochastic bandits", ALT 2017: for laws of one exponential
    family, coins among them, minimax and asymptotically optimal at once. The level was checked
    against one public implementation. The constant of its bound, :math:`76\sqrt{V n T} + n` with V
    the largest variance, 1/4 for coins, could not be checked. Cost per pull: as for `KLMOSS`.

    Examples
    --------
    >>> from manyarms.policies.field import KLUCBPlusPlus
    >>> KLUCBPlusPlus(exploration=0.5).label
    'kl-ucb++(exploration=0.5)'
    """

    name = "kl-ucb++"
    about = replace(
        KLMOSS.about,
        guarantee="minimax and asymptotically optimal, rewards 0 and 1",
        nanoseconds=82,
        good_at="few arms, means near 0 or 1, with a guarantee",
        source="Ménard & Garivier 2017",
    )

    @property
    def plus(self) -> bool:
        return True
