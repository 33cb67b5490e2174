"""Measure what Prospector earns while arms are added and retired: docs/changing_catalogue.md.

    python benchmarks/arrivals.py                     all scenarios, 200 runs each (minutes)
    python benchmarks/arrivals.py --runs 50 S2 S5     fewer runs, two scenarios
    python benchmarks/arrivals.py --draw              also draw docs/figures/arrivals.svg

A shop has 50,000 pictures with click rates drawn from Beta(2, 60), and 20,000 visitors a day for 11
days; the policy is given no horizon. After the first day it usually shows a picture with a rate
of about 0.11, so "twice as good" is a rate of 0.22, and "three times" is 0.33. The table has the
expected clicks of days 2 to 11, in percent of those of an oracle that always shows the best current
picture; the standard error; and the worst run. The percentage after it is the share of runs in
which good new pictures are found within a day: they get more than half of its last 1000 visitors.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import manyarms as ma
from manyarms.core.hash_map import clear_map
from manyarms.core.jit import compiled
from manyarms.core.memory import changing
from manyarms.core.rng import draw, unit
from manyarms.protocol.policy import arrive, ask, reset, retire, tell
from manyarms.protocol.state_dump import classes_in

Rates = NDArray[np.float64]
Arms = NDArray[np.int64]
Luck = np.random.Generator

DAY, DAYS, FIRST, BATCH = 20_000, 11, 50_000, 500
LAST = 1000  # visitors of a day
LATER = range(1, DAYS)  # days from the second on
TWICE, THRICE, BEST_PROMPT = 0.22, 0.33, 0.95
FIGURE = Path(__file__).parent.parent / "docs" / "figures" / "arrivals.svg"


class Change(NamedTuple):
    """Arms that are added and retired before visitor `at`."""

    at: int
    added: Rates = np.zeros(0)
    retired: Callable[[Arms, NDArray[np.bool_]], Any] = lambda pulls, there: []
    good: float = math.inf  # the lowest rate of good new arms


def pictures(luck: Luck, count: int) -> Rates:
    return luck.beta(2, 60, count)


def prompts(luck: Luck, count: int) -> Rates:
    return 0.3 + 0.6 * luck.beta(2, 5, count)


def batch(luck: Luck, rate: float, good: int, law: Callable[..., Rates] = pictures) -> Rates:
    """Return the rates of a batch in which `good` arms have this rate."""
    rates = law(luck, BATCH)
    rates[luck.permutation(BATCH)[:good]] = rate
    return rates


def leader(pulls: Arms, there: NDArray[np.bool_]) -> list[int]:
    return [int(np.where(there, pulls, -1).argmax())]


def some(luck: Luck) -> Callable[[Arms, NDArray[np.bool_]], Any]:
    return lambda pulls, there: luck.choice(np.flatnonzero(there), BATCH, replace=False)


def everyday(luck: Luck, scale: float = 1.0) -> list[Change]:
    return [Change(day * DAY, scale * pictures(luck, BATCH)) for day in LATER]


SCENARIOS: dict[str, tuple[str, Callable[[Luck], list[Change]]]] = {
    "S0": ("nothing new", lambda luck: []),
    "S1": ("500 a day, same law", everyday),
    "S1W": ("500 a day, a quarter as good", lambda luck: everyday(luck, 0.25)),
    "S2": (
        "500 on day 2, 5 % twice as good",
        lambda luck: [Change(DAY, batch(luck, TWICE, 25), good=TWICE)],
    ),
    "S2L": (
        "the same on day 5",
        lambda luck: [Change(4 * DAY, batch(luck, TWICE, 25), good=TWICE)],
    ),
    "S3": (
        "500 on day 2, one three times as good",
        lambda luck: [Change(DAY, batch(luck, THRICE, 1), good=THRICE)],
    ),
    "S4": (
        "500 on day 2, all three times as good",
        lambda luck: [Change(DAY, batch(luck, THRICE, BATCH), good=THRICE)],
    ),
    "S5": ("most shown picture retired on day 2", lambda luck: [Change(DAY, retired=leader)]),
    "S5D": (
        "most shown picture retired every day",
        lambda luck: [Change(day * DAY, retired=leader) for day in LATER],
    ),
    "S6": (
        "5 an hour, 2 % better every day",
        lambda luck: [
            Change(day * DAY + hour * DAY // 24, 1.02**day * pictures(luck, 5))
            for day in LATER
            for hour in range(24)
        ],
    ),
    "S7": (
        "prompts: 500 on day 2, 5 % at 0.95",
        lambda luck: [Change(DAY, batch(luck, BEST_PROMPT, 25, prompts), good=BEST_PROMPT)],
    ),
    "S7S": (
        "prompts: 500 a day, same law",
        lambda luck: [Change(day * DAY, prompts(luck, BATCH)) for day in LATER],
    ),
    "S8": (
        "500 twice as good, days 2 to 6",
        lambda luck: [
            Change(DAY, batch(luck, TWICE, BATCH), good=TWICE),
            Change(6 * DAY, retired=lambda pulls, there: range(FIRST, FIRST + BATCH)),
        ],
    ),
    "S9": (
        "500 come and 500 go every day",
        lambda luck: [Change(*change[:2], some(luck)) for change in everyday(luck)],
    ),
}
COLUMNS: dict[str, tuple[ma.Policy, bool]] = {  # and whether it is restarted every day
    "no trials": (ma.Prospector(trials=0.0), False),
    "trials": (ma.Prospector(), False),
    "restarted": (ma.Prospector(trials=0.0), True),
}


def stretch(
    state: Any, key: Any, restart: bool, change: tuple[int, Any], until: tuple[int, int], seen: Any
) -> float:
    """Play from one change to the next; return the expected clicks."""
    added, retired = change
    start, stop = until
    rates, pulls = seen
    if start == 0:
        clear_map(state.guard.retired)
    if start == 0 or restart:
        reset(state, draw(key[0], start), DAY if restart else 0)
    if added > 0:
        arrive(state, added)
    for arm in retired:
        retire(state, arm)
    rewards, clicks = draw(key[0], DAY * DAYS), 0.0
    for visitor in range(start, stop):
        slot, arm = ask(state)
        pulls[arm] += 1
        clicks += rates[arm]
        tell(state, slot, 1.0 if unit(draw(rewards, visitor)) < rates[arm] else 0.0)
    return clicks


class Run(NamedTuple):
    """One run: percent of the oracle's clicks, and whether good new arms were found in a day."""

    percent: float
    found: float  # NaN if there are none


def play(name: str, policy: ma.Policy, restarted: bool, run: int, states: dict[str, Any]) -> Run:
    """Play one run, reusing the states of earlier ones."""
    luck = np.random.default_rng(run)
    law = prompts if name.startswith("S7") else pictures
    first = law(luck, FIRST)
    changes = {change.at: change for change in SCENARIOS[name][1](luck)}
    rates = np.concatenate([first, *(change.added for change in changes.values())])
    state = states.get(name)
    if state is None:
        size = len(rates) + BATCH * DAYS
        memory = changing(size - FIRST)
        scaled = policy.with_reward_range((0.0, 1.0))
        state = states[name] = scaled.new_state(memory, n_arms=size, pulls=DAY * DAYS)
    state.guard.sampler.n[0] = FIRST
    loop, key = compiled(stretch, *classes_in(state)), np.array([draw(3, run)], np.uint64)
    pulls, there = np.zeros(len(rates), np.int64), np.arange(len(rates)) < FIRST
    clicks = most = 0.0
    found, arms = math.nan, FIRST
    good = min(change.good for change in [*changes.values(), Change(0)])
    ends = {change.at + DAY - LAST for change in changes.values() if change.good < math.inf}
    times = sorted({*range(0, DAY * DAYS, DAY), *changes, *ends})
    for start, stop in zip(times, [*times[1:], DAY * DAYS], strict=True):
        change = changes.get(start, Change(start))
        gone = np.array(change.retired(pulls, there), np.int64)
        added = len(change.added)
        there[arms : arms + added], there[gone] = True, False
        arms += added
        before = pulls[rates >= good].sum()
        part = restarted and start % DAY == 0, (added, gone), (start, stop), (rates, pulls)
        earned = loop(state, key, *part)
        if start >= DAY:
            clicks += earned
            most += (stop - start) * rates[there].max()
        if start in ends:
            found = float(pulls[rates >= good].sum() - before > LAST / 2)
    return Run(100.0 * clicks / most, found)


def draw_figure(names: list[str], percents: dict[str, list[float]]) -> None:
    from manyarms.core.theme import LIGHT
    from manyarms.report.drawing import drawing, rendered

    marks = {"restarted": ("faint", "|"), "no trials": ("warm", "o"), "trials": ("accent", "o")}
    lines = np.arange(len(names))
    with drawing(6.4, 0.31 * len(names) + 1.0) as figure:
        axes = figure.subplots()
        ends = percents["no trials"], percents["trials"]
        axes.hlines(lines, *ends, color=LIGHT["pale"], lw=2, zorder=1)
        labels = {"no trials": "without trials", "trials": "with trials (default)"}
        for column, (colour, mark) in marks.items():
            label = labels.get(column, "restarted every day")
            axes.scatter(
                percents[column], lines, color=LIGHT[colour], marker=mark, label=label, zorder=2
            )
        axes.set_yticks(lines, [f"{SCENARIOS[name][0]}" for name in names])
        axes.invert_yaxis()
        axes.set(xlabel="clicks of days 2 to 11, in percent of an oracle's", xlim=(25, 102))
        figure.legend(loc="outside upper center", ncols=3)
    FIGURE.write_bytes(rendered(figure, "svg"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("scenarios", nargs="*", choices=[*SCENARIOS, []], default=[])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--draw", action="store_true")
    options = parser.parse_args()
    names = options.scenarios or [*SCENARIOS]
    percents: dict[str, list[float]] = {column: [] for column in COLUMNS}
    print(f"{'':43}" + "".join(f"{column:>24}" for column in COLUMNS))
    for name in names:
        cells = []
        for column, (policy, restarted) in COLUMNS.items():
            states: dict[str, Any] = {}
            runs = [play(name, policy, restarted, run, states) for run in range(options.runs)]
            percent = np.array([run.percent for run in runs])
            percents[column].append(float(percent.mean()))
            error = percent.std() / math.sqrt(len(runs))
            found = float(np.mean([run.found for run in runs]))
            share = "" if math.isnan(found) else f"{100 * found:4.0f} %"
            cells.append(f"{percent.mean():7.1f} ±{error:.1f} ({percent.min():.0f}) {share:6}")
        print(f"{name:4}{SCENARIOS[name][0]:39}" + "".join(f"{cell:>24}" for cell in cells))
    if options.draw:
        draw_figure(names, percents)


if __name__ == "__main__":
    main()
