r"""Measured exponents: how fast regret grows with the horizon, with bootstrap intervals.

The model, fitted by unweighted least squares to the logarithms of mean regrets, is

.. math:: \log R(T) = a + \theta \log T + b \log\log T, \qquad 0 \le b \le b_{\max},

with :math:`b_{\max}` the power of the logarithm in the policy's upper bound: 5/2 for MOSS++, 1 for
MOSS Oracle, and 1 for Quantile, whose bound states none. Over the horizons that can be played, log
log T is almost linear in log T, so without these limits b and θ could not be separated. If several
factors c were played, R(T) is the largest of their mean regrets, which is too large by up to their
standard error.

The interval of an exponent is not a confidence interval. It is the middle 95 % of bootstrap refits,
each on runs resampled within every horizon and factor, and shows how far the noise of these runs
moves the fit. It does not allow for misses that did not happen or for the model's error, and is
somewhat narrow if long runs are few. If b is truly 0, its limits make θ too low (by 0.03 with 50
runs that vary by 30 %).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import Interval
from manyarms.core.tabular import TextTable
from manyarms.errors import ParameterError
from manyarms.report.style import ALPHA, policy_title
from manyarms.report.text import interval_text
from manyarms.simulation.results import Result
from manyarms.theory.rates import minimax_rate, moss_plus_plus_rate, quantile_rate

MODEL = (
    "Model: log R = a + θ log T + b log log T, least squares, b between 0 and the power of log T "
    "in the policy's bound (5/2 for MOSS++, else 1); R is the largest mean regret over the "
    "factors c. In brackets is the middle 95 % of 2000 refits on resampled runs: the noise of "
    "these runs, not an interval that allows for misses that were not seen. The exponent is that "
    "of the kind of problem on which it is largest. Bias: lower-order terms bend the line at small "
    "T; the slope without the log log term counts (log T)^b as b / log T (0.08 b at T = 2^18); "
    "the larger of two estimates is a little too large; where the true b is 0, noise can only "
    "raise it and so lower θ; intervals reflect the noise of runs, not the model's error."
)

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


@dataclass(frozen=True)
class MeasuredExponent:
    """The proven rate and the measured exponents of a policy at one hardness."""

    policy: str
    beta: float | None  # of MOSS++
    alpha: float
    fits: Mapping[str, ExponentFit]  # by kind of problem

    @property
    def kind(self) -> str:
        """The kind of problem on which regret grows fastest."""
        return max(self.fits, key=lambda kind: self.fits[kind].exponent.estimate)

    @property
    def fit(self) -> ExponentFit:
        """The fit on that kind of problem; its exponent is the measured one."""
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


def fit_exponent(
    regrets: Mapping[int, Sequence[Array]], *, largest_log_power: float, draws: int = 2000
) -> ExponentFit:
    """Fit the exponent of regret in the horizon, with the model of this module's docstring.

    Parameters
    ----------
    regrets
        The final regrets of the runs, by horizon (three or more); one array for each factor.
    largest_log_power
        The largest b that is allowed.
    draws
        The number of bootstrap refits (default: 2000).

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


def measured_exponents(cells: Iterable[Result]) -> list[MeasuredExponent]:
    """Fit every policy at every hardness, for each kind of problem that it played."""
    series: dict[tuple[str, float], dict[str, list[Result]]] = {}
    for one in cells:
        kinds = series.setdefault((one.policies[0], one.parameters["alpha"]), {})
        kinds.setdefault(one.parameters["kind"], []).append(one)
    return [_measure(policy, alpha, series[policy, alpha]) for policy, alpha in sorted(series)]


def _measure(policy: str, alpha: float, kinds: Mapping[str, list[Result]]) -> MeasuredExponent:
    beta = next(iter(kinds.values()))[0].policy_parameters[0].get("beta")
    fits = {}
    for kind, cells in kinds.items():
        runs: dict[int, list[Array]] = {}
        for one in sorted(cells, key=lambda one: one.horizon):
            runs.setdefault(one.horizon, []).append(one.regret[0, :, -1])
        fits[kind] = fit_exponent(runs, largest_log_power=1.0 if beta is None else 2.5)
    return MeasuredExponent(policy, beta, alpha, fits)


def table_of(measured: Sequence[MeasuredExponent]) -> TextTable:
    """Return a row for each policy and hardness."""
    rows = []
    for one in measured:
        shown = {kind: interval_text(fit.exponent, 3) for kind, fit in one.fits.items()}
        others = ", ".join(f"{kind}: {text}" for kind, text in shown.items() if kind != one.kind)
        about = (policy_title(one.policy), f"{one.alpha:g}", f"{one.rate:.3g}", shown[one.kind])
        plain = f"{one.fit.log_power:.2g}", interval_text(one.fit.without_log, 3)
        rows.append((*about, one.kind, *plain, others or "none"))
    slopes = ("θ", "measured", "on", "b", "slope without log log", "other problems")
    return TextTable(("policy", ALPHA, *slopes), rows)
