"""What a part of a claim is about, run by run: it can be asked on average and of a usual run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import (
    Interval,
    mean_interval,
    median_interval,
    ratio_interval,
    runs_to_decide,
)
from manyarms.report.verdicts import Ask, Part, Verdict

PAPERS_RUNS = 100  # the paper's figures show means of so many
Numbers = NDArray[np.float64]
Rule = Callable[..., Part]  # of what was measured, its interval, and limits: more, less, within


@dataclass(frozen=True, eq=False)
class Measured:
    """A mean, or the ratio of two means, and the runs it is made of.

    Attributes
    ----------
    over, under
        The values, run by run; `under` is None for a mean.
    most
        What no value can be above: one number for a mean, whose values are not below minus that
        either; two for a ratio, whose values are not below 0.
    """

    over: Numbers
    most: tuple[float, ...]
    under: Numbers | None = None

    def interval(self, confidence: float) -> Interval:
        """Return the mean, or the ratio of means, with its interval."""
        if self.under is None:
            bounds = (-self.most[0], self.most[0])
            return mean_interval(self.over, bounds=bounds, confidence=confidence)
        most = self.most[0], self.most[1]
        return ratio_interval(self.over, self.under, at_most=most, confidence=confidence)

    def beyond(self, bound: float) -> tuple[Numbers, tuple[float, float]]:
        """Return by how much each run is above a bound, and the limits of that."""
        if self.under is None:
            return self.over - bound, (-self.most[0] - bound, self.most[0] - bound)
        return self.over - bound * self.under, (-bound * self.most[1], self.most[0])

    def asks(self, what: str, rule: Rule, *limits: float) -> Ask:
        """Ask that it keeps a rule: on average, in the usual run, and as the paper reads."""

        def ask(confidence: float) -> Part:
            part = rule(what, self.interval(confidence), *limits)
            return self._told(part, confidence)

        return ask

    def _told(self, part: Part, confidence: float) -> Part:
        """Say of a part how many runs keep its rule, and how many would decide it."""
        low, high = part.wanted
        margins = [self.beyond(low)] if low > -math.inf else []
        if high < math.inf:
            values, (least, most) = self.beyond(high)
            margins.append((-values, (-most, -least)))
        ends = [median_interval(values, confidence=confidence) for values, _ in margins]
        usual = Verdict.HOLDS if all(end.low > 0.0 for end in ends) else Verdict.OPEN
        if any(end.high < 0.0 for end in ends):
            usual = Verdict.FAILS
        needed = [
            (float(values.mean()) > 0.0, runs_to_decide(values, bounds=ends, confidence=confidence))
            for values, ends in margins
        ]
        failing = [runs for holds, runs in needed if not holds]
        return replace(
            part,
            usual=usual,
            kept=int(np.all([values > 0.0 for values, _ in margins], axis=0).sum()),
            runs=len(self.over),
            reads=all(float(values[:PAPERS_RUNS].mean()) > 0.0 for values, _ in margins),
            needed=min(failing) if failing else max(runs for _, runs in needed),
        )


def common(*arrays: Numbers) -> list[Numbers]:
    """Return the runs that all have: policies may have played differently often."""
    count = min(map(len, arrays))
    return [each[:count] for each in arrays]
