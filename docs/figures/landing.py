"""The two pictures of the front page: `python docs/figures/landing.py` draws them anew.

`landing.svg` is what a policy loses over time; it follows from the seed alone. `landing_cost.svg`
is what a pull costs, against the number of arms; it is measured, so its nanoseconds are those of
the machine. The best of the turns is what `benchmarks/` reports too; the median is shown beside it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import manyarms as ma

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
HORIZON, ALPHA = 50_000, 0.25
ARMS = [10**k for k in range(4, 10)]


def policies() -> list[ma.Policy]:
    """Return five policies that do not know how many arms are best."""
    adaptive = [ma.MOSS(), ma.Quantile(), ma.MOSSPlusPlus(), ma.EmpMOSSPlusPlus()]
    return [*adaptive, ma.Prospector()]


def draw_regret(folder: Path, *, replications: int = 200) -> Path:
    """Draw regret over time on a million arms."""
    from manyarms.report import regret_over_time
    from manyarms.report.style import PAPER_BAND

    instance = ma.instances.planted(n=1_000_000, alpha=ALPHA, horizon=HORIZON)
    result = ma.simulate(policies(), instance, horizon=HORIZON, replications=replications)
    title = f"1,000,000 arms, {instance.n_best:,} of them best, {HORIZON:,} pulls"
    return _save(regret_over_time(result, band=PAPER_BAND, title=title), folder / "landing.svg")


def draw_cost(folder: Path, *, turns: int = 120) -> Path:
    """Draw nanoseconds per simulated pull against the number of arms; print the numbers."""
    from manyarms.report.drawing import drawing
    from manyarms.report.style import BAND_OPACITY, WIDE, policy_styles, policy_title

    measured = _measure(turns=turns)
    with drawing(*WIDE) as figure:
        axes = figure.add_subplot()
        for name, style in policy_styles(measured).items():
            best, median = np.min(measured[name], axis=1), np.median(measured[name], axis=1)
            axes.plot(ARMS, best, **style.options() | {"label": policy_title(name)})
            axes.fill_between(ARMS, best, median, color=style.colour, alpha=BAND_OPACITY, lw=0)
            print(name, "best", best.round(1), "median", median.round(1))
        axes.set(xlabel="number of arms", ylabel="nanoseconds per simulated pull", xscale="log")
        axes.minorticks_off()
        axes.set_ylim(0, 1.1 * max(np.median(rows, axis=1).max() for rows in measured.values()))
        axes.set_title(f"line: best of {turns} turns; shaded: up to the median")
        figure.legend(loc="outside right upper")
    return _save(figure, folder / "landing_cost.svg")


def _measure(*, turns: int) -> dict[str, list[list[float]]]:
    """Return all turns by policy and number of arms.

    Each turn has an order of its own: on a machine that others use, a fixed order gave some numbers
    of arms the worse moments, and 25 turns were too few for the best of them to settle.
    """
    # MOSS is left out: it only draws fresh arms here
    players = policies()[1:]
    runs = [(policy, at) for policy in players for at in range(len(ARMS))]
    measured: dict[str, list[list[float]]] = {p.name: [[] for _ in ARMS] for p in players}
    for policy, at in runs:
        _once(policy, ARMS[at])  # compiles
    shuffle = np.random.default_rng(1).permutation
    for _ in range(turns):
        for number in shuffle(len(runs)):
            policy, at = runs[number]
            measured[policy.name][at].append(_once(policy, ARMS[at]))
    return measured


def _once(policy: ma.Policy, n: int) -> float:
    instance = ma.instances.planted(n=n, alpha=ALPHA, horizon=HORIZON)
    result = ma.simulate(
        policy, instance, horizon=HORIZON, replications=6, workers=1, checkpoints=1, progress=False
    )
    return 1e9 * sum(result.seconds.values()) / (6 * HORIZON)


def _save(figure: Figure, path: Path) -> Path:
    from manyarms.report.drawing import rendered

    path.write_bytes(rendered(figure, "svg"))
    return path


def main() -> None:
    """Draw both, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", nargs="*", help="regret, cost; both unless named")
    which = parser.parse_args().which or ["regret", "cost"]
    if "regret" in which:
        print(draw_regret(HERE))
    if "cost" in which:
        print(draw_cost(HERE))


if __name__ == "__main__":
    main()
