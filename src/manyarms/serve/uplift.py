"""How much better the recommended arm is than the control, for programs and pages."""

from __future__ import annotations

import math

from msgspec import Struct

from manyarms.inference.question import CONFIDENCE
from manyarms.inference.uplift import check_confidence
from manyarms.serve.look import Look


class UpliftView(Struct):
    """How much better the recommended arm is than the control, as `Live.uplift` says."""

    control: str | int | None
    confidence: float
    text: str  # all of it in a sentence
    missing: str  # why there is nothing to compare, in words; else empty
    head: int
    arm: str | int | None = None
    mean: float | None = None
    control_mean: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    ratio: float | None = None  # None: rewards may be negative, or the control has earned nothing
    ratio_low: float | None = None
    ratio_high: float | None = None  # None: no limit
    told: int = 0
    control_told: int = 0
    better: bool | None = None  # None: not sure
    rate: bool = False  # whether means are rates, which are shown in percent


def uplift(look: Look, confidence: float = CONFIDENCE) -> UpliftView:
    """Return how much better the recommended arm is than the control, as `Live.uplift` does."""
    sure = check_confidence(confidence)
    said, head = look.uplift(sure), look.game.head
    if look.game.spec.control is None:
        said = "this experiment has no control. Give `control` when you create an experiment."
    if isinstance(said, str):
        text = f"Nothing to compare yet: {said}"
        return UpliftView(look.game.spec.control, sure, text, said, head)
    names = ("arm", "mean", "control_mean", "difference", "told", "control_told", "better", "rate")
    known = {name: getattr(said, name) for name in names}
    limits = zip(("low", "high"), said.interval, said.ratio_interval, strict=True)
    for end, plain, ratio in limits:
        known |= {end: number_or_none(plain), f"ratio_{end}": number_or_none(ratio)}
    known["ratio"] = number_or_none(said.ratio)
    return UpliftView(said.control, sure, str(said), "", head, **known)


def number_or_none(value: float) -> float | None:
    """Return a number; None if it is none, or infinite: JSON has no such thing."""
    return value if math.isfinite(value) else None
