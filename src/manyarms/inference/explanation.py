"""Explain a verdict: its outcome, what is missing, and one piece of advice."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from manyarms.core.scale import Scale
from manyarms.core.tabular import plain
from manyarms.inference.estimates import count, mean_text, promise
from manyarms.inference.facts import CONTROL, Facts
from manyarms.inference.judging import Judged, judge, lower_bound_of
from manyarms.inference.lost_rewards import lost_rewards_warning
from manyarms.inference.missing import (
    is_target,
    margin_is_possible,
    missing_for_target,
    missing_in_sample,
    missing_of_arms,
    nothing_earned,
)
from manyarms.inference.next_steps import NextSteps
from manyarms.inference.outlook import (
    FORECAST,
    can_forecast,
    equal_shares,
    fresh_rate,
    last_pulls,
    pulls_missing,
    settled_share,
)
from manyarms.inference.question import CONFIDENCE, QUANTILE, Question
from manyarms.inference.reported import reward_warnings
from manyarms.inference.tried_arms import TriedArms

STOP, GO_ON, SETTLED = "stop", "go on", "settled"
TOO_EARLY, OUT_OF_PULLS, STOPPED = "too early to say", "out of pulls", "stopped"
NOTHING_EARNED = "nothing earned"

_FEW_ARMS = 100  # with more, pulling all arms equally often is not advised
_SEASONS = ("extend", "after_search")  # steps after the last pull
_LEAST_SEASON = 1000  # pulls; shorter seasons are not advised


class _Outlook(NamedTuple):
    outcome: str
    more: int | None
    text: str
    helps: bool = False  # whether more pulls help, so that no other advice is needed


def no_recommendation(why: str) -> dict[str, Any]:
    """Return the explanation if no arm can be recommended."""
    known = {"lower_bound": -math.inf, "more": None, "outlook": "", "advice": "", "known": ""}
    return known | {"outcome": TOO_EARLY, "missing": why}


def explain(
    tried: TriedArms,
    best: int,
    question: Question,
    judged: Judged,
    *,
    stopped: bool,
    steps: NextSteps,
) -> dict[str, Any]:
    """Return the outcome and the texts of a verdict."""
    facts = tried.facts
    lower = lower_bound_of(tried, best, 1.0 - question.confidence)

    def called(place: int) -> str:
        return plain(repr(facts.name_of(int(tried.arm[place]))), at_most=24)

    at_least = f"at least {mean_text(lower, tried.rate)}"
    sure = promise(question.confidence)
    said = no_recommendation("") | {
        "lower_bound": lower,
        "known": f"The mean of arm {called(best)} is {at_least} ({sure}).",
    }
    said["warning"] = reward_warnings(facts)
    if judged.stop:
        lost = lost_rewards_warning(tried, best, called(best), judged.slack, question)
        return said | {"outcome": STOP, "warning": f"{lost} {said['warning']}".strip()}
    missing, step = _missing(tried, best, question, judged, called)
    if nothing := nothing_earned(tried, called, question.confidence):
        said["known"] = nothing
    seen = int(tried.told[best])
    mean = float(tried.total[best]) / seen
    if stopped or facts.pulls == facts.horizon:
        outcome, step = (STOPPED, "stopped") if stopped else (OUT_OF_PULLS, "extend")
    elif nothing:
        outcome, step, missing = NOTHING_EARNED, "", ""
    elif _too_early(tried, mean, lower):
        outcome, step = TOO_EARLY, ""
        so_far = f"{mean_text(mean, tried.rate)} so far, after {count(seen, 'reward')}"
        said["known"] = f"The mean of arm {called(best)} is {so_far}, and {at_least} ({sure})."
        if isinstance(question.target, float):
            missing = ""  # it would repeat the mean
    else:
        outlook = _outlook(tried, best, question, judged)
        outcome, said["outlook"] = outlook.outcome, outlook.text
        said["more"] = outlook.more
        # if too few pulls are left, a season of the same policy may pull other arms than the last
        if outlook.helps and (outlook.more is None or outlook.more <= _left(facts)):
            step = ""
    said |= {"outcome": outcome, "missing": missing}
    return said | {"advice": _advice(tried, best, question, lower, step, steps)}


def _missing(
    tried: TriedArms,
    best: int,
    question: Question,
    judged: Judged,
    called: Callable[[int], str],
) -> tuple[str, str]:
    """Return what is missing, and the field of `NextSteps` that helps."""
    few = "few" if tried.facts.n_arms <= _FEW_ARMS else "easier"
    if question.target is not None:
        missing = missing_for_target(tried, best, question, judged.bar)
        if is_target(tried, best, question):
            return missing, "itself"
        if question.rival in (None, CONTROL):
            return missing, "easier"
        # if no margin is possible, the text says what to do
        return missing, few if margin_is_possible(tried, question) else ""
    if judged.samples and int(tried.present.sum()) < tried.facts.n_arms:
        return missing_in_sample(tried, judged.met, judged.samples, question), "easier"
    return missing_of_arms(tried, called, judged, question), few


def _advice(
    tried: TriedArms,
    best: int,
    question: Question,
    lower: float,
    step: str,
    steps: NextSteps,
) -> str:
    """Return what to do next: something that can be done at once, and that changes the verdict."""
    facts, cost = tried.facts, ""
    pulls = float(max(_LEAST_SEASON, facts.pulls))
    if step == "few":
        enough = _equal_pulls(tried, best, question)
        step, pulls = ("few", enough) if enough else ("easier", pulls)
        cost = _cost(tried, best, _rounded_up(pulls)) if enough else ""
    if step == "itself":
        alone = question._replace(target=None, rival=None, quantile=QUANTILE)
        step = step if judge(tried, best, alone).stop else "easier"
    if step == "extend" and facts.finder and facts.reward_range is not None:
        step = "after_search"
    if not step:
        return ""
    sure = "" if question.confidence == CONFIDENCE else f", confidence={question.confidence:g}"
    advice: str = getattr(steps, step).format(
        pulls=_rounded_up(pulls),
        mean=_reachable(lower, facts.scale) if step == "easier" else "",
        quantile=f"{QUANTILE:g}",
        confidence=sure,
        cost=cost,
    )
    return f"{_first(facts) if step in _SEASONS else ''}{advice}".strip()


def _first(facts: Facts) -> str:
    """Return what to do before a season; empty if all rewards are known."""
    if unreported := facts.pending - facts.held:
        return f"First report the {count(unreported, 'pending reward')}. "
    if facts.held:
        return f"First wait: {count(facts.held, 'reward')} will count when the windows end. "
    return ""


def _equal_pulls(tried: TriedArms, best: int, question: Question) -> float | None:
    """Return how many pulls a verdict takes if all arms are pulled equally often.

    Return None if it would probably take more pulls than were made so far (or than `_LEAST_SEASON`,
    if that is larger). Then it would cost more than it brings. If arms were not tried, there is no
    forecast; trying them may bring a better arm.
    """
    if int(tried.present.sum()) < tried.facts.n_arms:
        return _LEAST_SEASON
    shares = equal_shares(tried)
    pulls = pulls_missing(tried, lambda later: judge(later, best, question).stop, shares)
    if pulls is None or pulls > max(_LEAST_SEASON, tried.facts.pulls):
        return None
    return max(pulls, _LEAST_SEASON / 10)


def _cost(tried: TriedArms, best: int, pulls: int) -> str:
    """Return what it costs to pull all arms equally often, compared with the arm `best`."""
    present = tried.present
    if untried := tried.facts.n_arms - int(present.sum()):
        were = "arm was" if untried == 1 else "arms were"
        return f"What this costs is not known, because {untried} {were} not tried."
    means = tried.total[present] / tried.told[present]
    cost = pulls * max(0.0, float(tried.total[best] / tried.told[best] - means.mean()))
    much = f"{float(f'{cost:.1g}'):,.12g}"
    what = f"{much} {tried.facts.reward}" if tried.facts.reward else f"a reward of {much} in all"
    return f"This costs about {what}, because other arms earn less."


def _too_early(tried: TriedArms, mean: float, lower: float) -> bool:
    """Whether the true mean could be half of the observed mean.

    Means are measured from the smallest reward. If rewards have no bounds, the true mean must be
    able to be more than sigma below the observed mean.
    """
    scale = tried.facts.scale
    if scale.width == 0.0:
        return mean - lower > scale.sigma
    return lower - scale.low <= (mean - scale.low) / 2.0


def _outlook(tried: TriedArms, best: int, question: Question, judged: Judged) -> _Outlook:
    """Return the outcome if pulls are left, and what more pulls will do."""
    facts = tried.facts
    of, _ = last_pulls(tried)
    itself = is_target(tried, best, question)
    if question.rival == CONTROL and not itself:  # the control gets its share from every policy
        text = "More pulls will make this more precise: the control keeps its share of them."
        return _Outlook(GO_ON, None, text, helps=True)
    more = None if itself else _pulls_missing(tried, best, question, judged)
    share = settled_share(tried, best)
    if (more is None or math.isinf(more)) and share:
        text = (
            f"The policy, {facts.policy}, gave it {100 * share:.0f} % of the last {of} pulls. "
            f"If this continues, more pulls will not lead to “stop”."
        )
        return _Outlook(SETTLED, None, text)
    if itself:
        return _Outlook(GO_ON, None, "")
    if more is None:
        text = "There is no estimate yet of how many more pulls this will take."
        return _Outlook(GO_ON, None, text, helps=not can_forecast(tried))
    if math.isinf(more):
        text = (
            f"Not even {FORECAST} times the pulls made so far would be enough, if they were like "
            f"the last {of}."
        )
        return _Outlook(GO_ON, None, text)
    draws = _draws_missing(judged)
    text = (
        f"This will take {'at least' if draws else 'about'} {float(f'{more:.1g}'):.0f} more pulls, "
        f"if they are like the last {of}"
    )
    left = _left(facts)
    text = f"{text}, but only {left} are left." if more > left else f"{text}."
    return _Outlook(GO_ON, math.ceil(more), text, helps=True)


def _pulls_missing(tried: TriedArms, best: int, question: Question, judged: Judged) -> float | None:
    """Return about how many more pulls are needed; infinity if too many, None if unknown."""
    draws = _draws_missing(judged)
    if not draws or math.isinf(draws):  # all arms may be shown to be worse, without a sample
        return pulls_missing(tried, lambda later: judge(later, best, question).stop)
    rate = fresh_rate(tried)
    return math.ceil(draws / rate) if rate else None


def _draws_missing(judged: Judged) -> float:
    return min((sample.draws_missing() for sample in judged.samples), default=0)


def _left(facts: Facts) -> float:
    return math.inf if facts.horizon is None else facts.horizon - facts.pulls


def _reachable(lower: float, scale: Scale) -> str:
    """Return a target that the arm reaches: its lower bound, rounded down.

    Its distance from the smallest reward has two significant digits.

    >>> _reachable(0.0968, Scale(0.0, 1.0, 0.5)), _reachable(100.587, Scale(100.0, 1.0, 0.5))
    ('0.096', '100.58')
    """
    size = lower - scale.low if scale.width else scale.sigma
    factor = 10.0 ** (1 - math.floor(math.log10(size)))
    return f"{math.floor(math.nextafter(lower, -math.inf) * factor) / factor:.12g}"


def _rounded_up(pulls: float) -> int:
    """Round up to one significant digit.

    >>> _rounded_up(1001), _rounded_up(3000)
    (2000, 3000)
    """
    unit = int(10 ** (len(str(math.ceil(pulls))) - 1))
    return math.ceil(pulls / unit) * unit
