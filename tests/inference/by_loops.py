"""A slow and simple reference for estimates and verdicts, which loops over arms.

Intervals, evidence and sample sizes are those of `inference`; the loops over arms are here.
"""

from __future__ import annotations

import heapq
import math
from typing import Any, NamedTuple

import numpy as np

from manyarms.core.scale import lower_confidence_bound
from manyarms.inference.confidence_sequences import spent_error, uniform_interval
from manyarms.inference.sample import INTERVALS, LEVELS, Sample, can_sample
from manyarms.live.answers import facts_of
from manyarms.live.checks import exchangeable
from manyarms.live.experiment import Experiment
from manyarms.protocol.policy import recommend


class Judged(NamedTuple):
    """The numbers of a verdict."""

    arm: int
    stop: bool
    lower_bound: float
    tried: int
    beaten: int
    met: int
    unsettled: int
    highest: list[tuple[int, float]]  # arms that are not ruled out, by their upper bounds


def _known(experiment: Experiment, arm: int) -> tuple[int, float]:
    """Return the number and the sum of an arm's known rewards."""
    counts = experiment.ledger.counts.get(arm)
    return (0, 0.0) if counts is None else (counts.known, counts.total)


def intervals_of(experiment: Experiment, error: float = 0.05) -> dict[int, tuple[float, float]]:
    """Return the interval of every arm with a reward."""
    told = [
        (k, arm)
        for k, arm in enumerate(experiment.ledger.counts, 1)
        if _known(experiment, arm)[0] > 0
    ]
    known = [_known(experiment, arm) for _, arm in told]
    low, high = uniform_interval(
        [count for count, _ in known],
        [total for _, total in known],
        bounds=experiment.settings.reward_range,
        sigma=experiment.settings.scale.sigma,
        error=spent_error(error, [k for k, _ in told]),
    )
    ends = zip(low.tolist(), high.tolist(), strict=True)
    return {arm: intervals for (_, arm), intervals in zip(told, ends, strict=True)}


def kept(experiment: Experiment) -> int:
    """Return the arm to keep; -1 if no reward is known."""
    search = experiment.search
    assert search is not None
    seat = recommend(search.state)
    own = seat if seat < 0 else search.seats.arm(seat)
    known = own >= 0 and own not in experiment.ledger.retired and _known(experiment, own)[0] > 0
    if known and not search.due:
        return own
    best, highest, scale = -1, -math.inf, experiment.settings.scale
    for arm in experiment.ledger.counts:
        count, total = _known(experiment, arm)
        if count > 0 and arm not in experiment.ledger.retired:
            lower_bound = lower_confidence_bound(count, total, scale, highest)
            if lower_bound > highest:
                best, highest = arm, lower_bound
    return best


def top(experiment: Experiment, k: int) -> list[int]:
    """Return the arm to keep, and others by their lower bounds."""
    own, intervals = kept(experiment), intervals_of(experiment)
    others = [arm for arm in intervals if arm not in experiment.ledger.retired and arm != own]
    return [own, *heapq.nlargest(k - 1, others, key=lambda arm: intervals[arm][0])]


def evidence(count: int, total: float, bar: float, experiment: Experiment) -> float:
    """Return the evidence of an arm's rewards against a mean of `bar` or more."""
    parts = (1 / 4, 1 / 2, 3 / 4, 7 / 8, 15 / 16)
    if experiment.settings.reward_range is None:
        sigma = experiment.settings.scale.sigma
        steps = [(1.0 - part) / sigma for part in parts]
        logs = [s * (bar * count - total) - count * (s * sigma) ** 2 / 2.0 for s in steps]
    else:
        low, high = experiment.settings.reward_range
        mean = (bar - low) / (high - low)
        if not 0.0 < mean < 1.0:
            return 1.0 if mean <= 0.0 else math.inf
        ones = min(max((total - low * count) / (high - low), 0.0), count)
        logs = [
            ones * math.log(part) + (count - ones) * (math.log1p(-part * mean) - math.log1p(-mean))
            for part in parts
        ]
    return math.fsum(math.exp(min(log, 700.0)) for log in logs) / len(parts)


def judged(experiment: Experiment, epsilon: float, quantile: float, confidence: float) -> Judged:
    """Return the verdict; a reward must be known."""
    error, facts = 1.0 - confidence, facts_of(experiment, int)
    sampled = can_sample(facts, quantile, error)
    share = INTERVALS * error if sampled else error
    intervals, arm = intervals_of(experiment, share), kept(experiment)
    bar = intervals[arm][0] + epsilon
    beaten = {a for a, (_, high) in intervals.items() if high <= bar or a == arm}
    better = experiment.ledger.n_arms - len(beaten - experiment.ledger.retired)
    met = [
        a
        for a in experiment.ledger.counts
        if a < experiment.ledger.first_arms and a not in experiment.ledger.named
    ]
    met = met if exchangeable(experiment.settings.policy) else []
    against = [evidence(*_known(experiment, a), bar, experiment) for a in met]
    samples = [
        Sample(facts, np.array([x <= 1.0 / a for x in against], np.bool_), quantile,
                error - share, a)
        for a in LEVELS
    ]  # fmt: skip
    few = sampled and any(sample.small_enough() for sample in samples)
    unsettled = [
        a for a, x in zip(met, against, strict=True)
        if a not in beaten and (x <= 1.0 / LEVELS[0] or not sampled)
    ]  # fmt: skip
    left: Any = [a for a in intervals if a not in beaten and a not in experiment.ledger.retired]
    highest = heapq.nlargest(3, left, key=lambda a: intervals[a][1])
    return Judged(
        arm=arm,
        stop=better <= math.floor(quantile * experiment.ledger.n_arms) or few,
        lower_bound=intervals_of(experiment, error)[arm][0],
        tried=len(intervals),
        beaten=len(beaten),
        met=len(met),
        unsettled=len(unsettled),
        highest=[(a, intervals[a][1]) for a in highest],
    )
