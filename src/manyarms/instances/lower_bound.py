"""The instances of the paper's lower bound, to be played on."""

from __future__ import annotations

from typing import Any

from manyarms.core.checks import check_int
from manyarms.errors import ParameterError
from manyarms.instances.instance import Instance
from manyarms.instances.means import grouped
from manyarms.instances.rewards import Gaussian
from manyarms.theory.lower_bound_family import LowerBoundFamily

__all__ = ["lower_bound_instance"]


def lower_bound_instance(family: LowerBoundFamily, hidden: int) -> Instance:
    """Return instance `hidden` of a lower-bound family, 0 to K.

    Arms are numbered group by group, S_0 first. No array is made: a billion arms take no more
    memory than ten.

    Parameters
    ----------
    family
        Sizes and means; see `manyarms.theory.LowerBoundFamily`.
    hidden
        Which group is best: 1, …, K for a hidden one, 0 for none, so that S_0 is best.

    Examples
    --------
    >>> import manyarms as ma
    >>> from manyarms.theory import LowerBoundFamily
    >>> family = LowerBoundFamily(horizon=10_000, alpha=0.5, budget=200, m=50)
    >>> instance = ma.instances.lower_bound_instance(family, 1)
    >>> instance.n_arms, instance.n_best
    (9950, 50)
    """
    _check_family(family)
    groups, m, gap = family.hidden_groups, family.m, family.gap
    fix = f"The family has K = {groups} hidden groups; 0 hides none."
    hidden = check_int("hidden", hidden, at_most=groups, fix=fix)
    sizes, means = [family.open_arms, groups * m], [gap / 2, 0.0]
    if hidden > 0:
        before, after = (hidden - 1) * m, (groups - hidden) * m
        sizes, means = [family.open_arms, before, m, after], [gap / 2, 0.0, gap, 0.0]
    label = f"lower bound(n={family.n_arms}, K={groups}, gap={gap:.3g}, hidden={hidden})"
    return grouped(sizes=sizes, means=means, rewards=Gaussian(0.5), label=label)


def _check_family(family: Any) -> None:
    if not isinstance(family, LowerBoundFamily):
        raise ParameterError(f"`family` must be a LowerBoundFamily, got {family!r}.")
