r"""Measured exponents: how fast regret grows with the horizon, with an interval.

The model, fitted by unweighted least squares to the logarithms of mean regrets, is

.. math:: \log R(T) = a + \theta \log T + b \log\log T, \qquad 0 \le b \le b_{\max},

with :math:`b_{\max}` the power of the logarithm in the policy's upper bound: 5/2 for MOSS++, 1
for MOSS Oracle, and 1 for Quantile, for want of a stated one. Over the horizons that can be
played log log T is almost a straight line in log T, so that a free b would trade off against θ
without limit; the bounds say what powers make sense. Where several factors c were played, R(T)
is the largest of their mean regrets. Intervals are the middle 95 % of 2000 refits,
each on runs drawn anew within every horizon and factor.

Its bias: (1) regret is a sum of terms, and the smaller ones bend the line at small T, which no
log log term repairs: a rate outside the interval may mean that the horizons are too short;
(2) the largest of several noisy means is too large by up to their standard error; (3) the slope
without the log log term counts logarithms as powers of T: (log T)^b adds b / log T to it, 0.08 b
at T = 2^18; (4) the intervals know the noise of the runs, not the error of the model, and are
somewhat narrow where few long runs are drawn anew; (5) b is kept within its limits: where the true
one is 0, noise can only raise it, and θ comes out too low (by 0.03 with 50 runs that vary by 30 %),
and too high where it is at the upper one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import Interval
from manyarms.errors import ParameterError
from manyarms.theory.rates import minimax_rate, moss_plus_plus_rate, quantile_rate

__all__ = ["ExponentFit", "MeasuredExponent", "Measurement", "fit_exponent", "measured_exponents"]

Regrets = NDArray[np.float64]

_DRAWS = 2000
_LOG_POWER = {"moss++": 2.5, "moss-oracle": 1.0, "quantile": 1.0}


class Measurement(NamedTuple):
    """The final regrets of one game, and what they belong to.

    `settled` is T times the gap between the best mean and the next, and `missed` the share of
    runs that pulled no best arm.
    """

    policy: str
    alpha: float
    kind: str
    factor: float
    horizon: int
    settled: float
    regret: Regrets
    missed: float


@dataclass(frozen=True)
class ExponentFit:
    """The model fitted to one series.

    Attributes
    ----------
    exponent, plain
        θ with the log log term, and the slope without it.
    log_power, intercept, largest_log_power
        b, a, and how large b may be.
    horizons, regret, errors
        T, the worst mean regret at each, and its standard error.
    """

    exponent: Interval
    plain: Interval
    log_power: float
    intercept: float
    largest_log_power: float
    horizons: tuple[int, ...]
    regret: tuple[float, ...]
    errors: tuple[float, ...]

    def at(self, horizon: float) -> float:
        """Return the fitted regret."""
        log = math.log(horizon)
        power = self.exponent.estimate * log + self.log_power * math.log(log)
        return math.exp(self.intercept + power)

    def log_power_at(self, exponent: float) -> float:
        """Return the b that fits best if θ is given; negative if the data grow more slowly."""
        logs = np.log(np.array(self.horizons, dtype=float))
        return (self.plain.estimate - exponent) / float(np.polyfit(logs, np.log(logs), 1)[0])

    def local_slopes(self) -> list[float]:
        """Return the slopes between neighbouring horizons."""
        return list(np.diff(np.log(self.regret)) / np.diff(np.log(self.horizons)))


@dataclass(frozen=True)
class MeasuredExponent:
    """A policy at one hardness: the rate it is proven to have, and what was measured.

    Attributes
    ----------
    fits
        By kind of problem.
    shares, missed
        By kind: at the first and the last horizon, regret as a share of `settled`, and the share
        of runs that pulled no best arm; both of the factor that is worst at the last.
    """

    policy: str
    alpha: float
    rate: float
    fits: Mapping[str, ExponentFit]
    shares: Mapping[str, tuple[float, float]]
    missed: Mapping[str, tuple[float, float]]

    @property
    def kind(self) -> str:
        """The kind of problem on which regret grows fastest."""
        return max(self.fits, key=lambda kind: self.fits[kind].exponent.estimate)

    @property
    def exponent(self) -> Interval:
        """The exponent there: the measured one."""
        return self.fits[self.kind].exponent


def fit_exponent(
    regrets: Mapping[int, Sequence[Regrets]], *, largest_log_power: float
) -> ExponentFit:
    """Fit the exponent of regret in the horizon; the module's docstring has the model.

    Parameters
    ----------
    regrets
        By horizon, at least three: the final regrets of the runs, one array for each factor.
    largest_log_power
        How large b may be.

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
    worst = [max(regrets[t], key=lambda r: float(r.mean())) for t in horizons]
    rng = np.random.default_rng(0)
    drawn = np.stack([np.max([_redraw(r, rng) for r in regrets[t]], axis=0) for t in horizons])
    log_horizons = np.log(np.array(horizons, dtype=float))
    one = _regress(log_horizons, np.log(means[:, None]), largest_log_power)
    many = _regress(log_horizons, np.log(drawn), largest_log_power)
    return ExponentFit(
        exponent=_interval(one.exponent, many.exponent),
        plain=_interval(one.plain, many.plain),
        log_power=float(one.log_power[0]),
        intercept=float(one.intercept[0]),
        largest_log_power=largest_log_power,
        horizons=tuple(horizons),
        regret=tuple(means.tolist()),
        errors=tuple(float(r.std(ddof=1)) / math.sqrt(len(r)) for r in worst),
    )


class _Regression(NamedTuple):
    exponent: Regrets
    plain: Regrets
    log_power: Regrets
    intercept: Regrets


def _regress(log_horizons: Regrets, log_regrets: Regrets, largest: float) -> _Regression:
    """Fit every column of `log_regrets`."""
    logs = np.log(log_horizons)
    line = np.stack([np.ones_like(log_horizons), log_horizons])
    (start, plain), (log_start, log_slope) = (
        np.linalg.lstsq(line.T, y, rcond=None)[0] for y in (log_regrets, logs)
    )
    full = np.linalg.lstsq(np.vstack([line, logs]).T, log_regrets, rcond=None)[0]
    power = np.clip(full[2], 0.0, largest)
    return _Regression(plain - power * log_slope, plain, power, start - power * log_start)


def _redraw(runs: Regrets, rng: np.random.Generator) -> Regrets:
    counts = rng.multinomial(len(runs), np.full(len(runs), 1 / len(runs)), size=_DRAWS)
    return np.asarray(counts @ runs / len(runs))


def _interval(estimate: Regrets, drawn: Regrets) -> Interval:
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(float(estimate[0]), float(low), float(high))


def measured_exponents(measurements: Iterable[Measurement]) -> list[MeasuredExponent]:
    """Fit every policy at every hardness, on each kind of problem it played."""
    series: dict[tuple[str, float], dict[str, list[Measurement]]] = {}
    for one in measurements:
        series.setdefault((one.policy, one.alpha), {}).setdefault(one.kind, []).append(one)
    return [_measure(policy, alpha, kinds) for (policy, alpha), kinds in series.items()]


def _measure(
    policy: str, alpha: float, kinds: Mapping[str, Sequence[Measurement]]
) -> MeasuredExponent:
    fits, shares, missed = {}, {}, {}
    for kind, games in kinds.items():
        by_horizon: dict[int, list[Measurement]] = {}
        for game in games:
            by_horizon.setdefault(game.horizon, []).append(game)
        fits[kind] = fit_exponent(
            {t: [game.regret for game in same] for t, same in by_horizon.items()},
            largest_log_power=_LOG_POWER[policy.partition("(")[0]],
        )
        end = max(by_horizon[max(by_horizon)], key=lambda game: float(game.regret.mean()))
        same = (game for game in games if game.factor == end.factor)
        start = min(same, key=lambda game: game.horizon)
        first, last = (float(game.regret.mean()) / game.settled for game in (start, end))
        shares[kind], missed[kind] = (first, last), (start.missed, end.missed)
    return MeasuredExponent(policy, alpha, _rate(policy, alpha), fits, shares, missed)


def _rate(policy: str, alpha: float) -> float:
    name, _, parameters = policy.partition("(")
    if name == "moss++":
        return moss_plus_plus_rate(alpha, beta=float(parameters.removeprefix("beta=").rstrip(")")))
    return quantile_rate(alpha) if name == "quantile" else minimax_rate(alpha)
