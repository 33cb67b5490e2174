"""Measure the exponents of Figure 1 on problems of constant hardness and growing horizon."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manyarms.core.checks import check_int
from manyarms.errors import ParameterError
from manyarms.instances import Gaussian, Instance, grouped, planted
from manyarms.instances.means import lower_bound_instance
from manyarms.policies import MOSSOracle, MOSSPlusPlus, Quantile
from manyarms.policies.moss_oracle import subset_size
from manyarms.protocol import Policy
from manyarms.report import save_figure
from manyarms.report.drawing import Axes, Figure, Line2D, MultipleLocator, drawing
from manyarms.report.style import (
    ALPHA,
    HARDNESS,
    MINIMAX_LINE,
    QUANTILE_LINE,
    WIDE,
    LineStyle,
    policy_title,
    shades,
)
from manyarms.report.text import write_text
from manyarms.simulation import Player, ResultsFolder, Sweep, cell
from manyarms.theory.hardness import best_arms
from manyarms.theory.lower_bound_family import LowerBoundFamily
from paper.exponents import MODEL, MeasuredExponent, measured_exponents, table_of

ALPHAS = (0.1, 0.3, 0.5)
BETAS = (0.5, 0.6, 0.75)
N_ARMS = 2**40  # far more than any set, so rounding the number of best arms has no effect

# log2 T, such that beta log2 T is an integer: otherwise the rounding of p bends the line
PLANTED = {0.5: range(10, 23, 2), 0.6: range(10, 26, 5), 0.75: range(12, 25, 4)}
# shorter, because near ties make these runs slow: a pull costs ten times as much for a large beta
LOWER_BOUND = {0.5: range(10, 23, 2), 0.6: range(10, 21, 5), 0.75: range(8, 21, 4)}
SUBSET = range(10, 23, 2)
LONGEST = 25

REPLICATIONS = 300
GAPS = (1.0, 2.0, 4.0)  # c, for the gap c sqrt(K/T); the worst is near 2
BUDGETS = (1.0, 4.0)  # multiples of the smallest c that the construction allows
PLANTED_GAP = 0.4  # from the best mean 0.9 to the next, 0.5
FULL_RUNS = 2**14  # the largest horizon with all replications
FEWEST = 25  # at long horizons, a 25th of them
APART = 1 << 20  # offset of each cell's replications, so that cells share no random numbers

_ALPHAS: NDArray[np.float64] = np.linspace(0.0, 1.0, 1001)
_MARKERS = ("s", "o", "^", "D", "v", "P")
_APART = 0.016  # of the hardness axis, between points of one hardness
_LEGEND = 0.7  # inches
COLUMNS = ("alpha", "kind", "factor", "horizon", "settled")
Columns = tuple[float, str, float, int, float]
Setting = tuple[Policy, Instance, Columns]


def sweep(
    replications: int,
    seed: int,
    *,
    alphas: Sequence[float] = ALPHAS,
    betas: Sequence[float] = BETAS,
    longest: int = LONGEST,
) -> Sweep:
    """Return the sweep: MOSS++ for each beta, MOSS Oracle and Quantile, at each hardness.

    Parameters
    ----------
    replications, seed
        The number of replications at short horizons (longer: `runs_at`), and the seed.
    alphas, betas, longest
        Hardnesses, parameters of MOSS++, and log2 of the longest horizon.

    Notes
    -----
    A cell's parameters are its number, the hardness alpha, the kind of problem ("planted",
    "shrinking gap" or "lower bound"), the factor c that scales the gap or the budget, the horizon
    and `settled`: T times the gap between the best mean and the next, which is the regret of
    never finding the best.

    With a fixed gap, regret is instance-dependent, and a subset policy's slope is not its rate.
    So MOSS Oracle and Quantile play gaps that shrink as c sqrt(K/T), for several c, where K is
    the size of their set. Quantile also plays planted problems, because on hard ones it loses by
    missing the best arms, and that costs most when the gap is wide. MOSS++ plays planted
    problems, which show the cost T^beta of its first iterations, and the lower bound's problems
    with alpha' = 0 and B = c T^beta, which show T^(1 + alpha - beta). It plays the latter only if
    that exponent is at least beta, since otherwise it cannot be the worse one.
    """
    check_int("replications", replications, at_least=1, at_most=APART // 4)
    cells = []
    for number, (policy, instance, values) in enumerate(_settings(alphas, betas, longest)):
        _, kind, _, horizon, _ = values
        beta = policy.beta if isinstance(policy, MOSSPlusPlus) else None
        label = policy.name if beta is None else f"{policy.name}(beta={beta:g})"
        runs = runs_at(horizon, replications, kind=kind)
        cells.append(
            cell(
                [Player(policy, label, runs, {"beta": beta})],
                instance,
                horizon=horizon,
                checkpoints=1,
                first_replication=APART * number,
                parameters={"number": number, **dict(zip(COLUMNS, values, strict=True))},
            )
        )
    return Sweep("rates", tuple(cells), seed)


def runs_at(horizon: int, replications: int, *, kind: str) -> int:
    """Return the number of replications at this horizon.

    Up to T = 2^14 it is `replications`. At longer horizons the number of pulls stays constant,
    but there are at least a 25th of the replications, and at least 2. Planted problems start from
    four times as many: their regret varies much, since it depends on whether a best arm was met.

    >>> [runs_at(2**k, 400, kind="planted") for k in (10, 16, 18, 22)]
    [1600, 400, 100, 16]
    """
    most = 4 * replications if kind == "planted" else replications
    return max(2, -(-replications // FEWEST), min(most, most * FULL_RUNS // horizon))


def _settings(alphas: Iterable[float], betas: Sequence[float], longest: int) -> Iterator[Setting]:
    def horizons(powers: Iterable[int]) -> list[int]:
        return [2**k for k in powers if k <= longest]

    subset = horizons(SUBSET)
    for alpha in alphas:
        for beta in betas:
            policy = MOSSPlusPlus(beta=beta)
            yield from _planted(policy, alpha, horizons(PLANTED[beta]))
            if 1 + alpha - beta >= beta:
                yield from _lower_bound(policy, alpha, horizons(LOWER_BOUND[beta]))
        sizes = {t: float(subset_size(t, alpha, 2.0, N_ARMS)) for t in subset}
        yield from _shrinking(MOSSOracle(alpha=alpha), alpha, sizes)
        sizes = {t: math.pow(t, Quantile().exponent) for t in subset}
        yield from _shrinking(Quantile(), alpha, sizes)
        yield from _planted(Quantile(), alpha, subset)


def _planted(policy: Policy, alpha: float, horizons: Iterable[int]) -> Iterator[Setting]:
    """Yield the paper's planted means, which do not change with the horizon."""
    for t in horizons:
        instance = planted(n=N_ARMS, alpha=alpha, horizon=t)
        yield policy, instance, (alpha, "planted", 1.0, t, PLANTED_GAP * t)


def _shrinking(policy: Policy, alpha: float, sizes: dict[int, float]) -> Iterator[Setting]:
    """Yield gaps c sqrt(K/T); a c with a gap above 1 is left out at that horizon."""
    for t, size in sizes.items():
        best = best_arms(N_ARMS, t, alpha)
        for factor in GAPS:
            gap = factor * math.sqrt(size / t)
            if gap <= 1.0:
                instance = grouped(
                    sizes=[best, N_ARMS - best],
                    means=[gap, 0.0],
                    rewards=Gaussian(0.5),
                    label=f"shrinking gap(n={N_ARMS}, m={best}, gap={gap:.3g})",
                )
                yield policy, instance, (alpha, "shrinking gap", factor, t, gap * t)


def _lower_bound(policy: MOSSPlusPlus, alpha: float, horizons: Iterable[int]) -> Iterator[Setting]:
    """Yield instance 1 with alpha' = 0 and B = c T^beta.

    B is scaled by K/T^alpha so that the gap is exactly a power of T: the rounding in K would
    bend the line. Horizons with T^alpha < 3, where the construction is not defined, are left out.
    """

    def family(horizon: int, budget: float) -> LowerBoundFamily:
        arms = N_ARMS // math.ceil(2 * horizon**alpha)
        return LowerBoundFamily(horizon=horizon, alpha=alpha, budget=budget, m=arms)

    scales = {  # B / c
        t: math.pow(t, policy.beta - alpha) * family(t, t).hidden_groups
        for t in horizons
        if math.log2(t) * alpha >= math.log2(3)
    }
    smallest = max(math.pow(t, alpha) / scale for t, scale in scales.items())
    for t, scale in scales.items():
        for factor in (smallest * multiple for multiple in BUDGETS):
            chosen = family(t, factor * scale)
            instance = lower_bound_instance(chosen, 1)
            yield policy, instance, (alpha, "lower bound", factor, t, chosen.settled)


def write(results: ResultsFolder, out: Path) -> list[Path]:
    """Fit the exponents, draw them with the proven rates, and write the table."""
    cells = results.cells
    measured = measured_exponents(cells)
    runs = max(one.replications for one in cells if one.parameters["kind"] != "planted")
    rule = (
        f"Runs: {runs} (planted: {4 * runs}) up to T = 2^{FULL_RUNS.bit_length() - 1}, then fewer, "
        f"as 1/T, but at least {min(one.replications for one in cells)}."
    )
    title = "# Measured exponents of regret in the horizon"
    page = "\n\n".join([title, MODEL, rule, table_of(measured).to_markdown()])
    _, svg, _ = save_figure(measured_rates(measured), out / "rates")
    return [svg, write_text(out / "rates.md", page)]


def theory_styles(betas: Mapping[str, float | None]) -> dict[str, LineStyle]:
    """Return a colour and a marker for each policy; MOSS++ has a shade for each beta.

    >>> styles = theory_styles({"quantile": None, "moss++(beta=0.5)": 0.5, "moss-oracle": None})
    >>> [(label, style.marker) for label, style in styles.items()]
    [('moss++(beta=0.5)', 's'), ('moss-oracle', 'o'), ('quantile', '^')]
    """
    family = sorted(label for label, beta in betas.items() if beta is not None)
    colours = dict(zip(family, shades(len(family)), strict=True))
    for label in sorted(betas.keys() - colours.keys()):
        colours[label] = _rate_line(label, MINIMAX_LINE).colour
    return {
        label: LineStyle(colour, marker=_MARKERS[k % len(_MARKERS)], filled=k % 2 == 0)
        for k, (label, colour) in enumerate(colours.items())
    }


def legend_lines(styles: Mapping[str, LineStyle]) -> list[Line2D]:
    """Return the legend's entry for each policy."""
    return [
        Line2D([], [], **style.options(label=policy_title(policy)))
        for policy, style in styles.items()
    ]


def _rate_line(label: str, other: LineStyle) -> LineStyle:
    """Return how Figure 1 draws a proven rate."""
    return {"moss-oracle": MINIMAX_LINE, "quantile": QUANTILE_LINE}.get(label, other)


def measured_rates(measured: Sequence[MeasuredExponent]) -> Figure:
    """Draw proven rates as lines, and measured exponents as points with intervals.

    Examples
    --------
    >>> from paper.exponents import fit_exponent
    >>> runs = {2**k: [np.full(5, 2.0 ** (0.6 * k))] for k in (10, 12, 14)}
    >>> fits = {"planted": fit_exponent(runs, largest_log_power=2.5)}
    >>> one = MeasuredExponent("moss++(beta=0.5)", 0.5, 0.1, fits)
    >>> [text.get_text() for text in measured_rates([one]).legends[0].get_texts()]
    ['MOSS++ (β = 0.5)']
    """
    if len(measured) == 0:
        raise ParameterError("`measured` must contain at least one exponent, got none.")
    styles = theory_styles({one.policy: one.beta for one in measured})
    with drawing(WIDE[0], WIDE[1] + _LEGEND) as figure:
        axes = figure.add_subplot()
        handles = []
        for k, (policy, style) in enumerate(styles.items()):
            own = [one for one in measured if one.policy == policy]
            line = _rate_line(policy, LineStyle(style.colour)).options(linewidth=1.0)
            axes.plot(_ALPHAS, own[0].rate_at(_ALPHAS), **line)
            _draw_points(axes, own, style, (k - (len(styles) - 1) / 2) * _APART)
            name = "minimax, and MOSS Oracle" if policy == "moss-oracle" else policy_title(policy)
            both = style.options(label=name, linestyle=line["linestyle"], linewidth=1.0)
            handles.append(Line2D([], [], **both))
        axes.set(xlabel=HARDNESS, ylabel=f"exponent: regret grows as $T^{{\\,θ({ALPHA})}}$")
        low = min(one.fit.exponent.low for one in measured)
        high = max(max(one.fit.exponent.high, one.fit.without_log.high) for one in measured)
        axes.set(xlim=(0.0, 0.7), ylim=(min(0.45, low - 0.03), max(1.03, high + 0.03)))
        axes.xaxis.set_major_locator(MultipleLocator(0.1))
        axes.yaxis.set_major_locator(MultipleLocator(0.1))
        legend = (
            "lines: proven rates; points: measured exponents; bars: 95 % of refits;\n"
            "dashes: measured slopes, logarithms included"
        )
        figure.legend(
            handles=handles, loc="outside lower center", ncols=3, title=legend, title_fontsize=8
        )
    return figure


def _draw_points(
    axes: Axes, measured: Sequence[MeasuredExponent], style: LineStyle, shift: float
) -> None:
    for one in measured:
        x, (estimate, low, high) = one.alpha + shift, one.fit.exponent
        plain = one.fit.without_log.estimate
        axes.plot(x, plain, marker="_", markersize=7, color=style.colour, zorder=3)
        axes.plot([x] * 2, [estimate, plain], color=style.colour, linewidth=0.6, dashes=(1, 2))
        errors = [[max(0.0, estimate - low)], [max(0.0, high - estimate)]]
        options = style.options(capsize=2, elinewidth=0.9, zorder=3, ecolor=style.colour)
        axes.errorbar(x, estimate, yerr=errors, **options)
