"""Numbers, times and verdicts as people read them."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from markupsafe import Markup

from manyarms.live.estimates import plain
from manyarms.remote.verdict import Judgement, thousands, verdict
from manyarms.serve import messages as m

__all__ = [
    "Judgement",
    "arm_name",
    "cost_of_exploring",
    "count",
    "delay_range",
    "delays_in_words",
    "duration",
    "moment",
    "number",
    "share",
    "thousands",
    "verdict",
]

_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
_ENOUGH = 30  # rewards of a delay, before its mean is compared
_LONGEST = 80  # characters of an arm's name in a table


def number(value: float | None) -> str:
    """Return a number in three digits; an en dash where there is none.

    >>> number(0.12345), number(None), number(-0.5), number(1.05e-5)
    ('0.123', '–', '−0.5', '0')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if abs(value) >= 1000:
        text = thousands(value)
    elif abs(value) >= 0.001:
        text = f"{value:.3g}"
    else:
        text = f"{value:.4f}".rstrip("0").rstrip(".")
    return text.replace("-", "−")


def count(of: int, what: str) -> str:
    """Return how many of something there are.

    >>> count(1, "arm"), count(2000, "arm")
    ('1 arm', '2,000 arms')
    """
    return f"{thousands(of)} {what}{'' if of == 1 else 's'}"


def share(part: float, whole: float) -> str:
    """Return a part in percent.

    >>> share(1, 3), share(1, 100_000), share(0, 0)
    ('33 %', 'under 0.1 %', '0 %')
    """
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.1:
        return "under 0.1 %"
    return f"{percent:.1f} %" if 0 < percent < 10 else f"{percent:.0f} %"


def duration(seconds: float | None) -> str:
    """Return a time that passed, in its largest unit.

    >>> duration(0.25), duration(90), duration(100_000)
    ('0.25 s', '1.5 min', '1.2 d')
    """
    if seconds is None:
        return "–"
    size, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    value = seconds / size
    return f"{value:.0f} {unit}" if value >= 10 or value == round(value) else f"{value:.2g} {unit}"


def delay_range(low: float, high: float | None) -> str:
    """Return the ends of a bin of delays.

    >>> delay_range(0, 1), delay_range(60, 600), delay_range(86400, None)
    ('under 1 s', '1 min to 10 min', '1 d and more')
    """
    if high is None:
        return f"{duration(low)} and more"
    return f"under {duration(high)}" if low == 0 else f"{duration(low)} to {duration(high)}"


def moment(at: float, form: str = "time") -> Markup:
    """Return a moment; the page's script writes it in the reader's own time zone."""
    when = datetime.fromtimestamp(at, UTC)
    shown = when.strftime("%H:%M UTC" if form == "time" else "%Y-%m-%d %H:%M UTC")
    return Markup('<time datetime="{}" data-form="{}">{}</time>').format(
        when.isoformat(timespec="seconds"), form, shown
    )


def arm_name(arm: str | int, longest: int = _LONGEST) -> str:
    """Return what an arm is called, short, and without letters that change the text around it.

    >>> arm_name(7), arm_name("a" + chr(0x202E) + "b")
    ('arm 7', 'a�b')
    """
    if isinstance(arm, int):
        return f"arm {arm}"
    return plain(arm, at_most=longest) if arm.strip() else "(blank)"


def cost_of_exploring(exploring: m.Exploring, told: int) -> tuple[str, str]:
    """Return what exploring has cost so far, and how that was reckoned."""
    if exploring.given_up is None:
        return "Not known yet", "It takes a recommended arm with an interval."
    low, high = exploring.given_up
    always = f"if the recommended arm had been pulled all {thousands(told)} times"
    if high <= 0:
        return "Nothing", f"The sum of rewards would be no larger {always}."
    much = f"At most {number(high)}" if low <= 0 else f"{number(low)} to {number(high)}"
    return much, f"The sum of rewards would be larger by this {always}."


def delays_in_words(flight: m.InFlightView) -> Judgement:
    """Return whether rewards that come late differ from those that come early."""
    if flight.alarm:
        return Judgement("bad", "Biased", flight.alarm)
    seen = [b for b in flight.delays if b.count >= _ENOUGH]
    if len(seen) < 2:
        said = "All rewards took about the same time" if seen else "There are too few rewards"
        return Judgement("open", "Not known", f"{said}, so there is nothing to compare.")
    return Judgement("good", "No sign", "Early and late rewards differ no more than by chance.")
