"""Exponents: known ones are found, intervals hold them, and words follow from numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from manyarms.core.statistics import Interval
from manyarms.errors import ParameterError
from manyarms.report import exponents
from manyarms.report.exponents import (
    ExponentFit,
    MeasuredExponent,
    Measurement,
    fit_exponent,
    measured_exponents,
)
from manyarms.report.exponents_table import (
    HEAD,
    explain,
    exponents_as_data,
    exponents_as_markdown,
    exponents_as_rows,
)

HORIZONS = [2**k for k in range(10, 23, 2)]


def exact(law: Callable[[float], float]) -> dict[int, list[exponents.Regrets]]:
    return {t: [np.full(4, law(t))] for t in HORIZONS}


def test_powers_and_logarithms_are_told_apart() -> None:
    fit = fit_exponent(exact(lambda t: 3 * t**0.6 * math.log(t) ** 1.5), largest_log_power=2.5)
    assert fit.exponent == pytest.approx((0.6, 0.6, 0.6))
    assert fit.log_power == pytest.approx(1.5)
    assert fit.at(2**40) == pytest.approx(3 * 2**24 * math.log(2**40) ** 1.5)
    assert fit.plain.estimate > 0.7  # it takes the logarithm for a power
    assert fit.log_power_at(0.6) == pytest.approx(1.5)
    assert fit.local_slopes() == sorted(fit.local_slopes(), reverse=True)


def test_the_power_of_the_logarithm_stays_within_theory() -> None:
    falling = fit_exponent(exact(lambda t: t**0.9 / math.log(t)), largest_log_power=2.5)
    assert falling.log_power == 0.0
    assert falling.exponent == falling.plain
    steep = fit_exponent(exact(lambda t: t**0.3 * math.log(t) ** 4), largest_log_power=1.0)
    assert steep.log_power == 1.0
    # the same slope as of the data divided by log T, fitted without a log log term
    rest = fit_exponent(exact(lambda t: t**0.3 * math.log(t) ** 3), largest_log_power=0.0)
    assert steep.exponent.estimate == pytest.approx(rest.plain.estimate)


def test_the_worst_factor_counts() -> None:
    runs = {t: [np.full(3, t**0.9 / 100), np.full(3, t**0.5)] for t in HORIZONS}
    fit = fit_exponent(runs, largest_log_power=0.0)
    assert fit.regret == pytest.approx([max(t**0.9 / 100, t**0.5) for t in HORIZONS])


def test_what_cannot_be_fitted() -> None:
    with pytest.raises(ParameterError, match="at least 3 horizons for 3 parameters, got 2"):
        fit_exponent({8: [np.ones(2)], 16: [np.ones(2)]}, largest_log_power=1.0)
    with pytest.raises(ParameterError, match="positive means"):
        fit_exponent({t: [np.zeros(2)] for t in HORIZONS}, largest_log_power=1.0)


def test_intervals_hold_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nominally 95 %, of 60 made-up experiments with 40 runs for each horizon.

    The bootstrap of means of 40 is a little narrow: at 92 % or more, fewer than 46 of 60 come with
    a probability below 1e-4 (binomial: 6e-5), which is the false-alarm probability.
    """
    monkeypatch.setattr(exponents, "_DRAWS", 400)
    rng = np.random.default_rng(7)
    hits, widths = 0, []
    for _ in range(60):
        runs = {t: [t**0.7 * math.log(t) * rng.gamma(4.0, 0.25, 40)] for t in HORIZONS}
        fit = fit_exponent(runs, largest_log_power=100.0)
        hits += fit.exponent.low <= 0.7 <= fit.exponent.high
        widths.append(fit.exponent.high - fit.exponent.low)
    assert hits >= 46
    assert max(widths) < 1.5  # and not because they hold everything


def game(policy: str, kind: str, horizon: int, mean: float, **others: float) -> Measurement:
    regret = mean * np.array([0.9, 1.0, 1.1])
    values = {"alpha": 0.3, "factor": 1.0, "settled": float(horizon), "missed": 0.0} | others
    return Measurement(policy=policy, kind=kind, horizon=horizon, regret=regret, **values)


def measured() -> list[MeasuredExponent]:
    games = []
    for t in HORIZONS:
        games += [
            game("moss++(beta=0.5)", "planted", t, 9 * t**0.6),
            game("moss++(beta=0.5)", "lower bound", t, t**0.8 / 50, settled=t**0.8 / 60),
            game("moss-oracle", "shrinking gap", t, t**0.6, factor=1.0),
            game("moss-oracle", "shrinking gap", t, t**0.65 * math.log(t) ** 0.5, factor=2.0),
            game("quantile", "planted", t, t / 2, missed=0.5),
        ]
    return measured_exponents(games)


def test_the_faster_growth_is_the_measured_one() -> None:
    moss_plus_plus, oracle, quantile = measured()
    assert moss_plus_plus.kind == "lower bound"
    assert moss_plus_plus.rate == pytest.approx(0.8)
    assert moss_plus_plus.exponent.estimate == pytest.approx(0.8)
    assert moss_plus_plus.shares["lower bound"] == pytest.approx((1.2, 1.2))
    assert oracle.exponent.estimate == pytest.approx(0.65)
    assert oracle.rate == pytest.approx(0.65)
    assert quantile.rate == pytest.approx(0.867)


def test_words_follow_from_numbers() -> None:
    moss_plus_plus, oracle, quantile = (explain(one) for one in measured())
    assert moss_plus_plus.startswith("agrees with θ = 0.8;")
    assert "1.2 times T·gap at first and 1.2 times last: the best arms are as good as unfound" in (
        moss_plus_plus
    )
    assert "R/T^θ: 0.02 first, 0.02 last" in moss_plus_plus
    # 9 T^0.6 = T^0.8 / 50 at T = 450^5 = 2^44.07
    assert "planted problems cost more until about T = 2^45, by the fits" in moss_plus_plus
    assert "needs (log T)^0.5, within the (log T)^1" in oracle
    assert "found ever better" in oracle
    assert quantile.startswith("0.133 above θ = 0.867")
    assert "50% of the runs pulled no best arm at first, 50% last" in quantile


def test_slower_than_proven() -> None:
    fit = fit_exponent(exact(lambda t: t**0.5), largest_log_power=2.5)
    fits, ends = {"planted": fit}, {"planted": (0.5, 0.1)}
    one = MeasuredExponent("moss++(beta=0.75)", 0.3, 0.75, fits, ends, {"planted": (0.0, 0.0)})
    assert explain(one).startswith("0.250 below θ = 0.75;")
    assert "slope without log log is 0.250 below θ, before any logarithm" in explain(one)


def test_a_rate_between_the_two_slopes() -> None:
    # the fit takes all of the curve for a power of log T, and a part of T^0.75 with it
    fit = fit_exponent(exact(lambda t: t**0.66 * math.log(t) ** 2), largest_log_power=2.5)
    fits, ends = {"planted": fit}, {"planted": (0.9, 0.2)}
    one = MeasuredExponent("moss++(beta=0.75)", 0.1, 0.75, fits, ends, {"planted": (0.0, 0.0)})
    assert explain(one).startswith("0.090 below θ = 0.75; the slope without log log, 0.8")
    assert "given θ the line needs (log T)^1, within the (log T)^2.5" in explain(one)


def test_table_and_data() -> None:
    rows = exponents_as_rows(measured())
    assert [row[0] for row in rows] == ["MOSS++ (β = 0.5)", "MOSS Oracle", "Quantile"]
    assert {len(row) for row in rows} == {len(HEAD)}
    assert rows[0][3].startswith("0.800 [")
    page = exponents_as_markdown(measured(), "Runs: 3.")
    assert "log R = a + θ log T + b log log T" in page
    assert "Runs: 3." in page
    data = exponents_as_data(measured())
    assert data[0]["fits"]["planted"]["horizons"] == tuple(HORIZONS)


def test_figures() -> None:
    pytest.importorskip("matplotlib", reason="the extra `lab` is not installed")
    from manyarms.report.exponents_figure import exponent_fits, measured_rates

    figure = measured_rates(measured())
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "MOSS++ (β = 0.5)",
        "minimax, and MOSS Oracle",
        "Quantile",
    ]
    dashes = [line for line in figure.axes[0].lines if line.get_marker() == "_"]
    heights = [float(np.asarray(line.get_ydata()).item()) for line in dashes]
    assert heights[0] == pytest.approx(0.8)  # the slopes without log log
    fits = exponent_fits(measured(), title="One hardness")
    assert [axes.get_title() for axes in fits.axes] == [
        "hardness \N{GREEK SMALL LETTER ALPHA} = 0.3"
    ]
    for draw in (measured_rates, exponent_fits):
        with pytest.raises(ParameterError, match="`measured` must hold at least one"):
            draw([])


def test_a_fit_is_plain_data() -> None:
    fit = fit_exponent(exact(lambda t: t**0.5), largest_log_power=2.5)
    assert isinstance(fit, ExponentFit)
    assert isinstance(fit.exponent, Interval)
    assert all(isinstance(value, float) for value in (*fit.regret, *fit.errors, fit.log_power))
