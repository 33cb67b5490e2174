"""Estimates of arms and the progress of an experiment, both printable as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from manyarms.core.tabular import Tabular, plain


def promise(confidence: float) -> str:
    """Return the text that says what the confidence of an arm's interval means."""
    return f"{100 * confidence:g} % confidence, valid for all arms at once and at any time"


PROMISE = promise(0.95)


@dataclass(frozen=True)
class ArmEstimate(Tabular):
    """Estimate of an arm's mean reward, with a confidence interval.

    Attributes
    ----------
    arm
        Its number or name.
    estimate
        The mean of its rewards; NaN before the first.
    interval
        The confidence interval of the arm's mean. With probability 95 % no interval of any arm is
        ever wrong, however often you look. So you may choose the arm that looks best.
    pulls, told
        The numbers of its pulls and of its rewards, including observed rewards.
    retired
        Whether the arm was retired.
    rate
        Whether means are rates, which are shown in percent.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.MOSS().live(arms=["red", "blue"], horizon=100)
    >>> for pull in live.ask(100):
    ...     live.tell(pull, reward=float(pull.arm == "blue"))
    >>> print(live.recommend())
    arm 'blue': 100 %, between 88.6 % and 100 % (50 pulls, 50 rewards told; 95 % confidence, ...)
    """

    arm: Any
    estimate: float
    interval: tuple[float, float]
    pulls: int
    told: int
    retired: bool = False
    rate: bool = False

    def _columns(self) -> dict[str, list[Any]]:
        return columns_of([self])

    def _caption(self) -> list[str]:
        return [] if self.told == 0 else [f"confidence interval of the mean: {PROMISE}"]

    def __str__(self) -> str:
        retired = ", retired" if self.retired else ""
        pulls = count(self.pulls, "pull")
        if self.told == 0:
            return f"arm {plain(repr(self.arm))}: no rewards yet ({pulls}{retired})"
        seen = f"{pulls}, {count(self.told, 'reward')} told{retired}"
        mean, low, high = (mean_text(one, self.rate) for one in (self.estimate, *self.interval))
        known = f"{mean}, between {low} and {high}"
        return f"arm {plain(repr(self.arm))}: {known} ({seen}; {PROMISE})"


def columns_of(arms: Sequence[ArmEstimate]) -> dict[str, list[Any]]:
    """Return estimates as columns; the bounds of intervals are `low` and `high`."""
    columns = {"arm": [arm.arm for arm in arms], "estimate": [arm.estimate for arm in arms]}
    for end, name in enumerate(("low", "high")):
        columns[name] = [arm.interval[end] for arm in arms]
    rest = ("pulls", "told", "retired")
    return columns | {name: [getattr(arm, name) for arm in arms] for name in rest}


@dataclass(frozen=True)
class Progress(Tabular):
    """Progress of an experiment.

    Attributes
    ----------
    pulls, horizon
        The number of pulls made, and the horizon (None without one).
    told, pending, abandoned
        The numbers of rewards told, of pending pulls and of abandoned pulls. They add up to
        `pulls`.
    stage
        What the policy is doing, as a text such as "iteration 3 of 8".
    arms_touched, n_arms
        The number of arms tried, including retired ones; and the number of available arms.
    reward, mean_reward
        The sum of the rewards told, and their mean (NaN before the first).
    observed
        The number of observed rewards, which are not in `told`.
    reward_name, rate
        The name of rewards, such as "clicks" (may be empty); and whether their mean is a rate,
        which is shown in percent.
    control, control_pulls, control_mean
        The control's name (None without one), the number of its pulls, which `pulls` does not
        include, and the mean of its rewards (NaN before the first).
    warning
        A text if the reported rewards look incomplete or biased; otherwise empty.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.MOSSPlusPlus().live(n_arms=1_000_000, horizon=20_000, seed=1)
    >>> first, second = live.ask(2)
    >>> live.tell(first, reward=0.5)
    >>> print(live.progress())
    2 of 20000 pulls (0.01 %), iteration 1 of 6
    1 reward told, 1 pending, 0 abandoned; mean reward 0.5
    2 arms tried; 1000000 available
    """

    pulls: int
    horizon: int | None
    told: int
    pending: int
    abandoned: int
    stage: str
    arms_touched: int
    n_arms: int
    reward: float
    mean_reward: float
    observed: int = 0
    reward_name: str = ""
    rate: bool = False
    control: str | int | None = None
    control_pulls: int = 0
    control_mean: float = math.nan
    warning: str = ""

    def _columns(self) -> dict[str, list[Any]]:
        words = ("reward_name", "rate", "warning")
        return {name: [value] for name, value in vars(self).items() if name not in words}

    def _caption(self) -> list[str]:
        return str(self).split("\n")

    def __str__(self) -> str:
        imported = f"; {count(self.observed, 'observed reward')}" if self.observed else ""
        return (
            f"{self.made}\n{count(self.told, 'reward')} told, {self.pending} pending, "
            f"{self.abandoned} abandoned{self._mean()}\n"
            f"{count(self.arms_touched, 'arm')} tried; {self.n_arms} available{imported}"
            f"{self._control()}{f'{chr(10)}{self.warning}' if self.warning else ''}"
        )

    def _mean(self) -> str:
        if math.isnan(self.mean_reward):
            return ""
        if not self.reward_name:
            return f"; mean reward {mean_text(self.mean_reward, self.rate)}"
        each = mean_text(self.mean_reward, self.rate) + ("" if self.rate else " per pull")
        total = f"{self.reward:,.0f}" if abs(self.reward) >= 1000 else rounded(self.reward)
        return f"; {total} {self.reward_name}, {each}"

    def _control(self) -> str:
        if self.control is None:
            return ""
        pulls = count(self.control_pulls, "pull")
        known = "no reward yet"
        if not math.isnan(self.control_mean):
            known = f"mean {mean_text(self.control_mean, self.rate)}"
        return f"\ncontrol {plain(repr(self.control), at_most=60)}: {known}, {pulls}"

    @property
    def made(self) -> str:
        """The number of pulls and the policy's stage, as a text."""
        pulls = count(self.pulls, "pull")
        if self.horizon is not None:
            pulls = f"{self.pulls} of {count(self.horizon, 'pull')} ({self.share:.3g} %)"
        begun = self.pulls > 0 and self.stage
        return f"{pulls}, {self.stage}" if begun else pulls

    @property
    def share(self) -> float:
        """The pulls made, in percent of the horizon (NaN without one)."""
        return math.nan if self.horizon is None else 100 * self.pulls / self.horizon


def is_rate(
    reward: str | None, reward_range: tuple[float, float] | None, *, zero_or_one: bool = False
) -> bool:
    """Whether the mean of rewards is a rate, such as a click rate.

    `reward_range` must be (0, 1), and the rewards must have a name or all be 0 or 1
    (`zero_or_one`).
    """
    named = bool(reward) or zero_or_one
    return named and reward_range is not None and tuple(reward_range) == (0.0, 1.0)


def summary(label: str, how: Progress, best: Sequence[ArmEstimate]) -> str:
    """Describe an experiment: its policy, progress and best arms."""
    lines = [label, str(how)]
    if best:
        lines += ["best arms so far, by lower bound", f"({PROMISE}):"]
    for arm in best:
        mean, low, high = (mean_text(one, arm.rate) for one in (arm.estimate, *arm.interval))
        name = plain(repr(arm.arm), at_most=24)
        lines.append(f"  {name:24} {mean:>6} in [{low}, {high}], {arm.told} told")
    return "\n".join(lines)


def count(of: int, what: str) -> str:
    """Return a number with its unit, such as "1 pull" or "2 pulls"."""
    return f"{of} {what}{'' if of == 1 else 's'}"


def rounded(value: float) -> str:
    """Return a number with three significant digits."""
    return f"{value:.3g}"


def mean_text(mean: float, rate: bool) -> str:
    """Return a mean as text, in percent if it is a rate.

    >>> mean_text(0.03125, rate=True), mean_text(0.03125, rate=False)
    ('3.12 %', '0.0312')
    """
    return f"{rounded(100.0 * mean)} %" if rate else rounded(mean)


def difference_text(given: float | str, rate: bool) -> str:
    """Return a difference of means, a share such as "10%" or a number, as text.

    >>> difference_text("10%", rate=True), difference_text(0.05, rate=True)
    ('10 %', '5 percentage points')
    >>> difference_text(0.05, rate=False)
    '0.05'
    """
    if isinstance(given, str):
        return given.replace("%", " %")
    return f"{100.0 * given:g} percentage points" if rate else f"{given:g}"
