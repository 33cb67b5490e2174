"""Settings and figures of a page, as plain data: its numbers, how lines look, what is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyarms.core.statistics import mean_interval, median_rank
from manyarms.core.theme import on_dark
from manyarms.report.style import LineStyle, policy_styles, policy_title
from manyarms.simulation.results import Result

_RUNS = 400  # of a policy, about, that a histogram is drawn from …
_OF_A_GROUP = 50  # … and of those that missed, or found, at least: a few misses must be seen


def parameters_text(parameters: Mapping[str, Any]) -> str:
    """Return parameters as one would write them.

    >>> parameters_text({"horizon": 1000, "alpha": 0.25, "problem": "easy"})
    'horizon = 1000, alpha = 0.25, problem = easy'
    """
    return ", ".join(
        f"{name} = {value:.6g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in parameters.items()
    )


def summary(result: Result, most_times: int) -> dict[str, Any]:
    """Return what a page shows of a cell, as plain data, at a limited number of checkpoints.

    The pairs are in the order of `itertools.combinations`: the mean of the differences of final
    regrets and the ends of its 95 % interval, the same of their median, how many runs have a
    difference above 0, below 0, and in all, and how many would decide the mean.
    """
    kept = _thinned(len(result.times), most_times)
    final = result.summary()
    return {
        **({} if result.objective == "earn" else {"objective": result.objective}),
        "times": result.times[kept].tolist(),
        "replications": result.replications,
        "fewest": min(len(rows) for rows in result.rows),
        "policies": result.policies,
        "series": [_series(result, policy, kept) for policy in result.policies],
        "missed": [row.miss_rate for row in final.policies],
        "tails": [[row.q99, row.worst, row.mostly_missed] for row in final.policies],
        "runs": [_runs(rows) for rows in result.rows],
        "pairs": [number for pair in final.pairs for number in pair[2:]],
    }


def _runs(rows: NDArray[Any]) -> dict[str, Any]:
    """Return final regrets in order, of runs that found a best arm and of runs that missed it.

    Of many runs only some are kept, evenly by rank: `each` is how many runs one of those that
    found stands for, and one of those that missed.
    """
    missed = rows["best_pulls"] == 0
    groups = [np.sort(rows["regret"][group, -1]) for group in (~missed, missed)]
    kept = [_kept(own, math.ceil(len(rows) / _RUNS)) for own in groups]
    limits = mean_interval(missed, bounds=(0.0, 1.0))
    return {
        "count": len(rows),
        "each": [len(own) / max(1, len(few)) for own, few in zip(groups, kept, strict=True)],
        "miss_limits": [limits.low, limits.high],
        "found": kept[0].tolist(),
        "lost": kept[1].tolist(),
    }


def _kept(ordered: NDArray[Any], one_in: int) -> NDArray[Any]:
    """Return every `one_in`-th value, or more of them where fewer than 50 would be left.

    >>> [len(_kept(np.arange(count), 5)) for count in (1, 60, 100, 1000)]
    [1, 60, 50, 200]
    """
    step = max(1, min(one_in, len(ordered) // _OF_A_GROUP))
    return ordered[(step - 1) // 2 :: step]


def _series(result: Result, policy: str, kept: NDArray[np.int64]) -> dict[str, list[float]]:
    """Return centres and bands by checkpoint; where runs are too few, a median's ends are nan."""
    regret = result.of(policy)[:, kept]
    limits = (ends[kept] for ends in result.limits(policy))
    ordered = np.sort(regret, axis=0)
    q05, median, q95 = np.quantile(ordered, [0.05, 0.5, 0.95], axis=0)
    rank, none = median_rank(len(regret)), np.full(len(kept), np.nan)
    ends = (ordered[rank - 1], ordered[len(regret) - rank]) if rank else (none, none)
    names = ("mean", "least", "most", "median", "low", "high", "q05", "q95")
    values = (regret.mean(axis=0), *limits, median, *ends, q05, q95)
    return {name: value.tolist() for name, value in zip(names, values, strict=True)}


def _thinned(count: int, most: int) -> NDArray[np.int64]:
    """Return places that are spread evenly over a range; the last place is one of them.

    >>> _thinned(10, 4).tolist(), _thinned(3, 9).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    if count <= most:
        return np.arange(count)
    if most == 1:
        return np.array([count - 1])
    return np.round(np.linspace(0, count - 1, most)).astype(np.int64)


def looks(policies: Iterable[str]) -> dict[str, Any]:
    """Return how each policy looks, as in all figures."""
    return {
        label: _look(policy_title(label), style) for label, style in policy_styles(policies).items()
    }


def _look(title: str, style: LineStyle) -> dict[str, Any]:
    """Return one line's title and style as plain data, with a colour for dark screens."""
    return {
        "title": title,
        "light": style.colour,
        "dark": on_dark(style.colour),
        "dashes": style.dashes,
        "marker": style.marker,
        "filled": style.filled,
    }


def over_time(results: Sequence[Result], first: int) -> dict[str, Any] | None:
    """Return a figure of regret over time; None if no setting has more than its end.

    `first` is the place of the first result's setting among those of the page.
    """
    choices = [
        {"label": parameters_text(result.parameters), "settings": [place]}
        for place, result in enumerate(results, first)
        if len(result.times) > 1
    ]
    return {"kind": "time", "choices": choices} if choices else None


def swept(results: Sequence[Result], first: int, axes: Iterable[str]) -> dict[str, Any] | None:
    """Return a figure of final regret against each parameter of `axes`, where others are equal.

    None if nothing is swept; `first` is as for `over_time`.
    """
    choices = []
    for axis in axes:
        groups: dict[tuple[Any, ...], list[tuple[Any, int]]] = {}
        for place, result in enumerate(results, first):
            if axis in result.parameters:
                others = tuple((k, v) for k, v in result.parameters.items() if k != axis)
                groups.setdefault(others, []).append((result.parameters[axis], place))
        choices += [
            _choice(axis, dict(others), points)
            for others, points in groups.items()
            if len(points) > 1
        ]
    return {"kind": "sweep", "choices": choices} if choices else None


def _choice(axis: str, others: Mapping[str, Any], points: list[tuple[Any, int]]) -> dict[str, Any]:
    numbers = all(isinstance(value, int | float) for value, _ in points)
    if numbers:
        points = sorted(points)
    return {
        "label": f"{axis}, at {parameters_text(others)}" if others else axis,
        "axis": axis,
        "settings": [place for _, place in points],
        "x": [value if numbers else place for place, (value, _) in enumerate(points)],
        "names": None if numbers else [str(value) for value, _ in points],
    }


def curves(
    title: str,
    text: str,
    *,
    axis: str,
    value: str,
    x: Iterable[float],
    lines: Mapping[str, tuple[Iterable[float], LineStyle]],
) -> dict[str, Any]:
    """Return a figure of lines that are not regrets, such as rates, for a `Presentation`.

    `axis` and `value` stand at its axes; `lines` are, by name, a line's values at `x` and its look.

    >>> style = LineStyle("#000000")
    >>> lines = {"half": ([0.0, 0.5], style)}
    >>> made = curves("Half", "x/2.", axis="x", value="y", x=[0, 1], lines=lines)
    >>> made["figure"]["title"], made["setting"]["policies"]
    ('Half', ['Half: half'])
    """
    named = {f"{title}: {name}": line for name, line in lines.items()}  # unlike any policy's label
    return {
        "setting": {
            "times": [float(place) for place in x],
            "replications": 0,
            "policies": list(named),
            "series": [{"mean": [float(y) for y in ys]} for ys, _ in named.values()],
        },
        "figure": {"kind": "curves", "title": title, "text": text, "axis": axis, "value": value},
        "looks": {f"{title}: {name}": _look(name, style) for name, (_, style) in lines.items()},
    }
