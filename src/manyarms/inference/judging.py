"""Decide whether the recommended arm is good enough.

The docstring of `inference.verdict` has the proof.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.inference.confidence_sequences import in_blocks, shown_below, spent_error
from manyarms.inference.facts import CONTROL
from manyarms.inference.question import Question
from manyarms.inference.sample import (
    INTERVALS,
    LEVELS,
    Sample,
    can_sample,
    evidence_against,
    excess_of_newcomers,
    met_by_chance,
)
from manyarms.inference.tried_arms import TriedArms
from manyarms.inference.uplift import uplift_of, why_no_uplift


class Judged(NamedTuple):
    """Whether an arm is good enough, and the quantities behind the decision."""

    stop: bool
    slack: float  # how far its lower bound is above a target; without one, the tolerance
    share: float  # the error spent on confidence intervals
    beaten: NDArray[np.bool_]
    all_known: bool  # whether enough arms are beaten, so that no sample is needed
    of_all: bool  # whether the statement is about the available arms, not the initial arms
    met: NDArray[np.int64]
    samples: list[Sample]
    bar: float


def judge(tried: TriedArms, best: int | None, question: Question) -> Judged:
    """Decide whether the arm at the place `best` is good enough."""
    facts, error = tried.facts, 1.0 - question.confidence
    nothing = np.zeros(tried.size, np.bool_)
    met = met_by_chance(tried)
    if best is None:
        return Judged(False, 0.0, error, nothing, False, False, met, [], math.inf)
    if question.rival == CONTROL:
        ahead = _ahead_of_control(tried, question)
        return Judged(ahead > 0.0, ahead, error, nothing, True, True, met, [], math.inf)
    if question.target is not None:
        lower, bar = lower_bound_of(tried, best, error), _target(tried, best, question, error)
        return Judged(lower > bar, lower - bar, error, nothing, True, True, met, [], bar)
    sampled = can_sample(facts, question.quantile, error)
    share = INTERVALS * error if sampled else error
    lower = lower_bound_of(tried, best, share)
    bar = question.epsilon.best(lower)
    beaten = _beaten(tried, best, bar, share)
    better = facts.n_arms - int((beaten & ~tried.retired).sum())
    all_known = better <= math.floor(question.quantile * facts.n_arms)
    samples: list[Sample] = []
    of_all = all_known
    if sampled:
        against = evidence_against(tried, met, bar)
        given = [(facts, against <= 1.0 / a, question.quantile, error - share, a) for a in LEVELS]
        samples = [Sample(*one) for one in given]
        if not all_known and facts.all_arms > facts.first_arms:
            others = excess_of_newcomers(tried, beaten, question.quantile)
            of_all = any(Sample(*one, others).small_enough() for one in given)
    stop = of_all or any(sample.small_enough() for sample in samples)
    return Judged(stop, bar - lower, share, beaten, all_known, of_all, met, samples, bar)


def lower_bound_of(tried: TriedArms, place: int, error: float) -> float:
    """Return the lower bound of an arm's mean, for an error of all arms together."""
    return float(tried.intervals_at(np.array([place]), error)[0][0])


def _target(tried: TriedArms, best: int, question: Question, error: float) -> float:
    """Return what the arm's lower bound must exceed; infinity if the rival has no rewards."""
    if question.rival is None:
        assert isinstance(question.target, float)
        return question.target
    place = tried.place(question.rival)
    if place is None or place == best or tried.told[place] == 0:
        return math.inf
    return question.margin.more(float(tried.intervals_at(np.array([place]), error)[1][0]))


def _ahead_of_control(tried: TriedArms, question: Question) -> float:
    """Return by how much the arm is shown to be ahead of the control plus the margin.

    If the margin is a share, so is the lead. The interval is that of `inference.uplift`.
    """
    if why_no_uplift(tried.facts, tried.kept()):
        return -math.inf
    uplift = uplift_of(tried, question.confidence)
    if question.margin.relative:
        return uplift.ratio_interval[0] - 1.0 - question.margin.amount
    return uplift.interval[0] - question.margin.amount


def _beaten(tried: TriedArms, best: int, bar: float, error: float) -> NDArray[np.bool_]:
    """Return which arms have an upper bound of at most `bar`, and the arm `best` itself."""
    beaten = np.empty(tried.size, np.bool_)
    for part in in_blocks(tried.size):
        beaten[part] = shown_below(
            tried.told[part],
            tried.total[part],
            bar,
            bounds=tried.facts.reward_range,
            sigma=tried.facts.scale.sigma,
            error=spent_error(error, np.arange(part.start + 1, part.stop + 1)),
        )
    beaten[best] = True
    return beaten
