"""Measured exponents as a table, with what the numbers say about where they differ from theory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from manyarms.core.statistics import Interval
from manyarms.report.exponents import MeasuredExponent
from manyarms.report.style import ALPHA, policy_title

__all__ = [
    "HEAD",
    "MODEL",
    "explain",
    "exponent_notes",
    "exponents_as_data",
    "exponents_as_markdown",
    "exponents_as_rows",
]

MODEL = (
    "Model: log R = a + θ log T + b log log T, least squares, b between 0 and the power of log T "
    "in the policy's bound (5/2 for MOSS++, else 1); R is the largest mean regret over the factors "
    "c; 95 % intervals from 2000 bootstrap refits over runs. The exponent is that of the kind of "
    "problem on which it is largest. Bias: lower-order terms bend the line at small T; the slope "
    "without the log log term counts (log T)^b as b / log T (0.08 b at T = 2^18); the larger of "
    "two estimates is a little too large; where the true b is 0, noise can only raise it "
    "and so lower θ; intervals know the noise of runs, not the model's error."
)

HEAD = ("policy", ALPHA, "θ", "measured", "on", "b", "slope without log log", "other problems")
_STEADY = 0.15  # a share that changes by less than this part is called constant
_UNFOUND = 0.7  # a larger share is no sign of a best arm found
_FARTHEST = 200  # powers of two that a crossing is looked for


def exponents_as_rows(measured: Sequence[MeasuredExponent]) -> list[tuple[str, ...]]:
    """Return the cells of a table, one row for each policy and hardness, in the order of `HEAD`."""
    rows: list[tuple[str, ...]] = []
    for one in sorted(measured, key=lambda one: (one.policy, one.alpha)):
        fit = one.fits[one.kind]
        others = [
            f"{kind}: {_shown(other.exponent)}"
            for kind, other in one.fits.items()
            if kind != one.kind
        ]
        rows.append(
            (
                policy_title(one.policy),
                f"{one.alpha:g}",
                f"{one.rate:.3g}",
                _shown(one.exponent),
                one.kind,
                f"{fit.log_power:.2g}",
                _shown(fit.plain),
                ", ".join(others) or "none",
            )
        )
    return rows


def exponents_as_markdown(measured: Sequence[MeasuredExponent], rule: str) -> str:
    """Return the table as a Markdown page; `rule` says how often what was played."""
    lines = ["# Measured exponents of regret in the horizon", "", MODEL, "", rule, ""]
    lines += ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in exponents_as_rows(measured)]
    lines += ["", "## What the numbers say", ""]
    return "\n".join(lines + [f"- {note}" for note in exponent_notes(measured)])


def exponent_notes(measured: Sequence[MeasuredExponent]) -> list[str]:
    """Return what `explain` says of each, with its name."""
    return [
        f"{policy_title(one.policy)}, {ALPHA} = {one.alpha:g}: {explain(one)}"
        for one in sorted(measured, key=lambda one: (one.policy, one.alpha))
    ]


def exponents_as_data(measured: Sequence[MeasuredExponent]) -> list[dict[str, Any]]:
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
            "regret_in_units_of_horizon_times_gap": dict(one.shares),
            "missed": dict(one.missed),
        }
        for one in measured
    ]


def explain(one: MeasuredExponent) -> str:
    """Say how the measured exponent compares with the rate, and what in the numbers explains it."""
    fit, (low, high) = one.fits[one.kind], one.exponent[1:]
    if low <= one.rate <= high:
        words = [f"agrees with θ = {one.rate:.3g}"]
    else:
        side = "below" if one.rate > high else "above"
        words = [f"{abs(one.exponent.estimate - one.rate):.3f} {side} θ = {one.rate:.3g}"]
        if fit.exponent.estimate < one.rate < fit.plain.estimate:
            words.append(f"the slope without log log, {fit.plain.estimate:.3f}, is above it")
    slopes = fit.local_slopes()
    words.append(
        f"slopes between neighbouring horizons: {slopes[0]:.2f} first, {slopes[-1]:.2f} last"
    )
    steps = [r / t**one.rate for t, r in zip(fit.horizons, fit.regret, strict=True)]
    words.append(f"R/T^θ: {steps[0]:.3g} first, {steps[-1]:.3g} last")
    words += [_logarithms(one), _share(one), *_missed(one), *_crossing(one)]
    return "; ".join(words) + "."


def _logarithms(one: MeasuredExponent) -> str:
    """Say which power of log T would make the data agree with the rate."""
    fit = one.fits[one.kind]
    needed = fit.log_power_at(one.rate)
    if needed < 0:
        below = one.rate - fit.plain.estimate
        return f"the slope without log log is {below:.3f} below θ, before any logarithm"
    within = "within" if needed <= fit.largest_log_power else "more than"
    allowed = f"the (log T)^{fit.largest_log_power:g} that the model allows"
    return f"given θ the line needs (log T)^{needed:.2g}, {within} {allowed}"


def _share(one: MeasuredExponent) -> str:
    first, last = one.shares[one.kind]
    numbers = f"regret is {first:.2g} times T·gap at first and {last:.2g} times last"
    change = math.log(last / first)
    if min(first, last) > _UNFOUND and abs(change) < _STEADY:
        return f"{numbers}: the best arms are as good as unfound at all horizons"
    return f"{numbers}: the best arms are found ever better" if change < -_STEADY else numbers


def _missed(one: MeasuredExponent) -> list[str]:
    first, last = one.missed[one.kind]
    if max(first, last) < 0.01:
        return []
    return [f"{first:.0%} of the runs pulled no best arm at first, {last:.0%} last"]


def _crossing(one: MeasuredExponent) -> list[str]:
    """Say until when another kind of problem, whose exponent is smaller, costs more."""
    fit = one.fits[one.kind]
    words = []
    for kind, other in one.fits.items():
        start = math.log2(max(fit.horizons[-1], other.horizons[-1]))
        if kind == one.kind or other.at(2**start) <= fit.at(2**start):
            continue
        later = (k for k in range(math.ceil(start), _FARTHEST) if fit.at(2.0**k) > other.at(2.0**k))
        when = next(later, None)
        until = "as far as the fits reach" if when is None else f"until about T = 2^{when}"
        words.append(f"{kind} problems cost more {until}, by the fits")
    return words


def _shown(interval: Interval) -> str:
    estimate, low, high = interval
    return f"{estimate:.3f} [{low:.3f}, {high:.3f}]"
