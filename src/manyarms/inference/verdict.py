r"""Whether an experiment may stop: how good the arm to deploy is, with a guarantee at any time.

*A target.* The k-th arm that is tried is chosen before any of its rewards is known, so its own
interval ever fails with probability delta_k at most, and the delta_k sum to delta. So with
probability 1 - delta no interval of any arm is ever wrong, even that of an arm chosen because of
its interval. If the lower bound of x is above a number, or above the upper bound of another arm,
then so are the means. For a control, `inference.uplift` has an interval of the difference.

*The best.* Let N be the number of arms at the beginning, m = floor(q N) + 1, and c_q the mean of
the m-th best arm: the best of all but the top q. Arm x is good enough if its mean is at least
c_q - epsilon; where epsilon is a share, at least (1 - epsilon) c_q. A fifth of the error delta is
spent on intervals, and the rest on the sample.

*Intervals.* With probability 1 - delta/5 no lower bound of any arm is ever wrong. Let L be that of
x, and c = L + epsilon, or L / (1 - epsilon). If x is not good enough, c is below c_q.

*The sample.* Fresh arms are drawn at random. Each draw is one of the m best arms with probability
(m - u - U)/N or more, if U of these were met before, and u could not be met by chance: they were
retired before anything was known of them, or observed first. An arm is *open* at c until its own
rewards speak against a mean of c by a factor of 1/a (`evidence_below`). One of mean c_q or more
stays open at c_q with probability 1 - a, regardless of what the policy does with any arm. So the
probability that U or fewer of the first k arms are open at c_q is at most that of U or fewer
successes in k trials of probability (1 - a) (m - u - U)/N. An arm that is open at c_q is open at
any c below. So if x is not good enough, few open arms are unlikely; if few are open, the verdict is
"stop". Two values of a share the error: 1/2, for policies that pull an arm until it is clear, and
3/4, for those that drop most arms at once. An arm that was drawn and has no reward is open, and
keeps its place in the sample, also in later seasons: the best arms may be those that answer late.

*Arms that came later* are never in the sample. For a statement about the arms in play, all of them
that are not beaten by their own intervals count as better than x: they are added to u. If the
sample is then too small, the statement is about the first arms.

*Any time.* Intervals and evidence are valid at all times at once. The sample is judged at sizes
k_0, 1.5 k_0, … only. Its error is spent over these, and over u rounded up to 0, 1, 3, 7, ….

*Without chance.* If all arms but floor(q N) have an upper bound below c, of those that are valid
for all arms at once, then x is good enough, however the arms were met. This is the only way if q,
delta and N are such that no sample of N arms can be large enough, or if the policy is not known to
draw at random. Then all of delta is spent on intervals. This is known at the beginning.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.tabular import plain
from manyarms.inference.confidence_sequences import (
    in_blocks,
    spent_error,
    surely_below,
)
from manyarms.inference.estimates import count, mean_text, promise
from manyarms.inference.facts import CONTROL, Facts
from manyarms.inference.lost_rewards import lost_rewards_warning
from manyarms.inference.missing import (
    ALL_ALIKE,
    ASK_LESS,
    MORE_ARMS,
    OTHER_POLICY,
    OVER,
    missing_for_target,
    missing_in_sample,
    missing_of_arms,
    nothing_earned,
)
from manyarms.inference.outlook import fresh_rate, last_pulls, pulls_missing, settled_share
from manyarms.inference.question import Question
from manyarms.inference.reported import reward_warnings
from manyarms.inference.sample import (
    LEVELS,
    LIMITS,
    Sample,
    can_sample,
    evidence_against,
    excess_of_newcomers,
    met_by_chance,
)
from manyarms.inference.tallies import Tallies
from manyarms.inference.uplift import uplift_of, why_no_uplift

STOP, GO_ON, SETTLED = "stop", "go on", "settled"
TOO_EARLY, OUT_OF_TRIES, STOPPED = "too early to say", "out of tries", "stopped"
NOTHING_EARNED = "nothing earned"
NO_ARMS = "there are no arms yet."


@dataclass(frozen=True)
class StopVerdict:
    """How good an arm is, with a guarantee, and whether that is enough to stop.

    Attributes
    ----------
    arm
        The arm that `recommend()` returned.
    stop
        Whether it is good enough, with probability `confidence`, whenever you ask. Without a
        `target`: within `epsilon` of the best of all but the top `quantile` of the arms. If
        `quantile` is less than one arm, it is compared with the best of all arms.
    outcome
        "stop", "go on", "too early to say", "settled" (the policy keeps to the arm, and more pulls
        will not bring a stop), "nothing earned" (all rewards are as small as can be, and there
        are 100 or more), "out of tries" (the horizon is over); for an experiment of a service also
        "stopped".
    epsilon, quantile, confidence, target, margin
        What was asked; a share is written as "10%".
    limit
        The lower bound of the arm's mean; it holds with probability `confidence`, for all arms at
        once and at any time. At 95 % it is the one that `recommend()` shows.
    tried, beaten
        The number of arms with a known reward; and how many of them, including this one, are shown
        not to be better than it by more than `epsilon`.
    met, unsettled
        The number of arms that the policy drew at random; and how many of them may still be better
        by more than `epsilon`, each judged by itself if the sample is large enough. The arm
        itself is not counted.
    n_arms, at_first
        The number of arms that the statement is about; and whether these are the arms of the
        beginning, because arms came or went since.
    more
        About how many more pulls it takes, if they go as the last ones did; None if that cannot be
        said, or if it is not with this policy.
    outlook, missing, advice, known
        In words: what more pulls will bring, what is missing, what helps, and what is known of the
        arm. Empty where there is nothing to say.
    warning
        What looks wrong with the rewards: so many pulls have none that `stop` could be wrong
        because of it, only the best rewards seem to be told, or late rewards differ from early
        ones. Else it is empty.
    rate
        Whether means are rates, which are shown in percent.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.MOSS().live(arms=["red", "blue"], horizon=1000, seed=1)
    >>> print(live.verdict())
    Too early to say: no reward has been told yet for any arm in play.
    >>> for pull in live.ask(200):
    ...     live.tell(pull, reward=float(pull.arm == "blue"))
    >>> verdict = live.verdict(epsilon=0.1)
    >>> verdict.stop
    True
    >>> print(verdict)
    Stop and deploy arm 'blue': it is within 0.1 of the best of all 2 arms (95 % confidence).
    Of the 2 arms tried, none is better by more than 0.1. Its mean is at least 92.5 % (95 %
    confidence, valid for all arms at once and at any time).
    >>> print(live.verdict(target=0.7).headline)
    Stop and deploy arm 'blue': its mean is above 70 % (95 % confidence).
    >>> print(live.verdict(target="red", margin="50%").headline)
    Stop and deploy arm 'blue': it is better than 'red' by more than 50 % (95 % confidence).
    """

    arm: Any
    stop: bool
    outcome: str
    epsilon: float | str
    quantile: float
    confidence: float
    target: float | str | None
    margin: float | str
    limit: float
    tried: int
    beaten: int
    met: int
    unsettled: int
    n_arms: int
    at_first: bool
    more: int | None
    outlook: str
    missing: str
    advice: str
    known: str
    warning: str = ""
    rate: bool = False

    def __str__(self) -> str:
        return f"{self.headline}\n{self.why}".rstrip()

    @property
    def headline(self) -> str:
        """What to do, in a line."""
        if self.arm is None:
            return f"Too early to say: {self.missing}"
        name = f"arm {plain(repr(self.arm))}"
        if self.outcome == STOP:
            it = "its mean" if isinstance(self.target, float) else "it"
            sure = f"{100 * self.confidence:g} % confidence"
            return f"Stop and deploy {name}: {it} is {self.goal} ({sure})."
        if self.outcome == TOO_EARLY:
            return "Too early to say: go on."
        if self.outcome == NOTHING_EARNED:
            return "Nothing earned so far: go on, and check that rewards are told as they come."
        if self.outcome == SETTLED:
            return (
                f"Go on with another policy, or deploy {name} without a guarantee: this policy "
                f"pulls almost only that arm."
            )
        if self.outcome == GO_ON:
            return f"Go on: {name} is the best so far, and not yet shown to be {self.goal}."
        short = self.goal.split(" of the best of ")[0]
        return f"{self.outcome.capitalize()}. Best so far: {name} (not shown to be {short})."

    @property
    def why(self) -> str:
        """The reasons for it, what helps, and what is known of the arm."""
        return f"{self.reasons} {self.known}\n{self.warning}".strip()

    @property
    def reasons(self) -> str:
        """The reasons for it, and what helps."""
        if self.arm is None:
            return ""
        compared = self._compared if self.stop and self.target is None else ""
        return " ".join(filter(None, (self.outlook, self.missing, self.advice, compared)))

    @property
    def goal(self) -> str:
        """What must be shown of the arm before it is time to stop."""
        if isinstance(self.target, str):
            more = f" by more than {_percent(self.margin)}" if self.margin else ""
            return f"better than {plain(repr(self.target))}{more}"
        if self.target is not None:
            return f"above {mean_text(self.target, self.rate)}"
        return f"within {_percent(self.epsilon)} of the best of {self._rivals}"

    @property
    def _compared(self) -> str:
        more = f"better by more than {_percent(self.epsilon)}"
        if self._all_arms or self.met == 0:
            rest = self.tried - self.beaten
            may = f"{rest} may be" if rest else "none is"
            return f"Of the {count(self.tried, 'arm')} tried, {may} {more}."
        return f"Of {count(self.met, 'arm')} drawn at random, {self.unsettled} may be {more}."

    @property
    def _all_arms(self) -> bool:
        """Whether `quantile` is less than one arm."""
        return math.floor(self.quantile * self.n_arms) == 0

    @property
    def _rivals(self) -> str:
        """The arms that the arm is compared with, in words."""
        of = f"all {count(self.n_arms, 'arm')}"
        if not self._all_arms:
            of = f"all but the top {100 * self.quantile:g} % of {count(self.n_arms, 'arm')}"
        return f"{of} there were at first" if self.at_first else of

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        rest = "<br/>".join(map(escape, self.why.split("\n")))
        return f"<div><b>{escape(self.headline)}</b><br/>{rest}</div>"


def _percent(given: float | str) -> str:
    return given.replace("%", " %") if isinstance(given, str) else f"{given:g}"


class _Judged(NamedTuple):
    """Whether an arm is good enough, and what that was decided by."""

    stop: bool
    slack: float  # the distance between its lower bound and the bar for the others
    share: float  # of the error, for intervals
    beaten: NDArray[np.bool_]
    all_known: bool  # whether so many arms are beaten that no sample is needed
    of_all: bool  # whether the statement is about the arms in play, not about the first arms
    met: NDArray[np.int64]
    samples: list[Sample]
    bar: float


def give_verdict(
    tallies: Tallies,
    question: Question,
    *,
    stopped: bool = False,
) -> StopVerdict:
    """Return whether the recommended arm is good enough.

    Parameters
    ----------
    tallies, question
        What is known, and what is asked.
    stopped
        Whether the experiment was stopped.
    """
    facts = tallies.facts
    best = tallies.kept()
    judged = _judge(tallies, best, question)
    sampled = can_sample(facts, question.quantile, 1.0 - question.confidence)
    present_only = judged.all_known or judged.of_all or not sampled
    unsettled = ~judged.beaten[judged.met]
    if judged.samples:
        unsettled &= judged.samples[0].open
    why = "no reward has been told yet for any arm in play." if facts.n_arms else NO_ARMS
    told = nothing_known(why)
    if best is not None:
        told = _in_words(tallies, best, question, judged, stopped)
    return StopVerdict(
        arm=None if best is None else facts.name_of(int(tallies.arm[best])),
        stop=judged.stop,
        epsilon=question.epsilon.given,
        quantile=question.quantile,
        confidence=question.confidence,
        target=question.target,
        margin=question.margin.given,
        tried=int((tallies.told > 0).sum()),
        beaten=int(judged.beaten.sum()),
        met=len(judged.met),
        unsettled=int(unsettled.sum()),
        n_arms=facts.n_arms if present_only else facts.first_arms,
        at_first=not present_only and (facts.all_arms > facts.first_arms or bool(facts.retired)),
        rate=tallies.rate,
        **told,
    )


def nothing_known(why: str) -> dict[str, Any]:
    """Return what is said where no arm can be recommended."""
    known = {"limit": -math.inf, "more": None, "outlook": "", "advice": "", "known": ""}
    return known | {"outcome": TOO_EARLY, "missing": why}


def _judge(tallies: Tallies, best: int | None, question: Question) -> _Judged:
    """Return whether an arm is good enough."""
    facts, error = tallies.facts, 1.0 - question.confidence
    nothing = np.zeros(tallies.size, np.bool_)
    met = met_by_chance(tallies)
    if best is None:
        return _Judged(False, 0.0, error, nothing, False, False, met, [], math.inf)
    if question.rival == CONTROL:
        ahead = _ahead_of_control(tallies, question)
        return _Judged(ahead > 0.0, ahead, error, nothing, True, True, met, [], math.inf)
    if question.target is not None:
        limit, bar = _lower(tallies, best, error), _target(tallies, best, question, error)
        return _Judged(limit > bar, limit - bar, error, nothing, True, True, met, [], bar)
    sampled = can_sample(facts, question.quantile, error)
    share = LIMITS * error if sampled else error
    limit = _lower(tallies, best, share)
    bar = question.epsilon.best(limit)
    beaten = _beaten(tallies, best, bar, share)
    better = facts.n_arms - int((beaten & ~tallies.retired).sum())
    all_known = better <= math.floor(question.quantile * facts.n_arms)
    samples: list[Sample] = []
    of_all = all_known
    if sampled:
        against = evidence_against(tallies, met, bar)
        given = [(facts, against <= 1.0 / a, question.quantile, error - share, a) for a in LEVELS]
        samples = [Sample(*one) for one in given]
        if not all_known and facts.all_arms > facts.first_arms:
            others = excess_of_newcomers(tallies, beaten, question.quantile)
            of_all = any(Sample(*one, others).small_enough() for one in given)
    stop = of_all or any(sample.small_enough() for sample in samples)
    return _Judged(stop, bar - limit, share, beaten, all_known, of_all, met, samples, bar)


def _lower(tallies: Tallies, place: int, error: float) -> float:
    return float(tallies.limits_at(np.array([place]), error)[0][0])


def _target(tallies: Tallies, best: int, question: Question, error: float) -> float:
    """Return what the arm's lower bound must exceed; infinity if nothing is known of the rival."""
    if question.rival is None:
        assert isinstance(question.target, float)
        return question.target
    place = tallies.place(question.rival)
    if place is None or place == best or tallies.told[place] == 0:
        return math.inf
    return question.margin.more(float(tallies.limits_at(np.array([place]), error)[1][0]))


def _ahead_of_control(tallies: Tallies, question: Question) -> float:
    """Return by how much the arm is better than the control and the margin, at least.

    If the margin is a share, so is this. The interval is that of `inference.uplift`.
    """
    if why_no_uplift(tallies.facts, tallies.kept()):
        return -math.inf
    uplift = uplift_of(tallies, question.confidence)
    if question.margin.relative:
        return uplift.ratio_interval[0] - 1.0 - question.margin.amount
    return uplift.interval[0] - question.margin.amount


# In words


def _in_words(
    tallies: Tallies,
    best: int,
    question: Question,
    judged: _Judged,
    stopped: bool,
) -> dict[str, Any]:
    """Return the outcome and what is said about it."""
    facts = tallies.facts
    limit = _lower(tallies, best, 1.0 - question.confidence)

    def called(place: int) -> str:
        return plain(repr(facts.name_of(int(tallies.arm[place]))), at_most=24)

    sure = promise(question.confidence)
    sure = f"its mean is at least {mean_text(limit, tallies.rate)} ({sure})."
    told = nothing_known("") | {"limit": limit, "known": f"I{sure[1:]}"}
    told["warning"] = reward_warnings(facts)
    if judged.stop:
        lost = lost_rewards_warning(tallies, best, called(best), judged.slack, question)
        return told | {"outcome": STOP, "warning": f"{lost} {told['warning']}".strip()}
    missing, advice = _missing(tallies, best, question, judged, called)
    over = stopped or facts.pulls == facts.horizon
    if nothing := nothing_earned(tallies, called, question.confidence):
        told["known"] = nothing
    seen = int(tallies.told[best])
    mean = float(tallies.total[best]) / seen
    if over:
        wait = ""
        if facts.pending:
            wait = f"Tell the {count(facts.pending, 'reward')} still missing. "
        outcome, advice = STOPPED if stopped else OUT_OF_TRIES, f"{wait}{OVER}"
    elif nothing:
        outcome, advice = NOTHING_EARNED, ""
    elif _too_early(tallies, mean, limit):
        outcome, advice = TOO_EARLY, ""
        so_far = f"{mean_text(mean, tallies.rate)} on average after {count(seen, 'reward')}"
        told["known"] = f"The best so far is arm {called(best)}, with {so_far}: {sure}"
    else:
        outcome, more, told["outlook"] = _outlook(tallies, best, question, judged)
        if more is not None and more <= _left(facts):
            advice = ""
        told["more"] = more
    return told | {"outcome": outcome, "missing": missing, "advice": advice}


def _missing(
    tallies: Tallies,
    best: int,
    question: Question,
    judged: _Judged,
    called: Callable[[int], str],
) -> tuple[str, str]:
    """Return what keeps a verdict from saying stop, and what helps."""
    if question.target is not None:
        return missing_for_target(tallies, best, question, judged.bar), OTHER_POLICY
    if judged.samples and int(tallies.present.sum()) < tallies.facts.n_arms:
        few = all(sample.draws_missing() for sample in judged.samples)
        missing = missing_in_sample(tallies, judged.met, judged.samples, question)
        return missing, MORE_ARMS if few else ASK_LESS
    return missing_of_arms(
        tallies, called, judged.beaten, judged.bar, judged.share, question
    ), ALL_ALIKE


def _too_early(tallies: Tallies, mean: float, limit: float) -> bool:
    """Whether hardly anything is known: the mean could be half of what it looks like."""
    scale = tallies.facts.scale
    if scale.width == 0.0:
        return mean - limit > scale.sigma
    return limit - scale.low <= (mean - scale.low) / 2.0


def _outlook(
    tallies: Tallies, best: int, question: Question, judged: _Judged
) -> tuple[str, int | None, str]:
    """Return whether to go on, for how many pulls if that can be said, and this in words."""
    facts = tallies.facts
    of, _ = last_pulls(tallies)
    if question.rival == CONTROL:  # it gets its share of pulls in any case
        return GO_ON, None, "More pulls help: the control gets its share of them."
    draws = min((sample.draws_missing() for sample in judged.samples), default=0)
    if draws:
        rate = fresh_rate(tallies)
        more = math.ceil(draws / rate) if rate and math.isfinite(draws) else None
    else:
        more = pulls_missing(tallies, lambda later: _judge(later, best, question).stop)
    share = settled_share(tallies, best)
    if more is None and share:
        return SETTLED, None, (
            f"The policy, {facts.policy}, gave it {100 * share:.0f} % of the last {of} pulls. "
            f"If it goes on like this, no stop will come."
        )  # fmt: skip
    if more is None:
        return GO_ON, None, "How many more pulls it takes cannot be said yet."
    about = "at least" if draws else "about"
    much = (
        f"It takes {about} {float(f'{more:.1g}'):.0f} more pulls, if they go as the last {of} did"
    )
    left = _left(facts)
    return GO_ON, more, f"{much}, and {left} are left." if more > left else f"{much}."


def _left(facts: Facts) -> float:
    return math.inf if facts.horizon is None else facts.horizon - facts.pulls


def _beaten(tallies: Tallies, best: int, bar: float, error: float) -> NDArray[np.bool_]:
    """Return which arms are shown not to be above `bar`; the best one counts as one of them."""
    beaten = np.empty(tallies.size, np.bool_)
    for part in in_blocks(tallies.size):
        beaten[part] = surely_below(
            tallies.told[part],
            tallies.total[part],
            bar,
            bounds=tallies.facts.reward_range,
            sigma=tallies.facts.scale.sigma,
            error=spent_error(error, np.arange(part.start + 1, part.stop + 1)),
        )
    beaten[best] = True
    return beaten
