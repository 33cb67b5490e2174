"""The advice as a page of text: what `print` shows."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable

from manyarms.advice.candidates import code
from manyarms.advice.table import Advice, AdviceRow

__all__ = ["page"]

_WIDTH = 98
_PERCENT = "Regret, as % of the horizon"


def page(advice: Advice) -> str:
    """Return the whole advice."""
    parts = list(advice.problem)
    if any(row.replications for row in advice.rows):  # else there is nothing to compare
        parts += _tables(advice)
    parts += ["", "Take", f"  {advice.code}", "because"]
    parts += [f"- {sentence}" for sentence in advice.reasons]
    if advice.caveats:
        parts += ["What would change it", *(f"- {sentence}" for sentence in advice.caveats)]
    return "\n".join(_wrapped(parts))


def _tables(advice: Advice) -> list[str]:
    labels = list(dict.fromkeys(row.label for row in advice.rows))
    return [
        "",
        *_curve(advice, labels, f"{_PERCENT} (≤ the upper end of its 95 % interval)", _share),
        "",
        *_curve(advice, labels, "Regret grows at most as T to the power of (theory)", _rate),
        "",
        *_details(advice),
    ]


def _wrapped(lines: Iterable[str]) -> Iterable[str]:
    """Wrap sentences, and leave tables alone."""
    for line in lines:
        is_prose = line and not line.startswith(" ") and "  " not in line
        hang = "  " if line.startswith("- ") else ""
        yield textwrap.fill(line, _WIDTH, subsequent_indent=hang) if is_prose else line


def _curve(
    advice: Advice, labels: list[str], title: str, cell: Callable[[Advice, AdviceRow], str]
) -> list[str]:
    """One line for each policy, one column for each hardness."""
    width = max(len("best arms"), *map(len, labels))
    counted = {row.alpha: row.m for row in advice.rows}
    lines = [
        title,
        f"  {'hardness':<{width}} " + " ".join(f"{_alpha(alpha):>12}" for alpha in counted),
    ]
    if cell is _share:
        counts = " ".join(f"{m:>12,}" for m in counted.values())
        lines[1] += f"{'worst':>10} {'worst':>7}"
        lines.append(f"  {'best arms':<{width}} {counts}{'excess':>10} {'ratio':>7}")
    for label in labels:
        rows = [row for row in advice.rows if row.label == label]
        line = f"  {label:<{width}} " + " ".join(f"{cell(advice, row):>12}" for row in rows)
        if cell is _share:
            line += f"{100 * max(row.excess for row in rows):>10.1f}"
            line += f" {max(row.ratio for row in rows):>7.2f}"
            line += "  <- take" if rows[0].policy == advice.recommended else ""
        lines.append(line)
    return lines


def _alpha(alpha: float) -> str:
    return "infinite" if alpha == math.inf else f"{alpha:.2f}"


def _share(advice: Advice, row: AdviceRow) -> str:
    if row.replications == 0:
        return f"{100 * row.share:.1f} exact"
    return f"{100 * row.share:.1f} (≤{100 * row.high / advice.horizon:.1f})"


def _rate(advice: Advice, row: AdviceRow) -> str:
    return "unproven" if row.rate is None else f"{row.rate:.3f}"


def _details(advice: Advice) -> list[str]:
    """Show the regret: at the bound if there is one, else where the choice is least fitting."""
    own = [row for row in advice.rows if row.policy == advice.recommended]
    least_fitting = max(own, key=lambda row: row.excess).alpha
    rows = advice.at(advice.alpha if advice.bounded else least_fitting)
    codes = [code(row.policy) for row in rows]
    width = max(map(len, codes))
    lines = [
        f"Regret at hardness {_alpha(rows[0].alpha)}",
        f"  {'':<{width}} {'mean':>11} {'95 % interval':>24} {'median':>11} "
        f"{'missed':>7} {'runs':>5}",
    ]
    for row, name in zip(rows, codes, strict=True):
        interval = f"[{row.low:,.1f}, {row.high:,.1f}]" if row.replications > 0 else "-"
        runs = "exact" if row.replications == 0 else f"{row.replications}"
        lines.append(
            f"  {name:<{width}} {row.mean:>11,.1f} {interval:>24} {row.median:>11,.1f} "
            f"{row.miss_rate:>7.1%} {runs:>5}"
        )
    return lines
