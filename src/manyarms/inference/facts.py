"""What estimates and verdicts need to know of an experiment beside the columns of its arms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from manyarms.protocol.recommend import Scale

CONTROL = -1  # the control's number, where arms have theirs
RECENT = 1000  # pulls whose arms are remembered


@dataclass(frozen=True, kw_only=True)
class ControlFacts:
    """What is known of the control.

    Attributes
    ----------
    name
        Its name.
    asked, told, total
        Its pulls, how many of them have a reward, and the sum of these.
    missing
        How many of its pulls have no reward: they are pending, or were abandoned.
    """

    name: str | int
    asked: int
    told: int
    total: float
    missing: int


@dataclass(frozen=True, kw_only=True)
class Facts:
    """An experiment as estimates and verdicts see it; valid until the next event.

    Attributes
    ----------
    policy
        The policy's name.
    scale, reward_range
        The range of rewards; the range is None if rewards have no bounds.
    n_arms, all_arms, first_arms
        The number of arms now, of all arms that ever came, and of those at the beginning.
    retired
        The arms that are retired.
    by_chance
        Whether the policy draws fresh arms at random.
    named, skipped
        The arms that were not drawn at random; and how many of the first arms were retired before
        anything was known of them.
    chosen
        The arm that the policy itself recommends; None if it names none.
    pulls, told, earned, pending, abandoned, horizon
        The number of pulls asked for; those of them with a reward, and the sum of these; those
        whose reward may still come; those given up; and the total number (None without a horizon).
    recent
        The arms of the last pulls, at most `RECENT`.
    observed
        The number of known rewards that the policy has not been told yet.
    reward
        What rewards are called, such as "clicks"; may be empty.
    epsilon
        What verdicts ask unless they are given another; None for the default.
    control
        The control; None without one.
    delays, hold
        The number, sum and sum of squares of the rewards reported within each of
        `reported.DELAYS`; and whether rewards count only when their window ends.
    name_of
        Returns an arm's name, given its number.
    """

    policy: str
    scale: Scale
    reward_range: tuple[float, float] | None
    n_arms: int
    all_arms: int
    first_arms: int
    retired: Collection[int]
    by_chance: bool
    named: Collection[int]
    skipped: int
    chosen: int | None
    pulls: int
    told: int
    earned: float
    pending: int
    abandoned: int
    horizon: int | None
    recent: Sequence[int]
    observed: int
    reward: str
    epsilon: float | str | None
    control: ControlFacts | None
    name_of: Callable[[int], Any]
    delays: Sequence[Sequence[float]] = ()
    hold: bool = False
