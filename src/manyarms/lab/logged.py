"""Logged data: what other policies would have earned, from a log of random choices.

The replay method of Li, Chu, Langford & Wang (2011): a policy goes through the log, and each
pull is answered with the next row of its arm; the rows in between are skipped. If every choice of
the log was uniformly random, the rewards it gets are those of a real game. How long it waits for a
row then depends on neither arms nor rewards. So the games that one log has room for, one after the
other, are independent, and no reward decides how many they are.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int, check_path, refusal
from manyarms.core.statistics import mean_interval
from manyarms.core.tabular import aligned
from manyarms.core.uniformity import uniformity_doubt
from manyarms.errors import ParameterError
from manyarms.inference.estimates import rounded
from manyarms.instances.columns import read_columns
from manyarms.live import Live
from manyarms.protocol import Policy

_NOTHING = ("None", "nan", "<NA>")  # what is missing, as Python, NumPy and pandas write it


@dataclass(frozen=True)
class ReplayedPolicy:
    """What a policy earned in a replay.

    Attributes
    ----------
    policy
        Its label.
    games
        How many games it played to the end.
    matched
        The pulls it made in them: rows of the log that it chose. If there is no such game, the
        pulls of the one that the end of the log cut short.
    mean_reward
        The mean of their rewards.
    interval
        Limits for the expected reward of a pull, in a game of as many pulls; they hold with
        probability 95 %, whatever the policy does. A single game leaves them wide: another one may
        end otherwise.
    """

    policy: str
    games: int
    matched: int
    mean_reward: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class ReplayResult:
    """What policies earned in a replay of the same log; prints as a table.

    Attributes
    ----------
    policies
        A `ReplayedPolicy` each.
    rows, n_arms
        Of the log; rows that were left out do not count.
    left_out
        The rows without an arm or a reward.
    horizon
        The pulls of a game.
    mean_reward
        That of the log: what choosing at random earned.
    """

    policies: tuple[ReplayedPolicy, ...]
    rows: int
    n_arms: int
    horizon: int
    mean_reward: float
    left_out: int = 0

    def __getitem__(self, label: str) -> ReplayedPolicy:
        found = [each for each in self.policies if each.policy == label]
        if not found:
            known = ", ".join(each.policy for each in self.policies)
            raise KeyError(f"No policy {label!r} was replayed, but {known}.")
        return found[0]

    def __iter__(self) -> Iterator[ReplayedPolicy]:
        return iter(self.policies)

    def __str__(self) -> str:
        lines = [
            f"{self.rows} rows, {self.n_arms} arms, games of {self.horizon} pulls; choosing at "
            f"random earned {rounded(self.mean_reward)} a pull",
        ]
        if self.left_out:
            lines.append(f"rows left out, without an arm or a reward: {self.left_out}")
        table = [["policy", "games", "pulls", "reward", "expected, 95 %"]]
        for each in self.policies:
            low, high = map(rounded, each.interval)
            counts = [f"{each.games}", f"{each.matched}"]
            table.append([each.policy, *counts, rounded(each.mean_reward), f"[{low}, {high}]"])
        ended = ("" if each.games else "  (the log ended)" for each in self.policies)
        shown = map("".join, zip(aligned(table), ["", *ended], strict=True))
        few = [_FEW] if min(each.games for each in self.policies) < _ENOUGH else []
        return "\n".join([*lines, *shown, *few])


_ENOUGH = 5
_FEW = "A few games say little about the next one. A shorter horizon leaves the log room for more."


def replay(
    log: Any,
    policies: Policy | Sequence[Policy],
    *,
    arm: str = "arm",
    reward: str = "reward",
    horizon: int | None = None,
    n_arms: int | None = None,
    reward_range: tuple[float, float] | None = (0.0, 1.0),
    seed: int = 0,
) -> ReplayResult:
    """Return what policies would have earned, from a log of uniformly random choices.

    Of n arms, one row in n is used, so it takes n times as many rows as pulls. Each policy plays as
    many games of `horizon` pulls as the log has room for, one after the other.

    Parameters
    ----------
    log
        A table (pandas, polars, pyarrow, or a dict of columns) in the order things happened, or the
        path of a CSV or Parquet file.
    policies
        One policy or several. Each goes through the log by itself.
    arm, reward
        The names of the columns (default: "arm" and "reward"). Rows without an arm or a reward (NaN
        or nothing) are left out; the result says how many.
    horizon
        The number of pulls of a game (default: one game, as long as the log has room for).
    n_arms
        How many arms there were, if some may never have been chosen (default: those in the log).
    reward_range
        As for `policy.live`.
    seed
        The seed of the policies' random choices (default: 0); each game adds 1 to it.

    Raises
    ------
    ParameterError
        If the choices cannot have been uniformly random: arms were chosen too unevenly, or choices
        depend on what came before. A random log is refused once in a million times. Some things the
        log cannot show, and you must know them: choices did not depend on who was asking, all arms
        were there all the time, no rows were dropped for their reward, and arms were as good at the
        end as at the beginning.

    Examples
    --------
    >>> import manyarms as ma
    >>> import numpy as np
    >>> luck = np.random.default_rng(1)
    >>> arms = luck.integers(3, size=9_000)
    >>> log = {"arm": arms, "reward": luck.random(9_000) < np.array([0.2, 0.5, 0.8])[arms]}
    >>> result = ma.replay(log, [ma.MOSS(), ma.policy("uniform")], horizon=200)
    >>> result["moss"].mean_reward > 0.65 > result["uniform"].mean_reward
    True
    >>> result["moss"].games
    15
    >>> log["arm"] = np.sort(arms)
    >>> ma.replay(log, ma.MOSS())
    Traceback (most recent call last):
    manyarms.errors.ParameterError: `log` must be of uniformly random choices, and it is not: ...
    """
    several = _policies(policies)
    rows = _read(log, arm, reward)
    names, codes = np.unique(rows.arms, return_inverse=True)
    count = _arm_count(n_arms, rows.n_arms, names)
    _check_rows(codes, rows.rewards, count, reward_range)
    pulls = _pulls(horizon, len(codes), count)
    order = np.argsort(codes, kind="stable")
    places = np.split(order, np.cumsum(np.bincount(codes))[:-1])  # the rows of each arm
    table = _Table([where.tolist() for where in places], rows.rewards.tolist())
    setting = {"n_arms": count, "horizon": pulls, "reward_range": reward_range}
    return ReplayResult(
        tuple(_played(policy, table, seed, setting) for policy in several),
        rows=len(codes),
        n_arms=count,
        horizon=pulls,
        mean_reward=float(rows.rewards.mean()),
        left_out=rows.left_out,
    )


def _policies(policies: Policy | Sequence[Policy]) -> list[Policy]:
    several = [policies] if isinstance(policies, Policy) else list(policies)
    wrong = [each for each in several if not isinstance(each, Policy)]
    if wrong or not several:
        got = repr(wrong[0]) if wrong else "none"
        raise ParameterError(f"`policies` must be policies such as ma.MOSS(), got {got}.")
    return several


def _arm_count(given: int | None, recorded: int | None, names: NDArray[Any]) -> int:
    """Return how many arms there were: given, known from a game, or those in the log."""
    if given is None and recorded is None and len(names) == 1:
        raise ParameterError(
            f"`log` must have at least 2 arms, got only arm {names.tolist()[0]}. If there were "
            f"other arms that were never chosen, give the number of all arms, `n_arms`."
        )
    known = len(names) if recorded is None else recorded
    count = check_int("n_arms", known if given is None else given, at_least=2)
    if count < len(names):
        rule = f"at least {len(names)}, the number of arms in the log"
        raise refusal("n_arms", rule, count)
    return count


def _check_rows(
    codes: NDArray[Any], rewards: NDArray[np.float64], n_arms: int, limits: Any
) -> None:
    """Refuse a log whose choices were not random or whose rewards are out of range."""
    doubt = uniformity_doubt(codes, rewards, n_arms)
    if doubt:
        raise ParameterError(
            f"`log` must be of uniformly random choices, and it is not: {doubt}. Replay needs a "
            f"log in which nothing but chance decided."
        )
    if limits is not None and not limits[0] <= rewards.min() <= rewards.max() <= limits[1]:
        raise ParameterError(
            f"`log` must have rewards within `reward_range`, {limits}, got {rewards.min():g} to "
            f"{rewards.max():g}. Scale them, or pass another range."
        )


def _pulls(horizon: int | None, rows: int, n_arms: int) -> int:
    """Return how many pulls to play: all but a few of the `rows / n_arms` that will be matched."""
    if horizon is not None:
        return check_int("horizon", horizon, at_least=1)
    room = rows / n_arms
    pulls = int(room - 2 * room**0.5)
    if pulls < 1:
        raise ParameterError(
            f"`log` must have at least 6 rows for each arm, {6 * n_arms} for {n_arms} arms, got "
            f"{rows}: a pull takes about {n_arms} rows. Or pass `horizon`, and see how far the "
            f"policies come.",
            parameter="log",
        )
    return pulls


class _Table(NamedTuple):
    """A log that was read: the rows of each arm, and the reward of each row."""

    places: list[list[int]]
    rewards: list[float]


def _played(policy: Policy, table: _Table, seed: int, setting: dict[str, Any]) -> ReplayedPolicy:
    """Let a policy play games until the log ends; the one it cuts short counts if it is alone."""
    means: list[float] = []
    at, horizon = 0, setting["horizon"]
    while True:
        live = policy.live(**setting, seed=(seed + len(means)) % 2**64)
        total, made, at = _game(live, table, at)
        if made < horizon:
            break
        means.append(total / horizon)
    low, high = setting["reward_range"] or (-np.inf, np.inf)
    if means and setting["reward_range"]:
        low, high = mean_interval(np.array(means), bounds=(low, high))[1:]
    cut_short = total / made if made else float("nan")
    return ReplayedPolicy(
        policy=policy.label,
        games=len(means),
        matched=len(means) * horizon or made,
        mean_reward=float(np.mean(means)) if means else cut_short,
        interval=(float(low), float(high)),
    )


def _game(live: Live, table: _Table, at: int) -> tuple[float, int, int]:
    """Play from a row on; return the sum of rewards, how many they were, and the next row."""
    total, made = 0.0, 0
    while made < (live.horizon or 0):
        pull = live.ask()
        rows = table.places[pull.arm] if pull.arm < len(table.places) else []
        k = bisect_left(rows, at)
        if k == len(rows):
            break
        live.tell(pull, table.rewards[rows[k]])
        total, made, at = total + table.rewards[rows[k]], made + 1, rows[k] + 1
    return total, made, at


class _Rows(NamedTuple):
    """The rows of a log that have an arm and a reward."""

    arms: NDArray[Any]
    rewards: NDArray[np.float64]
    left_out: int
    n_arms: int | None  # if the log is that of a game


def _read(log: Any, arm: str, reward: str) -> _Rows:
    count: int | None = None
    if isinstance(log, str | os.PathLike):
        log = read_columns("log", check_path("log", log))
    for name in (arm, reward):
        if name not in _names(log):
            raise ParameterError(
                f"`log` must have a column {name!r}, got {', '.join(map(str, _names(log)))}. Name "
                f"its columns with arm=... and reward=...."
            )
    try:
        rewards = np.asarray(log[reward], np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"`log` must have numbers in {reward!r}: {error}.") from error
    arms = np.asarray(log[arm])
    if arms.shape != rewards.shape:
        raise ParameterError(
            f"`log` must have columns of one length, got {len(arms)} values in {arm!r} and "
            f"{len(rewards)} in {reward!r}."
        )
    known = ~np.isnan(rewards)
    if arms.dtype == object:
        arms = np.array([repr(name) for name in arms.tolist()])
        known &= ~np.isin(arms, _NOTHING)
    elif arms.dtype.kind == "f":
        known &= ~np.isnan(arms)
    if not known.any():
        got = "none with both" if len(arms) else "an empty log"
        raise ParameterError(f"`log` must have rows with an arm and a reward, got {got}.")
    return _Rows(arms[known], rewards[known], int((~known).sum()), count)


def _names(log: Any) -> Sequence[Any]:
    """Return the names of a table's columns."""
    names = getattr(log, "column_names", None)  # of pyarrow
    if names is None:
        names = getattr(log, "columns", log)  # of pandas and polars; else a dict's keys
    try:
        return list(names)
    except TypeError:
        raise ParameterError(
            f"`log` must be a table or a path, got {type(log).__name__}."
        ) from None
