"""Show a handle in a notebook: its progress, and its best arms with their intervals.

The chart is an inline SVG without scripts or fonts. Lines and letters have the colour of the page's
text, so the chart is legible on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from manyarms.core.tabular import plain
from manyarms.core.theme import ON_ANY
from manyarms.inference.estimates import PROMISE, ArmEstimate, Progress, count, mean_text

MOST_ARMS_SHOWN = 8

_WIDTH, _ROW, _BAR = 640, 22, 8  # pixels
_LEFT, _RIGHT = 170, 450  # ends of the axis of the intervals (pixels)


def handle_html(
    title: str,
    progress: Progress,
    best: Sequence[ArmEstimate],
    reward_range: tuple[float, float] | None,
) -> str:
    """Return the handle as HTML, which is also well-formed XML."""
    lines = [escape(plain(line, at_most=200)) for line in str(progress).split("\n")]
    shown = list(best[:MOST_ARMS_SHOWN])
    top = 2 * _BAR
    parts = [_progress_bar(progress)]
    if shown:
        low, high = _limits(shown, reward_range)
        parts += [_row(arm, top + k * _ROW, low, high) for k, arm in enumerate(shown)]
        top += len(shown) * _ROW
        parts.append(_axis(top, low, high, progress.rate))
        top += 2 * _ROW
    words = f"{title}: {progress.made}"
    return (
        '<div style="font: 13px system-ui, sans-serif; line-height: 1.5; padding: 4px">'
        f"<div><b>{escape(plain(title, at_most=200))}</b></div>"
        f"<div>{'<br/>'.join(lines)}</div>"
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}" '
        f'height="{top}" style="max-width: 100%" role="img" fill="currentColor" '
        f'aria-label="{escape(plain(words, at_most=200))}">{"".join(parts)}</svg>'
        + ("" if shown else "<div>No reward has been told yet.</div>")
        + "</div>"
    )


def _progress_bar(progress: Progress) -> str:
    """Return a bar of ended pulls, pending pulls, and pulls that are left."""
    whole = progress.horizon or max(1, progress.pulls)
    done = _WIDTH * (progress.told + progress.abandoned) / whole
    asked = _WIDTH * progress.pulls / whole
    return (
        f'<rect width="{_WIDTH}" height="{_BAR}" rx="2" opacity="0.15"/>'
        f'<rect width="{asked:.1f}" height="{_BAR}" rx="2" fill="{ON_ANY}" opacity="0.5"/>'
        f'<rect width="{done:.1f}" height="{_BAR}" rx="2" fill="{ON_ANY}"/>'
    )


def _limits(
    arms: Sequence[ArmEstimate], reward_range: tuple[float, float] | None
) -> tuple[float, float]:
    """Return the ends of the axis."""
    if reward_range is not None:
        return reward_range
    low, high = min(arm.interval[0] for arm in arms), max(arm.interval[1] for arm in arms)
    return (low, high) if high > low else (low - 1.0, high + 1.0)


def _row(arm: ArmEstimate, top: float, low: float, high: float) -> str:
    def x(value: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (value - low) / (high - low)

    name = arm.arm if isinstance(arm.arm, str) else f"arm {arm.arm}"
    middle, text = top + _ROW / 2, top + _ROW / 2 + 4
    return (
        f"<g><title>{escape(plain(str(arm), at_most=300))}</title>"
        f'<text x="{_LEFT - 12}" y="{text}" text-anchor="end">'
        f"{escape(plain(name, at_most=22))}</text>"
        f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{middle}" y2="{middle}" stroke="currentColor" '
        'opacity="0.12"/>'
        f'<line x1="{x(arm.interval[0]):.1f}" x2="{x(arm.interval[1]):.1f}" y1="{middle}" '
        f'y2="{middle}" stroke="{ON_ANY}" stroke-width="3" stroke-linecap="round"/>'
        f'<circle cx="{x(arm.estimate):.1f}" cy="{middle}" r="5" fill="{ON_ANY}"/>'
        f'<text x="{_RIGHT + 12}" y="{text}">{mean_text(arm.estimate, arm.rate)} '
        f'<tspan opacity="0.7">from {count(arm.told, "reward")}</tspan></text></g>'
    )


def _axis(top: float, low: float, high: float, rate: bool) -> str:
    y = top + _ROW / 2 + 4
    return (
        '<g opacity="0.7">'
        f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{top}" y2="{top}" stroke="currentColor"/>'
        f'<text x="{_LEFT}" y="{y}">{mean_text(low, rate)}</text>'
        f'<text x="{_RIGHT}" y="{y}" text-anchor="end">{mean_text(high, rate)}</text>'
        f'<text x="{(_LEFT + _RIGHT) / 2}" y="{y}" text-anchor="middle">mean reward</text>'
        f'<text x="{_LEFT}" y="{y + 18}">best arms by lower bound; {PROMISE}</text></g>'
    )
