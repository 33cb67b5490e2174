"""Classify a rate as on the Pareto frontier, dominated, or impossible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_number
from manyarms.errors import ParameterError
from manyarms.theory.arrays import check_numbers
from manyarms.theory.rates import frontier_rate, minimax_rate, moss_plus_plus_rate

Values: TypeAlias = NDArray[np.float64]
Rate: TypeAlias = Callable[[Values], Values] | tuple[Any, Any]  # a function, or (alphas, rates)

_GRID = 10_000  # steps of the grid on which functions are evaluated


class Span(NamedTuple):
    """A closed interval."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.6g}" if self.low == self.high else f"[{self.low:.6g}, {self.high:.6g}]"


@dataclass(frozen=True)
class ParetoPosition:
    """The result of `pareto_position`; `print` shows it as a sentence.

    Attributes
    ----------
    verdict
        "on the frontier", "dominated", or "impossible".
    betas
        If dominated, the values of beta with which MOSS++ is never worse, and better at some
        hardness; if on the frontier, the beta that has this rate; else None.
    alphas
        If dominated, the hardnesses at which some of these `betas` are strictly better; if
        impossible, those at which the rate is below the frontier; else empty.
    margin
        The largest difference to the better rates of MOSS++, or to the frontier.
    tolerance
        Rates that differ by no more are treated as equal.

    Examples
    --------
    >>> from manyarms.theory import pareto_position, quantile_rate
    >>> position = pareto_position(quantile_rate)
    >>> position.verdict, str(position.betas)
    ('dominated', '[0.5592, 0.674]')
    """

    verdict: Literal["on the frontier", "dominated", "impossible"]
    betas: Span | None
    alphas: tuple[Span, ...]
    margin: float
    tolerance: float
    _grid: Values = field(repr=False, compare=False)
    _rates: Values = field(repr=False, compare=False)

    def better_where(self, beta: float) -> tuple[Span, ...]:
        """Return the hardnesses at which MOSS++ with this `beta` is strictly better.

        >>> from manyarms.theory import pareto_position, subset_rate
        >>> position = pareto_position(lambda alpha: subset_rate(alpha, exponent=0.5))
        >>> position.better_where(0.75)
        (Span(low=0.5001, high=0.7499),)
        """
        ours = moss_plus_plus_rate(self._grid, beta=beta)
        return _spans(self._grid, self._rates - ours > self.tolerance)

    def __str__(self) -> str:
        places = " and ".join(map(str, self.alphas))
        if self.verdict == "on the frontier":
            return f"on the frontier: the rate of MOSS++ with beta = {self.betas}"
        if self.verdict == "impossible":
            # a rate below the minimax rate is impossible even if alpha or mu* is known
            attained = (self._rates >= minimax_rate(self._grid) - self.tolerance).all()
            unless = " unless alpha or μ* is known" if attained else ""
            return (
                f"impossible{unless}: below the frontier for hardness in {places}, by up to "
                f"{self.margin:.4g}"
            )
        assert self.betas is not None
        low, high = self.betas
        # only for a rate of 1 everywhere do betas reach 1, and with beta = 1 MOSS++ is no better
        below = " (below 1)" if high == 1.0 else ""
        sign = "=" if low == high else "in"
        return (
            f"dominated by MOSS++ with beta {sign} {self.betas}{below}, which is better for "
            f"hardness in {places}, by up to {self.margin:.4g}"
        )


def pareto_position(rate: Rate, *, tolerance: float = 1e-9) -> ParetoPosition:
    r"""Return whether a rate is on the Pareto frontier, and if not, which beta beats it and where.

    Parameters
    ----------
    rate
        A function of an array of hardnesses, evaluated in steps of 1/10000; or a pair of arrays,
        hardnesses from 0 on and the rates there.
    tolerance
        Rates that differ by no more are treated as equal (default: 1e-9).

    Notes
    -----
    The rate of a policy that knows neither α nor μ* is at least `frontier_rate`. MOSS++ with
    :math:`\beta = \theta(0)` attains this bound, so a rate above it anywhere is dominated. The
    values of beta that dominate it form one interval. :math:`\theta_\beta(\alpha) \le
    \theta(\alpha)` holds for every beta where :math:`\theta(\alpha) = 1`; elsewhere it means

    .. math:: 1 + \alpha - \theta(\alpha) \le \beta \le \theta(\alpha).

    The rate is not evaluated between the points of the grid: a kink or jump there may move the ends
    of the intervals by up to one step.

    Examples
    --------
    >>> from manyarms.theory import minimax_rate, quantile_rate
    >>> print(pareto_position(quantile_rate))
    dominated by MOSS++ with beta in [0.5592, 0.674], which is better for hardness in
    [0, 0.6739], by up to 0.3269
    >>> print(pareto_position(minimax_rate))
    impossible unless alpha or μ* is known: below the frontier for hardness in
    [0.0001, 0.9999], by up to 0.25
    """
    tolerance = check_number("tolerance", tolerance, at_least=0.0, at_most=0.1)
    alphas, rates = rate_on_grid(rate)
    start = float(rates[0])
    if start < 0.5 - tolerance:  # impossible even at hardness 0
        shortfall = minimax_rate(alphas) - rates
    else:
        shortfall = frontier_rate(alphas, max(start, 0.5)) - rates
    looked_at = (tolerance, alphas, rates)
    if shortfall.max() > tolerance:
        places = _spans(alphas, shortfall > tolerance)
        return ParetoPosition("impossible", None, places, float(shortfall.max()), *looked_at)
    learning = rates < 1.0 - tolerance
    if learning.any() and shortfall.min() >= -tolerance:
        beta = max(start, 0.5)
        return ParetoPosition("on the frontier", Span(beta, beta), (), 0.0, *looked_at)
    betas = _dominating(alphas, rates, learning)
    # as beta grows, the rate of MOSS++ falls to the minimax rate and then rises
    ends = [moss_plus_plus_rate(alphas, beta=beta) for beta in betas]
    known = minimax_rate(alphas)
    gain = rates - np.where((betas.low <= known) & (known <= betas.high), known, np.minimum(*ends))
    places = _spans(alphas, gain > tolerance)
    return ParetoPosition("dominated", betas, places, float(gain.max()), *looked_at)


def _dominating(alphas: Values, rates: Values, learning: NDArray[np.bool_]) -> Span:
    """Return the values of beta with which MOSS++ is never worse."""
    low, high = 0.5, 1.0
    if learning.any():
        low = max(low, float((1.0 + alphas - rates)[learning].max()))
        # within the tolerance, a rate may be below 1/2 and the ends may cross
        high = max(0.5, float(rates[learning].min()))
    return Span(min(low, high), high)


def rate_on_grid(rate: Rate) -> tuple[Values, Values]:
    """Return checked hardnesses and rates; a function is evaluated on a grid.

    >>> alphas, rates = rate_on_grid(([0.0, 0.5, 1.0], [0.5, 1.0, 1.0]))
    >>> float(rates[1])
    1.0
    """
    if callable(rate):
        # by division, so that 0.3 on the grid is the float 0.3
        alphas: Any = np.arange(_GRID + 1) / _GRID
        rates: Any = rate(alphas)
    else:
        if isinstance(rate, str) or not hasattr(rate, "__len__") or len(rate) != 2:
            raise ParameterError(
                f"`rate` must be a function of hardness, or a pair of arrays (hardnesses, rates), "
                f"got {rate!r}."
            )
        alphas, rates = rate
    alphas = check_numbers("alphas", alphas, at_least=0.0, at_most=1.0)
    fix = "At rate 1 regret grows as fast as T."
    rates = check_numbers("rate", rates, at_least=0.0, at_most=1.0, fix=fix)
    if alphas.ndim != 1 or alphas.shape != rates.shape:
        raise ParameterError(
            f"`rate` must give one rate for each hardness, got shapes {alphas.shape} and "
            f"{rates.shape}."
        )
    if len(alphas) == 0 or alphas[0] != 0.0 or (np.diff(alphas) <= 0.0).any():
        raise ParameterError(
            f"`alphas` must increase from 0, got {alphas[:5].tolist()} at the beginning. "
            f"The frontier depends on the rate at hardness 0."
        )
    return alphas, rates


def _spans(alphas: Values, chosen: NDArray[np.bool_]) -> tuple[Span, ...]:
    """Return the runs of chosen points as intervals."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    return tuple(
        Span(float(alphas[first]), float(alphas[end - 1]))
        for first, end in edges.reshape(-1, 2).tolist()
    )
