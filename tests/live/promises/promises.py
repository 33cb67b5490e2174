"""What an experiment promises. Each promise is a function with one sentence.

A promise yields a complaint for everything that breaks it; calling it raises `BrokenError` for the
first complaint. Those in `ALWAYS` compare what a user can read with the model, after every command.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec

from tests.live.promises.answers import Answers
from tests.live.promises.arithmetic import (
    ERROR,
    RECOMMENDED_ERROR,
    difference,
    interval,
    same,
    share_of,
)
from tests.live.promises.model import Model

P = ParamSpec("P")
PROMISES: list[str] = []


class BrokenError(AssertionError):
    """A promise is broken."""

    def __init__(self, promise: str, complaint: str) -> None:
        super().__init__(f"{promise}: {complaint}")
        self.promise, self.complaint = promise, complaint


def promise(complaints: Callable[P, Iterator[str]]) -> Callable[P, None]:
    """Turn a function that yields complaints into one that raises the first."""
    PROMISES.append(complaints.__name__)

    def check(*args: P.args, **kwargs: P.kwargs) -> None:
        for complaint in complaints(*args, **kwargs):
            raise BrokenError(complaints.__name__, complaint)

    check.__name__, check.__doc__ = complaints.__name__, complaints.__doc__
    return check


# After every command


@promise
def windows_end_on_time(model: Model, answers: Answers) -> Iterator[str]:
    """A pull's window ends `window` seconds after its own ask, whatever the clock does."""
    if model.spec.window is not None:
        early, late = sorted(model.waiting.keys() ^ answers.waiting.keys()), answers.told
        if early:
            yield f"pulls {early} are pending and should have ended, or the other way round"
        if late != model.told:
            yield f"{late} rewards count instead of {model.told}"


@promise
def pulls_are_counted(model: Model, answers: Answers) -> Iterator[str]:
    """Pulls, pending and abandoned pulls, and those of the control are what the calls made."""
    numbers = {
        "pulls": model.asked,
        "pending": sum(not pull.is_control for pull in model.open.values()),
        "abandoned": model.abandoned,
        "control_pulls": model.control_pulls,
        "waiting": model.waiting,
    }
    for name, ours in numbers.items():
        theirs = getattr(answers, name)
        if theirs != ours:
            yield f"{name} is {theirs} instead of {ours}"
    for arm, estimate in answers.arms.items():
        if estimate["pulls"] != model.pulls[arm]:
            yield f"{arm!r} has {estimate['pulls']} pulls instead of {model.pulls[arm]}"


@promise
def rewards_are_counted(model: Model, answers: Answers) -> Iterator[str]:
    """Every reward counts once, for the arm of its pull or for the arm that was observed."""
    if answers.told != model.told:
        yield f"{answers.told} rewards told instead of {model.told}"
    if not same(answers.control_mean, model.control.mean):
        yield f"the control's mean is {answers.control_mean} instead of {model.control.mean}"
    if set(answers.arms) != set(model.order):
        yield f"arms {[*answers.arms]} have pulls or rewards instead of {model.order}"
    for arm, estimate in answers.arms.items():
        sums = model.rewards.get(arm)
        count, mean = (sums.count, sums.mean) if sums else (0, math.nan)
        if estimate["told"] != count or not same(estimate["estimate"], mean):
            told = estimate["told"], estimate["estimate"]
            yield f"{arm!r} has {told} as the number and mean of rewards, not {count, mean}"


@promise
def arms_are_available_or_retired(model: Model, answers: Answers) -> Iterator[str]:
    """The available arms are the initial and added ones without the retired ones."""
    if answers.n_arms != len(model.available):
        yield f"{answers.n_arms} arms are available instead of {len(model.available)}"
    for arm, estimate in answers.arms.items():
        if estimate["retired"] != (arm in model.retired):
            yield f"{arm!r}: retired is {estimate['retired']}"


@promise
def budget_is_exact(model: Model, answers: Answers) -> Iterator[str]:
    """`season(horizon=h)` leaves h pulls, whatever comes late or is observed."""
    if answers.horizon != model.last_pull:
        yield f"the horizon is {answers.horizon} instead of {model.last_pull}"


@promise
def intervals_follow_from_rewards(model: Model, answers: Answers) -> Iterator[str]:
    """An interval depends on its arm's rewards and place and on the first settings only."""
    for arm in model.order:
        if arm in model.rewards:
            ours = _interval_of(model, arm)
            theirs = answers.arms[arm]["low"], answers.arms[arm]["high"]
            if not same(ours, theirs):
                yield f"{arm!r} has {theirs} instead of {ours}"


def _interval_of(model: Model, arm: Any, error: float | None = None) -> tuple[float, float]:
    error = ERROR * share_of(model.order.index(arm)) if error is None else error
    return interval(model.rewards[arm], model.spec.reward_range, model.spec.sigma, error)


@promise
def recommends_the_largest_lower_bound(model: Model, answers: Answers) -> Iterator[str]:
    """The recommended arm has the largest lower bound (99.9 %), unless the policy is a finder."""
    candidates = [arm for arm in model.available if arm in model.rewards]
    if not candidates or answers.finder:
        if answers.recommended not in (candidates or [None]):
            yield f"{answers.recommended!r} is not available, or has no rewards"
        return
    lows = {arm: _interval_of(model, arm, RECOMMENDED_ERROR)[0] for arm in candidates}
    best = max(lows.values())
    low = lows.get(answers.recommended, -math.inf)
    if low < best - 1e-6 * (1.0 + abs(best)):
        yield f"{answers.recommended!r} has {low}, another arm {best}"


@promise
def verdicts_agree_with_intervals(model: Model, answers: Answers) -> Iterator[str]:
    """A verdict says stop if the intervals show that the recommended arm is good enough."""
    arm = answers.recommended
    for name in ("above", "best", "default"):
        about, bound, _ = getattr(answers, name)
        if about != arm:
            yield f"the verdict {name!r} is about {about!r} instead of {arm!r}"
        if arm is not None and name != "default" and not same(bound, answers.arms[arm]["low"]):
            yield f"the verdict {name!r} has the bound {bound}, not {answers.arms[arm]['low']}"
    if arm is None:
        if answers.above[2] or answers.best[2] or answers.default[2]:
            yield "a verdict says stop without a reward"
        return
    low = answers.arms[arm]["low"]
    if answers.above[2] != (low > answers.target):
        yield f"stop is {answers.above[2]}, with the bound {low} and the target {answers.target}"
    rivals = [_upper(model, rival) for rival in model.available if rival != arm]
    if rivals and not math.isclose(max(rivals), low + answers.epsilon, abs_tol=1e-6):
        stop = max(rivals) <= low + answers.epsilon
        if answers.best[2] != stop:
            yield f"without a target, stop is {answers.best[2]} instead of {stop}"
    if model.spec.control is not None and answers.default[2] != (answers.uplift[2] > 0.0):
        yield f"over the control, stop is {answers.default[2]}, and the uplift {answers.uplift}"


def _upper(model: Model, arm: Any) -> float:
    return _interval_of(model, arm)[1] if arm in model.rewards else math.inf


@promise
def uplift_compares_the_recommended_arm(model: Model, answers: Answers) -> Iterator[str]:
    """The uplift is the difference of the means of the recommended arm and the control."""
    arm, gain, low, high = answers.uplift
    if model.control.count and answers.recommended is not None:
        mean = answers.arms[answers.recommended]["estimate"] - model.control.mean
        if arm != answers.recommended or not same(gain, mean):
            yield f"{arm!r} and {gain} instead of {answers.recommended!r} and {mean}"
        if not low <= gain <= high:
            yield f"{gain} is not between {low} and {high}"


ALWAYS = [
    windows_end_on_time,
    pulls_are_counted,
    rewards_are_counted,
    arms_are_available_or_retired,
    budget_is_exact,
    intervals_follow_from_rewards,
    recommends_the_largest_lower_bound,
    verdicts_agree_with_intervals,
    uplift_compares_the_recommended_arm,
]

# After some commands


@promise
def answers_survive(before: dict[str, Any], after: dict[str, Any], event: str) -> Iterator[str]:
    """Closing, a kill, loading, a look and a second reader change no answer and no text."""
    if not same(before, after):
        yield f"{event}: {difference(before, after)}"


@promise
def a_season_changes_no_statistic(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """A season changes no estimate, no interval and no verdict."""
    shared = before.keys() & after.keys()
    old, new = ({name: side[name] for name in shared} for side in (before, after))
    if not same(old, new):
        yield difference(old, new)


@promise
def refused_calls_change_nothing(
    before: dict[str, Any], after: dict[str, Any], call: str
) -> Iterator[str]:
    """A call that is refused changes no answer."""
    if not same(before, after):
        yield f"{call}: {difference(before, after)}"


@promise
def wrong_calls_are_refused(call: str, refused: bool) -> Iterator[str]:
    """A call with a wrong argument, or at the wrong time, raises an error."""
    if not refused:
        yield f"{call} was accepted"


@promise
def calls_succeed(call: str, error: Exception) -> Iterator[str]:
    """A call fails only if the model says so."""
    yield f"{call}: {type(error).__name__}: {error}"


@promise
def every_name_is_accepted(name: str, error: Exception | None, target: Any = None) -> Iterator[str]:
    """Every call that takes an arm accepts the name of every arm."""
    if error is not None:
        yield f"{name!r}: {error}"
    elif target != name:
        yield f"{name!r} was understood as {target!r}"


@promise
def asks_return_available_arms(model: Model, arm: Any, number: int) -> Iterator[str]:
    """An ask returns available arms, or the control, with increasing numbers."""
    if number != model.next:
        yield f"pull {number} instead of {model.next}"
    if arm not in model.available and (model.spec.control is None or arm != model.spec.control):
        yield f"pull {number} is of {arm!r}, which is not available"


@promise
def promised_pulls_can_be_asked_for(left: int | None, count: int, refused: bool) -> Iterator[str]:
    """An ask is refused if more pulls are asked for than are left, and only then."""
    if refused and (left is None or count <= left):
        yield f"{count} pulls were refused, and {left} are left"
    if not refused and left is not None and count > left:
        yield f"{count} pulls were made, and {left} were left"


@promise
def pieces_equal_the_whole(whole: Any, pieces: Any, call: str) -> Iterator[str]:
    """A batch, a list of rewards and a sync do what single calls do; a look does nothing."""
    if not same(whole, pieces):
        yield f"{call}: {difference(whole, pieces)}"


@promise
def queries_write_nothing(events: int, error: Exception | None = None) -> Iterator[str]:
    """A query, also of a second handle, writes no event and ends no other handle."""
    if events:
        yield f"a query wrote {events} events"
    if error is not None:
        yield f"after a second handle was read: {type(error).__name__}: {error}"


# In plays with one clearly best arm


@promise
def the_best_arm_is_tried_in_time(waited: int | None, limit: int) -> Iterator[str]:
    """An arm that is new, restored or has a good history is pulled within `limit` pulls."""
    if waited is None or waited > limit:
        late = "never" if waited is None else f"after {waited} pulls"
        yield f"the best arm was pulled {late}, and the limit is {limit}"


@promise
def the_best_arm_earns(share: float, recommended: bool, finder: bool) -> Iterator[str]:
    """The clearly best arm gets most of the last pulls, and is recommended."""
    if not recommended:
        yield "the best arm is not recommended"
    if share <= 0.5 and not finder:
        yield f"the best arm gets {share:.0%} of the last pulls"


@promise
def the_newest_arrival_is_tried(tried: int, new: int, event: str) -> Iterator[str]:
    """All arms that came between the same two pulls are tried, whatever calls added them."""
    if tried < new:
        yield f"{tried} of {new} were tried: {event}"
