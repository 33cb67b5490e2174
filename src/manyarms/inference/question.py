"""The question of a verdict: target, tolerance and confidence."""

from __future__ import annotations

import math
import numbers
import re
from typing import Any, NamedTuple

from manyarms.core.checks import check_number, shown
from manyarms.errors import ParameterError
from manyarms.inference.facts import CONTROL, Facts

QUANTILE, CONFIDENCE = 0.05, 0.95  # defaults
_SHARE = 0.1  # default tolerance, as a share of the best mean or of the range of rewards
_PERCENT = re.compile(r"\s*((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*%\s*")


class Slack(NamedTuple):
    """A difference of means: a number, or a share of a mean.

    >>> print(Slack(0.1, relative=True), Slack(0.1, relative=False))
    10 % 0.1
    """

    amount: float
    relative: bool

    def best(self, mean: float) -> float:
        """Return the largest mean of a best arm for which `mean` is still good enough."""
        return mean / (1.0 - self.amount) if self.relative else mean + self.amount

    def more(self, mean: float) -> float:
        """Return the mean that is larger than `mean` by this difference."""
        return mean * (1.0 + self.amount) if self.relative else mean + self.amount

    @property
    def given(self) -> float | str:
        """The argument that gives this difference: 0.1, or "10%"."""
        return f"{100 * self.amount:.15g}%" if self.relative else self.amount

    def __str__(self) -> str:
        return f"{100 * self.amount:g} %" if self.relative else f"{self.amount:g}"


class Question(NamedTuple):
    """The question of a verdict. With a `target`, `epsilon` and `quantile` have no effect.

    `rival` is the number of the arm that `target` names, or `CONTROL`.
    """

    epsilon: Slack
    quantile: float
    confidence: float
    target: float | str | None
    margin: Slack
    rival: int | None


def asked(
    facts: Facts,
    *,
    epsilon: Any = None,
    quantile: Any = None,
    confidence: Any = None,
    target: Any = None,
    margin: Any = None,
    rival: int | None = None,
) -> Question:
    """Check a question and return it; None stands for a default.

    If `target` is the name of an arm, `rival` is its number.
    """
    for name, value in (("epsilon", epsilon), ("quantile", quantile)):
        if target is not None and value is not None:
            raise ParameterError(
                f"`{name}` cannot be combined with `target`, got {value!r}. Leave out one of them."
            )
    if margin is not None and not isinstance(target, str):
        raise ParameterError(
            f"`margin` needs a `target` that names an arm or the control, got {margin!r}. If the "
            f"target is a number, add the margin to it."
        )
    if isinstance(target, str):
        if rival is None and names_control(facts, target):
            rival = CONTROL
        if rival == CONTROL and facts.control is not None:
            target = str(facts.control.name)  # the user may have passed "control"
    elif target is not None:
        target = check_target(target, facts.reward_range)
    slack = facts.epsilon if epsilon is None else epsilon
    return Question(
        _default(facts) if slack is None else check_epsilon(slack, facts.reward_range),
        check_number(
            "quantile", QUANTILE if quantile is None else quantile, at_least=0.0, below=1.0
        ),
        check_number(
            "confidence", CONFIDENCE if confidence is None else confidence, above=0.0, below=1.0
        ),
        target,
        _slack("margin", 0.0 if margin is None else margin, facts.reward_range),
        rival,
    )


def check_target(target: Any, reward_range: tuple[float, float] | None) -> float:
    """Return the target as a number, or raise."""
    low, high = reward_range or (-math.inf, math.inf)
    number = check_number("target", target)
    if low <= number <= high:
        return number
    percent = (low, high) == (0.0, 1.0) and 1.0 < number <= 100.0
    hint = f" For {number:g} %, pass {number / 100:g}." if percent else ""
    raise ParameterError(
        f"`target` is a mean reward and must be between {low:g} and {high:g}, got {number:g}.{hint}"
    )


def names_control(facts: Facts, target: str) -> bool:
    """Whether a target names the control: by its name, or as "control"."""
    return facts.control is not None and target in ("control", str(facts.control.name))


def is_percentage(text: str) -> bool:
    """Whether a text is a share such as "10%"."""
    return _PERCENT.fullmatch(text[:100]) is not None


def check_epsilon(epsilon: Any, reward_range: tuple[float, float] | None) -> Slack:
    """Return `epsilon` as a number or a share, or raise."""
    slack = _slack("epsilon", epsilon, reward_range)
    low, high = reward_range or (-math.inf, math.inf)
    if not slack.relative and slack.amount >= high - low:
        hint = f" For {slack.amount:g} %, pass '{slack.amount:g}%'."
        raise ParameterError(
            f"`epsilon` must be smaller than the range of rewards, which is {high - low:g}, got "
            f"{slack.amount:g}: every arm would be good enough."
            f"{hint if 1.0 < slack.amount < 100.0 and low >= 0.0 else ''}"
        )
    if slack.amount > 0.0 and not (slack.relative and slack.amount >= 1.0):
        return slack
    raise ParameterError(
        f"`epsilon` must be a number > 0, or a percentage between 0 and 100 such as '10%', got "
        f"{shown(epsilon)}."
    )


def check_setting(epsilon: Any, reward_range: tuple[float, float] | None) -> float | str | None:
    """Check the `epsilon` of an experiment and return it as 0.1 or "10%"; None is the default."""
    return None if epsilon is None else check_epsilon(epsilon, reward_range).given


def _slack(name: str, given: Any, reward_range: tuple[float, float] | None) -> Slack:
    found = _PERCENT.fullmatch(given) if isinstance(given, str) and len(given) < 100 else None
    if found is not None:
        if reward_range is None or reward_range[0] < 0.0:
            raise ParameterError(
                f"`{name}` must be a number if rewards can be negative, got {given!r}. A "
                f"percentage of a negative mean has no meaning."
            )
        return Slack(float(found[1]) / 100.0, relative=True)
    if not isinstance(given, numbers.Real):
        raise ParameterError(
            f"`{name}` must be a number, or a percentage such as '10%', got {shown(given)}."
        )
    return Slack(check_number(name, given, at_least=0.0), relative=False)


def _default(facts: Facts) -> Slack:
    """Return 10 %; if rewards can be negative, a tenth of their range, or of two sigma."""
    if facts.reward_range is None:
        return Slack(_SHARE * 2.0 * facts.scale.sigma, relative=False)
    low, high = facts.reward_range
    if low < 0.0:
        return Slack(_SHARE * (high - low), relative=False)
    return Slack(_SHARE, relative=True)
