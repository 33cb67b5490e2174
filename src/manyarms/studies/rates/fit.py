r"""Measured exponents: how fast regret grows with the horizon, with an interval.

The model, fitted by unweighted least squares to the logarithms of mean regrets, is

.. math:: \log R(T) = a + \theta \log T + b \log\log T, \qquad 0 \le b \le b_{\max},

with :math:`b_{\max}` the power of the logarithm in the policy's upper bound: 5/2 for MOSS++, 1
for MOSS Oracle, and 1 for Quantile, for want of a stated one. Over the horizons that can be
played log log T is almost a straight line in log T: a free b would trade off against θ without
limit. Where several factors c were played, R(T) is the largest of their mean regrets, which is
too large by up to their standard error. Intervals are the middle 95 % of refits, each on runs
drawn anew within every horizon and factor; they are somewhat narrow where long runs are few. Kept
within its limits, b makes θ too low where it is truly 0 (by 0.03 with 50 runs that vary by 30 %).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import Interval
from manyarms.errors import ParameterError
from manyarms.lab.results import Result
from manyarms.theory.rates import minimax_rate, moss_plus_plus_rate, quantile_rate

__all__ = ["ExponentFit", "MeasuredExponent", "fit_exponent", "measured_exponents"]

Array = NDArray[np.float64]


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
    policy, beta, alpha
        The policy's label, the parameter of MOSS++ (None for others), and the hardness.
    fits
        By kind of problem.
    shares, missed
        By kind: at the first and the last horizon, regret as a share of that of never finding
        the best arms, and the share of runs that pulled none of them; both of the factor that is
        worst at the last.
    """

    policy: str
    beta: float | None
    alpha: float
    fits: Mapping[str, ExponentFit]
    shares: Mapping[str, tuple[float, float]]
    missed: Mapping[str, tuple[float, float]]

    @property
    def kind(self) -> str:
        """The kind of problem on which regret grows fastest."""
        return max(self.fits, key=lambda kind: self.fits[kind].exponent.estimate)

    @property
    def fit(self) -> ExponentFit:
        """The fit there."""
        return self.fits[self.kind]

    @property
    def exponent(self) -> Interval:
        """The exponent there: the measured one."""
        return self.fit.exponent

    @property
    def rate(self) -> float:
        """The proven rate."""
        return float(self.rate_at(self.alpha))

    def rate_at(self, alpha: Any) -> Any:
        """Return the policy's proven rate at another hardness, or at an array of them."""
        if self.beta is not None:
            return moss_plus_plus_rate(alpha, beta=self.beta)
        return quantile_rate(alpha) if self.policy == "quantile" else minimax_rate(alpha)


def fit_exponent(
    regrets: Mapping[int, Sequence[Array]], *, largest_log_power: float, draws: int = 2000
) -> ExponentFit:
    """Fit the exponent of regret in the horizon; the docstring of this module has the model.

    Parameters
    ----------
    regrets
        By horizon, at least three: the final regrets of the runs, one array for each factor.
    largest_log_power
        How large b may be.
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
    worst = [max(regrets[t], key=lambda r: float(r.mean())) for t in horizons]
    means = np.array([float(r.mean()) for r in worst])
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
        plain=Interval(estimates[1], *ends[1]),
        log_power=estimates[2],
        intercept=estimates[3],
        largest_log_power=largest_log_power,
        horizons=tuple(horizons),
        regret=tuple(means.tolist()),
        errors=tuple(float(r.std(ddof=1)) / math.sqrt(len(r)) for r in worst),
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
    """Fit every policy at every hardness, on each kind of problem it played; in this order."""
    series: dict[tuple[str, float], dict[str, list[Result]]] = {}
    for game in games:
        kinds = series.setdefault((game.policies[0], game.parameters["alpha"]), {})
        kinds.setdefault(game.parameters["kind"], []).append(game)
    return [_measure(policy, alpha, series[policy, alpha]) for policy, alpha in sorted(series)]


def _measure(policy: str, alpha: float, kinds: Mapping[str, list[Result]]) -> MeasuredExponent:
    beta = next(iter(kinds.values()))[0].policy_parameters[0].get("beta")
    fits, shares, missed = {}, {}, {}
    for kind, games in kinds.items():
        by_horizon: dict[int, list[Array]] = {}
        for game in games:
            by_horizon.setdefault(game.horizon, []).append(game.regret[0, :, -1])
        fits[kind] = fit_exponent(by_horizon, largest_log_power=1.0 if beta is None else 2.5)
        last = max(games, key=lambda game: (game.horizon, game.regret.mean()))
        same = (game for game in games if game.parameters["factor"] == last.parameters["factor"])
        first = min(same, key=lambda game: game.horizon)
        shares[kind], missed[kind] = zip(_ends(first), _ends(last), strict=True)
    return MeasuredExponent(policy, beta, alpha, fits, shares, missed)


def _ends(game: Result) -> tuple[float, float]:
    settled: float = game.parameters["settled"]
    return float(game.regret.mean()) / settled, float((game.best_pulls == 0).mean())
