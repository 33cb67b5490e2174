"""Families with given means: planted best arms, groups, any array, those of the lower bound."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyarms.core.checks import check_int, check_number, check_probability, refusal
from manyarms.errors import ParameterError
from manyarms.instances.columns import numbers_at, split_place
from manyarms.instances.instance import Instance, make_instance
from manyarms.instances.rewards import (
    AnyRewards,
    Gaussian,
    RewardModel,
    check_law,
    check_rewards,
    named_law,
)
from manyarms.instances.world import GROUPS, TABLE
from manyarms.protocol.policy import MOST_ARMS
from manyarms.theory.arrays import check_unmasked
from manyarms.theory.hardness import best_arms, good_mean
from manyarms.theory.lower_bound_family import LowerBoundFamily

_PAPER_OTHERS = (0.1, 0.2, 0.3, 0.4, 0.5)


def planted(
    *,
    n: int,
    alpha: float | None = None,
    horizon: int | None = None,
    m: int | None = None,
    best: float = 0.9,
    others: Sequence[float] = _PAPER_OTHERS,
    rewards: AnyRewards = None,
    epsilon: float = 0.0,
) -> Instance:
    """Make an instance of `n` arms, `m` of them best; equal parts of the rest have means `others`.

    The paper's experiments plant m = ⌈n / (2 T^alpha)⌉ arms of mean 0.9 among others of 0.1, 0.2,
    0.3, 0.4 and 0.5. No array is made: a billion arms take no more memory than ten.

    Parameters
    ----------
    n
        The number of arms.
    alpha, horizon
        The hardness, and the horizon T that it refers to.
    m
        The number of best arms, instead of `alpha` and `horizon`.
    best, others
        The best mean, and the means of the other arms, all smaller.
    rewards, epsilon
        As for `grouped`.

    Examples
    --------
    >>> import manyarms as ma
    >>> ma.instances.planted(n=20_000, alpha=0.25, horizon=50_000).n_best
    669
    """
    n = check_int("n", n, at_least=1, at_most=MOST_ARMS)
    if m is None:
        if alpha is None:
            raise ParameterError(
                "`alpha` or `m`, the hardness or the number of best arms, is required."
            )
        if horizon is None:
            raise ParameterError("`horizon` is required with `alpha`.", parameter="horizon")
        m = best_arms(n, horizon, alpha)
    elif alpha is not None:
        raise refusal("alpha", "left out with `m`", alpha, "Give one of them.")
    m = check_int("m", m, at_least=1, at_most=n, fix=f"There are n = {n} arms.")
    rewards = check_rewards(rewards)
    best = _check_mean(best, rewards, name="best")
    others = _listed("others", others)
    for mean in others:
        check_number("others", mean)
        if mean >= good_mean(best):
            raise refusal("others", f"smaller than best = {best!r}", mean)
    share, rest = divmod(n - m, len(others))
    sizes = [m] + [share + (k < rest) for k in range(len(others))]
    label = f"planted(n={n}, m={m}{named_law(rewards)}{_named_slack(epsilon)})"
    means = [best, *others]
    return grouped(sizes=sizes, means=means, rewards=rewards, label=label, epsilon=epsilon)


def grouped(
    *,
    sizes: Sequence[int],
    means: Sequence[float],
    rewards: AnyRewards = None,
    label: str | None = None,
    epsilon: float = 0.0,
) -> Instance:
    """Make groups of arms with equal means: the first `sizes[0]` arms have `means[0]`, and so on.

    Parameters
    ----------
    sizes
        The size of each group; groups may be empty, but not all.
    means
        The mean of each group.
    rewards
        The reward model (default: `Bernoulli()`).
    label
        The name of the instance.
    epsilon
        An arm counts as best if its mean is within `epsilon` of the best mean (default: 0, so that
        only arms of the best mean do). Relative differences of 1e-12 are taken for rounding errors.
        Regret does not depend on `epsilon`.

    Examples
    --------
    >>> import manyarms as ma
    >>> ma.instances.grouped(sizes=[3, 997], means=[0.6, 0.5]).best_mean
    0.6
    """
    rewards = check_rewards(rewards)
    sizes, means = _listed("sizes", sizes), _listed("means", means)
    if len(sizes) != len(means):
        raise ParameterError(
            f"`sizes` and `means` must have the same length, got {len(sizes)} and {len(means)}."
        )
    whole = [check_int("sizes", size) for size in sizes]
    values = [_check_mean(mean, rewards) for mean in means]
    groups = [group for group in zip(whole, values, strict=True) if group[0] > 0]
    n = check_int("sizes", sum(whole), at_least=1, at_most=MOST_ARMS, fix="That is their sum.")
    best = max(value for _, value in groups)
    good = good_mean(best, check_number("epsilon", epsilon, at_least=0.0))
    firsts = [end - size for end, (size, _) in zip(_ends(groups), groups, strict=True)]
    check_law(rewards, _some(firsts, [value for _, value in groups]))
    return make_instance(
        GROUPS,
        label or f"grouped({len(groups)} groups, n={n}{named_law(rewards)}{_named_slack(epsilon)})",
        n_arms=n,
        best_mean=best,
        rewards=rewards,
        n_best=sum(size for size, value in groups if value >= good),
        epsilon=float(epsilon),
        ends=_ends(groups),
        values=[value for _, value in groups],
    )


def _ends(groups: Sequence[tuple[int, float]]) -> list[int]:
    return list(itertools.accumulate(size for size, _ in groups))


def _some(arms: Sequence[int], means: ArrayLike) -> list[tuple[int, float]]:
    """Return the arms with the smallest, the middle and the largest mean, with their means."""
    values = np.asarray(means, np.float64)
    order = np.argsort(values, kind="stable")
    places = sorted({int(order[0]), int(order[len(order) // 2]), int(order[-1])})
    return [(int(arms[place]), float(values[place])) for place in places]


def from_means(
    means: Sequence[float] | NDArray[Any] | str | os.PathLike[str],
    *,
    rewards: AnyRewards = None,
    label: str | None = None,
    epsilon: float = 0.0,
) -> Instance:
    """Make an instance from an array of means.

    Parameters
    ----------
    means
        One mean for each arm, or a column of a CSV or Parquet file: "items.csv:rate" is the column
        rate, "items.csv:clicks/views" a quotient of two, and "items.csv" the column mean.
    rewards, label, epsilon
        As for `grouped`.

    Examples
    --------
    >>> import manyarms as ma
    >>> ma.instances.from_means([0.2, 0.7, 0.7]).n_best
    2
    >>> ma.instances.from_means([0.2, 0.69, 0.7, 0.7], epsilon=0.02).n_best
    3
    """
    rewards = check_rewards(rewards)
    place = ""
    if isinstance(means, str | os.PathLike):
        file, words = split_place(means)
        place = f"{file.name}:{words}" if words else file.name
        means = numbers_at("means", means, default="mean")
    check_unmasked("means", means)
    try:
        values = np.array(means, dtype=np.float64)  # a copy: the caller's array may change
    except (TypeError, ValueError) as error:
        text = f"`means` must be numbers, one for each arm: {error}."
        raise ParameterError(text, parameter="means") from error
    if values.ndim != 1 or values.size == 0:
        rule = "a list of numbers, one for each arm"
        raise ParameterError(
            f"`means` must be {rule}, got shape {values.shape}.", parameter="means"
        )
    for bad in values[~np.isfinite(values)][:1]:
        raise refusal("means", "finite", float(bad))
    _check_mean(float(values.min()), rewards)
    best = _check_mean(float(values.max()), rewards)
    check_law(rewards, _some(range(values.size), values))
    good = good_mean(best, check_number("epsilon", epsilon, at_least=0.0))
    extra = f"{named_law(rewards)}{_named_slack(epsilon)}"
    return make_instance(
        TABLE,
        label or f"{place or 'from_means'}(n={values.size}{extra})",
        n_arms=int(values.size),
        best_mean=best,
        rewards=rewards,
        n_best=int((values >= good).sum()),
        epsilon=float(epsilon),
        values=values,
    )


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
    if not isinstance(family, LowerBoundFamily):
        raise ParameterError(f"`family` must be a LowerBoundFamily, got {family!r}.")
    groups, m, gap = family.hidden_groups, family.m, family.gap
    fix = f"The family has K = {groups} hidden groups; 0 hides none."
    hidden = check_int("hidden", hidden, at_most=groups, fix=fix)
    sizes, means = [family.open_arms, groups * m], [gap / 2, 0.0]
    if hidden > 0:
        before, after = (hidden - 1) * m, (groups - hidden) * m
        sizes, means = [family.open_arms, before, m, after], [gap / 2, 0.0, gap, 0.0]
    label = f"lower bound(n={family.n_arms}, K={groups}, gap={gap:.3g}, hidden={hidden})"
    return grouped(sizes=sizes, means=means, rewards=Gaussian(0.5), label=label)


def _named_slack(epsilon: float) -> str:
    """Return the part of a label about which arms count as best."""
    return f", epsilon={epsilon:g}" if epsilon else ""


def _listed(name: str, values: Any) -> list[Any]:
    listed = list(values) if isinstance(values, Iterable) else []
    if not listed or isinstance(values, str):
        raise refusal(name, "a list with at least one number", values)
    return listed


def _check_mean(mean: Any, rewards: RewardModel, *, name: str = "means") -> float:
    if not rewards.bounded:
        low, high = rewards.reward_range or (-math.inf, math.inf)
        return check_number(name, mean, at_least=low, at_most=high)
    fix = f"{type(rewards).__name__} rewards lie in [0, 1]; Gaussian() takes any mean."
    return check_probability(name, mean, fix=fix)
