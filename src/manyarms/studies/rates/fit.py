r"""Measured exponents: how fast regret grows with the horizon, with an interval.

The model, fitted by unweighted least squares to the logarithms of mean regrets, is

.. math:: \log R(T) = a + \theta \log T + b \log\log T, \qquad 0 \le b \le b_{\max},

with :math:`b_{\max}` the power of the logarithm in the policy's upper bound: 5/2 for MOSS++, 1 for
MOSS Oracle, and 1 for Quantile, whose bound states none. Over the horizons that can be played log
log T is almost a straight line in log T: a free b would trade off against θ without limit. Where
several factors c were played, R(T) is the largest of their mean regrets, which is too large by up
to their standard error. Mean regrets have intervals that allow for costly runs which were not seen.
The ends of an exponent are no such interval: they are the middle 95 % of refits, each on runs drawn
anew within every horizon and factor. They show how far the noise of these runs moves the fit; they
know nothing of misses that did not happen, nor of the model's error, and are somewhat narrow where
long runs are few. Kept within its limits, b makes θ too low where it is truly 0 (by 0.03 with 50
runs that vary by 30 %).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import Interval
from manyarms.errors import ParameterError
from manyarms.report.style import ALPHA, policy_title
from manyarms.report.text import Table, interval_text
from manyarms.simulation.results import Result
from manyarms.theory.rates import minimax_rate, moss_plus_plus_rate, quantile_rate

MODEL = (
    "Model: log R = a + θ log T + b log log T, least squares, b between 0 and the power of log T "
    "in the policy's bound (5/2 for MOSS++, else 1); R is the largest mean regret over the "
    "factors c. In brackets is the middle 95 % of 2000 refits on runs drawn anew: the noise of "
    "these runs, no interval that allows for misses which were not seen. The exponent is that of "
    "the kind of problem on which it is largest. Bias: lower-order terms bend the line at small "
    "T; the slope without the log log term counts (log T)^b as b / log T (0.08 b at T = 2^18); "
    "the larger of two estimates is a little too large; where the true b is 0, noise can only "
    "raise it and so lower θ; intervals know the noise of runs, not the model's error."
)

_STEADY = 0.15  # a share that changes by less than this part is called constant
_UNFOUND = 0.7  # a larger share is no sign of a best arm found
_FARTHEST = 200  # powers of two that a crossing is looked for

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ExponentFit:
    """The model fitted to one series."""

    exponent: Interval  # θ, with the log log term; the ends are those of refits
    without_log: Interval  # the slope without log log, likewise
    log_power: float  # b
    intercept: float  # a
    largest_log_power: float  # how large b may be
    horizons: tuple[int, ...]
    regret: tuple[float, ...]  # the worst mean at each horizon

    def at(self, horizon: float) -> float:
        """Return the fitted regret."""
        log = math.log(horizon)
        power = self.exponent.estimate * log + self.log_power * math.log(log)
        return math.exp(self.intercept + power)

    def log_power_at(self, exponent: float) -> float:
        """Return the b that fits best if θ is given; negative if the data grow more slowly."""
        logs = np.log(np.array(self.horizons, dtype=float))
        return (self.without_log.estimate - exponent) / float(np.polyfit(logs, np.log(logs), 1)[0])

    def local_slopes(self) -> list[float]:
        """Return the slopes between neighbouring horizons."""
        return list(np.diff(np.log(self.regret)) / np.diff(np.log(self.horizons)))


@dataclass(frozen=True)
class MeasuredExponent:
    """A policy at one hardness: the rate it is proven to have, and what was measured.

    Mappings are by kind of problem; pairs are of the first and the last horizon, for the factor
    that is worst at the last.
    """

    policy: str
    beta: float | None  # of MOSS++
    alpha: float
    fits: Mapping[str, ExponentFit]
    shares: Mapping[str, tuple[float, float]]  # regret over that of never finding the best arms
    missed: Mapping[str, tuple[float, float]]  # the share of runs that pulled none of them
    regrets: Mapping[str, tuple[Interval, ...]] = field(default_factory=dict)  # means fitted

    @property
    def kind(self) -> str:
        """The kind of problem on which regret grows fastest."""
        return max(self.fits, key=lambda kind: self.fits[kind].exponent.estimate)

    @property
    def fit(self) -> ExponentFit:
        """The fit there; its exponent is the measured one."""
        return self.fits[self.kind]

    @property
    def rate(self) -> float:
        """The proven rate."""
        return float(self.rate_at(self.alpha))

    def rate_at(self, alpha: Any) -> Any:
        """Return the policy's proven rate at another hardness, or at an array of them."""
        if self.beta is not None:
            return moss_plus_plus_rate(alpha, beta=self.beta)
        return quantile_rate(alpha) if self.policy == "quantile" else minimax_rate(alpha)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {
            "policy": self.policy,
            "alpha": self.alpha,
            "rate": self.rate,
            "exponent": list(self.fit.exponent),
            "kind": self.kind,
            "says": explain(self),
            "fits": {kind: asdict(fit) for kind, fit in self.fits.items()},
            "regret_in_units_of_horizon_times_gap": self.shares,
            "missed": self.missed,
            "mean_regrets": {kind: list(map(list, own)) for kind, own in self.regrets.items()},
        }


def fit_exponent(
    regrets: Mapping[int, Sequence[Array]], *, largest_log_power: float, draws: int = 2000
) -> ExponentFit:
    """Fit the exponent of regret in the horizon; the docstring of this module has the model.

    Parameters
    ----------
    regrets
        The final regrets of the runs, by horizon (three or more); one array for each factor.
    largest_log_power
        The largest b that is allowed.
    draws
        The number of refits that intervals are made from (default: 2000).

    Examples
    --------
    >>> runs = {2**k: [np.full(5, 3.0 * 2 ** (0.75 * k))] for k in (10, 12, 14, 16)}
    >>> round(fit_exponent(runs, largest_log_power=2.5).exponent.estimate, 6)
    0.75
    """
    if len(regrets) < 3:
        raise ParameterError(
            f"`regrets` must have at least 3 horizons for 3 parameters, got {len(regrets)}."
        )
    horizons = sorted(regrets)
    means = np.array([max(float(r.mean()) for r in regrets[t]) for t in horizons])
    if means.min() <= 0.0:
        raise ParameterError(f"`regrets` must have positive means, got {means.min():g}.")
    rng = np.random.default_rng(0)
    drawn = [np.max([_redraw(r, draws, rng) for r in regrets[t]], axis=0) for t in horizons]
    log_horizons = np.log(np.array(horizons, dtype=float))
    one = _regress(log_horizons, np.log(means[:, None]), largest_log_power)
    many = _regress(log_horizons, np.log(np.stack(drawn)), largest_log_power)
    ends = np.quantile(many[:2], [0.025, 0.975], axis=1).T.tolist()
    estimates = one[:, 0].tolist()
    return ExponentFit(
        exponent=Interval(estimates[0], *ends[0]),
        without_log=Interval(estimates[1], *ends[1]),
        log_power=estimates[2],
        intercept=estimates[3],
        largest_log_power=largest_log_power,
        horizons=tuple(horizons),
        regret=tuple(means.tolist()),
    )


def _regress(log_horizons: Array, log_regrets: Array, largest: float) -> Array:
    """Fit every column of `log_regrets`: return θ, the slope without log log, b and a."""
    logs = np.log(log_horizons)
    line = np.stack([np.ones_like(log_horizons), log_horizons])
    (start, plain), (log_start, log_slope) = (
        np.linalg.lstsq(line.T, y, rcond=None)[0] for y in (log_regrets, logs)
    )
    full = np.linalg.lstsq(np.vstack([line, logs]).T, log_regrets, rcond=None)[0]
    power = np.clip(full[2], 0.0, largest)
    return np.stack([plain - power * log_slope, plain, power, start - power * log_start])


def _redraw(runs: Array, draws: int, rng: np.random.Generator) -> Array:
    counts = rng.multinomial(len(runs), np.full(len(runs), 1 / len(runs)), size=draws)
    return np.asarray(counts @ runs / len(runs))


def measured_exponents(games: Iterable[Result]) -> list[MeasuredExponent]:
    """Fit every policy at every hardness, on each kind of problem that it played."""
    series: dict[tuple[str, float], dict[str, list[Result]]] = {}
    for game in games:
        kinds = series.setdefault((game.policies[0], game.parameters["alpha"]), {})
        kinds.setdefault(game.parameters["kind"], []).append(game)
    return [_measure(policy, alpha, series[policy, alpha]) for policy, alpha in sorted(series)]


def _measure(policy: str, alpha: float, kinds: Mapping[str, list[Result]]) -> MeasuredExponent:
    beta = next(iter(kinds.values()))[0].policy_parameters[0].get("beta")
    fits, shares, missed, regrets = {}, {}, {}, {}
    for kind, games in kinds.items():
        by_horizon: dict[int, list[Result]] = {}
        for game in sorted(games, key=lambda game: game.horizon):
            by_horizon.setdefault(game.horizon, []).append(game)
        runs = {t: [game.regret[0, :, -1] for game in own] for t, own in by_horizon.items()}
        fits[kind] = fit_exponent(runs, largest_log_power=1.0 if beta is None else 2.5)
        regrets[kind] = tuple(
            max((game.interval(policy) for game in own), key=lambda found: found.estimate)
            for own in by_horizon.values()
        )
        last = max(games, key=lambda game: (game.horizon, game.regret.mean()))
        same = (game for game in games if game.parameters["factor"] == last.parameters["factor"])
        first = min(same, key=lambda game: game.horizon)
        shares[kind], missed[kind] = zip(_ends(first), _ends(last), strict=True)
    return MeasuredExponent(policy, beta, alpha, fits, shares, missed, regrets)


def _ends(game: Result) -> tuple[float, float]:
    settled: float = game.parameters["settled"]
    return float(game.regret.mean()) / settled, float((game.best_pulls == 0).mean())


def table_of(measured: Sequence[MeasuredExponent]) -> Table:
    """Return a row for each policy and hardness."""
    rows = []
    for one in measured:
        shown = {kind: interval_text(fit.exponent, 3) for kind, fit in one.fits.items()}
        others = ", ".join(f"{kind}: {text}" for kind, text in shown.items() if kind != one.kind)
        about = (policy_title(one.policy), f"{one.alpha:g}", f"{one.rate:.3g}", shown[one.kind])
        plain = f"{one.fit.log_power:.2g}", interval_text(one.fit.without_log, 3)
        rows.append((*about, one.kind, *plain, others or "none"))
    slopes = ("θ", "measured", "on", "b", "slope without log log", "other problems")
    return Table(("policy", ALPHA, *slopes), rows)


def explain(one: MeasuredExponent) -> str:
    """Say how the measured exponent compares with the rate, and what in the numbers explains it."""
    fit, (estimate, low, high) = one.fit, one.fit.exponent
    if low <= one.rate <= high:
        words = [f"agrees with θ = {one.rate:.3g} within the noise of refits"]
    else:
        side = "below" if one.rate > high else "above"
        words = [f"{abs(estimate - one.rate):.3f} {side} θ = {one.rate:.3g}"]
        if estimate < one.rate < fit.without_log.estimate:
            words.append(f"the slope without log log, {fit.without_log.estimate:.3f}, is above it")
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
        below = one.rate - one.fit.without_log.estimate
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
    """Say up to which horizon another kind of problem, of smaller exponent, costs more."""
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
