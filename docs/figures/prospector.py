"""The two pictures of docs/policies/prospector.md: run `python docs/figures/prospector.py`.

Both are runs that were played, on the paper's arms; they follow from the seeds alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import manyarms as ma
from manyarms.core.memory import SPARSE
from manyarms.core.theme import LIGHT
from manyarms.policies import SubSampled
from manyarms.protocol import ask, reset, tell
from manyarms.protocol.colours import POLICY_COLOURS

if TYPE_CHECKING:
    from collections.abc import Callable

    from manyarms.report.drawing import Axes

HERE = Path(__file__).parent
N_ARMS, HORIZON, ALPHA, SEED = 20_000, 50_000, 0.3, 4
GREY, ORANGE = LIGHT["faint"], POLICY_COLOURS["empmoss++"]
BLUE, PURPLE = POLICY_COLOURS["moss++"], POLICY_COLOURS["prospector"]


class Trace(NamedTuple):
    """What was seen at every pull of one run."""

    arm: np.ndarray[Any, np.dtype[np.int64]]
    mean: np.ndarray[Any, np.dtype[np.float64]]  # the true one
    seen: np.ndarray[Any, np.dtype[np.float64]]  # what `look` said of the state, by (pull, value)


def play(
    policy: ma.Policy,
    means: np.ndarray[Any, Any],
    horizon: int,
    pulls: int,
    look: Callable[..., Any],
) -> Trace:
    """Play the first pulls of a run by hand, with rewards 0 and 1, and look at the state."""
    state = policy.with_reward_range((0.0, 1.0)).new_state(SPARSE, n_arms=len(means), pulls=horizon)
    reset(state, SEED, horizon)
    luck = np.random.default_rng(SEED)
    arms, seen = [], []
    for _ in range(pulls):
        note, arm = ask(state)
        tell(state, note, float(luck.random() < means[arm]))
        arms.append(arm)
        seen.append(look(state, arm))
    return Trace(np.array(arms), means[arms], np.array(seen))


def paper_means(n: int, m: int) -> np.ndarray[Any, Any]:
    """Return the paper's means: m of 0.9, the others 0.1 to 0.5."""
    return np.concatenate([np.full(m, 0.9), np.resize([0.1, 0.2, 0.3, 0.4, 0.5], n - m)])


def prospecting(state: Any, arm: int) -> tuple[float, float, float, float]:
    """Return the target, M, what the search has cost, and the mean seen of the arm just pulled."""
    clock = state.clock[0]
    slot = clock.current
    own = state.shrunk.arm[slot].total / state.shrunk.arm[slot].pulls
    cost = max(0.0, clock.told * clock.best - clock.total)
    return clock.ceiling - clock.spent ** (2 / 3), clock.best, cost, own


def draw_run(folder: Path, *, pulls: int = 600) -> Path:
    """Draw one run: the target, the arm in play, and what the search has cost."""
    from manyarms.report.drawing import drawing

    best = ma.theory.best_arms(N_ARMS, HORIZON, ALPHA)
    trace = play(ma.Prospector(), paper_means(N_ARMS, best), HORIZON, pulls, prospecting)
    target, leader, cost, own = trace.seen.T
    at, free, good = np.arange(1, pulls + 1), 0.5 * HORIZON**0.5, trace.mean > 0.8
    dear, fresh = int(np.argmax(cost >= free)) + 1, np.unique(trace.arm, return_index=True)[1] + 1
    with drawing(6.4, 4.4) as figure:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        above.plot(at[~good], own[~good], ".", color=GREY, markersize=3, label="mean seen of it")
        above.plot(at[good], own[good], ".", color=ORANGE, markersize=3.5, label="… of a best arm")
        above.plot(at, leader, color=BLUE, lw=0.9, label="M, the best mean found (shrunk)")
        above.plot(at, target, color=PURPLE, label="target ζ")
        above.plot(fresh, np.full(len(fresh), -0.06), "|", color=GREY, markersize=5)
        above.annotate(
            "each stroke: a fresh arm",
            (fresh.max(), -0.06),
            (6, 0),
            fontsize=8,
            textcoords="offset points",
            va="center",
        )
        above.set(ylabel="mean of the arm in play", ylim=(-0.11, 1.04))
        above.legend(loc="center right")
        below.plot(at, cost, color=PURPLE)
        below.axhline(free, color=GREY, lw=0.8, dashes=(2, 2))
        _note(below, "½√T: below it the target is 1", (0.62 * pulls, 0.8 * free))
        for axes in (above, below):
            axes.axvline(dear, color=GREY, lw=0.8, dashes=(2, 2))
        below.set(xlabel="pull", ylabel="cost C", xlim=(0, pulls), ylim=(0, None))
    return _save(figure, folder / "prospector_run.svg")


def guarding(state: Any, arm: int) -> tuple[float, float]:
    """Return the floor, and whether the rule was dropped."""
    clock = state.guard.clock[0]
    return clock.floor, float(clock.dropped)


def draw_guard(folder: Path, *, horizon: int = 500_000) -> Path:
    """Draw what a rule that never searches loses, alone and under the guard."""
    from manyarms.report.drawing import drawing
    from manyarms.report.style import thousands

    means, rule = paper_means(1000, 333), SubSampled(ma.MOSS(), size=1)
    guarded = play(ma.Guarded(rule), means, horizon, horizon, guarding)
    floor, dropped = guarded.seen.T
    at, some, gone = np.arange(1, horizon + 1), slice(None, None, 500), int(np.argmax(dropped))
    alone = 0.9 - guarded.mean[0]  # of each pull: it would have kept to this arm
    with drawing(6.4, 3.9) as figure:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1.3))
        above.plot(at[some], alone * at[some], color=GREY, label="keeps to the first arm it meets")
        lost = np.cumsum(0.9 - guarded.mean)
        above.plot(at[some], lost[some], color=PURPLE, label="the same under the guard")
        above.set(ylabel="regret", ylim=(0, None))
        above.yaxis.set_major_formatter(thousands)
        above.legend(loc="upper left")
        _note(
            above, "4√T log T lost against the floor:\nthe rule is dropped", (gone, 0.3 * lost[-1])
        )
        below.plot(at[some], floor[some], color=BLUE)
        below.axhline(0.9, color=GREY, lw=0.8, dashes=(2, 2))
        _note(below, "tests raise the floor to a mean that some arm surely has", (0, 0.2))
        _note(below, "best mean", (0.85 * horizon, 0.99))
        for axes in (above, below):
            axes.axvline(gone, color=ORANGE, lw=0.8, dashes=(2, 2))
        below.set(xlabel="pull", ylabel="floor", ylim=(0, 1.1), xlim=(0, horizon))
        below.xaxis.set_major_formatter(thousands)
    return _save(figure, folder / "prospector_guard.svg")


def _note(axes: Axes, text: str, where: tuple[float, float]) -> None:
    axes.annotate(text, where, (5, 0), textcoords="offset points", va="center", fontsize=7)


def _save(figure: Any, path: Path) -> Path:
    from manyarms.report.drawing import rendered

    path.write_bytes(rendered(figure, "svg"))
    return path


if __name__ == "__main__":
    for draw in (draw_run, draw_guard):
        print(draw(HERE))
