"""Facts about an experiment that estimates and verdicts need, apart from its arms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from manyarms.core.scale import Scale

CONTROL = -1  # the number of the control, which is not an arm
NO_CONTROL = "this experiment has no control. Set `control` in a new experiment."
RECENT = 1000  # number of last pulls whose arms are known


@dataclass(frozen=True, kw_only=True)
class ControlFacts:
    """Pulls and rewards of the control.

    Attributes
    ----------
    name
        Its name.
    asked, told, total
        The number of its pulls, and the number and the sum of their rewards.
    missing
        The number of its pulls without a reward: pending and abandoned ones.
    """

    name: str | int
    asked: int
    told: int
    total: float
    missing: int


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Facts about an experiment, valid until its next event.

    Attributes
    ----------
    policy
        The policy's name.
    scale, reward_range
        The range of rewards; the range is None if rewards have no bounds.
    n_arms, all_arms, first_arms
        The numbers of available arms, of all arms including retired ones, and of initial arms.
    retired
        The arms that are retired.
    by_chance
        Whether the policy draws fresh arms at random.
    named, skipped
        The arms that were not drawn at random; and the number of initial arms that were retired
        before they had a reward.
        finder, chosen
        Whether the policy recommends an arm itself; and this arm, or None while the policy has not
        been told all known rewards.
    pulls, told, earned, pending, abandoned, horizon
        The number of pulls; the number and the sum of their rewards; the numbers of pending and of
        abandoned pulls; and the planned number of pulls (None without a horizon).
    recent
        The arms of the last pulls, at most `RECENT`.
    observed
        The number of observed rewards that no pull has used yet.
    reward
        The name of rewards, such as "clicks"; may be empty.
    epsilon
        The `epsilon` of verdicts in this experiment; None for the default.
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
    finder: bool
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
