"""Facts about an experiment that estimates and verdicts need, apart from its arms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from manyarms.core.scale import Scale
from manyarms.inference.delays import Delays

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

    All of them follow from what happened and from the settings, except the first three, which are
    used for texts and for the choice of the recommended arm.

    Attributes
    ----------
    policy, finder, chosen
        The policy's name; whether it recommends an arm itself; and this arm, or None if it has
        chosen none.
    scale, reward_range
        The scale of rewards, and their range, which is None if they have no bounds.
    by_chance
        Whether the first policy draws fresh arms at random.
    reward
        The name of rewards, such as "clicks"; may be empty.
    epsilon
        The `epsilon` of verdicts in this experiment; None for the default.
    hold
        Whether rewards count only when their window ends.
    n_arms, all_arms, first_arms
        The numbers of available arms, of all arms including retired ones, and of initial arms.
    retired
        The arms that are retired.
    named, missed
        Initial arms that were not drawn at random; and the number of initial arms that were not, or
        that were retired before they had a reward.
    pulls, told, earned, pending, held, abandoned, horizon
        The number of pulls; the number and the sum of their rewards; the number of pending pulls,
        and of those whose reward was reported and counts when its window ends; the number of
        abandoned pulls; and the planned number of pulls (None without a horizon).
    observed
        The number of observed rewards.
    zero_or_one
        Whether all rewards are 0 or 1, if the range is (0, 1).
    recent
        The arms of the last pulls, at most `RECENT`.
    control
        The control; None without one.
    delays
        How long rewards took.
    name_of
        Returns an arm's name, given its number.
    """

    policy: str
    finder: bool
    chosen: int | None
    scale: Scale
    reward_range: tuple[float, float] | None
    by_chance: bool
    reward: str
    epsilon: float | str | None
    hold: bool
    n_arms: int
    all_arms: int
    first_arms: int
    retired: Collection[int]
    named: Collection[int]
    missed: int
    pulls: int
    told: int
    earned: float
    pending: int
    held: int
    abandoned: int
    horizon: int | None
    observed: int
    zero_or_one: bool
    recent: Sequence[int]
    control: ControlFacts | None
    delays: Delays
    name_of: Callable[[int], Any]
