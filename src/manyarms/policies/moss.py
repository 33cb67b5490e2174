"""MOSS: minimax optimal if there are at least as many pulls as arms (Audibert & Bubeck 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from manyarms.core.memory import Memory
from manyarms.policies.parts.moss_run import (
    MossRun,
    arrive_now,
    ask_arms,
    begin,
    count_late_pulls,
    credit,
    credit_arm,
    hold,
    present,
    reset_arms,
    retire_arm,
)
from manyarms.policies.parts.parameters import IndexPolicy
from manyarms.protocol import plays
from manyarms.protocol.parameters import choice

# the name of each index; the docstring of MOSS has the sources
_NAMES = {"moss": "moss", "kl": "kl-moss", "kl++": "kl-ucb++", "switch": "kl-ucb-switch"}


class MossState(NamedTuple):
    """The arms pulled so far, ranked by index."""

    moss: MossRun


def moss_reset(state: MossState, key: int, horizon: int) -> None:
    reset_arms(state.moss, key)
    begin(state.moss, present(state.moss), horizon)


def moss_arrive(state: MossState, count: int) -> None:
    arrive_now(state.moss, count)
    hold(state.moss, present(state.moss))


plays(
    MossState,
    reset=moss_reset,
    ask=lambda state: ask_arms(state.moss),
    tell=lambda state, slot, reward: credit(state.moss, slot, reward),
    count_late=lambda state, slot, change: count_late_pulls(state.moss, slot, change),
    arrive=moss_arrive,
    retire=lambda state, arm: retire_arm(state.moss, arm),
    credit_known=lambda state, arm, count, total, _: credit_arm(state.moss, arm, count, total),
)


@dataclass(frozen=True, kw_only=True)
class MOSS(IndexPolicy):
    r"""MOSS over all n arms: pull an arm of largest index.

    .. math:: B = \bar x + 2\sigma \sqrt{\frac{\max(0, \log(T / (n N)))}{N}}

    Parameters
    ----------
    sigma
        Rewards are sigma-sub-Gaussian around their mean (default: half the width of their range,
        1/2 for [0, 1]).
    exploration
        Multiplies the fraction under the root: 1 is the paper's index, 1/2 that of Garivier et al.,
        to which the bound 18 sqrt(nT) belongs.
    count_late
        Whether pending pulls count as pulls in the bonus, but not in the mean (default: False).
        True spreads batches over more arms, but has no guarantee; with False the index stays valid.
    index
        "moss" (default) for the index above; "kl", "kl++" or "switch" for one of those below. They
        are for rewards in [0, 1], and tighter if means are close to 0 or 1.

    Notes
    -----
    With more arms than pulls it only explores.

    The other indices have names of their own: `ma.policy("kl-moss")` is `MOSS(index="kl")`.
    With :math:`\mathrm{kl}(p, q) = p \log\frac pq + (1-p) \log\frac{1-p}{1-q}` and
    :math:`y = T / (n N)`:

    * "kl", KL-MOSS: the largest q with :math:`N\,\mathrm{kl}(\bar x, q) \le \max(0, \log y)`. It
      never exceeds the index above with `exploration` 1/2. Nothing is proven for it. Checked
      against `klucbplus_index` in klUCBswitch.py of SMPyBandits.
    * "kl++", KL-UCB++: the largest q with :math:`N\,\mathrm{kl}(\bar x, q) \le \log_+(y\,(1 +
      \log_+^2 y))`. For rewards 0 and 1 it is minimax and asymptotically optimal (P. Ménard and
      A. Garivier, "A minimax and asymptotically optimal algorithm for stochastic bandits", ALT
      2017). Checked against klUCBPlusPlus.py of SMPyBandits. The constant of its bound,
      :math:`76\sqrt{V n T} + n` with V the largest variance, could not be checked.
    * "switch", kl-UCB-switch: as "kl" while :math:`N \le \lfloor (T/n)^{1/5} \rfloor`, and from
      then on :math:`\bar x + \sqrt{\max(0, \log y) / (2N)}`. Optimal up to constants for every
      problem and in the worst case at once (A. Garivier, H. Hadiji, P. Ménard and G. Stoltz,
      "KL-UCB-switch: optimal regret bounds for stochastic bandits from both a
      distribution-dependent and a distribution-free viewpoints", JMLR 2022). With n > T/32 the KL
      index decides about an arm's second pull only. Checked against klUCBswitch.py of SMPyBandits.

    The index of the last source is an optimization over all distributions on [0, 1]. For rewards 0
    and 1 it equals the one used here; for other rewards the one here is larger, so it is valid but
    less tight.

    Cost per pull: O(log(arms pulled)), and with a KL index a few steps of Newton's method
    while N < T/n.

    Its page is docs/policies/moss.md; docs/learn/moss.py is the plain algorithm.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.MOSS().live(n_arms=3, horizon=100, seed=1)
    >>> pull = live.ask()
    >>> live.tell(pull, reward=1.0)
    """

    index: Annotated[str, choice(*_NAMES)] = "moss"

    @property
    def name(self) -> str:  # type: ignore[override]  # it depends on the index
        """The name of the policy with this index."""
        return _NAMES[self.index]

    def _changed(self, known: bool) -> dict[str, Any]:
        """Leave out the index, which the name says."""
        return {key: value for key, value in super()._changed(known).items() if key != "index"}

    @property
    def switch(self) -> bool:
        return self.index == "switch"

    @property
    def spread(self) -> float:
        return 0.5 * self.exploration if self.switch else super().spread

    def new_state(self, memory: Memory, *, n_arms: int, pulls: int) -> MossState:
        return MossState(self._moss(memory, n_arms, slots=min(n_arms, pulls)))
