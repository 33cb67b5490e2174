"""Figures: contents, reproducibility, and complete files."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import manyarms as ma
from manyarms.errors import ParameterError
from manyarms.simulation import Sweep, SweepResults, cell, run_in_memory
from manyarms.simulation.results import Result
from manyarms.theory.rates import moss_plus_plus_rate, quantile_rate
from tests.helpers import run_python
from tests.report.made import made_result

pytest.importorskip("matplotlib", reason="the extra `sim` is not installed")

import matplotlib
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from manyarms.report import figures, save_figure
from manyarms.report.style import policy_styles

PAPER = ("moss", "moss-oracle", "quantile", "parallel", "moss++", "empmoss++")
NAMED = (*PAPER, "anytime-moss++", "anytime-parallel")


def tiny(times: float = 1) -> Result:
    # moss: means 10 and 22, deviations 2 and 4 (of 8, 10, 12 and 18, 22, 26); moss++: no deviation
    regret = {"moss": [[8, 18], [10, 22], [12, 26]], "moss++": [[5, 6], [5, 6], [5, 6]]}
    scaled = {policy: times * np.array(runs) for policy, runs in regret.items()}
    return made_result(scaled, (1000, 50_000))


def many(labels: tuple[str, ...], points: int = 50) -> Result:
    regret = np.random.default_rng(1).random((len(labels), 4, points)).cumsum(axis=2)
    return made_result(dict(zip(labels, regret, strict=True)), range(100, 100 * points + 1, 100))


def words(figure: Figure) -> list[str]:
    legend = figure.legends[0] if figure.legends else figure.axes[0].get_legend()
    assert legend is not None
    return [" ".join(text.get_text().split()) for text in legend.get_texts()]


def bands(figure: Figure) -> list[PolyCollection]:
    return [c for c in figure.axes[0].collections if isinstance(c, PolyCollection)]


def heights(band: PolyCollection, x: float) -> tuple[float, float]:
    corners = np.asarray(band.get_paths()[0].vertices)
    at = corners[corners[:, 0] == x][:, 1]
    return float(at.min()), float(at.max())


def test_figure_1_has_every_rate() -> None:
    figure = figures.figure_1(betas=(0.7, 0.5, 1.0), subset_exponent=0.4)
    axes = figure.axes[0]
    lines = {str(line.get_label()): line for line in axes.lines}
    assert list(lines) == [
        "MOSS++ (β = 0.5)",
        "MOSS++ (β = 0.7)",
        "MOSS++ (β = 1)",
        "minimax: (1 + \N{GREEK SMALL LETTER ALPHA})/2",
        "MOSS on $T^{\\,0.4}$ random arms",
        "Quantile (bound)",
    ]
    alphas = np.asarray(lines["Quantile (bound)"].get_xdata(), dtype=float)
    assert (alphas[0], alphas[-1]) == (0.0, 1.0)
    assert np.array_equal(lines["Quantile (bound)"].get_ydata(), quantile_rate(alphas))
    beta = lines["MOSS++ (β = 0.7)"].get_ydata()
    assert np.array_equal(beta, moss_plus_plus_rate(alphas, beta=0.7))
    subset = lines["MOSS on $T^{\\,0.4}$ random arms"]
    assert np.array_equal(subset.get_xydata(), np.array([[0, 0.7], [0.4, 0.7], [0.4, 1], [1, 1]]))
    # the lines of MOSS++ are named where they reach rate 1, at α = β
    assert [(t.get_text(), t.xy[0]) for t in axes.texts] == [  # type: ignore[attr-defined]
        ("0.5", 0.5),
        ("0.7", 0.7),
        ("1.0", 1.0),
        ("β =", 0.5),
    ]
    assert words(figure)[0] == "MOSS++ (β at the top)"
    assert len(words(figure)) == 4


def mine(alpha: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.8 + 0.2 * alpha


def test_further_rates_have_their_own_lines() -> None:
    points = np.array([0.0, 0.4, 0.9]), np.array([0.3, 0.7, 0.95])
    figure = figures.figure_1(betas=(0.5, 0.7), others={"mine": mine, "measured": points})
    axes = figure.axes[0]
    names = [str(line.get_label()) for line in axes.lines]
    assert names[-2:] == ["mine", "measured"]
    assert np.array_equal(axes.lines[-1].get_xydata(), np.transpose(points))
    drawn = np.asarray(axes.lines[-2].get_xydata())
    assert np.array_equal(drawn[:, 1], mine(drawn[:, 0]))
    legend = figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()][-2:] == ["mine", "measured"]
    styles = {(line.get_color(), str(line.get_marker())) for line in axes.lines}
    assert len(styles) == len(axes.lines)
    assert axes.get_ylim()[0] == pytest.approx(0.25)  # includes a rate of 0.3


def test_against_hardness() -> None:
    figure = figures.regret_against_hardness(
        {0.5: tiny(times=2), 0.1: tiny()}, band=0.25, title="a title"
    )
    axes = figure.axes[0]
    assert axes.get_title() == "a title"
    assert axes.get_xlabel() == "hardness \N{GREEK SMALL LETTER ALPHA}"
    assert axes.get_ylabel() == "mean pseudo-regret after 50,000 pulls"
    assert [line.get_label() for line in axes.lines] == ["MOSS", "MOSS++"]
    assert np.array_equal(axes.lines[0].get_xydata(), [[0.1, 22], [0.5, 44]])
    assert np.array_equal(axes.lines[1].get_xydata(), [[0.1, 6], [0.5, 12]])
    # a quarter of the standard deviations 4 and 8
    assert heights(bands(figure)[0], 0.1) == (21.0, 23.0)
    assert heights(bands(figure)[0], 0.5) == (42.0, 46.0)
    assert heights(bands(figure)[1], 0.5) == (12.0, 12.0)
    assert axes.get_ylim()[0] == 0.0
    shaded = "shaded: mean ± 0.25 standard deviation of 3 replications"
    assert words(figure) == ["MOSS", "MOSS++", shaded]


def played(*names: str) -> SweepResults:
    cells = [
        cell(
            [ma.MOSS(), ma.MOSSPlusPlus(), ma.MOSSPlusPlus(beta=0.6)],
            ma.instances.planted(n=50, alpha=0.4 - k / 10, horizon=60),
            horizon=60,
            replications=2,
            parameters=dict.fromkeys(names, 0.4 - k / 10),
        )
        for k in range(2 if names else 1)
    ]
    return run_in_memory(Sweep("a sweep", tuple(cells)), progress=False)


def test_a_sweep_against_hardness() -> None:
    results = played("alpha")
    figure = figures.regret_against_hardness(results)
    lines = figure.axes[0].lines
    assert [line.get_label() for line in lines] == ["MOSS", "MOSS++", "MOSS++ (β = 0.6)"]
    final = [each.of("moss")[:, -1].mean() for each in reversed(results.cells)]
    assert np.allclose(lines[0].get_xydata(), np.transpose([[0.3, 0.4], final]))
    for names in ((), ("alpha", "n")):
        with pytest.raises(ParameterError, match="differ in alpha alone, got the parameters"):
            figures.regret_against_hardness(played(*names))


def test_chosen_policies_are_drawn_in_their_order() -> None:
    results = played("alpha")
    wanted: list[Any] = [ma.MOSSPlusPlus(beta=0.6), "moss"]
    names = ["MOSS++ (β = 0.6)", "MOSS"]
    for figure in (
        figures.regret_against_hardness(results, policies=wanted),
        figures.regret_over_time(results.cells[0], policies=wanted),
    ):
        assert [line.get_label() for line in figure.axes[0].lines] == names
        assert words(figure)[:2] == names
    with pytest.raises(ma.UnknownNameError, match="Unknown policy of this result"):
        figures.regret_over_time(results.cells[0], policies=["quantile"])
    wrongs: list[Any] = ["moss", []]
    for wrong in wrongs:
        with pytest.raises(ParameterError, match="`policies` must be a list"):
            figures.regret_over_time(results.cells[0], policies=wrong)


def test_a_policy_left_out_at_some_hardness() -> None:
    names: Any = {"policies": ("moss",), "specifications": ("moss",)}
    alone = replace(tiny().first(2), **names, rows=tiny().first(2).rows[:1])
    figure = figures.regret_against_hardness({0.1: alone, 0.2: tiny()})
    assert [len(np.asarray(line.get_xdata())) for line in figure.axes[0].lines] == [2, 1]
    assert words(figure)[-1].endswith("2 to 3 replications")


def test_over_time() -> None:
    figure = figures.regret_over_time(tiny(), band=0.25, note="stand-in data")
    axes = figure.axes[0]
    assert axes.get_xlabel() == "time t (pulls)"
    assert axes.get_ylabel() == "mean pseudo-regret up to time t"
    assert np.array_equal(axes.lines[0].get_xydata(), [[0, 0], [1000, 10], [50_000, 22]])
    assert heights(bands(figure)[0], 1000) == (9.5, 10.5)
    assert heights(bands(figure)[0], 50_000) == (21.0, 23.0)
    assert figure.get_supxlabel() == "stand-in data"
    assert axes.get_ylim()[0] == 0.0
    assert axes.xaxis.get_major_formatter()(20_000) == "20,000"


def test_all_lines_of_a_figure_look_different() -> None:
    betas = tuple(f"moss++(beta={b})" for b in (0.55, 0.6, 0.75, 0.9))
    labels = (*NAMED, *betas, *(f"mine-{k}" for k in range(40)))
    styles = list(policy_styles(labels).values())
    assert len(set(styles)) == len(labels)
    # also in grey: dashes and markers distinguish the named policies and the first others
    grey = [(style.dashes, style.marker, style.filled) for style in styles]
    assert len(set(grey[:36])) == 36
    assert len({style.colour for style in styles[:16]}) == 16


def test_names_that_look_like_formulas_are_drawn_literally() -> None:
    name = r"$\frac{ and $ \nonsense"
    figure = figures.regret_over_time(
        many((name,)), title=name, note=name
    )  # this lays out all texts
    assert figure.axes[0].get_title() == name
    assert words(figure)[0] == name


def _lines_behind_the_legend(figure: Figure) -> list[str]:
    axes = figure.axes[0]
    legend = axes.get_legend()
    assert legend is not None
    box = legend.get_window_extent()
    paths = {str(one.get_label()): one.get_transform().transform_path(one.get_path())
             for one in axes.lines}  # fmt: skip
    return [name for name, path in paths.items() if path.intersects_bbox(box, filled=False)]


@pytest.mark.parametrize("width", [None, "column", "page", 4.6])
@pytest.mark.parametrize("draw", ["figure_1", "against", "over"])
def test_nothing_is_clipped_and_no_text_overlaps(draw: str, width: Any) -> None:
    labels = (*NAMED, "empmoss++(beta=0.75)")
    both = {0.1: many(labels), 0.9: many(labels)}
    title = "A title that is too long for a column of a journal, but not for its page"
    figure = {
        "figure_1": lambda: figures.figure_1(title="A title", width=width),
        "against": lambda: figures.regret_against_hardness(both, width=width),
        "over": lambda: figures.regret_over_time(
            many(labels), width=width, title=title, note="note " * 60
        ),
    }[draw]()
    figure.draw_without_rendering()
    outer = figure.get_tightbbox().padded(-1e-6)
    across, height = figure.get_size_inches()
    assert outer.x0 >= 0
    assert outer.y0 >= 0
    assert outer.x1 <= across
    assert outer.y1 <= height
    if draw != "figure_1":
        assert across == {None: 5.0, "column": 3.3, "page": 6.8}.get(width, width)
        assert bool(figure.legends) == (width not in ("column", 3.3))
    if figure.legends:
        legend = figure.legends[0].get_window_extent()
        assert not legend.overlaps(figure.axes[0].get_window_extent())
    elif draw != "figure_1":
        assert _lines_behind_the_legend(figure) == []


def test_the_band_is_the_standard_error_unless_another_is_chosen() -> None:
    result = tiny()
    row = result.summary()["moss"]
    figure = figures.regret_over_time(result)
    assert heights(bands(figure)[0], 50_000) == pytest.approx(
        (row.mean - row.se, row.mean + row.se)
    )
    assert words(figure)[-1] == "shaded: mean ± standard error, 3 replications"
    low, high = result.intervals("moss")
    row = result.summary(interval="gaffke")["moss"]
    assert (row.low, row.high) == pytest.approx((low[-1], high[-1]))
    free = "shaded: 95 % confidence interval of the mean, 3 replications"
    chosen: dict[Any, tuple[float, float, str]] = {
        "sd": (18.0, 26.0, "shaded: mean ± 1 standard deviation of 3 replications"),
        0.5: (20.0, 24.0, "shaded: mean ± 0.5 standard deviation of 3 replications"),
        "quantiles": (18.4, 25.6, "shaded: 5 % to 95 % of 3 replications"),
        "gaffke": (low[-1], high[-1], free),
        None: (22.0, 22.0, "3 replications"),
    }
    for band, (least, most, says) in chosen.items():
        figure = figures.regret_over_time(result, band=band)
        assert heights(bands(figure)[0], 50_000) == pytest.approx((least, most))
        assert words(figure)[-1] == says
        against = figures.regret_against_hardness({0.2: result}, band=band)
        assert heights(bands(against)[0], 0.2) == pytest.approx((least, most))


def test_given_axes() -> None:
    own = Figure(figsize=(7, 3))
    left, right = own.subplots(1, 2)
    assert figures.regret_over_time(many(PAPER), ax=left, title="left") is own
    assert figures.regret_against_hardness({0.2: tiny()}, ax=right, band=None) is own
    assert left.get_title() == "left"
    assert len(left.lines) == len(PAPER)
    assert [line.get_label() for line in right.lines] == ["MOSS", "MOSS++"]
    assert _lines_behind_the_legend(own) == []
    assert own.get_size_inches().tolist() == [7, 3]


@pytest.mark.patient
def test_files_are_complete_and_reproducible(tmp_path: Path) -> None:
    first = save_figure(figures.regret_over_time(tiny()), tmp_path / "new" / "fig2.b")
    assert [path.name for path in first] == ["fig2.b.pdf", "fig2.b.svg", "fig2.b.png"]
    before = [path.read_bytes() for path in first]
    assert [content[:4] for content in before] == [b"%PDF", b"<?xm", b"\x89PNG"]
    figure = figures.regret_over_time(tiny())
    for _ in range(2):
        again = save_figure(figure, str(tmp_path / "new" / "fig2.b"))
        assert [path.read_bytes() for path in again] == before
    assert b"CreationDate" not in before[0]
    assert b"<dc:date>" not in before[1]
    assert sorted(p.name for p in first[0].parent.iterdir()) == sorted(p.name for p in first)
    # 5 inches at 300 dots each; bytes 16 to 20 of a PNG are its width
    assert int.from_bytes(before[2][16:20], "big") == 1500


@pytest.mark.patient
def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fig.pdf"
    path.write_text("old")

    def fail(self: Path, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save_figure(figures.figure_1(), tmp_path / "fig")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.patient
def test_matplotlib_settings_are_neither_changed_nor_used(tmp_path: Path) -> None:
    plain = save_figure(figures.figure_1(), tmp_path / "plain")
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "axes.facecolor": "red"}):
        before = dict(matplotlib.rcParams)
        other = save_figure(figures.figure_1(), tmp_path / "other")
        assert dict(matplotlib.rcParams) == before
    assert [p.read_bytes() for p in plain] == [p.read_bytes() for p in other]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: figures.figure_1(betas=()), r"`betas` must contain at least one number"),
        (lambda: figures.figure_1(betas=(0.3,)), r"`beta` must be .*>= 0.5.* got 0.3"),
        (
            lambda: figures.figure_1(others={"wrong": ([0.0, 1.0], [0.5, 2.0])}),
            r"`rate` must contain numbers >= 0 and <= 1, got 2.0",
        ),
        (lambda: figures.regret_over_time(tiny(), width=1), r"`width` must be a number >= 2"),
        (lambda: figures.regret_over_time(tiny(), band="99%"), r"`band` must be"),  # type: ignore[arg-type]
        (
            lambda: figures.regret_over_time(tiny(), width=3, ax=Figure().subplots()),
            r"`width` must be left out with `ax`",
        ),
        (
            lambda: figures.regret_against_hardness({math.nan: tiny()}),
            r"`alpha` must be a number >= 0, got nan. The keys of `results` are hardnesses",
        ),
        (
            lambda: figures.regret_against_hardness({0.1: tiny(), 0.2: many(("moss",))}),
            r"`results` must have one horizon, got \[5000, 50000\]. Draw a figure for each",
        ),
    ],
)
def test_bad_input(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()


@pytest.mark.patient
def test_figures_import_no_pyplot_and_need_matplotlib() -> None:
    done = run_python(
        """
import sys
import manyarms.report, manyarms.report.style
assert "matplotlib" not in sys.modules
sys.modules["matplotlib"] = None
try: import manyarms.report.figures
except ImportError as error: print(type(error).__name__, error)
del sys.modules["matplotlib"]
manyarms.report.figure_1()
assert not {"matplotlib.pyplot", "numba"} & set(sys.modules)
"""
    )
    assert done.stdout.startswith("MissingExtraError matplotlib must be installed")
    assert 'pip install "manyarms[sim]"' in done.stdout


@pytest.mark.parametrize("other", ["MOSS", "MOSS Oracle"])
def test_an_own_policy_has_its_own_entry_in_the_legend(other: str) -> None:
    labels = ("moss", "moss-oracle", other)
    result = many(labels)
    over_time = figures.regret_over_time(result)
    against = figures.regret_against_hardness({0.1: result, 0.2: result})
    for figure in (over_time, against):
        lines = figure.axes[0].lines
        titles = {str(line.get_label()) for line in lines}
        assert len(titles) == len({line.get_color() for line in lines}) == 3
        assert other in titles
        assert titles <= {*words(figure)}
