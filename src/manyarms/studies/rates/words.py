"""Measured exponents as text: a table, and what the numbers say about where they differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from manyarms.core.statistics import Interval
from manyarms.report.markdown import Table
from manyarms.report.style import ALPHA, policy_title
from manyarms.studies.rates.fit import MeasuredExponent

__all__ = ["MODEL", "as_data", "explain", "notes_on", "table_of"]

MODEL = (
    "Model: log R = a + θ log T + b log log T, least squares, b between 0 and the power of log T "
    "in the policy's bound (5/2 for MOSS++, else 1); R is the largest mean regret over the factors "
    "c; 95 % intervals from 2000 bootstrap refits over runs. The exponent is that of the kind of "
    "problem on which it is largest. Bias: lower-order terms bend the line at small T; the slope "
    "without the log log term counts (log T)^b as b / log T (0.08 b at T = 2^18); the larger of "
    "two estimates is a little too large; where the true b is 0, noise can only raise it "
    "and so lower θ; intervals know the noise of runs, not the model's error."
)

_HEAD = ("policy", ALPHA, "θ", "measured", "on", "b", "slope without log log", "other problems")
_STEADY = 0.15  # a share that changes by less than this part is called constant
_UNFOUND = 0.7  # a larger share is no sign of a best arm found
_FARTHEST = 200  # powers of two that a crossing is looked for


def table_of(measured: Sequence[MeasuredExponent]) -> Table:
    """Return a row for each policy and hardness."""
    rows = [
        (
            policy_title(one.policy),
            f"{one.alpha:g}",
            f"{one.rate:.3g}",
            _shown(one.exponent),
            one.kind,
            f"{one.fit.log_power:.2g}",
            _shown(one.fit.plain),
            ", ".join(
                f"{kind}: {_shown(fit.exponent)}"
                for kind, fit in one.fits.items()
                if kind != one.kind
            )
            or "none",
        )
        for one in measured
    ]
    return Table(_HEAD, rows)


def notes_on(measured: Sequence[MeasuredExponent]) -> list[str]:
    """Return what `explain` says of each, with its name."""
    return [
        f"{policy_title(one.policy)}, {ALPHA} = {one.alpha:g}: {explain(one)}" for one in measured
    ]


def as_data(measured: Sequence[MeasuredExponent]) -> list[dict[str, Any]]:
    """Return plain data, for JSON."""
    return [
        {
            "policy": one.policy,
            "alpha": one.alpha,
            "rate": one.rate,
            "exponent": list(one.exponent),
            "kind": one.kind,
            "says": explain(one),
            "fits": {kind: asdict(fit) for kind, fit in one.fits.items()},
            "regret_in_units_of_horizon_times_gap": one.shares,
            "missed": one.missed,
        }
        for one in measured
    ]


def explain(one: MeasuredExponent) -> str:
    """Say how the measured exponent compares with the rate, and what in the numbers explains it."""
    fit, (estimate, low, high) = one.fit, one.exponent
    if low <= one.rate <= high:
        words = [f"agrees with θ = {one.rate:.3g}"]
    else:
        side = "below" if one.rate > high else "above"
        words = [f"{abs(estimate - one.rate):.3f} {side} θ = {one.rate:.3g}"]
        if estimate < one.rate < fit.plain.estimate:
            words.append(f"the slope without log log, {fit.plain.estimate:.3f}, is above it")
    slopes = fit.local_slopes()
    steps = [r / t**one.rate for t, r in zip(fit.horizons, fit.regret, strict=True)]
    words += [
        f"slopes between neighbouring horizons: {slopes[0]:.2f} first, {slopes[-1]:.2f} last",
        f"R/T^θ: {steps[0]:.3g} first, {steps[-1]:.3g} last",
        _logarithms(one),
        _share(one),
    ]
    first, last = one.missed[one.kind]
    if max(first, last) >= 0.01:
        words.append(f"{first:.0%} of the runs pulled no best arm at first, {last:.0%} last")
    return "; ".join(words + _crossings(one)) + "."


def _logarithms(one: MeasuredExponent) -> str:
    """Say which power of log T would make the data agree with the rate."""
    needed, allowed = one.fit.log_power_at(one.rate), one.fit.largest_log_power
    if needed < 0:
        below = one.rate - one.fit.plain.estimate
        return f"the slope without log log is {below:.3f} below θ, before any logarithm"
    within = "within" if needed <= allowed else "more than"
    return (
        f"given θ the line needs (log T)^{needed:.2g}, {within} the (log T)^{allowed:g} that the "
        f"model allows"
    )


def _share(one: MeasuredExponent) -> str:
    first, last = one.shares[one.kind]
    numbers = f"regret is {first:.2g} times T·gap at first and {last:.2g} times last"
    change = math.log(last / first)
    if min(first, last) > _UNFOUND and abs(change) < _STEADY:
        return f"{numbers}: the best arms are as good as unfound at all horizons"
    return f"{numbers}: the best arms are found ever better" if change < -_STEADY else numbers


def _crossings(one: MeasuredExponent) -> list[str]:
    """Say until when another kind of problem, whose exponent is smaller, costs more."""
    words = []
    for kind, other in one.fits.items():
        start = math.log2(max(one.fit.horizons[-1], other.horizons[-1]))
        if kind == one.kind or other.at(2**start) <= one.fit.at(2**start):
            continue
        powers = range(math.ceil(start), _FARTHEST)
        when = next((k for k in powers if one.fit.at(2.0**k) > other.at(2.0**k)), None)
        until = "as far as the fits reach" if when is None else f"until about T = 2^{when}"
        words.append(f"{kind} problems cost more {until}, by the fits")
    return words


def _shown(interval: Interval) -> str:
    estimate, low, high = interval
    return f"{estimate:.3f} [{low:.3f}, {high:.3f}]"
