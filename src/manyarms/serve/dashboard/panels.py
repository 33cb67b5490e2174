"""The panels of the list and of an experiment: views, rendered as HTML."""

from __future__ import annotations

import functools
import math
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from manyarms.core import theme
from manyarms.core.tabular import plain
from manyarms.inference.uneven_losses import ERROR
from manyarms.serve import messages as m
from manyarms.serve.dashboard import charts
from manyarms.serve.dashboard.judgement import Judgement, thousands, verdict
from manyarms.serve.views import SORTS

if TYPE_CHECKING:
    from manyarms.serve.service import Service

HERE = Path(__file__).parent
PANELS = ("header", "deploy", "leaders", "reward", "pending")  # all but arms
_LEADERS = 20
_ARMS = 25
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
_ENOUGH = 30  # rewards in a bin of delays before its mean is compared
_LONGEST = 80  # characters of an arm's name in a table
_LAST = 253_402_300_799  # the latest time of `datetime` (seconds since 1970)


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "thousands": thousands,
        "count": count,
        "number": number,
        "mean": mean,
        "duration": duration,
        "moment": moment,
        "arm": arm_name,
        "prose": prose,
        "urlencode_all": lambda text: quote(text, safe=""),
    }
    made.globals |= {
        "mark": Markup(theme.MARK),
        "share": share,
        "mean_of": mean_of,
        "interval_text": interval_text,
        "delay_range": delay_range,
        "verdict": verdict,
    }
    drawn = made.get_template("charts.html").module
    made.globals |= {
        name: getattr(drawn, name) for name in ("bar", "parts_bar", "interval", "lines")
    }
    return made


def template(name: str, /, **content: Any) -> str:
    """Render a template."""
    return _environment().get_template(f"{name}.html").render(**content)


async def draw_list(service: Service, cursor: str) -> dict[str, str]:
    """Return the panel with a page of the experiments."""
    listing = await service.listing(cursor)
    content = {"listing": listing, "cursor": cursor, "root": service.root_path}
    return {"list": template("panels/list", **content)}


async def draw_experiment(service: Service, name: str, kept: dict[str, Any]) -> dict[str, str]:
    """Return the panels of an experiment; `kept` caches views that depend only on events."""
    summary: m.ExperimentSummary = await service.view("summary", name)
    kept["summary"] = summary
    if kept.get("seq") != (summary.seq, summary.n_arms):
        kept["leaders"] = await service.view("leaders", name, k=_LEADERS)
        kept["course"] = await service.view("course", name)
        kept["uplift"] = await service.view("uplift", name)
        kept["seq"] = summary.seq, summary.n_arms
    looked = {
        "summary": summary,
        "leaders": kept["leaders"].arms,
        "pending": await service.view("pending", name),
        "root": service.root_path,
    }
    looked |= _computed(looked, kept["course"])
    looked["uplift"] = uplift_in_words(kept["uplift"])
    drawn = {panel: template(f"panels/{panel}", **looked) for panel in PANELS}
    return drawn | {"state": summary.state}


def _computed(looked: dict[str, Any], course: m.Course) -> dict[str, Any]:
    """Return what templates show in addition to the views."""
    summary, pending = looked["summary"], looked["pending"]
    return {
        "delays": delays_in_words(pending, summary.spec),
        "losses": losses_in_words(pending),
        "plots": charts.reward_plots(course.points, summary.recommended),
        "scale": common_scale(looked["leaders"]),
        "hold": _with_hold(summary, pending),
    }


def common_scale(arms: list[m.ArmView]) -> charts.PlotScale:
    """Return the common scale of the intervals in a table."""
    ends = [v for a in arms for v in (a.low, a.high, a.estimate) if v is not None]
    return charts.scale_of(ends or [0.0, 1.0])


def _with_hold(summary: m.ExperimentSummary, pending: m.PendingView) -> float:
    """Return the window, or one within which 99 % of the rewards have arrived (seconds)."""
    if summary.spec.window is not None:
        return summary.spec.window
    total, seen = sum(b.count for b in pending.delays), 0
    for delays in pending.delays:
        seen += delays.count
        if seen >= 0.99 * total and delays.high is not None:
            return delays.high
    return 48 * 3600.0


async def arms_panel(
    service: Service, name: str, chosen: dict[str, str], *, may_retire: bool
) -> str:
    """Return the panel with a page of arms."""
    sort = chosen.get("sort", "low")
    asked = {
        "search": chosen.get("search", "")[:200],
        "sort": sort if sort in SORTS else "low",
        "cursor": chosen.get("cursor", ""),
    }
    page: m.ArmPage = await service.view("arms", name, **asked, limit=_ARMS)
    rate = any(arm.rate for arm in page.arms)
    about = {"name": name, "may_retire": may_retire, "root": service.root_path, "rate": rate}
    return template("panels/arms", page=page, scale=common_scale(page.arms), **asked, **about)


# Text


def number(value: float | None) -> str:
    """Format a number with three digits; an en dash stands for None.

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


def mean(value: float | None, rate: bool) -> str:
    r"""Format a mean of rewards; in percent if it is a rate.

    >>> mean(0.03125, True), mean(0.03125, False), mean(None, True)
    ('3.12\xa0%', '0.0312', '–')
    """
    if value is None or not rate:
        return number(value)
    return f"{number(100 * value)}\u00a0%"


def interval_text(low: float | None, high: float | None, rate: bool) -> str:
    r"""Format an interval, with one percent sign if it is a rate.

    The lower end is rounded to the digits of the upper end.

    >>> interval_text(0.03125, 0.05, True), interval_text(0.0001234, 0.5, True)
    ('3.12 to 5\xa0%', '0 to 50\xa0%')
    """
    if low is None or high is None:
        return f"{mean(low, rate)} to {mean(high, rate)}"
    unit = 100 if rate else 1
    digits = 2 - math.floor(math.log10(unit * max(abs(low), abs(high)) or 1.0))
    return f"{number(round(unit * low, digits))} to {mean(high, rate)}"


def mean_of(summary: m.ExperimentSummary, otherwise: str = "Mean reward") -> str:
    """Return the label of a mean of rewards."""
    name = summary.spec.reward
    if not name:
        return otherwise
    if otherwise[0].isupper():
        name = name[0].upper() + name[1:]
    return name if summary.rate else f"{name} per pull"


def count(of: int, what: str) -> str:
    """Return a count with its noun.

    >>> count(1, "arm"), count(2000, "arm")
    ('1 arm', '2,000 arms')
    """
    return f"{thousands(of)} {what}{'' if of == 1 else 's'}"


def share(part: float, whole: float) -> str:
    """Format a part of a whole in percent.

    >>> share(1, 3), share(1, 100_000), share(0, 0)
    ('33 %', 'under 0.1 %', '0 %')
    """
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.1:
        return "under 0.1 %"
    return f"{percent:.1f} %" if 0 < percent < 10 else f"{percent:.0f} %"


def duration(seconds: float | None) -> str:
    """Format a duration in its largest unit.

    >>> duration(0.25), duration(90), duration(100_000)
    ('0.25 s', '1.5 min', '1.2 d')
    """
    if seconds is None:
        return "–"
    size, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    value = seconds / size
    return f"{value:.0f} {unit}" if value >= 10 or value == round(value) else f"{value:.2g} {unit}"


def delay_range(low: float, high: float | None) -> str:
    """Format the ends of a bin of delays.

    >>> delay_range(0, 1), delay_range(60, 600), delay_range(86400, None)
    ('under 1 s', '1 min to 10 min', '1 d and more')
    """
    if high is None:
        return f"{duration(low)} and more"
    return f"under {duration(high)}" if low == 0 else f"{duration(low)} to {duration(high)}"


def moment(at: float, form: str = "time") -> Markup:
    """Format a time; the page's script converts it to the user's time zone."""
    when = datetime.fromtimestamp(min(at, _LAST), UTC)
    shown = when.strftime("%H:%M UTC" if form == "time" else "%Y-%m-%d %H:%M UTC")
    return Markup('<time datetime="{}" data-form="{}">{}</time>').format(
        when.isoformat(timespec="seconds"), form, shown
    )


def arm_name(arm: str | int, longest: int = _LONGEST) -> str:
    """Shorten the name of an arm, and replace characters that change the text around it.

    >>> arm_name(7), arm_name("a" + chr(0x202E) + "b")
    ('arm 7', 'a�b')
    """
    if isinstance(arm, int):
        return f"arm {arm}"
    return plain(arm, at_most=longest) if arm.strip() else "(blank)"


def prose(text: str) -> Markup:
    """Return a text as HTML, with code in backticks marked up.

    >>> prose("Set `hold`, if 1 < 2.")
    Markup('Set <code>hold</code>, if 1 &lt; 2.')
    """
    return Markup(re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def uplift_in_words(uplift: m.UpliftView) -> Judgement | None:
    """Return whether the recommended arm is better than the control; None without a control."""
    if uplift.control is None:
        return None
    if uplift.missing:
        return Judgement("open", "Not compared yet:", uplift.missing)
    amount, over, rest = uplift.text.partition(" over ")
    if not over:
        return Judgement("open", uplift.text, "")
    kind = "good" if uplift.better else "open" if uplift.better is None else "bad"
    unsure = "" if uplift.better is not None else " It could be better or worse."
    return Judgement(kind, amount, f"over {rest}.{unsure}")


def losses_in_words(pending: m.PendingView) -> str:
    """Return a text about arms that lose more or fewer rewards than by chance, or an empty one."""
    if not pending.uneven:
        return ""
    named = [
        f"{share(one.abandoned, one.pulls)} of the pulls of {arm_name(one.arm, 40)} were "
        f"abandoned, but {share(one.others, 1)} of the pulls of all other arms"
        for one in pending.uneven
    ]
    return (
        f"{'; '.join(named)}. If the shares were equal, at most {share(ERROR, 1)} of experiments "
        f"would show this warning, for all arms together and at any time. It also appears if the "
        f"share has changed over time. If low or high rewards are more likely to be lost, the "
        f"means are wrong, and the verdict may be wrong."
    )


def delays_in_words(pending: m.PendingView, spec: m.Spec) -> Judgement:
    """Return whether late rewards differ from early ones."""
    if spec.hold:
        said = "Each reward counts when its window ends, so late rewards cannot bias the means."
        return Judgement("good", "No effect", said)
    if pending.alarm:
        return Judgement("bad", "Yes", pending.alarm)
    if spec.missing is not None and pending.expired:
        said = (
            f"Reported rewards count at once, but the {count(pending.expired, 'reward')} of "
            f"{number(spec.missing)} for windows that ended count late. With `hold`, every reward "
            f"would count when its window ends."
        )
        return Judgement("part", "Rewards of ended windows count late", said)
    seen = [b for b in pending.delays if b.count >= _ENOUGH]
    if len(seen) < 2:
        said = "All rewards took about the same time" if seen else "There are too few rewards"
        return Judgement("open", "Not known yet", f"{said}, so there is nothing to compare.")
    return Judgement("good", "No", "Early and late rewards differ no more than by chance.")
