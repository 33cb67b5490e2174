"""Where a bound says something, and where it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from manyarms.core.checks import check_int
from manyarms.theory._arrays import Numbers, check_numbers, like

__all__ = ["informative_from", "share_of_horizon"]


def share_of_horizon(bound: Numbers, horizon: Numbers) -> Any:
    """Return the bound as a share of the horizon; from 1 on it says nothing.

    T pulls lose at most T when gaps are at most 1, so a bound above T says nothing.

    Parameters
    ----------
    bound, horizon
        Numbers or arrays.

    Examples
    --------
    >>> from manyarms.theory import moss_bound, moss_plus_plus_bound
    >>> share_of_horizon(moss_plus_plus_bound(0.25, 2**16, beta=0.5), 2**16)
    10240.0
    >>> share_of_horizon(moss_bound(4, 10_000), 10_000)
    0.41
    """
    t = check_numbers("horizon", horizon, at_least=1, whole=True)
    return like((bound, horizon), check_numbers("bound", bound, at_least=0.0) / t)


def informative_from(bound: Callable[[int], float], *, at_most: int = 1 << 500) -> int | None:
    """Return the horizon from which on a bound stays below T itself; None if there is none.

    Parameters
    ----------
    bound
        A function of the horizon, whose share of the horizon falls for good in the end.
    at_most
        How far to look.

    Examples
    --------
    >>> from manyarms.theory import moss_bound, moss_plus_plus_bound
    >>> informative_from(lambda horizon: moss_bound(10, max(horizon, 10)))  # 20.5^2 * 10 = 4202.5
    4203
    >>> informative_from(lambda horizon: moss_plus_plus_bound(1.0, horizon, beta=0.5)) is None
    True
    """
    check_int("at_most", at_most, at_least=2, at_most=1 << 900)  # floats end at 2^1024
    high = 1 << (at_most.bit_length() - 1)
    if bound(high) >= high:
        return None
    while high > 2 and bound(high // 2) < high // 2:
        high //= 2
    low = high // 2  # here it is vacuous, or the shortest horizon there is
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) < middle else (middle, high)
    return high
