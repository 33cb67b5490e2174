"""Check the settings of an experiment, and rewards."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

from manyarms.core.checks import check_int, check_number, shown
from manyarms.core.jit import Dispatched, check_bodies
from manyarms.errors import ParameterError
from manyarms.protocol.plain_classes import PlainState, check_method
from manyarms.protocol.policy import Policy, arrive, layers

MOST_HORIZON = 1 << 40  # pulls; also the memory's bound if there is no horizon
MOST_REWARD = 1e100  # the sum of squares of such rewards is finite
MOST_OF_A_NAME = 40  # characters of the word for rewards
MOST_FIRST_DRAWS = 1 << 16  # arms that a policy draws at once; this takes half a second and 40 MB


def check_can(policy: Policy, state: Any, function: Dispatched[..., Any]) -> None:
    """Raise unless a policy and the policies that it wraps implement `arrive` or `retire`."""
    while state is not None:
        built_in = type(state).__module__.startswith("manyarms.")
        if built_in and type(state) not in function.bodies:
            what = "add or restore" if function is arrive else "retire"
            raise ParameterError(
                f"{policy} cannot {what} arms during an experiment. Begin with a policy that "
                f"can, such as prospector.",
                parameter="policy",
            )
        check_bodies(state, (function,))
        if isinstance(state, PlainState):
            check_method(state, "arrive" if function is arrive else "retire")
        state = getattr(state, "inner", None)


def exchangeable(policy: Policy) -> bool:
    """Return whether a policy draws fresh arms at random, so that they are exchangeable.

    This holds for the policies of this package. A user's policy may choose arms by their numbers.
    """
    *_, inner = layers(policy)
    return type(inner).__module__.startswith("manyarms.policies.")


def check_horizon(policy: Policy, horizon: Any) -> int | None:
    """Return a horizon, or raise; anytime policies accept None."""
    if horizon is None and policy.anytime:
        return None
    if horizon is None:
        raise ParameterError(
            f"`horizon` must be given to {policy}, got None. Pass the total number of "
            f"pulls, or use an anytime policy, such as prospector."
        )
    return check_int("horizon", horizon, at_least=1, at_most=MOST_HORIZON)


def check_first_draws(policy: Policy, n_arms: int, horizon: Any) -> None:
    """Raise if a policy would draw more than `MOST_FIRST_DRAWS` arms before its first pull."""
    pulls = check_horizon(policy, horizon) or MOST_HORIZON
    draws = policy.first_draws(n_arms=n_arms, pulls=pulls)
    if draws > MOST_FIRST_DRAWS:
        raise ParameterError(
            f"`policy` must draw at most {MOST_FIRST_DRAWS} arms before the first pull, and "
            f"{policy} would draw {draws} of {n_arms}, with {pulls} pulls ahead. Choose a "
            f"shorter `horizon`, or a policy that draws arms one by one, such as prospector.",
            parameter="policy",
        )


def check_reward_name(reward: Any) -> str:
    """Return the word for rewards, such as "clicks", or raise; for None, return "".

    >>> check_reward_name("clicks"), check_reward_name(None)
    ('clicks', '')
    """
    if reward is None:
        return ""
    if not isinstance(reward, str) or not reward.isprintable() or len(reward) > MOST_OF_A_NAME:
        raise ParameterError(
            f"`reward` must say what rewards are, in at most {MOST_OF_A_NAME} characters, such as "
            f"'clicks', got {shown(reward)}."
        )
    return reward.strip()


def check_range(reward_range: Any) -> tuple[float, float] | None:
    """Return the smallest and the largest reward as floats, or raise; None if there are none."""
    if reward_range is None:
        return None
    try:
        low, high = reward_range
    except (TypeError, ValueError):
        low = high = None
    if low is None or high is None:
        raise ParameterError(
            f"`reward_range` must be a pair (smallest, largest), or None, got {reward_range!r}."
        )
    low, high = (
        check_number("reward_range", end, at_least=-MOST_REWARD, at_most=MOST_REWARD)
        for end in (low, high)
    )
    if low >= high:
        raise ParameterError(
            f"`reward_range` must be a pair (smallest, largest), in this order, got "
            f"{reward_range!r}."
        )
    return low, high


def check_reward(reward: Any, limits: tuple[float, float] | None, verb: str = "tell") -> float:
    """Return the reward as a float, or raise."""
    value = reward if type(reward) is float else _as_float(reward)
    if limits is not None and limits[0] <= value <= limits[1]:
        return value
    if limits is None and abs(value) <= MOST_REWARD:
        return value
    kind = "" if isinstance(reward, numbers.Real) else f" of type {type(reward).__name__}"
    rule = f"it must be a finite number, at most {MOST_REWARD:g} in size, so that sums are finite"
    if limits is not None:
        rule = f"it must be a finite number from {limits[0]:g} to {limits[1]:g}, the `reward_range`"
        if math.isfinite(value):
            kind, rule = (
                "",
                (
                    f"`reward_range` is {limits}. Scale rewards into it, or start with another "
                    f"`reward_range`"
                ),
            )
    error = ParameterError(
        f"Cannot {verb} reward {shown(reward)}{kind}: {rule}.", parameter="reward"
    )
    raise error.framed("", " The pull is still pending." if verb == "tell" else "")


def check_observed(
    given: Any, limits: tuple[float, float] | None, arm: Any = None
) -> tuple[int, float, float]:
    """Return the number of observed rewards, their sum and the sum of their squares, or raise.

    Without the sum of squares, it is the largest that is possible within the range of rewards: the
    exact one if all rewards are at its ends, such as 0 and 1.

    >>> check_observed((120, 7), (0.0, 1.0)), check_observed((3, 6.0, 14.0), None)
    ((120, 7.0, 7.0), (3, 6.0, 14.0))
    """
    of_arm = "" if arm is None else f" for arm {shown(arm)}"
    values = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else ()
    if not 2 <= len(values) <= 3:
        raise _wrong_counts(f"a number of rewards and their sum, such as (120, 7){of_arm}", given)
    try:
        count = check_int("counts", values[0], at_least=1, at_most=MOST_HORIZON)
        total, *squares = (check_number("counts", value) for value in values[1:])
    except ParameterError:
        raise _wrong_counts(
            f"a number of rewards >= 1 and finite sums, such as (120, 7){of_arm}", given
        ) from None
    low, high = limits or (-MOST_REWARD, MOST_REWARD)
    if not low * count <= total <= high * count:
        bounds = f"from {low:g} to {high:g} times the number of rewards"
        raise _wrong_counts(f"a sum{of_arm} that is {bounds}, as `reward_range` says", given)
    if not squares and limits is None:
        raise _wrong_counts(
            f"(number, sum, sum of squares){of_arm} if rewards have no bounds", given
        )
    least, largest = total * total / count, math.inf
    if limits is not None:
        largest = _largest_squares(count, total, low, high)
    if not squares:
        return count, total, largest
    room = 1e-9 * (least if limits is None else count * max(low * low, high * high))
    if not least - room <= squares[0] <= largest + room:
        raise _wrong_counts(f"a sum of squares{of_arm} that fits the sum", given)
    return count, total, squares[0]


def _wrong_counts(rule: str, given: Any) -> ParameterError:
    return ParameterError(
        f"`counts` must have {rule}, got {shown(given)}. Nothing was recorded.", parameter="counts"
    )


def _largest_squares(count: int, total: float, low: float, high: float) -> float:
    """Return the largest sum of squares of rewards with this sum: all but one are at the ends."""
    ends = (total - low * count) / (high - low)  # how many are at the upper end
    whole = min(math.floor(ends), count)
    if whole == count:
        return count * high * high
    between = low + (high - low) * (ends - whole)
    return whole * high * high + between * between + (count - whole - 1) * low * low


def _as_float(reward: Any) -> float:
    try:
        if not isinstance(reward, str | bytes) and getattr(reward, "ndim", 0) == 0:
            return float(reward)
    except (TypeError, ValueError, OverflowError):
        pass
    return math.nan
