r"""Decide whether an experiment can stop, with a guarantee that holds at any time.

The recommended arm is called x, and delta is 1 - `confidence`.

*With a target.* The k-th arm tried is chosen before any of its rewards is known. So the probability
that its own confidence interval is ever wrong is at most delta_k. The delta_k sum to delta. So with
probability 1 - delta no interval of any arm is ever wrong, not even that of an arm that was chosen
because of its interval. If the lower bound of x is above a number, so is its mean. If the lower
bound of x is above the upper bound of another arm, then the mean of x is above the mean of that
arm. For a control, `inference.uplift` has an interval of the difference.

*Without a target.* There are N initial arms, and n available arms. The top q (`quantile`) of the
arms are left aside: c_q is the mean of the m-th best initial arm, with m = floor(q N) + 1. Arm x is
good enough if its mean is at least c_q - epsilon, or (1 - epsilon) c_q if epsilon is a share. A
fifth of the error delta is spent on confidence intervals, and the rest on the sample.

*Intervals.* With probability 1 - delta/5 no lower bound of any arm is ever wrong. L is the lower
bound of x, and c = L + epsilon, or L / (1 - epsilon). If x is not good enough, c is below c_q.

*The sample.* Fresh arms are drawn at random. Of the initial arms, u could not be drawn at random:
they were retired before they had a reward, or they were observed first.

An arm is *open* at c until the e-value of its own rewards against a mean of c or more
(`evidence_below`) reaches 1/a, for a fixed a. With probability 1 - a or more, an arm of mean c_q or
more is open at c_q at all times, whatever the policy does. A draw is a success if it is one of the
m best arms and this arm is open at c_q at all times. A draw that is known not to be a success is
less likely to be one of the m best arms than a draw about which nothing is known. So after V
successes, the next draw is a success with probability (1 - a) (m - u - V)/N or more. So, for every
U, the probability that at most U of the first k arms are open at c_q is at most the probability of
at most U successes in k independent trials with the success probability (1 - a) (m - u - U)/N. An
arm that is open at c_q is open at every c below c_q. So if x is not good enough, it is unlikely
that few arms are open. If few arms are open, the verdict is "stop".

The error is split between two values of a: 1/2, for policies that pull an arm until it is clear
whether it is good, and 3/4, for policies that drop most arms early. An arm that was drawn and has
no reward is open. It stays in the sample, also in later seasons, because the rewards of the best
arms may be the ones that come late.

*Arms that were added later* are never in the sample. For a statement about the available arms, each
added arm counts as better than x unless its upper bound is at most c. At most floor(q n) available
arms may be better than x. An added arm that counts as better takes one of these places from the
initial arms, which has the same effect as raising u by 1. The growth of floor(q n) since the start
offsets this increase, but does not lower u further. If too many arms are open for this u, the
statement is about the initial arms.

*Any time.* Intervals and evidence hold at all times at once. The sample is tested at the sizes k_0,
1.5 k_0, … only. Its error is divided among these sizes, and among the values of u, which is first
rounded up to 0, 1, 3, 7, ….

*Without a sample.* If all but floor(q n) of the available arms have an upper bound of at most c,
then x is good enough, however the arms were chosen. The upper bounds are those that hold for all
arms at once. This is the only way if no sample of N arms can be large enough for q and delta, or if
the policy is not known to draw arms at random. Then all of delta is spent on intervals. Whether a
sample is used does not change during an experiment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any

from manyarms.core.tabular import plain
from manyarms.inference.estimates import count, difference_text, mean_text
from manyarms.inference.explanation import (
    GO_ON,
    NOTHING_EARNED,
    SETTLED,
    STOP,
    TOO_EARLY,
    explain,
    no_recommendation,
)
from manyarms.inference.judging import judge
from manyarms.inference.next_steps import HANDLE, NextSteps
from manyarms.inference.question import Question
from manyarms.inference.sample import can_sample
from manyarms.inference.tried_arms import TriedArms
from manyarms.inference.uplift import no_rewards

NO_ARMS = "there are no arms yet."


@dataclass(frozen=True)
class StopVerdict:
    """Whether to stop and deploy the recommended arm, and why.

    Attributes
    ----------
    arm
        The arm that `recommend()` returned.
    stop
        Whether it is good enough. The probability that this is ever True wrongly is at most 1 -
        `confidence`, however often you ask. Without a `target`, an arm is good enough if it is at
        most `epsilon` worse than the best arm, leaving aside the top `quantile` of the arms. If
        that is less than one arm, the recommended arm is compared with the best of all arms.
    outcome
        "stop": the arm is good enough. "go on": this is not shown yet. "too early to say": no
        available arm has a reward, or the arm's true mean could still be half of its observed mean.
        "nothing earned": there are 100 rewards or more, and all are the smallest possible.
        "settled": the policy pulls almost only this arm. If it continues to, more pulls will not
        lead to "stop". "out of pulls": all pulls of the horizon are made, without a "stop".
        "stopped": the experiment was stopped (only in the service).
    epsilon, quantile, confidence, target, margin
        The question; a share is written as "10%".
    lower_bound
        The lower bound of the arm's mean. It holds with probability `confidence`, for all arms at
        once and at any time. At 95 % it is the one that `recommend()` shows.
    tried, beaten
        The number of arms with a reward; and how many of these are shown to be at most `epsilon`
        better than the recommended arm, including that arm itself (0 with a `target`).
    met, unsettled
        The number of arms that the policy drew at random; and how many of these could still be more
        than `epsilon` better.
    n_arms, at_first
        The number of arms that the verdict covers; and whether these are the initial arms only,
        because arms were added or retired.
    more
        About how many more pulls are needed, if they are like the last ones; None if there is no
        estimate, or if more pulls with this policy will not help.
    outlook, missing, advice, known
        Texts: what more pulls will do, what is missing, what to do next, and what is known about
        the arm's mean. Each may be empty.
    warning
        A text if so many rewards are missing that "stop" could be wrong, if only the best rewards
        seem to be reported, or if the mean reward depends on the delay. Otherwise empty.
    rate
        Whether means are rates, which are shown in percent.

    Examples
    --------
    >>> import manyarms as ma
    >>> live = ma.MOSS().live(arms=["red", "blue"], horizon=1000, seed=1)
    >>> print(live.verdict())
    Too early to say: no rewards have been reported yet.
    >>> for pull in live.ask(200):
    ...     live.tell(pull, reward=float(pull.arm == "blue"))
    >>> verdict = live.verdict(epsilon="10%")
    >>> verdict.stop
    True
    >>> print(verdict)
    Stop and deploy arm 'blue': it is at most 10 % worse than the best of the 2 arms (95 %
    confidence).
    Of the 2 arms tried, none can be better by more than that. The mean of arm 'blue' is at least
    92.5 % (95 % confidence, valid for all arms at once and at any time).
    >>> print(live.verdict(target=0.7).headline)
    Stop and deploy arm 'blue': its mean is above 70 % (95 % confidence).
    >>> print(live.verdict(target="red", margin="50%").headline)
    Stop and deploy arm 'blue': it is more than 50 % better than 'red' (95 % confidence).
    """

    arm: Any
    stop: bool
    outcome: str
    epsilon: float | str
    quantile: float
    confidence: float
    target: float | str | None
    margin: float | str
    lower_bound: float
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
        """Whether to stop, and with which arm, in one line."""
        if self.arm is None:
            return f"Too early to say: {self.missing}"
        name = f"arm {plain(repr(self.arm))}"
        if self.outcome == STOP:
            return f"Stop and deploy {name}: {self.goal} ({100 * self.confidence:g} % confidence)."
        if self.outcome == TOO_EARLY:
            return f"Too early to say: go on. The best so far is {name}."
        if self.outcome == NOTHING_EARNED:
            return "Nothing earned so far: check that successes are reported, then go on."
        itself = self.target == str(self.arm)
        if self.outcome == SETTLED:
            if itself:
                return f"Settled on {name}: {self._doubt}."
            return f"Settled on {name} without a guarantee: {self._doubt}."
        link = "and" if itself else "but"
        if self.outcome == GO_ON:
            return f"Go on: {name} is the best so far, {link} {self._doubt}."
        return f"{self.outcome.capitalize()}. Best so far: {name}, {link} {self._doubt}."

    @property
    def why(self) -> str:
        """The reasons, the advice, and what is known about the arm's mean."""
        return f"{self.reasons} {self.known}\n{self.warning}".strip()

    @property
    def reasons(self) -> str:
        """The reasons and the advice."""
        if self.arm is None:
            return ""
        compared = self._compared if self.stop and self.target is None else ""
        return " ".join(filter(None, (self.outlook, self.missing, self.advice, compared)))

    @property
    def goal(self) -> str:
        """What must be shown about the arm for a verdict of "stop"."""
        if self.target is None:
            if isinstance(self.epsilon, str):
                return f"it is at most {self._much(self.epsilon)} worse than {self._rivals}"
            return f"its mean is at most {self._much(self.epsilon)} below that of {self._rivals}"
        if not isinstance(self.target, str):
            return f"its mean is above {mean_text(self.target, self.rate)}"
        rival = plain(repr(self.target))
        if not self.margin:
            return f"it is better than {rival}"
        if isinstance(self.margin, str):
            return f"it is more than {self._much(self.margin)} better than {rival}"
        return f"its mean is more than {self._much(self.margin)} above that of {rival}"

    @property
    def _doubt(self) -> str:
        """Why there is no “stop”: what could still be true, or what is not shown yet."""
        if self.target is None:
            much = self._much(self.epsilon)
            if isinstance(self.epsilon, str):
                return f"it could still be more than {much} worse than {self._rivals}"
            return f"its mean could still be more than {much} below that of {self._rivals}"
        if self.target == str(self.arm):
            return "it is itself the target"
        return self.goal.replace(" is ", " is not shown to be ", 1)

    def _much(self, given: float | str) -> str:
        return difference_text(given, self.rate)

    @property
    def _compared(self) -> str:
        """How the other arms compare, if the verdict is "stop"."""
        if self._all_arms or self.met == 0:
            rest = self.tried - self.beaten
            if rest:
                return (
                    f"Only {rest} of the {self.tried} arms tried could be better by more than that."
                )
            more = f"Of the {self.tried} arms tried, none can be better by more than that."
            return more if self.tried > 1 else ""
        all_but = f"all but {self.unsettled}" if self.unsettled else "each"
        it_is = "they are" if self.unsettled else "it is"
        return (
            f"For {all_but} of the {count(self.met, 'arm')} tried at random, the rewards are "
            f"evidence that {it_is} not better by more than that."
        )

    @property
    def _all_arms(self) -> bool:
        """Whether the top `quantile` of the arms is less than one arm."""
        return math.floor(self.quantile * self.n_arms) == 0

    @property
    def _rivals(self) -> str:
        """The arms with which the arm is compared."""
        if self.n_arms == 1:
            return "the only arm"
        arms = f"{self.n_arms} {'initial ' if self.at_first else ''}arms"
        if self._all_arms:
            return f"the best of the {arms}"
        return f"the best arm, leaving aside the top {100 * self.quantile:g} % of the {arms}"

    def _repr_html_(self) -> str:
        rest = "<br/>".join(map(escape, self.why.split("\n")))
        return f"<div><b>{escape(self.headline)}</b><br/>{rest}</div>"


def give_verdict(
    tried: TriedArms,
    question: Question,
    *,
    stopped: bool = False,
    steps: NextSteps = HANDLE,
) -> StopVerdict:
    """Return the verdict on the recommended arm.

    Parameters
    ----------
    tried, question
        The statistics of the arms, and the question.
    stopped
        Whether the experiment was stopped.
    steps
        The wording of the advice (default: for a handle).
    """
    facts = tried.facts
    best = tried.kept()
    judged = judge(tried, best, question)
    sampled = can_sample(facts, question.quantile, 1.0 - question.confidence)
    present_only = judged.all_known or judged.of_all or not sampled
    unsettled = ~judged.beaten[judged.met]
    if judged.samples:
        unsettled &= judged.samples[0].open
    if best is None:
        said = no_recommendation(no_rewards(facts) if facts.n_arms else NO_ARMS)
    else:
        said = explain(tried, best, question, judged, stopped=stopped, steps=steps)
    return StopVerdict(
        arm=None if best is None else facts.name_of(int(tried.arm[best])),
        stop=judged.stop,
        epsilon=question.epsilon.given,
        quantile=question.quantile,
        confidence=question.confidence,
        target=question.target,
        margin=question.margin.given,
        tried=int((tried.told > 0).sum()),
        beaten=int(judged.beaten.sum()),
        met=len(judged.met),
        unsettled=int(unsettled.sum()),
        n_arms=facts.n_arms if present_only else facts.first_arms,
        at_first=not present_only and (facts.all_arms > facts.first_arms or bool(facts.retired)),
        rate=tried.rate,
        **said,
    )
